"""A simulated store whose commits meet what a test says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_lab.choices import Chooser, Quiet
from whenidle_lab.faults.plan import Fault
from whenidle_lab.scenarios.three_agents import ThreeAgents
from whenidle_lab.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.faults import FaultKind
    from whenidle_lab.trace import What


class FaultyWorld(World):
    """A world without a host, on the clock of the test that runs in it."""

    def __init__(self, engine: str, faults: Sequence[Fault] = ()) -> None:
        scenario = ThreeAgents()
        scenario.engine = engine  # type: ignore[misc]  # for this instance alone
        super().__init__(scenario, Chooser(Quiet()), ())
        self.mischief.begin(faults)

    def those(self, what: What) -> list[dict[str, Any]]:
        """Return the details of the happenings of one kind."""
        return [dict(happening.detail) for happening in self.trace if happening.what is what]


def fault(kind: FaultKind, place: int = 0, *, exponent: int = 10, variant: int = 0) -> Fault:
    """Return a fault of the commit with the number `place`; a delay lasts 1.024 s unless told otherwise."""
    return Fault(kind, place, at_wake=False, exponent=exponent, variant=variant)
