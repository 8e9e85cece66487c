"""What there is to see of a host, and of a store without one."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given

from tests.actors.faulty_store import Fault, FaultyStore
from tests.actors.runtime.worlds import Script, dying, hosted, settled, sleeping
from tests.front.top.test_screen import views
from whenidle import Caller, CreateTask, EveryRule, Reminders, Supervision, TargetKind, Tasks
from whenidle.status.board import watching
from whenidle.status.reading import StoreReader
from whenidle.status.view import AgentView, ClockStep, Coming, Delivered, NoView, View, document, read_document
from whenidle_actors.errors import StoreUnavailable
from whenidle_actors.session import SessionToBe
from whenidle_actors.stores.base import Batch, Role, SessionHeader
from whenidle_actors.stores.task_rows import TaskRow, TaskWrite
from whenidle_protocol import reminder_changes
from whenidle_protocol.session_state import SessionState
from whenidle_protocol.tools import read_create

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from whenidle import Agent, Host

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def script() -> Script:
    """Return a turn function that the test writes, and its clock."""
    return Script()


@pytest.fixture
def store() -> FaultyStore:
    """Return a store that works until it is told to fail."""
    return FaultyStore()


def at(seconds: float) -> datetime:
    """Return an instant after the start."""
    return START + timedelta(seconds=seconds)


async def test_agents_at_work_come_first(store: FaultyStore, script: Script) -> None:
    """Phase, mailbox, inbox, and the turn that runs with when it began; those that are idle behind them."""
    script.every_turn = sleeping(100)
    async with hosted(store, script, max_concurrent_turns=1) as host:
        with watching(host) as board:
            idle, busy, waiting = [await host.create_agent(name) for name in ("idle", "busy", "waiting")]
            await busy.followup("x")
            await settled()
            await busy.followup("y")
            await waiting.followup("x")
            await script.advance(timedelta(seconds=5))
            view = await board.look()
            assert view.agents == (
                AgentView("busy", "running", 0, 1, 1, at(0)),
                AgentView("waiting", "running", 0, 1),
                AgentView("idle", "idle", 0, 0),
            )
            assert (view.agent_count, view.running, view.waiting) == (3, 1, 1)
            assert idle.status.value == "idle"


async def test_deliveries_and_steps_are_remembered(store: FaultyStore, script: Script) -> None:
    """The latest first, with how late the latest of them was; reminders and tasks alike."""
    tasks = Tasks(presets=())
    async with hosted(store, script, suites=[Reminders(), tasks]) as host:
        with watching(host) as board:
            agent = await host.create_agent("a")
            for seconds in (60, 300, 300):
                choice = {"every_seconds": 300} if seconds == 300 else {"after_seconds": 60}
                await agent.call_tool("schedule_create", {"prompt": "x", **choice})
            await settled()
            script.step(timedelta(seconds=90))
            await settled()
            await script.advance(timedelta(seconds=211))
            await settled()
            view = await board.look()
    assert view.deliveries == (
        Delivered(at(300), "a", "schedule-2 and 1 more", 0),
        Delivered(at(90), "a", "schedule-1", 30_000),
    )
    assert view.steps == (ClockStep(at(90), 90_000),)


async def test_what_comes_is_told_with_its_destination(store: FaultyStore, script: Script) -> None:
    """Reminders and tasks together, the earliest first."""
    tasks = Tasks(presets=())
    async with hosted(store, script, suites=[Reminders(), tasks]) as host:
        with watching(host) as board:
            agent = await host.create_agent("a")
            await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 100})
            for minutes, kind in ((1, TargetKind.NEW), (2, TargetKind.THIS_SESSION)):
                rule = EveryRule(60 * minutes, anchor=START)
                await tasks.desk.create(CreateTask(f"T{minutes}", "x", rule, kind), Caller("a"))
            view = await board.look()
    assert view.coming == (
        Coming(at(60), "T1", "a new session"),
        Coming(at(100), "reminder", "a"),
        Coming(at(120), "T2", "a"),
    )
    assert view.task_count == 2


async def test_a_faulted_agent_shows(store: FaultyStore, script: Script) -> None:
    """It is seen as such until it is disposed."""
    async with hosted(store, script, supervision=Supervision(intensity=0)) as host:
        with watching(host) as board:
            agent = await host.create_agent("a")
            store.will(Fault.BROKEN)
            with pytest.raises(ZeroDivisionError):
                await agent.inject("x")
            assert (await board.look()).agents[0].phase == "faulted"


async def test_a_store_that_does_not_answer_leaves_the_rest(
    store: FaultyStore, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the host knows by itself is told anyway."""
    async with hosted(store, script) as host:
        with watching(host) as board:
            await host.create_agent("a")

            async def closed(*_: Any, **__: Any) -> Any:
                await trio.lowlevel.checkpoint()
                raise StoreUnavailable("no")

            monkeypatch.setattr(store, "tasks", closed)
            view = await board.look()
    assert (view.agent_count, view.coming, view.task_count) == (1, (), 0)


async def test_a_board_is_bounded_and_leaves(store: FaultyStore, script: Script) -> None:
    """Whatever happens it keeps the latest few; behind its block the host is not observed any more."""
    async with hosted(store, script) as host:
        with watching(host) as board:
            agent = await host.create_agent("a")
            for _ in range(30):
                await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 1})
                await script.advance(timedelta(seconds=2))
                script.step(timedelta(seconds=10))
                await settled()
            view = await board.look()
            assert (len(view.deliveries), len(view.steps)) == (20, 10)
        assert not _heard(host)


def _heard(host: Host) -> bool:
    return host._services.announcer.heard


@asynccontextmanager
async def reading(store: FaultyStore, script: Script) -> AsyncIterator[StoreReader]:
    """Open a store as a manager does, to be read."""
    async with store.opened(Role.MANAGER):
        yield StoreReader(store, script)


async def test_a_store_tells_phases_by_its_logs(store: FaultyStore, script: Script) -> None:
    """A turn that is open, a message that waits, a reminder to come; what nobody knows is left open."""
    script.every_turn = sleeping(100)
    async with dying(store, script) as agent:
        await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 60})
        await agent.followup("x")
        await settled()
        await agent.inject("y")
        await asleep(agent, script)
    async with reading(store, script) as reader:
        view = await reader.look()
        again = await reader.look()
    assert view.agents == (
        AgentView("a", "turn open", inbox=1, turn=1),
        AgentView("b", "asleep", inbox=0),
    )
    assert [each.where for each in view.coming] == ["a", "b"]
    assert (view.pid, view.running, again) == (None, 1, view)


async def asleep(agent: Agent, script: Script) -> None:
    """Make a session `b` with a reminder to come, as a process beside the host does."""
    session = SessionToBe(agent.services.journal, SessionHeader("b", script.now()), SessionState())
    request = read_create({"prompt": "x", "after_seconds": 70})
    await session.decide(lambda state: reminder_changes.create(state, request, script.now()))


async def test_a_store_tells_the_last_delivery_of_each_task(store: FaultyStore, script: Script) -> None:
    """With its lateness; the latest first."""
    tasks = Tasks(presets=())
    async with hosted(store, script, suites=[tasks]) as _:
        for minutes in (1, 2):
            rule = EveryRule(60 * minutes, anchor=START)
            await tasks.desk.create(CreateTask(f"T{minutes}", "x", rule, TargetKind.NEW_ONCE), Caller(""))
        await settled()
        script.step(timedelta(seconds=150))
        await settled()
    async with reading(store, script) as reader:
        view = await reader.look()
    assert {(each.what, each.late_millis) for each in view.deliveries} == {("T1", 30_000), ("T2", 30_000)}


async def test_what_is_damaged_is_shown_as_such(store: FaultyStore, script: Script) -> None:
    """A log that cannot be read leaves its session, a task that cannot be read its id."""
    async with dying(store, script) as agent:
        script.every_turn = sleeping(100)
        await agent.followup("x")
        await settled()
        row = TaskRow("task-x", "not json", 5, 90_000)
        await store.commit(Batch(tasks=(TaskWrite("task-x", None, row),)))
    store.unreadable = 1
    async with reading(store, script) as reader:
        view = await reader.look()
    assert view.agents == (AgentView("a", "waiting"),)
    assert [(each.what, each.where) for each in view.coming] == [("task-x", "(damaged)")]
    assert view.deliveries == ()


@given(views)
def test_a_view_comes_back_from_its_document(view: View) -> None:
    """Through JSON, with instants to the millisecond."""
    cut = read_document(json.loads(json.dumps(document(view))))
    assert read_document(document(cut)) == cut
    assert document(cut) == document(view)


@pytest.mark.parametrize(
    "value", [None, [], 5, {}, {"store": "x"}, {"store": "x", "now": "2026-01-01T00:00:00.000Z", "agents": 5}]
)
def test_anything_else_is_no_view(value: object) -> None:
    """One exception, whatever is wrong."""
    with pytest.raises(NoView):
        read_document(value)


def test_a_document_of_a_later_version_is_read() -> None:
    """Keys that are not known are passed over."""
    view = read_document({"store": "x", "now": "2026-01-01T00:00:00.000Z", "pid": 5, "weather": "fine"})
    assert view == View("x", START, 5)
