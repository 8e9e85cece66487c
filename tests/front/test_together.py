"""Reminders and tasks on one host: which suites go together, and that both are delivered."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from whenidle import (
    AfterRule,
    Caller,
    CreateTask,
    Host,
    Manager,
    MemoryStore,
    Reminders,
    TargetKind,
    Tasks,
    Turn,
    VirtualClock,
    errors,
    open_host,
    open_manager,
)
from whenidle_actors.errors import CommitUncertain, UnknownSession
from whenidle_actors.stores.base import Batch, SessionHeader

NOW = datetime(2026, 3, 7, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    """Return the clock of the host, which is that of the test."""
    return VirtualClock(NOW, autojump=True)


@asynccontextmanager
async def hosted(clock: VirtualClock, suites: Sequence[Any]) -> AsyncIterator[tuple[Host, list[str]]]:
    """Run a host in memory, and give it with the first lines of the messages of its turns."""
    told: list[str] = []

    async def turn(turn: Turn) -> None:
        told.extend(message.text.splitlines()[0] for message in turn.messages)

    async with open_host(store=MemoryStore(), turn=turn, clock=clock, suites=suites) as host:
        yield host, told


async def test_tasks_without_tools_go_with_reminders(clock: VirtualClock) -> None:
    """No agent gets the task tools, all get those of reminders, and what comes due of both is delivered."""
    tasks = Tasks(presets=())
    async with hosted(clock, [Reminders(), tasks]) as (host, told):
        agent = await host.create_agent("ada")
        assert [tool.name for tool in agent.tools()] == ["schedule_create", "schedule_list", "schedule_delete"]
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        task = CreateTask("Digest", "Sum up.", AfterRule(30), TargetKind.THIS_SESSION)
        await tasks.desk.create(task, Caller("ada"))
        await clock.sleep_until(NOW + timedelta(seconds=61))
        await agent.when_idle()
    assert told == ["[SCHEDULED TASK]", "[SCHEDULE REMINDER]"]


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (None, None, False),
        (None, ["a"], False),
        (["a"], None, False),
        (["a", "b"], ["b"], False),
        (["a"], ["b"], True),
        ([], None, True),
        (None, [], True),
        ([], [], True),
    ],
)
async def test_suites_with_the_same_tools_need_different_presets(
    clock: VirtualClock, first: Sequence[str] | None, second: Sequence[str] | None, *, together: bool
) -> None:
    """Where an agent could be given both, mounting the second is refused with what to do instead."""
    one, other = Tasks(presets=first), Tasks(presets=second)
    one.name = "one"
    async with hosted(clock, [one]) as (host, _):
        if together:
            host.mount(other)
            assert host.suites == (one, other)
            return
        with pytest.raises(errors.CompositionError, match="'one' and 'tasks' both have the tool 'schedule_create'"):
            host.mount(other)
        assert host.suites == (one,)


async def test_reminders_and_task_tools_do_not_go_together(clock: VirtualClock) -> None:
    """They share the name `schedule_create`, and the error says how they could."""
    with pytest.raises(errors.CompositionError, match=r"have them for different presets \(`presets=\(\)`"):
        async with hosted(clock, [Reminders(), Tasks()]):
            pytest.fail("the host opened")


# Sessions that come into being with what is done for them -------------------------------------


class Watched(MemoryStore):
    """A store that counts its commits, and lets somebody else be faster or leaves them in doubt."""

    def __init__(self, *, rival: str = "", uncertain: bool = False) -> None:
        super().__init__()
        self.commits = 0
        self._rival = rival
        self._uncertain = uncertain

    async def commit(self, batch: Batch) -> None:
        self.commits += 1
        rival, self._rival = self._rival, ""
        if rival:
            await super().commit(Batch(created=(SessionHeader(rival, NOW),)))
        await super().commit(batch)
        if self._uncertain:
            raise CommitUncertain("who knows")


@asynccontextmanager
async def managing(store: MemoryStore) -> AsyncIterator[Manager]:
    """Open a manager."""
    async with open_manager(store, clock=VirtualClock(NOW)) as manager:
        yield manager


TEA = {"prompt": "tea", "after_seconds": 60}


async def test_a_reminder_and_its_session_are_one_commit() -> None:
    """There is never a session without it; a message and its session are one commit, too."""
    store = Watched()
    async with managing(store) as manager:
        assert (await manager.call_tool("ada", "schedule_create", TEA, create=True))["id"] == "schedule-1"
        assert (store.commits, (await manager.read("ada")).length) == (1, 1)
        assert (await manager.call_tool("ada", "schedule_create", TEA, create=True))["id"] == "schedule-2"
        assert await manager.send("bob", "hello") == "m0"
        assert (store.commits, (await manager.read("bob")).length) == (3, 1)


@pytest.mark.parametrize(
    ("tool", "arguments", "create"),
    [("schedule_create", TEA, False), ("schedule_list", {}, True), ("schedule_delete", {"id": "schedule-1"}, True)],
)
async def test_other_calls_create_nothing(tool: str, arguments: dict[str, Any], *, create: bool) -> None:
    """A session that is only asked about stays away, and so does one whose reminder is refused."""
    store = Watched()
    async with managing(store) as manager:
        with pytest.raises(UnknownSession):
            await manager.call_tool("ada", tool, arguments, create=create)
        past = {"prompt": "tea", "at": "2001-01-01T00:00:00Z"}
        assert (await manager.call_tool("ada", "schedule_create", past, create=True))["code"] == "not_future"
    assert store.commits == 0


async def test_a_session_that_somebody_else_made_meanwhile_is_used() -> None:
    """By messages, reminders and tasks; each decides anew of what is there."""
    async with managing(Watched(rival="ada")) as manager:
        assert await manager.send("ada", "hello") == "m0"
    async with managing(Watched(rival="ada")) as manager:
        assert (await manager.call_tool("ada", "schedule_create", TEA, create=True))["id"] == "schedule-1"
        assert (await manager.read("ada")).length == 1
    async with managing(Watched(rival="ada")) as manager:
        task = await manager.create_task(TASK, Caller("ada"))
        assert await manager.tasks.view(task.id) == task


TASK = CreateTask("Digest", "Sum up.", AfterRule(30), TargetKind.THIS_SESSION)


async def test_a_task_and_its_session_are_one_commit() -> None:
    """The new session has the caller's folder and preset."""
    store = Watched()
    async with managing(store) as manager:
        await manager.create_task(TASK, Caller("ada", cwd="/home", preset="p"))
        header = (await manager.read("ada")).header
        assert (header.cwd, header.preset, store.commits) == ("/home", "p", 1)
        await manager.create_task(TASK, Caller("ada"))
        assert store.commits == 2
        await manager.create_task(CreateTask("x", "y", AfterRule(30), TargetKind.NEW), Caller(""))
        assert [header.id for header in await manager.store.sessions()] == ["ada"]
        with pytest.raises(errors.InvalidArgument):
            await manager.create_task(TASK, Caller("a b"))


async def test_what_is_in_doubt_is_told_or_read_back() -> None:
    """A reminder's answer is `persistence_uncertain`; a task is looked for and found."""
    async with managing(Watched(uncertain=True)) as manager:
        answer = await manager.call_tool("ada", "schedule_create", TEA, create=True)
        assert (answer["code"], answer["operation"]) == ("persistence_uncertain", "create")
        task = await manager.create_task(TASK, Caller("bob"))
        assert json.loads((await manager.store.task(task.id)).data)["id"] == task.id
