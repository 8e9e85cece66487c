"""PCT, probabilistic concurrency testing: priorities, and few points at which they change.

Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs,
ASPLOS 2010. Each task has a random priority, and of those that can run the highest always does. Of the k steps of
a run, d - 1 are drawn beforehand; at the i-th of them, the task that is about to run gets the priority i, below
all first ones. A bug of depth d, one that d ordering constraints between steps are enough for, shows itself in one run
with a probability of at least 1 / (n * k ** (d - 1)), where n is the number of tasks.

What is different under trio: it runs all tasks that can run in rounds, each once a round. To the strategy that is a
program in which each task waits at a barrier after each step, and the bound holds for that program: for bugs that
trio can show at all, and for the depth they have there. A step is a choice between two tasks or more. A task that
has no rival is not asked about; a change of its priority would make no difference before it has one. Actors
that are ready have priorities of their own, and the choice among them is a step like any other.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import attrs

from whenidle_lab.choices import Topic
from whenidle_lab.strategies.chance import Chance
from whenidle_lab.strategies.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Candidate, Strategy

DEFAULT_DEPTH = 3
"""Most bugs that were studied in the paper have a depth of at most 2; one more costs a factor k."""

DEFAULT_STEPS = 1_000
"""Steps of a run that nobody has measured."""


@attrs.frozen
class Pct(Plan):
    """Priorities that change at `depth` - 1 of the first `steps` steps, drawn from the seed."""

    depth: int = DEFAULT_DEPTH
    steps: int | None = None

    @property
    def text(self) -> str:
        """See `Plan.text`."""
        return f"pct:{self.depth}" if self.steps is None else f"pct:{self.depth}:{self.steps}"

    @property
    def wants_steps(self) -> bool:
        """See `Plan.wants_steps`."""
        return self.steps is None

    def with_steps(self, steps: int) -> Pct:
        """See `Plan.with_steps`; what was given is kept."""
        return attrs.evolve(self, steps=max(1, steps)) if self.steps is None else self

    def strategy(self, seed: int) -> Strategy:
        """See `Plan.strategy`."""
        return _Priorities(seed, self.depth, self.steps or DEFAULT_STEPS)


class _Priorities(Chance):
    def __init__(self, seed: int, depth: int, steps: int) -> None:
        super().__init__(seed)
        draw = random.Random(f"pct {seed}").randrange  # noqa: S311 - as in `Chance`
        self._changes: dict[int, list[int]] = {}
        for level in range(1 - depth, 0):  # below all first priorities, which lie from 0 to 1
            self._changes.setdefault(draw(steps), []).append(level)
        self._step = 0
        self._priorities: dict[Topic, dict[int, float]] = {Topic.TASK: {}, Topic.ACTOR: {}}

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:
        """See `Strategy.order`."""
        priorities = self._priorities[topic]
        for candidate in candidates:
            if candidate.id not in priorities:
                priorities[candidate.id] = self._draw()
        ranks = [priorities[candidate.id] for candidate in candidates]
        for level in self._changes.get(self._step, ()):
            top = ranks.index(max(ranks))
            ranks[top] = priorities[candidates[top].id] = level
        self._step += 1
        return ranks.index(max(ranks))
