"""What is to go wrong in one life: drawn before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from whenidle_lab.choices import Topic
from whenidle_lab.faults.kinds import AT_COMMITS, TOPICS, FaultKind

if TYPE_CHECKING:
    from whenidle_lab.choices import Chooser
    from whenidle_lab.faults.settings import Faults

_EXPONENTS: Final = 41
"""Sizes are 2^0 to 2^40 milliseconds: up to 34 years, and as often below a quarter of an hour as above."""

_DELAYS: Final = 23
"""Delays are 2^0 to 2^22 milliseconds, 70 minutes: what is slower than that is not slow but gone."""

_DOWNTIMES: Final = 32
"""Downtimes are up to 2^31 milliseconds, 25 days."""

_VARIANTS: Final = 4

_WAKES: Final = 0.25
"""Of the rounds of a life so many are the first after time has passed, at least."""


@attrs.frozen
class Fault:
    """One fault that is to happen."""

    kind: FaultKind
    place: int
    """The number of the commit, turn or round in its life, or of the wake if `at_wake`; each from 0."""
    at_wake: bool
    exponent: int
    """How large it is: 0 to 40, each twice the one before."""
    variant: int
    """Which of four forms it takes; what they are depends on the kind."""

    @property
    def millis(self) -> int:
        """Milliseconds by which it moves a clock."""
        return 1 << self.exponent

    @property
    def delay(self) -> float:
        """Seconds of virtual time that it lasts."""
        return (1 << self.exponent % _DELAYS) / 1000

    @property
    def downtime(self) -> float:
        """Seconds of wall time until the next process begins; none for the smallest size."""
        return (1 << self.exponent % _DOWNTIMES) / 1000 if self.exponent else 0.0


def draw_plan(faults: Faults, chooser: Chooser, *, may_crash: bool) -> list[Fault]:
    """Draw what goes wrong in a life.

    Each draw takes three choices: of the kind, of which 0 is none, of the place, and of the size. They are made
    whether there is a fault or not, so that one can be taken out of a recording without moving what follows.
    """
    plan: list[Fault] = []
    for topic in TOPICS:
        kinds = faults.of(topic)
        if not kinds or (topic is Topic.CRASH and not may_crash):
            continue
        weights = [1 - faults.chance, *[faults.chance / len(kinds)] * len(kinds)]
        for _ in range(faults.most):
            picked = chooser.pick(topic, len(weights), weights)
            kind = kinds[max(0, picked - 1)]
            places = _places(kind, faults)
            wakes = int(places * _WAKES) if FaultKind.AT_WAKE in faults.kinds and _is_in_rounds(kind) else 0
            if not picked:
                chooser.skip(topic, places + wakes)
                chooser.skip(topic, _VARIANTS * _EXPONENTS)
            else:
                place = chooser.pick(topic, places + wakes)
                variant, exponent = divmod(chooser.pick(topic, _VARIANTS * _EXPONENTS), _EXPONENTS)
                at_wake = place >= places
                plan.append(Fault(kind, place - places if at_wake else place, at_wake, exponent, variant))
    return plan


def _places(kind: FaultKind, faults: Faults) -> int:
    if kind in AT_COMMITS:
        return faults.commits
    return faults.turns if kind in TOPICS[Topic.TURN] else faults.rounds


def _is_in_rounds(kind: FaultKind) -> bool:
    return kind not in AT_COMMITS and kind not in TOPICS[Topic.TURN]
