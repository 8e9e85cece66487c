"""Scenarios that fail in ways that are known."""

import itertools
import os
from collections.abc import Sequence

import trio

from whenidle_actors.turn import Turn
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.scenario import Invariant, Scenario
from whenidle_lab.trace import Happening, What
from whenidle_lab.world import World


class Calm(Scenario):
    """Nothing is wrong."""

    name = "calm"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Ask an agent something."""
        agent = await world.agent("ada")
        await world.send(agent, "hello")
        await world.when_idle(agent)


class InOrder(Invariant):
    """Two notes come in the order of their numbers."""

    name = "in-order"

    def __init__(self) -> None:
        self._last = 0

    def happened(self, happening: Happening) -> None:
        """Look at notes."""
        if happening.what is What.NOTE:
            number = int(happening.detail["text"])
            if number < self._last:
                self.fail(f"{number} came after {self._last}")
            self._last = number


class Overtaking(Scenario):
    """Two tasks race; it fails if the second one is first."""

    name = "overtaking"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Let them race."""

        async def write(number: int) -> None:
            world.note(str(number))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, 1)
            nursery.start_soon(write, 2)

    def invariants(self) -> Sequence[Invariant]:
        """See `InOrder`."""
        return [InOrder()]


class Burdened(Overtaking):
    """Draws how many numbers to draw before the race."""

    name = "burdened"

    async def play(self, world: World) -> None:
        """Draw and race."""
        for _ in range(world.draw(9)):
            world.draw(9)
        await super().play(world)


class Draws(Scenario):
    """Draws numbers; it fails if the sum of some of them is high, whatever the others are."""

    name = "draws"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Draw."""
        numbers = [world.draw(10) for _ in range(20)]
        if numbers[3] >= 5 and numbers[11] >= 2:
            raise ValueError(f"{numbers[3]} and {numbers[11]} do not go together")


class Faulty(Scenario):
    """Cannot bear it if its process dies when a commit is handed in; other faults are in the way."""

    name = "faulty"
    bound = 1.0
    faults = Faults(
        frozenset({FaultKind.CRASH_BEFORE_COMMIT, FaultKind.SLOW, FaultKind.JUMP, FaultKind.TURN_RAISES}), chance=0.7
    )

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - see `Scenario`
        """Take a second."""
        await world.wait(1)

    async def play(self, world: World) -> None:
        """Be there once only."""
        if world.life:
            raise RuntimeError("a second life")
        for name in ("ada", "bob"):
            agent = await world.agent(name)
            await world.send(agent, "hello")
            await world.when_idle(agent)


_runs = itertools.count()


class Moody(Scenario):
    """Is another run each time."""

    name = "moody"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Tell what is not a choice."""
        world.note(str(next(_runs)))


class Hanging(Scenario):
    """Never ends."""

    name = "hanging"

    async def play(self, world: World) -> None:  # noqa: ARG002 - see `Scenario`
        """Go on and on."""
        while True:
            pass


class Dying(Scenario):
    """Ends its process, every other time."""

    name = "dying"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Draw, and be ruined or not."""
        if world.draw(2):
            os._exit(7)


class Chatty(Calm):
    """Prints."""

    name = "chatty"

    async def play(self, world: World) -> None:
        """Print."""
        print("what scenarios print is no result")  # noqa: T201 - what it is about
        await super().play(world)


def calm() -> Scenario:
    """Return a scenario."""
    return Calm()


class Nowhere(Calm):
    """Fails with a message that is another one each time, as one with an address in it is."""

    name = "nowhere"

    async def play(self, world: World) -> None:  # noqa: ARG002 - see `Scenario`
        """Fail."""
        raise ValueError(f"no use for number {next(_runs)}")


def test_calm() -> Scenario:
    """Return a scenario, under a name that pytest would collect elsewhere."""
    return Calm()


class Differing(Scenario):
    """Makes other choices each time."""

    name = "differing"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Draw from more and more."""
        world.draw(2 + next(_runs))


class TwoWays(Scenario):
    """Fails in one of two ways, or not."""

    name = "two-ways"
    bound = 1.0

    async def play(self, world: World) -> None:
        """Draw how."""
        how = world.draw(3)
        if how:
            raise KeyError if how == 1 else IndexError


def not_a_scenario() -> int:
    """Return something else."""
    return 1


class Nameless(Calm):
    """Has no name that is one."""

    name = None  # type: ignore[assignment]


class OnPaper(Calm):
    """Wants an engine that is none."""

    engine = "paper"


class Unmade(Calm):
    """Cannot be made."""

    def __init__(self) -> None:
        raise ZeroDivisionError("never")


TOYS = "tests/lab/explore/toys.py"
"""Where they are, seen from the root of the project."""
