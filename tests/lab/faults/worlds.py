"""A busy scenario that bears every fault, a random strategy, and what a trace has to say."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import attrs
import trio

from whenidle_lab.faults import NO_FAULTS, Faults
from whenidle_lab.run import run
from whenidle_lab.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whenidle_actors.turn import Turn
    from whenidle_lab.choices import Candidate, Topic
    from whenidle_lab.faults import FaultKind
    from whenidle_lab.findings import Run
    from whenidle_lab.trace import Happening, What
    from whenidle_lab.world import World


class RandomChoices:
    """Makes every choice at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a test

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - see `Strategy`
        """See `Strategy.order`."""
        return self._random.randrange(len(candidates))

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:  # noqa: ARG002 - the same
        """See `Strategy.pick`."""
        return self._random.choices(range(count), weights)[0]


class Busy(Scenario):
    """An agent with reminders is spoken to every second for a while, by two at once."""

    name = "busy"
    faults = NO_FAULTS

    async def turn(self, world: World, turn: Turn) -> None:
        """Work in two steps."""
        await world.wait(0.5)
        await turn.next_step()

    async def play(self, world: World) -> None:
        """Have two users."""
        async with trio.open_nursery() as nursery:
            for name in ("ann", "ben"):
                nursery.start_soon(self._use, world, name)

    async def _use(self, world: World, name: str) -> None:
        for number in range(2):
            agent = await world.agent("ada")
            if world.once(f"{name} {number}"):
                await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 1 + number})
            await world.send(agent, f"hello {number}")
            await world.wait(1)


def busy(*kinds: FaultKind, engine: str = "memory", **settings: Any) -> Scenario:
    """Return a busy scenario in which faults of some kinds are likely."""
    scenario = Busy()
    allowed = attrs.evolve(Faults(frozenset(kinds), chance=0.9, rounds=40, commits=10, turns=3), **settings)
    scenario.faults = allowed  # type: ignore[misc]  # for this instance alone
    scenario.engine = engine  # type: ignore[misc]  # the same
    return scenario


def runs(count: int, *kinds: FaultKind, engine: str = "memory", **settings: Any) -> Iterator[Run]:
    """Make some runs in which faults of some kinds are likely."""
    for seed in range(count):
        yield run(busy(*kinds, engine=engine, **settings), RandomChoices(seed))


def those(found: Run, what: What) -> list[Happening]:
    """Return the happenings of one kind."""
    return [happening for happening in found.trace if happening.what is what]
