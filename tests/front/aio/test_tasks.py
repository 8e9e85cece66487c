"""Tasks, managers and stores, from asyncio."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from whenidle import (
    AfterRule,
    Caller,
    CreateTask,
    DeleteTask,
    EveryRule,
    ListTasks,
    MemoryStore,
    Reminders,
    TargetKind,
    Task,
    TaskSettings,
    TaskStatus,
    UpdateTask,
    VirtualClock,
    aio,
    errors,
)
from whenidle_actors.stores.base import Batch, SessionHeader

from .loops import Run, host

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOBODY = Caller("")


def digest(title: str = "Digest") -> CreateTask:
    """Ask for a task each hour, in a session of its own."""
    return CreateTask(title, "Sum up.", EveryRule(3600), TargetKind.NEW)


def test_tasks_are_managed_and_delivered(run: Run) -> None:
    """The desk creates, lists, edits and deletes; what is due is delivered; `run` delivers now."""
    clock = VirtualClock(MIDNIGHT)
    settings = TaskSettings()
    tasks = aio.Tasks(settings)
    seen = list[str]()

    async def turn(turn: aio.Turn) -> None:
        seen.append(turn.agent.id)

    async def main() -> None:
        async with host(turn, clock=clock, suites=[tasks, Reminders_for_none()]) as there:
            assert there.suites[0] is tasks
            assert (tasks.name, tasks.settings, tasks.presets) == ("tasks", settings, None)
            assert tasks.desk.settings is settings
            assert [tool.name for tool in tasks.tools()][:2] == ["schedule_create", "schedule_list"]
            task = await tasks.desk.create(digest(), NOBODY)
            assert await tasks.desk.view(task.id) == task
            assert await tasks.desk.page(ListTasks()) == ((task,), 1)
            assert await tasks.desk.page(ListTasks(), lambda _: False) == ((), 0)
            await aio.advance(clock, HOUR)
            assert len(seen) == 1
            await tasks.run(task.id)
            await aio.advance(clock, timedelta(0))
            assert len(seen) == 2
            receipts = await tasks.desk.receipts(task.id)
            assert len(receipts.receipts) == 2
            paused = await tasks.desk.edit(UpdateTask(task.id, active=False), NOBODY)
            assert paused is not None
            assert paused.status is TaskStatus.PAUSED
            assert await tasks.desk.edit(DeleteTask(task.id), NOBODY) is None

    run(main())


def Reminders_for_none() -> Reminders:  # noqa: N802 - reads as what it makes
    """Return a second suite that gets into nobody's way."""
    return Reminders(presets=())


def test_a_suite_may_be_mounted_later(run: Run) -> None:
    """`mount` takes an asyncio suite, and the runtime's own kinds."""
    tasks = aio.Tasks(presets=["clerk"])
    late = aio.Tasks(presets=())

    async def main() -> None:
        async with host(suites=iter([tasks])) as there:
            there.mount(Reminders(presets=["other"]))
            assert [suite.name for suite in there.suites] == ["tasks", "reminders"]
            clerk = await there.create_agent(preset="clerk")
            assert len(clerk.tools()) == 4
            with pytest.raises(errors.CompositionError):
                there.mount(tasks)
        async with host(suites=[]) as there:
            with pytest.raises(errors.CompositionError, match="not mounted"):
                late.desk  # noqa: B018 - asked for what it does not have yet
            with pytest.raises(errors.CompositionError, match="not mounted"):
                await late.run("task-1")
            there.mount(late)
            assert await late.desk.page(ListTasks()) == ((), 0)
            assert there.suites == (late,)

    run(main())


def test_the_hook_is_asked_with_an_asyncio_agent(run: Run) -> None:
    """`may` decides what an agent sees, as on a trio host."""
    asked = list[tuple[str, str]]()

    def may(agent: aio.Agent, action: str, task: Task) -> bool:
        asked.append((agent.id, action))
        return task.title != "Secret"

    tasks = aio.Tasks(may=may)

    async def main() -> None:
        async with host(suites=[tasks]) as there:
            ada = await there.create_agent("ada")
            for title in ("Open", "Secret"):
                await tasks.desk.create(digest(title), NOBODY)
            listed = await ada.call_tool("schedule_list", {})
            assert [item["title"] for item in listed["items"]] == ["Open"]

    run(main())
    assert set(asked) == {("ada", "view")}


def test_a_manager_works_beside_a_host(run: Run, tmp_path: Path) -> None:
    """On the same loop: sessions, messages, reminders, tasks; the host takes notice."""
    path = tmp_path / "test.db"

    async def main() -> None:
        heard = asyncio.Event()

        async def turn(turn: aio.Turn) -> None:
            assert turn.messages[0].text == "hello"
            heard.set()

        async with host(turn, store=path), aio.open_manager(path) as manager:
            assert await manager.ensure_session("ada", cwd="/srv")
            assert not await manager.ensure_session("ada")
            await manager.send("ada", "hello")
            await heard.wait()
            answer = await manager.call_tool("ada", "schedule_create", {"prompt": "x", "after_seconds": 3600})
            assert answer["id"] == "schedule-1"
            assert (await manager.read("ada")).header.cwd == "/srv"
            task = await manager.create_task(
                CreateTask("T", "P", AfterRule(3600), TargetKind.THIS_SESSION), Caller("eve")
            )
            assert await manager.tasks.view(task.id) == task
            ran = await manager.run_task(task.id)
            assert ran.deliveries == 1
            assert await manager.edit_task(DeleteTask(task.id), NOBODY) is None
            assert manager.store.name == str(path)

    run(main())


def test_a_manager_that_cannot_open_says_why(run: Run, tmp_path: Path) -> None:
    """As a host does."""
    (tmp_path / "test.db").write_text("no database " * 100)

    async def main() -> None:
        with pytest.raises(errors.NotAStore):
            async with aio.open_manager(tmp_path / "test.db"):
                raise AssertionError

    run(main())


def test_a_store_is_read_through_its_host(run: Run) -> None:
    """Sessions, tasks, receipts, what is due, and whether all is sound."""
    tasks = aio.Tasks()
    clock = VirtualClock(MIDNIGHT)

    async def main() -> None:
        async with host(store=MemoryStore(), suites=[tasks], clock=clock) as there:
            await there.create_agent("ada")
            task = await tasks.desk.create(digest(), NOBODY)
            store = there.store
            assert store == there.store
            assert store.name == "memory"
            await store.commit(Batch(created=(SessionHeader("eve", MIDNIGHT),)))
            assert [header.id for header in await store.sessions(after="ada", limit=5)] == ["eve"]
            assert (await store.read("ada", 0)).header.id == "ada"
            assert (await store.task(task.id)).id == task.id
            assert (await store.tasks(active=True)).total == 1
            assert await store.count_active_tasks() == 1
            due = await store.next_due()
            assert due is not None
            assert [row.id for row in await store.due_tasks(due)] == [task.id]
            assert (await store.receipts(task.id)).receipts == ()
            assert list(await store.check()) == []
            assert store.statistics().commits >= 3

    run(main())
