"""Which faults a scenario bears, and how often they are to happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.faults.kinds import LIES, TOPICS, FaultKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Topic


@attrs.frozen
class Faults:
    """Which faults a run may inject, and how often.

    At the start of each life, `most` times for each topic of which some kind is allowed, it is drawn whether there
    is to be a fault, which, where, and of what size. Where is a place counted from the start of the life,
    equally likely anywhere within the estimate of how many there are; what lies behind the end does not happen.
    """

    kinds: frozenset[FaultKind] = frozenset()
    """The kinds that may happen."""
    chance: float = 0.3
    """How likely each draw is to be a fault: 0 to 1."""
    most: int = 1
    """The most faults of one topic in one life."""
    crashes: int = 3
    """The most deaths of a process in one run."""
    rounds: int = 100
    """An estimate of the rounds of the event loop in a life."""
    commits: int = 20
    """An estimate of its commits."""
    turns: int = 4
    """An estimate of its turns."""

    @classmethod
    def all(cls, *, lies: bool = False) -> Faults:
        """Return settings that allow every kind; with `lies` also those that no runtime can bear (`LIES`)."""
        return cls(frozenset(FaultKind) if lies else frozenset(FaultKind) - LIES)

    def without(self, *kinds: FaultKind) -> Faults:
        """Return these settings without some kinds."""
        return attrs.evolve(self, kinds=self.kinds - set(kinds))

    def sized(self, *, rounds: int, commits: int, turns: int) -> Faults:
        """Return these settings with other estimates of how long a life is."""
        return attrs.evolve(self, rounds=rounds, commits=commits, turns=turns)

    def of(self, topic: Topic) -> Sequence[FaultKind]:
        """Return the kinds of a topic that may happen, always in the same order."""
        return [kind for kind in TOPICS[topic] if kind in self.kinds]


NO_FAULTS = Faults()
"""Nothing goes wrong."""
