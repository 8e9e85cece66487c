"""Sessions, agents and tasks that are not there, or not as they should be, when something is due (SPEC 6.8)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from tests.actors.reminders.faults import Fate
from whenidle_actors.errors import AgentFaulted, UnknownSession
from whenidle_actors.observation import EventKind
from whenidle_actors.stores.base import Batch, TaskWrite
from whenidle_actors.supervision import Supervision
from whenidle_actors.task_rows import change
from whenidle_clock import to_millis
from whenidle_protocol.task_record import TaskStatus
from whenidle_protocol.task_requests import DeleteTask, UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import NEW, TaskWorld, at, call, every, once

if TYPE_CHECKING:
    from whenidle_actors.stores.base import TaskRow
    from whenidle_actors.turn import Turn
    from whenidle_protocol.task_record import Task


async def test_a_vanished_session_is_a_visible_failure_and_others_go_on(any_world: TaskWorld) -> None:
    """The failure shows on the task, which goes on; a one-shot has ended; other tasks arrive (SPEC 6.8)."""
    world = any_world
    async with world.root() as agent:
        often = await world.make(every(60, 10), by="gone")
        single = await world.make(once(10), by="gone")
        await world.make(once(10), title="other")
        await world.wait(11)
        assert [title for _, title, _, _ in await world.delivered()] == ["other"]
        after = await world.view(often)
        assert (after.status, after.scheduled_at, after.failures, after.deliveries) == (TaskStatus.ACTIVE, at(70), 1, 0)
        ended = await world.view(single)
        assert (ended.status, ended.failures, ended.last_delivery) == (TaskStatus.ENDED, 1, None)
        assert (await call(agent, "view", id=often.id))["lastFailure"] == {
            "scheduledAt": "2026-01-01T00:00:10.000Z",
            "failedAt": "2026-01-01T00:00:10.000Z",
            "targetSessionId": "gone",
            "reason": "there is no session 'gone'",
        }
        assert world.count(EventKind.TASK_FAILED) == 2
        await world.wait(60)
        assert (await world.view(often)).failures == 2
        with pytest.raises(UnknownSession):
            await world.tasks.run(often.id)


async def test_a_vanished_session_that_comes_back_gets_the_next_one(world: TaskWorld) -> None:
    """What failed is not made up for; the next occurrence arrives."""
    async with world.host() as host:
        task = await world.make(every(60, 10), by="late")
        await world.wait(15)
        await host.create_agent("late")
        await world.wait(60)
        assert await world.delivered() == [(70, "title", 70, 0)]
        after = await world.view(task)
        assert (after.failures, after.deliveries, after.missed) == (1, 1, 0)
        assert after.last_failure is not None


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.LOST, Fate.KEPT])
async def test_a_failure_is_counted_once_whatever_becomes_of_its_commit(world: TaskWorld, fate: Fate) -> None:
    """Refused or uncertain: tried again, and one failure in the end."""
    async with world.host():
        task = await world.make(every(300, 10), by="gone")
        world.store.fail(fate)
        await world.wait(20)
        assert (await world.view(task)).failures == 1


async def test_a_pursuit_that_is_aborted_while_it_commits_delivers_once_and_goes_on(world: TaskWorld) -> None:
    """Whatever becomes of the claim, the next occurrence comes due."""
    async with world.root() as agent:
        await world.make(every(300, 10))
        gate = trio.Event()

        async def hold(_: object) -> None:
            await gate.wait()

        world.store.before = hold
        async with trio.open_nursery() as nursery:
            await world.wait(10)
            nursery.start_soon(agent.cancel, "no")
            await world.wait(0)
            gate.set()
        await world.wait(0)
        assert [due for _, _, due, _ in await world.delivered()] == [10]
        await world.wait(300)
        assert [due for _, _, due, _ in await world.delivered()] == [10, 310]


async def test_a_disposed_agent_is_restored_for_what_is_due(world: TaskWorld) -> None:
    """Disposed while a delivery waits for it: nothing enters before it is gone; then its session is restored.

    A task belongs to the host: disposing an agent makes its session cold, and a cold session is restored.
    """
    world.turn_seconds = 100
    async with world.host() as host:
        agent = await host.create_agent("root")
        await world.make(once(10))

        async def stubborn(turn: Turn) -> None:
            with trio.CancelScope(shield=turn.number == 1):
                await trio.sleep(30)

        world.during_turn = stubborn
        await agent.followup("work")
        await world.wait(15)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.dispose)
            await world.wait(14.9)
            assert await world.delivered() == []
            await world.wait(0.1)
        await world.wait(0)
        assert await world.delivered() == [(30, "title", 10, 0)]
        assert (await host.agent("root")) is not agent


async def test_what_is_due_for_a_faulted_agent_waits_until_it_is_disposed(
    world: TaskWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """A one-shot for an agent that was given up is not lost: it is delivered when somebody starts the agent anew."""
    async with world.host(supervision=Supervision(intensity=0)) as host:
        agent, _ = await host.create_agent("root"), await host.create_agent("other")
        task = await world.make(once(10))
        await world.make(once(10), by="other", title="other")

        async def fail() -> None:
            raise RuntimeError("a defect")

        with pytest.raises(RuntimeError, match="a defect"):
            await agent.in_mailbox(fail)
        await world.wait(3600)
        assert agent.is_faulted
        assert [title for _, title, _, _ in await world.delivered()] == ["other"]
        assert (await world.view(task)).status is TaskStatus.ACTIVE
        assert [event.session_id for event in world.events if event.kind is EventKind.DELIVERY_FAILED] == ["root"]
        with pytest.raises(AgentFaulted):
            await world.tasks.run(task.id)
        await agent.dispose()
        await world.wait(0)
        assert (3600, "title", 10, 0) in await world.delivered()


async def test_a_task_whose_text_cannot_be_read_stops_no_other(
    world: TaskWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """It is complained about once, never spun on, kept as it is, and can be deleted (SPEC 3.4)."""
    async with world.root() as agent:
        bad, lonely = await world.make(every(300, 10)), await world.make(every(300, 10), NEW)
        await world.make(every(60, 10), title="good")
        for task in (bad, lonely):
            row = await world.store.task(task.id)
            spoilt = attrs.evolve(row, data="{}", updated_millis=row.updated_millis + 1)
            await world.store.commit(Batch(tasks=(TaskWrite(row.id, row.updated_millis, spoilt),)))
        with caplog.at_level(logging.ERROR, "whenidle.tasks"):
            await world.wait(200)
        texts = [record.data for record in (await world.store.read("root")).records if record.type == "inbox/insert"]
        due = [text.split("occurrence_at: ")[1][11:23] for text in texts]
        assert due == ["00:00:10.000", "00:01:10.000", "00:02:10.000", "00:03:10.000"]
        assert len([r for r in caplog.records if "is due, cannot be read" in r.message]) == 2
        assert world.count(EventKind.DELIVERY_FAILED) == 2
        assert (await call(agent, "view", id=bad.id))["code"] == "internal_error"
        shown = {item["id"]: item.get("code") for item in (await call(agent, "list"))["items"]}
        assert (len(shown), shown[bad.id], shown[lonely.id]) == (3, "internal_error", "internal_error")
        assert (await call(agent, "edit", id=bad.id, action="delete"))["deleted"] is True
        stale = await call(agent, "edit", id=lonely.id, action="delete", expectedUpdatedAt="2026-01-01T00:00:00.000Z")
        assert stale == {"id": lonely.id, "code": "schedule_conflict"}
        await world.desk.edit(DeleteTask(lonely.id, at(0.001)), Caller(""))
        assert (await call(agent, "list"))["total"] == 1


async def test_a_stored_target_that_can_be_no_session_is_a_visible_failure(world: TaskWorld) -> None:
    """An id that no session can have is that of a session that does not exist."""
    async with world.root():
        task = await world.make(every(300, 10))
        target = attrs.evolve(task.target, session_id="no such/id")
        wrong = attrs.evolve(task, target=target, updated_at=at(0.001))
        await world.store.commit(Batch(tasks=(change(task, wrong),)))
        await world.wait(20)
        after = await world.view(task)
        assert after.last_failure is not None
        assert (after.failures, after.last_failure.reason) == (1, "there is no session 'no such/id'")


async def test_a_task_deleted_between_the_sweep_and_its_delivery_is_not_delivered(world: TaskWorld) -> None:
    """The pursuit of a `new` task finds it gone, and what else there is comes at its time (CASES 23)."""
    async with world.root():
        task = await world.make(once(10), NEW)
        await world.make(once(20), title="other")
        real = world.store.due_tasks

        async def due_tasks(*arguments: Any, **options: Any) -> tuple[TaskRow, ...]:
            rows = await real(*arguments, **options)
            if any(row.id == task.id for row in rows):
                await world.desk.edit(DeleteTask(task.id), Caller(""))
            return rows

        world.store.due_tasks = due_tasks  # type: ignore[method-assign]
        await world.wait(30)
        assert await world.delivered() == [(20, "other", 20, 0)]


async def test_a_task_paused_while_its_session_is_found_missing_has_not_failed(world: TaskWorld) -> None:
    """The failure is decided of the task as it is then."""
    async with world.root():
        task = await world.make(once(10), by="gone")
        real = world.store.due_tasks

        async def due_tasks(*arguments: Any, **options: Any) -> tuple[TaskRow, ...]:
            rows = await real(*arguments, **options)
            if rows and "session_id" in options:
                await world.desk.edit(UpdateTask(task.id, active=False), Caller(""))
            return rows

        world.store.due_tasks = due_tasks  # type: ignore[method-assign]
        await world.wait(30)
        after = await world.view(task)
        assert (after.status, after.failures) == (TaskStatus.PAUSED, 0)


async def test_a_faulted_agent_that_a_new_delivery_finds_is_waited_for(
    world: TaskWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """With backoff, as long as it is there; then its session gets the message."""
    async with world.host(supervision=Supervision(intensity=0)) as host:
        task = await world.make(once(10), NEW)
        agent = await host.create_agent(f"{task.id}.at.20260101T000010000Z")

        async def fail() -> None:
            raise RuntimeError("a defect")

        with pytest.raises(RuntimeError, match="a defect"):
            await agent.in_mailbox(fail)
        await world.wait(3600)
        assert await world.delivered() == []
        assert world.count(EventKind.DELIVERY_FAILED) <= 3600 / 30 + 20
        await agent.dispose()
        await world.wait(30)
        assert [due for _, _, due, _ in await world.delivered()] == [10]


async def _disagree(world: TaskWorld, task: Task) -> None:
    """Have the columns of a task say something else than its text."""
    row = await world.store.task(task.id)
    wrong = attrs.evolve(row, updated_millis=row.updated_millis + 5)
    await world.store.commit(Batch(tasks=(TaskWrite(task.id, row.updated_millis, wrong),)))


async def test_a_task_whose_columns_disagree_with_its_text_is_left_alone(world: TaskWorld) -> None:
    """Nothing decided of it could be committed: it is complained about once, and others go on."""
    looks = 0

    async def count() -> None:
        nonlocal looks
        looks += 1
        assert looks < 100

    async with world.root():
        task = await world.make(once(10), title="damaged")
        await world.make(once(10), title="whole")
        await _disagree(world, task)
        world.store.after_tasks = count
        await world.wait(10)
        await world.wait(1000)
        assert [title for _, title, _, _ in (await _delivered_beside(world, task))] == ["whole"]
        (told,) = [event for event in world.events if event.kind is EventKind.DELIVERY_FAILED]
        assert (told.detail["task"], "do not agree" in str(told.detail["error"])) == (task.id, True)


async def _delivered_beside(world: TaskWorld, damaged: Task) -> list[tuple[float, str, float, int]]:
    await world.store.commit(Batch(tasks=(TaskWrite(damaged.id, to_millis(damaged.updated_at) + 5, None),)))
    return await world.delivered()


async def test_an_edit_of_a_task_whose_columns_disagree_with_its_text_is_answered(world: TaskWorld) -> None:
    """The answer is an error, at once; the agent's mailbox goes on."""
    looks = 0

    async def count() -> None:
        nonlocal looks
        looks += 1
        assert looks < 100

    async with world.root() as agent:
        task = await world.make(once(1000))
        await _disagree(world, task)
        world.store.after_tasks = count
        answer = await call(agent, "edit", id=task.id, action="update", title="x")
        assert (answer["code"], looks < 5) == ("internal_error", True)
        await agent.followup("hello")
        await agent.when_idle()
        assert len(world.runs) == 1
