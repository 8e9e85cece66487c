"""Round robin: whoever was chosen longest ago goes first. No chance in it, and no faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.choices import Quiet, Topic
from whenidle_lab.strategies.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Candidate, Strategy


@attrs.frozen
class RoundRobin(Plan):
    """Each goes first in its turn. The seed says with which of several newcomers it begins."""

    @property
    def text(self) -> str:
        """See `Plan.text`."""
        return "round-robin"

    def strategy(self, seed: int) -> Strategy:
        """See `Plan.strategy`."""
        return _Rotation(seed)


class _Rotation(Quiet):
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._turns = 0
        self._chosen: dict[Topic, dict[int, int]] = {Topic.TASK: {}, Topic.ACTOR: {}}

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:
        """See `Strategy.order`."""
        chosen = self._chosen[topic]
        fresh = [index for index, candidate in enumerate(candidates) if candidate.id not in chosen]
        if fresh:
            picked = fresh[self._seed % len(fresh)]
        else:
            turns = [chosen[candidate.id] for candidate in candidates]
            picked = turns.index(min(turns))
        chosen[candidates[picked].id] = self._turns
        self._turns += 1
        return picked
