"""One host with tasks after another, on one store and one virtual clock."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.actors.reminders.worlds import START, T0, LongestWaits, World, seconds, settled
from whenidle_actors.tasks import Tasks
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_settings import Caller

from .accounts import Account, millis, take_account

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.task_desk import TaskDesk
    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.task_record import Task

__all__ = [
    "START",
    "T0",
    "TaskWorld",
    "call",
    "create",
    "every",
    "ical",
    "millis",
    "once",
    "seconds",
    "settled",
]

MINUTELY = "FREQ=MINUTELY"
THIS, ONCE, NEW = TargetKind.THIS_SESSION, TargetKind.NEW_ONCE, TargetKind.NEW


class TaskWorld(World):
    """A world whose hosts have the task suite; `tasks` is that of the present host."""

    tasks: Tasks
    hosts = 0

    @asynccontextmanager
    async def host(self, *, suite: Tasks | None = None, **options: Any) -> AsyncIterator[Host]:
        self.tasks = Tasks() if suite is None else suite
        self.hosts += 1
        chance = LongestWaits(self.hosts)  # another for each process, or ids would come up again
        async with super().host(**{"suites": [self.tasks], "rng": chance, **options}) as host:
            yield host

    @property
    def desk(self) -> TaskDesk:
        return self.tasks.desk

    async def make(
        self,
        rule: Rule,
        target: TargetKind = THIS,
        *,
        by: str = "root",
        title: str = "title",
        prompt: str = "prompt",
        **choices: Any,
    ) -> Task:
        """Create a task through the host's own API."""
        return await self.desk.create(CreateTask(title, prompt, rule, target, **choices), Caller(by))

    async def view(self, task: Task) -> Task:
        return await self.desk.view(task.id)

    async def account(self) -> Account:
        """Return what is in the store, audited; it must be open."""
        return await take_account(self.store.inner)

    async def delivered(self) -> list[tuple[float, str, float, int]]:
        """Return what was delivered: second, title, second of the occurrence, and how many it stands for besides."""
        account = await self.account()
        return [
            ((each.at - T0) / 1000, each.title, (each.occurrence - T0) / 1000, each.missed)
            for each in account.deliveries
        ]


def at(number: float) -> datetime:
    """Return the instant so many seconds from the start."""
    return START + seconds(number)


def once(number: float) -> AtRule:
    """Return a rule that comes due once, so many seconds from the start."""
    return AtRule(at(number))


def every(number: int, first: float | None = None) -> EveryRule:
    """Return a rule for each so many seconds, the first time so many seconds from the start."""
    return EveryRule(number, None if first is None else at(first))


def ical(start: datetime, rule: str, zone: str | None = None) -> str:
    """Return the text of a rule that begins at `start`: UTC, or a naive local time in `zone`."""
    text = f"{start:%Y%m%dT%H%M%S}"
    begin = f"DTSTART:{text}Z" if zone is None else f"DTSTART;TZID={zone}:{text}"
    return f"{begin}\nRRULE:{rule}"


async def call(agent: Agent, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call `schedule_<tool>`."""
    answer: dict[str, Any] = await agent.call_tool(f"schedule_{tool}", arguments)
    return answer


async def create(agent: Agent, **changes: Any) -> dict[str, Any]:
    """Create a task by tool: due ten seconds from the start and each minute after, if nothing else is said."""
    begin = START + timedelta(seconds=10)
    arguments = {"title": "title", "prompt": "prompt", "rrule": ical(begin, MINUTELY), "target": "this_session"}
    return await call(agent, "create", **{**arguments, **changes})
