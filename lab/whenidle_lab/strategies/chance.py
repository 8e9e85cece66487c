"""What the strategies of chance have in common: how they pick an option that is neither a task nor an actor."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Topic


class Chance:
    """Picks options at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).random  # noqa: S311 - a run that can be had again, not a secret

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:  # noqa: ARG002 - all alike
        """See `Strategy.pick`; an option of weight 0 is never picked."""
        if weights is None:
            return int(self._draw() * count)
        left = self._draw() * sum(weights)
        for option, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return option
        return max(option for option, weight in enumerate(weights) if weight)  # a sum that was rounded up
