"""Random walk: whatever could run next is equally likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.strategies.chance import Chance
from whenidle_lab.strategies.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Candidate, Strategy, Topic


@attrs.frozen
class RandomWalk(Plan):
    """Each order of the tasks of a round is equally likely, whatever the last round's was."""

    @property
    def text(self) -> str:
        """See `Plan.text`."""
        return "random"

    def strategy(self, seed: int) -> Strategy:
        """See `Plan.strategy`."""
        return _Walk(seed)


class _Walk(Chance):
    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - all alike
        return int(self._draw() * len(candidates))
