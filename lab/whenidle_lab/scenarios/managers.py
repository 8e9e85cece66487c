"""A scenario of another process beside the host."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

import trio

from whenidle_actors.errors import StoreError
from whenidle_actors.reminders import Reminders
from whenidle_actors.tasks import Tasks
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.scenario import Scenario
from whenidle_lab.scenarios.tasks import TARGETS, create, tasks_of
from whenidle_lab.scenarios.texts import soon
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_requests import DeleteTask, UpdateTask
from whenidle_protocol.task_settings import Caller

if TYPE_CHECKING:
    from whenidle_actors.offline import Manager
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World

_NOBODY = Caller("")
"""Who changes a task from outside of any session."""


class Managers(Scenario):
    """People at a command line send messages and change reminders and tasks of a host that is at work."""

    name = "managers"
    faults: ClassVar[Faults] = Faults.all().without(FaultKind.TURN_FLOODS).sized(rounds=200, commits=30, turns=6)

    def options(self) -> dict[str, object]:
        """Mount both suites, for different presets, and forget quiet agents."""
        return {
            "suites": [Reminders(presets=("talks",)), Tasks(presets=("plans",))],
            "passivate_after": 5.0,
        }

    async def turn(self, world: World, turn: Turn) -> None:
        """Work in two steps."""
        await world.wait(world.draw_span(1))
        await world.next_step(turn)

    async def play(self, world: World) -> None:
        """Have a user of each kind of agent, and two managers."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._talk, world)
            nursery.start_soon(self._plan, world)
            for number in range(2):
                nursery.start_soon(self._manage, world, number)

    async def _talk(self, world: World) -> None:
        for number in range(3):
            agent = await world.agent("ada", preset="talks")
            if world.once(f"talk {number}"):
                await world.call(agent, "schedule_create", {"prompt": f"tea {number}", "after_seconds": 1 + number})
            await world.send(agent, f"hello {number}", world.choose(("followup", "steer", "inject")))
            await world.wait(world.draw_span(1))
        await world.when_idle(await world.agent("ada", preset="talks"))

    async def _plan(self, world: World) -> None:
        for number in range(2):
            agent = await world.agent("eve", preset="plans")
            if world.once(f"plan {number}"):
                rule = soon(world, 1 + world.draw(5), "FREQ=MINUTELY;COUNT=2")
                await create(world, agent, f"task {number}", rule, world.choose(TARGETS))
            await world.wait(world.draw_span(1))
            await tasks_of(world, agent)

    async def _manage(self, world: World, number: int) -> None:
        manager = world.manager()
        for count in range(2 + world.draw(3)):
            await world.wait(world.draw_span(1))
            with suppress(StoreError, ToolError):  # not there yet, there no more, or unreadable just now
                await self._change(world, manager, f"{number} {count}")

    async def _change(self, world: World, manager: Manager, name: str) -> None:
        """Do one thing at the command line."""
        what = world.choose(("send", "remind", "forget", "run", "pause", "delete"))
        world.note(what, name=name)
        if what == "send":
            await manager.send(world.choose(("ada", "eve")), f"by manager {name}", create=False)
        elif what == "remind":
            await manager.call_tool("ada", "schedule_create", {"prompt": f"by {name}", "after_seconds": 1})
        elif what == "forget":
            await manager.call_tool("ada", "schedule_delete", {"id": f"schedule-{1 + world.draw(3)}"})
        else:
            rows = (await manager.store.tasks()).rows
            if rows:
                await self._change_task(world, manager, what, world.choose(rows).id)

    async def _change_task(self, world: World, manager: Manager, what: str, task_id: str) -> None:
        if what == "run":
            await manager.run_task(task_id)
        elif what == "pause":
            await manager.tasks.edit(UpdateTask(task_id, active=bool(world.draw(2))), _NOBODY)
        else:
            await manager.tasks.edit(DeleteTask(task_id), _NOBODY)
