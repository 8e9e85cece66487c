"""Scenarios about reminders."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

import trio

from whenidle_actors.turn import Redelivery
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.scenario import Scenario

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World


class Hourly(Scenario):
    """One agent is reminded every hour, for thirty days of good health."""

    name = "hourly"
    horizon: ClassVar[float] = 32 * 86_400.0

    async def play(self, world: World) -> None:
        """Make the reminder, and let a month pass."""
        agent = await world.agent("ada")
        await world.call(agent, "schedule_create", {"prompt": "stretch", "every_seconds": 3600})
        await world.wait(30 * 86_400)


class OneShots(Scenario):
    """Two agents make reminders for once, and delete them about when they come due."""

    name = "one-shots"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=200, commits=25, turns=6)

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - all turns are alike
        """Take a moment, or none."""
        await world.wait(world.draw_span(10))

    async def play(self, world: World) -> None:
        """Have each user make and delete reminders."""
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob"):
                nursery.start_soon(self._use, world, name)

    async def _use(self, world: World, name: str) -> None:
        for number in range(2 + world.draw(4)):
            agent = await world.agent(name)
            if world.once(f"{name} {number}"):
                after = max(1, int(world.draw_span(60)))
                await world.call(agent, "schedule_create", {"prompt": f"tea {number}", "after_seconds": after})
            await world.wait(world.draw_span(10))
            if world.draw(2):
                await world.call(agent, "schedule_delete", {"id": f"schedule-{1 + world.draw(number + 1)}"})
        await world.wait(world.draw_span(60))
        await world.call(await world.agent(name), "schedule_list", {})


class Every(Scenario):
    """An agent has reminders at fixed rates, on a clock that cannot be relied on."""

    name = "every"
    faults: ClassVar[Faults] = Faults.all().without(FaultKind.TURN_FLOODS).sized(rounds=120, commits=20, turns=8)

    async def turn(self, world: World, turn: Turn) -> None:
        """Take some time: now and then longer than until the next occurrence, but not always, or it is never idle."""
        await world.wait(world.choose((1, 30, 60 if turn.number % 3 else 400)))

    async def play(self, world: World) -> None:
        """Make reminders, and step the clock as an operator may."""
        agent = await world.agent("ada")
        for number, seconds in enumerate((300, 300, 450)[: 1 + world.draw(3)]):
            if world.once(f"create {number}"):
                await world.call(agent, "schedule_create", {"prompt": f"look {number}", "every_seconds": seconds})
                await world.wait(world.draw_span(60))
        for _ in range(2 + world.draw(3)):
            await world.wait(world.draw_span(600))
            step = world.draw_span(3600)
            if step and world.draw(2):
                backwards, announce = world.draw(2), not world.draw(2)
                by = timedelta(milliseconds=int(step * 1000))
                world.step_clock(-by if backwards else by, announce=announce)
        await world.call(await world.agent("ada"), "schedule_list", {})


class AtMostOnce(Scenario):
    """Turns that were interrupted are not run again, because the host asked for that."""

    name = "at-most-once"
    faults: ClassVar[Faults] = Faults.all().without(FaultKind.TURN_FLOODS).sized(rounds=150, commits=20, turns=6)

    def options(self) -> dict[str, object]:
        """Ask for at-most-once."""
        return {"redelivery": Redelivery.AT_MOST_ONCE}

    async def turn(self, world: World, turn: Turn) -> None:
        """Work in steps, each of which may be the last."""
        for _ in range(1 + world.draw(2)):
            await world.wait(world.draw_span(1))
            await world.next_step(turn)

    async def play(self, world: World) -> None:
        """Send messages while reminders come due."""
        for number in range(3):
            agent = await world.agent("ada")
            if world.once(f"create {number}"):
                after = 1 + number
                await world.call(agent, "schedule_create", {"prompt": f"tea {number}", "after_seconds": after})
            await world.send(agent, f"hello {number}", world.choose(("followup", "steer", "inject")))
            await world.wait(world.draw_span(10))
        await world.when_idle(await world.agent("ada"))
