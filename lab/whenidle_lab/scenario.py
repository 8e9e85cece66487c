"""What a user writes: a scenario to explore, and invariants that must hold in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from whenidle_lab.faults import NO_FAULTS, Faults
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whenidle_actors.turn import Turn
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World


class Broken(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
        self.text = text


class Invariant(ABC):
    """Something that must hold in every run. Made anew for each run; overrides what it needs."""

    name: ClassVar[str]
    """What to call it: words with hyphens."""

    listens: ClassVar[frozenset[What]] = frozenset(What)
    """The kinds of happenings that it judges: the others are not passed to `happened`."""

    def begin(self, world: World) -> None:  # noqa: B027 - overridden where there is something to do
        """Take the run that begins."""

    def happened(self, happening: Happening) -> None:  # noqa: B027 - the same
        """Judge one happening, at once.

        Raises:
            Broken: by `fail`.
        """

    def settled(self, world: World) -> None:  # noqa: B027 - the same
        """Judge the run as a whole: faults have stopped, and everything had time enough to be delivered.

        Raises:
            Broken: by `fail`.
        """

    def fail(self, text: str) -> NoReturn:
        """Say that the invariant does not hold, and why: names, instants, what was expected."""
        raise Broken(self.name, text)


class EachRound(Invariant):
    """An invariant that also looks at the runtime itself between any two rounds of the event loop."""

    @abstractmethod
    def look(self, world: World) -> None:
        """Judge the runtime as it stands. Called often: must be cheap, and change nothing.

        Raises:
            Broken: by `fail`.
        """


class Scenario(ABC):
    """A story of agents and their users, told to the lab, which tries what can go wrong in it.

    A run makes one host and has `play` do what the users do. If the process dies, the next one opens the
    same store and calls `play` again, from its beginning; `World.once` tells what was done before. When `play`
    returns, faults stop, and the run goes on until everything that is due has been delivered.
    """

    name: ClassVar[str]
    """What to call it on the command line: words with hyphens."""

    faults: ClassVar[Faults] = NO_FAULTS
    """What may go wrong."""

    engine: ClassVar[str] = "memory"
    """What the store keeps its contents in: `memory`, or `sqlite` for the real codec and schema, which is slower."""

    horizon: ClassVar[float] = 86_400.0
    """The most seconds of virtual time that `play` takes in one life; a run that takes longer is a finding."""

    bound: ClassVar[float] = 600.0
    """Seconds of virtual time after faults have stopped in which everything due is delivered and all waiters return."""

    def options(self) -> Mapping[str, Any]:
        """Return arguments for `open_host` beyond store, clock and turn."""
        return {}

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: B027 - an agent may do nothing
        """Be the agent: run one turn."""

    @abstractmethod
    async def play(self, world: World) -> None:
        """Do what the users do, in one life of the process; `world.host` is open."""

    def invariants(self) -> Sequence[Invariant]:
        """Return fresh invariants of the scenario's own, beside those that always hold."""
        return ()
