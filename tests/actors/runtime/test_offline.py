from __future__ import annotations

import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.faulty_store import FaultyStore, SharedStore
from whenidle_actors.errors import InvalidArgument, UnknownSession, UnknownTool
from whenidle_actors.offline import open_manager
from whenidle_actors.reminders import Reminders
from whenidle_actors.stores.base import Batch, SessionHeader
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_actors.tasks import Tasks
from whenidle_clock import EPOCH
from whenidle_protocol.errors import ToolError
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_settings import Caller, TaskSettings

from .worlds import Script, foreign, hosted, living, told

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from whenidle_actors.offline import Manager


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the test's store is."""
    return tmp_path / "s.db"


@asynccontextmanager
async def managing(path: Path, script: Script) -> AsyncIterator[Manager]:
    """Run a manager beside whatever host there is."""
    async with open_manager(path, clock=script) as manager:
        yield manager


async def until(happened: Callable[[], bool]) -> None:
    """Wait for a host to take notice, which takes it up to a second of real time."""
    while not happened():
        await trio.to_thread.run_sync(time.sleep, 0.01)


async def test_a_running_host_takes_up_what_a_manager_sends(path: Path, script: Script) -> None:
    """To a live agent, to a cold session, and to a session that the manager creates."""
    async with hosted(SqliteStore(path), script) as host:
        await host.create_agent("live")
        await (await host.create_agent("cold")).dispose()
        async with managing(path, script) as manager:
            for name in ("live", "cold", "new"):
                await manager.send(name, f"for {name}")
            await until(lambda: len(script.turns) == 3)
        assert sorted(text for [text] in script.taken) == ["for cold", "for live", "for new"]
        assert {agent.id for agent in host.agents} == {"live", "cold", "new"}


async def test_a_running_host_delivers_a_reminder_that_a_manager_made(path: Path, script: Script) -> None:
    """The alarm is set for a session whose reminder was made beside the host."""
    script.autojump = False
    async with hosted(SqliteStore(path), script) as host:
        agent = await host.create_agent("a")
        async with managing(path, script) as manager:
            created = await manager.call_tool("a", "schedule_create", {"prompt": "tea", "after_seconds": 60})
            assert created["id"] == "schedule-1"
            await until(lambda: host.statistics().alarm.armed == 1)
            script.autojump = True
            await trio.sleep(61)
            await agent.when_idle()
            await until(lambda: len(script.turns) == 1)
    assert "SCHEDULE REMINDER" in script.taken[0][0]


async def test_a_manager_answers_like_an_agent(path: Path, script: Script) -> None:
    """Create, list and delete of reminders, refusals included; tools create no session."""
    async with managing(path, script) as manager:
        with pytest.raises(UnknownSession):
            await manager.call_tool("a", "schedule_list", {})
        assert await manager.ensure_session("a", cwd="/home", preset="p") is True
        assert await manager.ensure_session("a") is False
        assert (await manager.read("a")).header.cwd == "/home"
        created = await manager.call_tool("a", "schedule_create", {"prompt": "tea", "after_seconds": 60})
        assert (await manager.call_tool("a", "schedule_list", {}))[0]["id"] == created["id"]
        refused = await manager.call_tool("a", "schedule_create", {"prompt": " ", "after_seconds": 60})
        assert refused["code"] == "invalid_prompt"
        assert (await manager.call_tool("a", "schedule_delete", {"id": created["id"]}))["deleted"] is True


async def test_a_manager_refuses_what_it_cannot_do(path: Path, script: Script) -> None:
    """Bad ids, unknown sessions and tools, and messages that are none; nothing is created."""
    async with managing(path, script) as manager:
        with pytest.raises(UnknownSession):
            await manager.send("a", "x", create=False)
        with pytest.raises(InvalidArgument):
            await manager.send("a", "x" * (1024 * 1024 + 1))
        for call in (
            manager.send("a b", "x"),
            manager.ensure_session(""),
            manager.read(".a"),
            manager.call_tool("a b", "schedule_list", {}),
        ):
            with pytest.raises(InvalidArgument):
                await call
        await manager.ensure_session("a")
        with pytest.raises(UnknownTool, match="schedule_create"):
            await manager.call_tool("a", "schedule_destroy", {})
        assert [header.id for header in await manager.store.sessions()] == ["a"]


async def test_a_manager_makes_no_reminder_that_no_host_would_deliver(script: Script) -> None:
    """A delegated session has no reminder tools beside a host, either (SPEC 5.1); nothing is written."""
    store = FaultyStore()
    async with hosted(store, script) as host:
        await host.create_agent("parent")
        await host.create_agent("child", parent="parent")
    async with open_manager(store, clock=script) as manager:
        for tool, arguments in (
            ("schedule_create", {"prompt": "tea", "after_seconds": 60}),
            ("schedule_list", {}),
            ("schedule_delete", {"id": "schedule-1"}),
        ):
            with pytest.raises(UnknownTool, match="'child' is a delegated one"):
                await manager.call_tool("child", tool, arguments)
        assert (await manager.read("child")).records == ()


async def test_a_manager_of_the_one_shot_protocol_makes_no_every_reminder(script: Script) -> None:
    """Given the host's choice it refuses what would make the log corrupt for the host (SPEC 5.4)."""
    store, options = FaultyStore(), {"prompt": "tea", "every_seconds": 300}
    async with open_manager(store, clock=script, fixed_rate=False) as manager:
        await manager.ensure_session("a")
        assert (await manager.call_tool("a", "schedule_create", options))["code"] == "invalid_selector"
        once = await manager.call_tool("a", "schedule_create", {"prompt": "tea", "after_seconds": 60})
        assert [item["id"] for item in await manager.call_tool("a", "schedule_list", {})] == [once["id"]]
        assert await manager.call_tool("new", "schedule_create", options, create=True) == {
            **(await manager.call_tool("a", "schedule_create", options)),
        }
        await manager.send("sent", "x")
    async with open_manager(store, clock=script) as manager:
        assert (await manager.call_tool("a", "schedule_create", options))["kind"] == "every"
    async with hosted(store, script, suites=[Reminders(fixed_rate=False)]) as host:
        answer = await (await host.agent("a")).call_tool("schedule_list", {})
        assert answer["code"] == "corrupt_schedule_log"


async def test_a_manager_keeps_the_limits_of_its_host(path: Path, script: Script) -> None:
    """Given the host's settings it makes no more tasks than the host would."""
    settings = TaskSettings(max_active=1)
    tasks = Tasks(settings)
    request = CreateTask("title", "prompt", AtRule(script.now() + timedelta(days=1)), TargetKind.THIS_SESSION)
    async with hosted(SqliteStore(path), script, suites=[tasks]) as host:
        await host.create_agent("a")
        await tasks.desk.create(request, Caller("a"))
        async with open_manager(path, clock=script, settings=settings) as manager:
            with pytest.raises(ToolError, match="1"):
                await manager.create_task(request, Caller("a"))
        assert await host.store.count_active_tasks() == 1


async def test_what_a_manager_sent_waits_for_a_host(path: Path, script: Script) -> None:
    """Without a host a message lies in the log, and the next host takes it up at once."""
    async with managing(path, script) as manager:
        name = await manager.send("a", "x")
        assert told((await manager.read("a")).records) == [f"insert {name} x"]
        assert (await manager.read("a", 1)).records == ()
    async with living(SqliteStore(path), script) as agent:
        await agent.when_idle()
    assert script.taken == [["x"]]


class Slow(FaultyStore):
    """A store in which somebody else creates the session first."""

    async def read(self, session_id: str, start: int = 0) -> object:  # type: ignore[override]  # as much as the test needs
        try:
            return await super().read(session_id, start)
        except UnknownSession:
            await self.other(session_id)
            raise

    async def other(self, session_id: str) -> None:
        await self.commit(Batch(created=(SessionHeader(session_id, EPOCH),)))


async def test_two_managers_may_make_sure_of_the_same_session(script: Script) -> None:
    """The one that comes second finds it made."""
    async with open_manager(Slow(), clock=script) as manager:
        assert await manager.ensure_session("a") is False


async def test_a_message_for_a_session_that_somebody_else_creates_goes_there(script: Script) -> None:
    """It was not there when the manager looked, and is when it commits: the message is the first of that session."""
    async with open_manager(Slow(), clock=script) as manager:
        name = await manager.send("a", "x")
        assert told((await manager.read("a")).records) == [f"insert {name} x"]


async def test_a_change_that_cannot_be_read_is_read_later(script: Script) -> None:
    """A host that is told of a change while the store cannot be read keeps the doubt, and runs what there is."""
    store = SharedStore()
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.inject("known")
        await foreign(agent, "theirs", wake=True)
        store.unreadable = 3
        store.tell("a")
        await trio.sleep(10)
        assert script.taken == [["known", "theirs"]]


async def test_a_cold_session_that_cannot_be_read_is_restored_later(script: Script) -> None:
    """What waits in it is not lost: it is tried again until the store answers."""
    store = SharedStore()
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await foreign(agent, "theirs", wake=True)
        await agent.dispose()
        store.unreadable = 3
        store.tell("a")
        await trio.sleep(10)
        assert script.taken == [["theirs"]]


async def test_a_change_of_an_agent_that_ends_meanwhile_harms_nobody(script: Script) -> None:
    """An agent that is disposed before it has looked leaves the change to its successor (SPEC 3.4)."""
    store = SharedStore()
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await foreign(agent, "theirs", wake=True)
        store.tell("a")
        agent.begin_disposal("disposed")
        await trio.sleep(10)
        (successor,) = host.agents
        assert (successor is agent, script.taken) == (False, [["theirs"]])
