"""A scenario of everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import trio

from whenidle_actors.reminders import Reminders
from whenidle_actors.tasks import Tasks
from whenidle_lab.faults import Faults
from whenidle_lab.scenario import Scenario
from whenidle_lab.scenarios.tasks import TARGETS, create, tasks_of
from whenidle_lab.scenarios.texts import soon

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World


class Mixed(Scenario):
    """Agents with reminders and agents with tasks, on one paced host that forgets quiet ones."""

    name = "mixed"
    faults: ClassVar[Faults] = Faults(Faults.all().kinds, chance=0.3, rounds=300, commits=50, turns=10)

    def options(self) -> dict[str, object]:
        """Mount both suites, for different presets."""
        return {
            "suites": [Reminders(presets=("talks",)), Tasks(presets=("plans",))],
            "max_concurrent_turns": 2,
            "passivate_after": 30.0,
        }

    async def turn(self, world: World, turn: Turn) -> None:
        """Work in steps, and use a tool."""
        await world.wait(world.draw_span(10))
        await world.next_step(turn)
        if world.draw(3) == 1:
            await world.call(turn.agent, "schedule_list", {})

    async def play(self, world: World) -> None:
        """Have two users of each kind of agent."""
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob"):
                nursery.start_soon(self._remind, world, name)
            nursery.start_soon(self._plan, world, "eve")

    async def _remind(self, world: World, name: str) -> None:
        for number in range(2 + world.draw(2)):
            agent = await world.agent(name, preset="talks")
            if world.once(f"{name} {number}"):
                how = {"every_seconds": 300} if world.draw(3) == 1 else {"after_seconds": 1 + world.draw(10)}
                await world.call(agent, "schedule_create", {"prompt": f"tea {number}"} | how)
            await world.wait(world.draw_span(10))
            await world.send(agent, f"hello {number}", world.choose(("followup", "steer", "inject")))
            what = world.choose(("nothing", "cancel", "dispose", "nothing", "nothing", "nothing"))
            if what == "cancel":
                await world.cancel(agent, name, keep_inbox=bool(world.draw(2)))
            elif what == "dispose":
                await world.dispose(agent)
        await world.when_idle(await world.agent(name, preset="talks"))

    async def _plan(self, world: World, name: str) -> None:
        for number in range(1 + world.draw(3)):
            agent = await world.agent(name, preset="plans")
            if world.once(f"{name} {number}"):
                rule = soon(world, 1 + world.draw(10), "FREQ=MINUTELY;COUNT=3")
                await create(world, agent, f"task {number}", rule, world.choose(TARGETS))
            await world.wait(world.draw_span(60))
            tasks = await tasks_of(world, agent)
            changes: tuple[dict[str, object], ...] = ({}, {"action": "update", "active": False}, {"action": "delete"})
            change = world.choose(changes)
            if tasks and change:
                await world.call(agent, "schedule_edit", {"id": tasks[0]["id"], **change})
