"""What a host tells of: everything that changes, and each kind with its facts (SPEC 7.4)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.actors.faulty_store import Fault
from whenidle_actors.observation import EventKind, HostEvent
from whenidle_actors.stores.base import Changes
from whenidle_actors.tasks import Tasks
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask, DeleteTask, UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import Crash, Script, dying, foreign, hosted, living, settled, sleeping

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn

PROMPT = "tell nobody of the blue door"

Told = list[tuple[EventKind, str, dict[str, Any]]]


def listen(host: Host, *kinds: EventKind) -> Told:
    """Return a list that grows with the events of some kinds, or all but the plain commits."""
    told: Told = []

    def note(event: HostEvent) -> None:
        if event.kind in kinds or (not kinds and event.kind is not EventKind.COMMITTED):
            told.append((event.kind, event.session_id, dict(event.detail)))

    host.subscribe(note)
    return told


async def test_what_becomes_of_messages_is_told(store: FaultyStore, script: Script) -> None:
    """Queued, replaced, removed, taken between two steps, noted about: with ids, never with texts."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        told = listen(host)

        async def step(turn: Turn) -> None:
            await agent.steer(PROMPT)
            await turn.next_step()
            await turn.note({"secret": PROMPT})

        first = await agent.inject(PROMPT)
        await agent.replace(first, PROMPT + "!")
        await agent.remove(first)
        script.on("go", step)
        await agent.followup("go")
        await agent.when_idle()
    assert told[:-2] == [
        (EventKind.MESSAGE_QUEUED, "a", {"message": "m0", "lane": "next-step", "source": "user"}),
        (EventKind.MESSAGE_REPLACED, "a", {"message": "m0"}),
        (EventKind.MESSAGES_REMOVED, "a", {"messages": ["m0"]}),
        (EventKind.MESSAGE_QUEUED, "a", {"message": "m3", "lane": "next-turn", "source": "user"}),
        (EventKind.TURN_STARTED, "a", {"turn": 1, "attempt": 1, "messages": ["m3"]}),
        (EventKind.MESSAGE_QUEUED, "a", {"message": "m5", "lane": "next-step", "source": "user"}),
        (EventKind.MESSAGES_TAKEN, "a", {"turn": 1, "messages": ["m5"]}),
        (EventKind.TURN_NOTED, "a", {"turn": 1}),
        (EventKind.TURN_ENDED, "a", {"turn": 1, "outcome": "completed", "cause": None}),
    ]
    assert PROMPT not in repr(told)


async def test_a_cancel_is_told_with_what_it_removed(store: FaultyStore, script: Script) -> None:
    """An accepted cancel is an event of its own, before the turn ends by it."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        script.every_turn = sleeping(3600)
        await agent.followup("x")
        await settled()
        await agent.followup("y")
        told = listen(host, EventKind.TURN_ABORTED, EventKind.TURN_ENDED)
        await agent.cancel("enough")
        await agent.when_idle()
    assert told == [
        (EventKind.TURN_ABORTED, "a", {"turn": 1, "cause": "enough", "messages": ["m2"]}),
        (EventKind.TURN_ENDED, "a", {"turn": 1, "outcome": "aborted", "cause": "enough"}),
    ]


async def test_a_turn_that_is_found_open_is_told_of_when_it_is_closed(store: FaultyStore, script: Script) -> None:
    """Recovery ends the turn of a process that died, which is an outcome like any other."""
    script.every_turn = sleeping(3600)
    async with dying(store, script) as agent:
        await agent.followup("x")
        await settled()
    async with hosted(store, script) as host:
        told = listen(host, EventKind.TURN_STARTED, EventKind.TURN_ENDED)
        await settled()
    assert told[:2] == [
        (EventKind.TURN_ENDED, "a", {"turn": 1, "outcome": "interrupted", "cause": None}),
        (EventKind.TURN_STARTED, "a", {"turn": 2, "attempt": 2, "messages": ["m0"]}),
    ]


@pytest.mark.parametrize("how", ["completed", "error", "aborted", "cancelled"])
async def test_a_claim_is_told_of_with_its_outcome(store: FaultyStore, script: Script, how: str) -> None:
    """Begin and end, whether the work returned, failed, was aborted, or its caller was cancelled."""

    async def work() -> None:
        if how == "error":
            raise Crash
        if how != "completed":
            await trio.sleep_forever()

    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        told = listen(host, EventKind.MAINTENANCE_STARTED, EventKind.MAINTENANCE_ENDED)

        async def claim() -> None:
            with trio.CancelScope() as scopes[0]:
                try:
                    await agent.run_maintenance(work)
                except Exception as error:  # noqa: BLE001 - which one is another test's
                    raised.append(error)

        scopes, raised = [trio.CancelScope()], list[Exception]()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(claim)
            await settled()
            if how == "aborted":
                await agent.cancel("enough")
            elif how == "cancelled":
                scopes[0].cancel()
    outcome = "aborted" if how == "cancelled" else how
    assert told == [
        (EventKind.MAINTENANCE_STARTED, "a", {}),
        (EventKind.MAINTENANCE_ENDED, "a", {"outcome": outcome}),
    ]


async def test_reminders_are_told_of_from_call_to_delivery(store: FaultyStore, script: Script) -> None:
    """The call and its answer, the reminder, and the delivery with how late it was; the prompt nowhere."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        told = listen(host)
        script.on("busy", sleeping(90))
        await agent.call_tool("schedule_create", {"prompt": PROMPT, "after_seconds": 60})
        await agent.call_tool("schedule_create", {"prompt": PROMPT, "after_seconds": 600})
        await agent.call_tool("schedule_delete", {"id": "schedule-2"})
        await agent.call_tool("schedule_create", {"prompt": PROMPT, "after_seconds": 0})
        calls, told[:] = told[:], []
        await agent.followup("busy")
        await script.advance(timedelta(seconds=100))
        await settled()
    assert calls == [
        (EventKind.REMINDER_CREATED, "a", {"reminder": "schedule-1", "due": "2026-01-01T00:01:00.000Z"}),
        (EventKind.TOOL_ANSWERED, "a", {"tool": "schedule_create", "code": None, "millis": 0.0}),
        (EventKind.REMINDER_CREATED, "a", {"reminder": "schedule-2", "due": "2026-01-01T00:10:00.000Z"}),
        (EventKind.TOOL_ANSWERED, "a", {"tool": "schedule_create", "code": None, "millis": 0.0}),
        (EventKind.REMINDER_DELETED, "a", {"reminder": "schedule-2"}),
        (EventKind.TOOL_ANSWERED, "a", {"tool": "schedule_delete", "code": None, "millis": 0.0}),
        (EventKind.TOOL_ANSWERED, "a", {"tool": "schedule_create", "code": "invalid_rule", "millis": 0.0}),
    ]
    assert (EventKind.REMINDER_DELIVERED, "a", {"reminders": ["schedule-1"], "late_millis": [30_000]}) in told
    queued = [detail["source"] for kind, _, detail in told if kind is EventKind.MESSAGE_QUEUED]
    assert queued == ["user", "schedule"]
    assert PROMPT not in repr(told) + repr(calls)


async def test_tasks_are_told_of_from_creation_to_deletion(store: FaultyStore, script: Script) -> None:
    """Created, changed, delivered with what it stands for, and deleted; a delivery is not a change besides."""
    tasks = Tasks()
    async with hosted(store, script, suites=[tasks]) as host:
        told = listen(
            host,
            EventKind.TASK_CREATED,
            EventKind.TASK_CHANGED,
            EventKind.TASK_DELIVERED,
            EventKind.TASK_DELETED,
            EventKind.SESSION_CREATED,
        )
        request = CreateTask("Door", PROMPT, EveryRule(60, anchor=script.now()), TargetKind.NEW_ONCE)
        task = await tasks.desk.create(request, Caller("boss"))
        await tasks.desk.edit(UpdateTask(task.id, title="Gate"), Caller(""))
        script.step(timedelta(seconds=190))
        await settled()
        await tasks.desk.edit(DeleteTask(task.id), Caller(""))
    where = task.target.session_id
    assert told == [
        (EventKind.TASK_CREATED, where, {"task": task.id, "due": "2026-01-01T00:01:00.000Z"}),
        (EventKind.TASK_CHANGED, where, {"task": task.id, "due": "2026-01-01T00:01:00.000Z"}),
        (EventKind.SESSION_CREATED, where, {"parent": None, "forked_from": None}),
        (EventKind.TASK_DELIVERED, where, {"tasks": [task.id], "late_millis": [10_000], "missed": [2]}),
        (EventKind.TASK_DELETED, "", {"task": task.id}),
    ]


async def test_a_task_that_has_lost_its_session_is_told_of(store: FaultyStore, script: Script) -> None:
    """The failure and the change of the task are both told."""
    tasks = Tasks()
    async with hosted(store, script, suites=[tasks]) as host:
        request = CreateTask("Door", PROMPT, AfterRule(60), TargetKind.THIS_SESSION)
        task = await tasks.desk.create(request, Caller("ghost"))
        told = listen(host, EventKind.TASK_FAILED, EventKind.TASK_CHANGED)
        await script.advance(timedelta(seconds=60))
        await settled()
    assert [(kind, session) for kind, session, _ in told] == [
        (EventKind.TASK_CHANGED, "ghost"),
        (EventKind.TASK_FAILED, "ghost"),
    ]
    assert told[0][2] == {"task": task.id, "due": None}


async def test_a_commit_is_told_with_size_and_duration(store: FaultyStore, script: Script) -> None:
    """What it wrote, in numbers, how many bytes of text, and how long it took in monotonic time."""
    async with living(store, script) as agent:
        told: Told = []
        agent.services.announcer.subscribe(
            lambda event: told.append((event.kind, event.session_id, dict(event.detail)))
        )
        async with trio.open_nursery() as nursery:
            with store.held():
                nursery.start_soon(agent.inject, "ä")
                await trio.sleep(0.25)
        text = store._logs["a"].records[0].data
    assert told[0] == (
        EventKind.COMMITTED,
        "a",
        {"events": 1, "sessions": 0, "tasks": 0, "receipts": 0, "bytes": len(text.encode()), "millis": 250.0},
    )


@pytest.mark.parametrize(
    ("fault", "error", "uncertain"),
    [
        (Fault.REFUSED, "StoreFull", False),
        (Fault.UNCERTAIN_KEPT, "CommitUncertain", True),
        (Fault.BROKEN, "ZeroDivisionError", False),
    ],
)
async def test_a_commit_that_fails_is_told_as_such(
    store: FaultyStore, script: Script, fault: Fault, error: str, uncertain: bool
) -> None:
    """Whether it certainly changed nothing, or its outcome is unknown; nothing is told of what it held."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        told = listen(host, EventKind.COMMIT_FAILED, EventKind.MESSAGE_QUEUED)
        store.will(fault)
        with pytest.raises(Exception, match=r".*"):
            await agent.inject("x")
    assert told == [(EventKind.COMMIT_FAILED, "a", {"error": error, "uncertain": uncertain, "millis": 0.0})]


async def test_what_a_fork_inherits_happened_to_another(store: FaultyStore, script: Script) -> None:
    """A fork is a new session; messages of its prefix are not told of as its own."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.inject("x")
        told = listen(host)
        fork = await host.fork("a", new_id="b")
        await fork.inject("y")
    assert told[:3] == [
        (EventKind.SESSION_CREATED, "b", {"parent": None, "forked_from": "a"}),
        (EventKind.AGENT_STARTED, "b", {}),
        (EventKind.MESSAGE_QUEUED, "b", {"message": "m1", "lane": "next-step", "source": "user"}),
    ]


async def test_a_step_of_the_clock_is_told(store: FaultyStore, script: Script) -> None:
    """With its size in milliseconds, negative if set back."""
    async with hosted(store, script) as host:
        told = listen(host, EventKind.CLOCK_STEPPED)
        await settled()
        script.step(timedelta(hours=-1))
        await settled()
        script.step(timedelta(seconds=1.5))
        await settled()
    assert told == [
        (EventKind.CLOCK_STEPPED, "", {"by_millis": -3_600_000}),
        (EventKind.CLOCK_STEPPED, "", {"by_millis": 1_500}),
    ]


async def test_what_others_append_is_told(store: FaultyStore, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which session another process has touched, and that tasks have changed, is told when it is noticed."""
    reports = trio.open_memory_channel[Any](10)
    monkeypatch.setattr(store, "changed_elsewhere", reports[1].receive)
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        told = listen(host, EventKind.SESSION_CHANGED_ELSEWHERE, EventKind.TASK_CHANGED_ELSEWHERE)
        await foreign(agent, "x")
        await reports[0].send(Changes(frozenset({"a"}), tasks=True))
        await settled()
    assert told == [
        (EventKind.TASK_CHANGED_ELSEWHERE, "", {}),
        (EventKind.SESSION_CHANGED_ELSEWHERE, "a", {}),
    ]


async def test_no_event_is_made_that_nobody_hears(
    store: FaultyStore, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an observer neither the clock is read for an event nor a commit looked into."""

    def never(*_: object) -> None:
        raise AssertionError("made for nobody")

    for name in ("HostEvent", "events_of", "size_of"):
        monkeypatch.setattr(f"whenidle_actors.announcer.{name}", never)
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 60})
        await agent.followup("x")
        await script.advance(timedelta(seconds=61))
        await settled()
    assert len(script.turns) == 2


def test_every_kind_has_a_name_like_the_others() -> None:
    """Names are unique, of lower-case words with hyphens: programs compare them."""
    names = [kind.value for kind in EventKind]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
