"""Calls that cannot be answered as asked, and what they leave behind (SPEC 5.6, 6.9)."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest
import trio

from tests.actors.reminders.faults import Fate
from whenidle_actors.composition import open_host
from whenidle_actors.errors import AgentDisposed, CompositionError, InvalidArgument
from whenidle_actors.reminders import Reminders
from whenidle_actors.tasks import Tasks
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask, UpdateTask
from whenidle_protocol.task_settings import Caller, TaskSettings

from .worlds import NEW, START, THIS, TaskWorld, call, create, every, ical, seconds

UNCERTAIN = (
    "It could not be confirmed that the scheduled tasks are saved. List them before you try again: "
    "the change may have been made."
)
INTERNAL = {
    "code": "internal_error",
    "message": "The scheduled task tool failed unexpectedly. List the tasks to see whether anything changed.",
}
NO_TASK = "task-00000000000000000000000000000000"


async def test_tools_say_when_durability_cannot_be_confirmed(world: TaskWorld) -> None:
    """Each answers `persistence_uncertain` with the operation, never a list or a not-found (SPEC 5.6)."""
    async with world.root() as agent:
        made = await create(agent)
        world.store.judge = lambda _: Fate.FULL
        about = {"id": made["id"]}
        base = {"code": "persistence_uncertain", "message": UNCERTAIN}
        assert await create(agent) == {**base, "operation": "create"}
        assert await call(agent, "edit", action="update", title="x", **about) == {
            **base,
            "operation": "update",
            **about,
        }
        assert await call(agent, "edit", action="delete", **about) == {**base, "operation": "delete", **about}
        world.store.judge = lambda _: Fate.GOES_WELL
        world.store.unreadable_tasks = True
        assert await call(agent, "list") == {**base, "operation": "list"}
        assert await call(agent, "view", **about) == {**base, "operation": "view", **about}
        assert await call(agent, "edit", action="delete", **about) == {**base, "operation": "delete", **about}
        world.store.unreadable_tasks = False
        assert await call(agent, "view", **about) == made


@pytest.mark.parametrize("operation", ["create", "update", "delete"])
async def test_an_uncertain_commit_is_read_back(world: TaskWorld, operation: str) -> None:
    """Kept, the answer is that of a success; lost, it is that nothing is certain, and nothing has changed."""
    async with world.root() as agent:
        made = await create(agent)
        before = await call(agent, "list")

        async def act() -> dict[str, Any]:
            if operation == "create":
                return await create(agent)
            fields = {"title": "x"} if operation == "update" else {}
            return await call(agent, "edit", id=made["id"], action=operation, **fields)

        world.store.fail(Fate.LOST)
        assert (await act())["code"] == "persistence_uncertain"
        assert await call(agent, "list") == before
        world.store.fail(Fate.KEPT)
        assert "code" not in await act()
        assert await call(agent, "list") != before


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
async def test_a_task_whose_creation_stayed_uncertain_comes_due_if_it_is_there(world: TaskWorld, fate: Fate) -> None:
    """Nobody knew whether it was kept, and nothing else happened: it is delivered at its time all the same."""
    async with world.root() as agent:
        world.store.fail(fate)
        world.store.unreadable_tasks = True
        assert (await create(agent))["code"] == "persistence_uncertain"
        world.store.unreadable_tasks = False
        await world.wait(10)
        assert await world.delivered() == ([(10, "title", 10, 0)] if fate is Fate.KEPT else [])


async def test_a_caller_that_cancels_before_its_turn_changes_nothing(world: TaskWorld) -> None:
    """While the mailbox is busy with somebody else's work the call can be taken back (SPEC 5.6)."""
    async with world.root() as agent:
        gate = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.in_queue, gate.wait)
            await world.wait(0)
            scope = trio.CancelScope()

            async def make() -> None:
                with scope:
                    await create(agent)

            nursery.start_soon(make)
            await world.wait(0)
            scope.cancel()
            await world.wait(0)
            gate.set()
        assert (await call(agent, "list"))["total"] == 0


async def test_a_disposed_agent_says_so(world: TaskWorld) -> None:
    """Its tools raise, as everything of it does (SPEC 2.6)."""
    async with world.root() as agent:
        await agent.dispose()
        with pytest.raises(AgentDisposed):
            await create(agent)


async def test_a_defect_of_the_store_is_an_internal_error(world: TaskWorld, caplog: pytest.LogCaptureFixture) -> None:
    """What nobody foresaw goes to the log; the model is told nothing of it."""
    async with world.root() as agent:

        async def fail(_: object) -> None:
            raise ZeroDivisionError("a defect of the store's")

        world.store.before = fail
        with caplog.at_level(logging.WARNING, "whenidle.tasks"):
            assert await create(agent) == INTERNAL
        assert "a defect of the store's" in caplog.text


async def test_a_tool_called_from_inside_a_turn_is_answered(world: TaskWorld) -> None:
    """A running turn makes a task for its own session, which comes when it is idle (CASES 42)."""
    async with world.root() as agent:
        answers: list[dict[str, Any]] = []

        async def plan(turn: Any) -> None:
            if turn.number == 1:
                answers.append(await create(turn.agent, rrule=ical(START + seconds(10), "FREQ=DAILY;COUNT=1")))

        world.during_turn = plan
        await agent.followup("plan")
        await world.wait(10)
        assert answers[0]["kind"] == "at"
        assert [due for _, _, due, _ in await world.delivered()] == [10]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"title": " "}, "invalid_title"),
        ({"title": "x" * 121}, "invalid_title"),
        ({"prompt": ""}, "invalid_prompt"),
        ({"prompt": "x" * 65537}, "invalid_prompt"),
        ({"rrule": "RRULE:FREQ=DAILY"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=SECONDLY"}, "frequency_too_high"),
        ({"rrule": "DTSTART;TZID=Mars/Base:20270101T000000\nRRULE:FREQ=DAILY"}, "invalid_time_zone"),
        ({"rrule": "DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=2"}, "not_future"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;INTERVAL=0"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;BYSETPOS=1"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20280101"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20280101T000000"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY\nRRULE:FREQ=DAILY"}, "invalid_rule"),
        ({"rrule": "DTSTART:20270101T000000\nRRULE:FREQ=DAILY"}, "invalid_rule"),
        ({"target": "moon"}, "invalid_target"),
        ({"colour": "red"}, "internal_error"),
    ],
)
async def test_bad_input_is_refused_and_changes_nothing(world: TaskWorld, changes: dict[str, Any], code: str) -> None:
    """By its own code, on create and on update, quickly (CASES 3, 5, 27; SPEC 6.9)."""
    async with world.root() as agent:
        made = await create(agent)
        assert (await create(agent, **changes))["code"] == code
        if code != "not_future" or "rrule" in changes:
            assert (await call(agent, "edit", id=made["id"], action="update", **changes))["code"] == code
        assert (await call(agent, "list"))["items"] == [made]


async def test_ids_that_are_none_and_calls_that_are_not_formed(world: TaskWorld) -> None:
    """A string that is no id is not found; a call without what it needs is an internal error."""
    async with world.root() as agent:
        made = await create(agent)
        for name in (NO_TASK, "", "../etc", "x" * 65, "\ud800"):
            assert await call(agent, "view", id=name) == {"id": name, "code": "schedule_not_found"}
        for arguments in (
            {"id": made["id"], "action": "update"},
            {"id": made["id"], "action": "delete", "title": "x"},
            {"id": made["id"], "action": "update", "title": "x", "colour": "red"},
            {"id": made["id"], "action": "fly"},
            {"id": 5, "action": "delete"},
            {"id": made["id"], "action": "delete", "expectedUpdatedAt": "yesterday"},
        ):
            assert (await call(agent, "edit", **arguments))["code"] == "internal_error"
        for arguments in ({"limit": 0}, {"limit": 501}, {"offset": -1}, {"active": 1}):
            assert (await call(agent, "list", **arguments))["code"] == "internal_error"
        assert await call(agent, "list") == {"items": [made], "shown": 1, "total": 1, "limit": 100, "offset": 0}


async def test_new_may_not_come_due_more_often_than_the_host_allows(world: TaskWorld) -> None:
    """By create, and by an edit of rule or target (SPEC 6.6)."""
    async with world.root(suite=Tasks(TaskSettings(spacing_seconds=3600))) as agent:
        assert (await create(agent, target="new"))["code"] == "frequency_too_high"
        made = await create(agent)
        assert (await call(agent, "edit", id=made["id"], action="update", target="new"))["code"] == "frequency_too_high"


async def test_the_hosts_own_api_keeps_the_limits(world: TaskWorld) -> None:
    """Title and prompt are trimmed and bounded there, too; without a session there is no `this_session`."""
    async with world.host():
        task = await world.desk.create(CreateTask(" tea ", " make ", every(60), NEW), Caller(""))
        assert (task.title, task.prompt, task.creator) == ("tea", "make", "")
        for bad, code in (
            (CreateTask("", "p", every(60), NEW), "invalid_title"),
            (CreateTask("t", " ", every(60), NEW), "invalid_prompt"),
            (CreateTask("t", "p", every(60), THIS), "invalid_target"),
        ):
            with pytest.raises(ToolError) as refused:
                await world.desk.create(bad, Caller(""))
            assert refused.value.code == code
        with pytest.raises(ToolError):
            await world.desk.edit(UpdateTask(task.id, title=" "), Caller(""))
        with pytest.raises(ToolError):
            await world.desk.edit(UpdateTask(task.id, prompt=" "), Caller(""))
        after = await world.desk.edit(UpdateTask(task.id, title=" x ", prompt=" y "), Caller(""))
        assert after is not None
        assert (after.title, after.prompt) == ("x", "y")
        with pytest.raises(InvalidArgument):
            await world.desk.create(CreateTask("t", "p", every(60), THIS), Caller("no such/id"))
        with pytest.raises(ToolError):
            await world.desk.receipts(NO_TASK)


async def test_reminders_and_tasks_do_not_go_together(world: TaskWorld) -> None:
    """Both have a `schedule_create`; the error says so."""

    async def turn(_: object) -> None: ...

    message = "the suites 'reminders' and 'tasks' both have the tool 'schedule_create'"
    with pytest.raises(CompositionError, match=message):
        async with open_host(store=world.store, turn=turn, clock=world, suites=[Reminders(), Tasks()]):
            pass


async def test_a_suite_needs_a_store_and_one_host(world: TaskWorld) -> None:
    """Without a store, twice, or before it is mounted, it says what to do."""

    async def turn(_: object) -> None: ...

    suite = Tasks()
    with pytest.raises(CompositionError, match="needs a store"):
        async with open_host(store=None, turn=turn, clock=world, suites=[suite]):
            pass
    for use in (lambda: suite.desk, lambda: suite.services, suite.look):
        with pytest.raises(CompositionError, match="not mounted"):
            use()
    async with world.host(suite=suite):
        pass
    with pytest.raises(CompositionError, match="mounted already"):
        async with world.host(suite=suite):
            pass
    assert TargetKind.NEW in set(TargetKind)


async def test_ids_that_come_up_again_are_drawn_again(world: TaskWorld) -> None:
    """A generator seeded alike in two processes makes no two tasks of one id."""
    found = set()
    for _ in range(2):
        async with world.root(rng=random.Random(7)):  # noqa: S311 - that is the point
            found.add((await world.make(every(60), NEW, by="")).id)
    assert len(found) == 2
