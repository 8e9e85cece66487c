"""Scenarios about tasks of the host."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import trio

from whenidle_actors.tasks import Tasks
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.scenario import Scenario
from whenidle_lab.scenarios.texts import ZONES, local, soon
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_settings import TaskSettings

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World

TARGETS = ("this_session", "new_once", "new")

_FAULTS = Faults.all().without(FaultKind.TURN_FLOODS, FaultKind.AGENT_FORKED).sized(rounds=150, commits=20, turns=5)


class _WithTasks(Scenario):
    """A scenario whose agents have the task tools."""

    faults: ClassVar[Faults] = _FAULTS
    settings: ClassVar[TaskSettings] = TaskSettings()

    def options(self) -> dict[str, object]:
        """Mount the suite."""
        return {"suites": [Tasks(self.settings)]}

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - all turns are alike
        """Take a moment."""
        await world.wait(world.draw_span(10))


async def create(world: World, agent: Agent, title: str, rrule: str, target: str = "this_session") -> str | None:
    """Have a model create a task, and return its id if it got to know it."""
    arguments = {"title": title, "prompt": f"do {title}", "rrule": rrule, "target": target}
    answer = await world.call(agent, "schedule_create", arguments)
    return None if answer is None else answer.get("id")


async def tasks_of(world: World, agent: Agent) -> list[dict[str, Any]]:
    """Have a model list the tasks, and return what it was told of each."""
    answer = await world.call(agent, "schedule_list", {})
    return [] if answer is None else answer.get("items", [])


class TasksOnce(_WithTasks):
    """Tasks that come due once, some of which somebody runs before that, or after."""

    name = "tasks-once"

    async def play(self, world: World) -> None:
        """Make tasks from two agents; run some now."""
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob"):
                nursery.start_soon(self._use, world, name)

    async def _use(self, world: World, name: str) -> None:
        for number in range(1 + world.draw(3)):
            agent = await world.agent(name)
            task_id = None
            if world.once(f"{name} {number}"):
                rule = soon(world, 2 + world.draw_span(10), "FREQ=DAILY;COUNT=1")
                task_id = await create(world, agent, f"{name} {number}", rule)
            await world.wait(world.draw_span(10))
            if task_id is not None and world.draw(2):
                with trio.move_on_after(world.draw_span(60)):
                    await world.run_task(task_id)
        await world.wait(world.draw_span(60))
        await tasks_of(world, await world.agent(name))


class TasksRecurring(_WithTasks):
    """Daily, weekly, cron and finer rules, in zones whose clocks change in these days."""

    name = "tasks-recurring"
    faults: ClassVar[Faults] = (
        Faults.all().without(FaultKind.TURN_FLOODS, FaultKind.AGENT_FORKED).sized(rounds=300, commits=40, turns=15)
    )
    horizon: ClassVar[float] = 10 * 86_400.0

    async def turn(self, world: World, turn: Turn) -> None:
        """Take a moment."""

    async def play(self, world: World) -> None:
        """Go to a week in which clocks change, make tasks, and let some days pass."""
        zone = world.choose(ZONES)
        month, day = world.choose(((3, 28), (10, 24), (3, 7), (4, 4)))
        eve = datetime(2026, month, day, 12, tzinfo=UTC)
        if world.once("go"):
            world.step_clock(eve - world.clock.now().replace(microsecond=0), announce=True)
        agent = await world.agent("ada")
        begin = datetime(2026, month, day, 2, 30)  # noqa: DTZ001 - a local time is naive
        rules = (
            "FREQ=DAILY",
            "FREQ=WEEKLY;BYDAY=SA,SU",
            "FREQ=HOURLY;INTERVAL=6",
            "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=15",
        )
        for number in range(1 + world.draw(3)):
            if world.once(f"create {number}"):
                await create(world, agent, f"task {number}", local(begin, zone, world.choose(rules)))
        if world.once("cron"):
            rule = CronRule(world.choose(("30 */8 * * *", "0 2 * * sun", "15 2,3 * * *")), zone)
            await world.create_task(CreateTask("cron", "look", rule, TargetKind.THIS_SESSION), agent)
        await world.wait(86_400 * (1 + world.draw(2)))


class TasksTargets(_WithTasks):
    """Tasks that create the sessions they are delivered to, one for all occurrences or one for each."""

    name = "tasks-targets"
    faults: ClassVar[Faults] = Faults.all().without(FaultKind.TURN_FLOODS).sized(rounds=150, commits=25, turns=6)
    settings: ClassVar[TaskSettings] = TaskSettings(spacing_seconds=120)

    async def play(self, world: World) -> None:
        """Make tasks with each target, and change the target of some."""
        agent = await world.agent("ada")
        for number in range(2 + world.draw(2)):
            if world.once(f"create {number}"):
                target = TARGETS[(number + world.draw(3)) % 3]
                rule = soon(world, 1 + world.draw_span(10), f"FREQ=MINUTELY;INTERVAL={2 + world.draw(2)};COUNT=3")
                await create(world, agent, f"task {number}", rule, target)
        for _ in range(2):
            await world.wait(120 * world.draw(3) + world.draw_span(10))
            agent = await world.agent("ada")
            tasks = await tasks_of(world, agent)
            if tasks and world.draw(2):
                edit = {"id": world.choose(tasks)["id"], "target": world.choose(TARGETS)}
                await world.call(agent, "schedule_edit", edit | {"action": "update"})


class TasksEdits(_WithTasks):
    """Tasks are changed, paused, resumed, deleted and run by two agents while they come due."""

    name = "tasks-edits"
    faults: ClassVar[Faults] = Faults.all().without(FaultKind.TURN_FLOODS).sized(rounds=200, commits=30, turns=5)

    async def play(self, world: World) -> None:
        """Make two tasks, and have two agents change them."""
        agent = await world.agent("ada")
        for number in range(2):
            if world.once(f"create {number}"):
                rule = soon(world, 1 + number, "FREQ=MINUTELY;COUNT=4")
                await create(world, agent, f"task {number}", rule)
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob"):
                nursery.start_soon(self._change, world, name)

    async def _change(self, world: World, name: str) -> None:
        for number in range(2 + world.draw(3)):
            agent = await world.agent(name)
            tasks = await tasks_of(world, agent)
            if not tasks:
                return
            task = world.choose(tasks)
            await world.wait(world.choose((0, 0.5, 1, 58, 60)))
            edit: dict[str, object] = {"id": task["id"], "action": "update"}
            if world.draw(2):
                edit["expectedUpdatedAt"] = task["updatedAt"]
            edit |= world.choose(
                (
                    {"title": f"{name} {number}"},
                    {"active": task["status"] != "active"},
                    {"rrule": soon(world, 1 + world.draw(3), "FREQ=MINUTELY;COUNT=2")},
                    {"active": False},
                    {"action": "delete"},
                )
            )
            if world.draw(5) == 1:
                with trio.move_on_after(60):
                    await world.run_task(task["id"])
            await world.call(agent, "schedule_edit", edit)


class TasksCatchUp(_WithTasks):
    """The host is down, the machine sleeps and the clock jumps while tasks come due that are not worth much late."""

    name = "tasks-catch-up"
    faults: ClassVar[Faults] = Faults(
        _FAULTS.kinds - {FaultKind.AGENT_DISPOSED, FaultKind.DISK_FULL, FaultKind.UNREADABLE},
        chance=0.35,
        rounds=120,
        commits=15,
    )
    settings: ClassVar[TaskSettings] = TaskSettings(catch_up_seconds=300)

    async def play(self, world: World) -> None:
        """Make tasks that end, or go on; sleep and jump."""
        agent = await world.agent("ada")
        rules = ("FREQ=MINUTELY;COUNT=5", "FREQ=MINUTELY;INTERVAL=7", "FREQ=HOURLY", "FREQ=DAILY;COUNT=1")
        for number in range(2 + world.draw(2)):
            if world.once(f"create {number}"):
                rule = soon(world, 1 + world.draw_span(60), rules[(number + world.draw(2)) % 4])
                await create(world, agent, f"task {number}", rule)
        for number in range(1 + world.draw(3)):
            await world.wait(world.draw_span(60))
            by = timedelta(milliseconds=int(world.draw_span(86_400) * 1000))
            if world.once(f"sleep {number}"):
                world.step_clock(by, announce=not world.draw(2), how=world.choose(("suspend", "step")))
        await tasks_of(world, await world.agent("ada"))


class TasksCrowd(_WithTasks):
    """Many tasks come due together for a few sessions; those of one session arrive as one message."""

    name = "tasks-crowd"
    faults: ClassVar[Faults] = Faults.all().without(FaultKind.TURN_FLOODS).sized(rounds=250, commits=40, turns=10)

    def options(self) -> dict[str, object]:
        """Run one turn at a time."""
        return {**super().options(), "max_concurrent_turns": 1}

    async def play(self, world: World) -> None:
        """Make tasks for the same minute; keep the agents busy when it comes."""
        names = ("ada", "bob", "eve")[: 2 + world.draw(2)]
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self._prepare, world, name)
        await world.wait(10)
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self._occupy, world, name)
        await world.wait(60 * world.draw(2))

    async def _prepare(self, world: World, name: str) -> None:
        agent = await world.agent(name)
        for number in range(2 + world.draw(4)):
            if world.once(f"{name} {number}"):
                count = "COUNT=1" if world.draw(4) == 1 else "COUNT=2"
                await create(world, agent, f"{name} {number}", soon(world, 12, f"FREQ=MINUTELY;{count}"))

    async def _occupy(self, world: World, name: str) -> None:
        agent = await world.agent(name)
        if world.draw(2):
            await world.send(agent, "hello")
        await world.wait(2)
        await world.maintain(agent, world.draw_span(10))
