"""Scenarios about deliveries in which store, clock and users come in between, also when it is tried again."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Final

import trio

from whenidle_actors.tasks import Tasks
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.scenario import Scenario
from whenidle_lab.scenarios.tasks import create, tasks_of
from whenidle_lab.scenarios.texts import soon
from whenidle_protocol.task_settings import TaskSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World

_FAULTS: Final = Faults(
    frozenset(
        {
            FaultKind.REFUSED,
            FaultKind.SLOW,
            FaultKind.UNCERTAIN_LOST,
            FaultKind.UNCERTAIN_KEPT,
            FaultKind.DEFECT,
            FaultKind.DISK_FULL,
            FaultKind.ROLLBACK,
            FaultKind.SUSPEND,
            FaultKind.UNANNOUNCED,
            FaultKind.TURN_IGNORES_CANCEL,
            FaultKind.AGENT_DISPOSED,
            FaultKind.AGENT_RESTARTED,
            FaultKind.AGENT_CANCELLED,
        }
    ),
    chance=0.6,
    most=2,
    rounds=60,
    commits=10,
    turns=3,
)
"""Few kinds, and often: each of them is borne; what matters is that several meet."""


async def _set_back(world: World) -> None:
    """Set the clock back a few checkpoints later: if something is due now, between two looks at the clock."""
    for _ in range(world.draw(8)):
        await trio.lowlevel.checkpoint()
    world.step_clock(timedelta(seconds=-world.choose((0.5, 0.001, 5.0))), announce=not world.draw(2))


class _Disturbed(Scenario):
    """An agent at which something comes due, and two who disturb that."""

    faults: ClassVar[Faults] = _FAULTS

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - all turns are alike
        """Take a moment."""
        await world.wait(world.draw_span(1))

    async def _be_disturbed(self, world: World) -> None:
        """Have both disturb what comes due, and let it come due all the same."""
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(self._disturb, world)
        await world.wait(world.draw_span(1))
        await world.agent("ada")

    @abstractmethod
    async def _disturb(self, world: World) -> None:
        """Disturb it a few times."""


async def _disturb_by(world: World, agent: Agent, what: str, claims: Sequence[float]) -> None:
    """Do one thing to an agent or its clock that disturbs any delivery; a claim takes one of `claims` seconds."""
    if what == "cancel":
        await world.cancel(agent, "not now", keep_inbox=bool(world.draw(2)))
    elif what == "dispose":
        await world.dispose(agent)
    elif what == "maintain":
        await world.maintain(agent, world.choose(claims))
    elif what == "set back":
        await _set_back(world)


class DisturbedReminders(_Disturbed):
    """Reminders come due at an agent that is claimed, cancelled, disposed and restored meanwhile."""

    name = "disturbed-reminders"

    async def play(self, world: World) -> None:
        """Make reminders, and have two disturb their delivery."""
        agent = await world.agent("ada")
        for number in range(3):
            if world.once(f"create {number}"):
                await world.call(agent, "schedule_create", {"prompt": f"tea {number}", "after_seconds": 1 + number})
        await self._be_disturbed(world)

    async def _disturb(self, world: World) -> None:
        for _ in range(3):
            await world.wait(world.choose((1.0, 0.0, 0.1, 0.5)))
            agent = await world.agent("ada")
            what = world.choose(("nothing", "cancel", "dispose", "maintain", "send", "set back"))
            if what == "send":
                await world.send(agent, "hello")
            else:
                await _disturb_by(world, agent, what, (0.5, 1.0, 0.0))


class DisturbedTasks(_Disturbed):
    """One-shot and recurring tasks come due, for the session that made them and for new ones, and are changed then."""

    name = "disturbed-tasks"

    def options(self) -> dict[str, object]:
        """Mount the suite."""
        return {"suites": [Tasks(TaskSettings(spacing_seconds=60))]}

    async def play(self, world: World) -> None:
        """Make tasks that come due in the next seconds, and change them when they do."""
        agent = await world.agent("ada")
        for number in range(2):
            if world.once(f"create {number}"):
                ends = world.choose(("COUNT=1", "COUNT=2", "COUNT=1"))
                target = world.choose(("new", "this_session"))
                await create(world, agent, f"task {number}", soon(world, 2 + number, f"FREQ=MINUTELY;{ends}"), target)
        await self._be_disturbed(world)

    async def _disturb(self, world: World) -> None:
        for _ in range(2):
            await world.wait(world.choose((1.0, 0.0, 0.1, 2.0)))
            agent = await world.agent("ada")
            what = world.choose(("nothing", "edit", "dispose", "maintain", "cancel", "set back"))
            if what == "edit":
                await self._edit(world)
            else:
                await _disturb_by(world, agent, what, (0.5, 1.0, 2.0))

    async def _edit(self, world: World) -> None:
        agent = await world.agent("ada")
        tasks = await tasks_of(world, agent)
        if tasks:
            task = world.choose(tasks)
            edits: tuple[dict[str, object], ...] = ({"title": "anew"}, {"active": True})
            edit = {"id": task["id"], "action": "update", "expectedUpdatedAt": task["updatedAt"], **world.choose(edits)}
            await world.wait(world.choose((0.0, 1.0)))
            await world.call(agent, "schedule_edit", edit)
