"""POS, partial order sampling: each pending event has a random priority of its own, which it keeps until it ran.

Yuan, Yang, Gu: Partial Order Aware Concurrency Sampling, CAV 2018. An event is the next step of one task. It is
given a random priority when it becomes possible, and of the possible ones the highest runs. So of two steps
that could come in either order, each comes first as often as the other, however many steps of others there are
between them; a random walk, which throws anew each time, favours what has been possible for longer.

What is different here. The paper has a second rule: when a step has run, those that race with it, by touching
the same memory, draw again. The lab sees which tasks run, not what they touch, so that rule is left out, and what is
left is what the paper calls BasicPOS. Tasks run in trio's rounds, each once a round, and no step stays pending
for longer than its round; so for tasks each order of a round is equally likely, as it is in a random walk. For
actors the strategy makes a difference: one that is ready, and of low priority, may wait for long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.choices import Topic
from whenidle_lab.strategies.chance import Chance
from whenidle_lab.strategies.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Candidate, Strategy


@attrs.frozen
class Pos(Plan):
    """A random priority for each step that is pending, drawn from the seed."""

    @property
    def text(self) -> str:
        """See `Plan.text`."""
        return "pos"

    def strategy(self, seed: int) -> Strategy:
        """See `Plan.strategy`."""
        return _Events(seed)


class _Events(Chance):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._pending: dict[Topic, dict[int, float]] = {Topic.TASK: {}, Topic.ACTOR: {}}

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:
        """See `Strategy.order`."""
        pending = self._pending[topic]
        for candidate in candidates:
            if candidate.id not in pending:
                pending[candidate.id] = self._draw()
        ranks = [pending[candidate.id] for candidate in candidates]
        picked = ranks.index(max(ranks))
        if topic is Topic.TASK and len(candidates) == 2:  # noqa: PLR2004 - the other one ends the round, unasked
            pending.clear()
        else:
            del pending[candidates[picked].id]
        return picked
