"""Tasks managed beside a running host, as from another process, on one file (SPEC 3.4, 6.8)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.reminders.faults import Fate, FaultyStore
from whenidle_actors.errors import UnknownSession
from whenidle_actors.offline import open_manager
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_record import TargetKind, TaskStatus
from whenidle_protocol.task_requests import CreateTask, DeleteTask, UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import NEW, ONCE, T0, THIS, TaskWorld, at, every, once

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store is."""
    return tmp_path / "store"


@pytest.fixture
def world(path: Path) -> TaskWorld:
    """Return a world on that store."""
    return TaskWorld(FaultyStore(SqliteStore(path)))


async def until(happened: Callable[[], bool]) -> None:
    """Wait for a host to take notice, which takes it up to a second of real time."""
    while not happened():
        await trio.to_thread.run_sync(time.sleep, 0.01)


async def notice(world: TaskWorld, change: Callable[[], Awaitable[object]]) -> None:
    """Make a change from elsewhere, and return when the host has looked at it."""
    looked = trio.Event()
    look = world.tasks.look

    def look_and_tell() -> None:
        look()
        looked.set()

    world.tasks.look = look_and_tell  # type: ignore[method-assign]  # a tap
    await change()
    await until(looked.is_set)
    world.tasks.look = look  # type: ignore[method-assign]  # a tap
    await world.wait(0)


async def test_a_host_delivers_what_a_manager_made(world: TaskWorld, path: Path) -> None:
    """Made beside it, due before anything else it knew of: it comes at its time."""
    async with world.root(), open_manager(path, clock=world) as manager:
        await world.make(once(1000), title="last")
        request = CreateTask("title", "prompt", every(60, 10), THIS)
        await notice(world, lambda: manager.tasks.create(request, Caller("root")))
        await world.wait(10)
        assert await world.delivered() == [(10, "title", 10, 0)]


async def test_a_host_follows_what_a_manager_changes(world: TaskWorld, path: Path) -> None:
    """Sooner, paused or deleted beside it: it is as if it had been done by a tool."""
    async with world.root(), open_manager(path, clock=world) as manager:
        sooner, paused, deleted = [await world.make(once(20), title=title) for title in ("sooner", "paused", "deleted")]
        host = Caller("")

        async def change() -> None:
            await manager.tasks.edit(UpdateTask(sooner.id, rule=once(10)), host)
            await manager.tasks.edit(UpdateTask(paused.id, active=False), host)
            await manager.tasks.edit(DeleteTask(deleted.id), host)

        await notice(world, change)
        await world.wait(30)
        assert await world.delivered() == [(10, "sooner", 10, 0)]


async def test_a_change_beside_a_host_counts_though_it_has_not_noticed(world: TaskWorld, path: Path) -> None:
    """Paused in the last moment before it is due: the claim reads what is true."""
    async with world.root(), open_manager(path, clock=world) as manager:
        task = await world.make(once(10))
        await world.wait(9.999)
        await manager.tasks.edit(UpdateTask(task.id, active=False), Caller(""))
        await world.wait(1)
        assert await world.delivered() == []


@pytest.mark.parametrize("target", [THIS, ONCE, NEW])
async def test_a_task_run_by_a_manager_reaches_its_agent(world: TaskWorld, path: Path, target: TargetKind) -> None:
    """The message is in the inbox with its receipt when the call returns, and the host's agent runs it."""
    async with world.root(), open_manager(path, clock=world) as manager:
        task = await world.make(every(300, 300), target)
        after = await manager.run_task(task.id)
        assert (after.deliveries, after.scheduled_at, after.status) == (1, at(300), TaskStatus.ACTIVE)
        assert await world.delivered() == [(0, "title", 0, 0)]
        await until(lambda: len(world.runs) == 1)
        await world.wait(300)
        assert [due for _, _, due, _ in await world.delivered()] == [0, 300]


async def test_a_manager_without_a_host(path: Path, world: TaskWorld) -> None:
    """What it makes and runs waits in the store for the next host."""
    async with open_manager(path, clock=world) as manager:
        task = await manager.tasks.create(CreateTask("title", "prompt", once(10), ONCE), Caller("", cwd="/here"))
        await manager.run_task(task.id)
    await world.advance(at(20) - at(0))
    async with world.host():
        await world.wait(0)
        assert [(due, missed) for _, _, due, missed in await world.delivered()] == [(0, 0), (10, 0)]
        assert [moment - T0 for moment, _, _ in world.runs] == [20_000, 20_000]


async def test_a_manager_runs_a_task_twice_into_one_session(path: Path, world: TaskWorld) -> None:
    """In one millisecond the session of `new` is there already; of a vanished one it says so."""
    async with open_manager(path, clock=world) as manager:
        task = await manager.tasks.create(CreateTask("title", "prompt", once(10), NEW), Caller(""))
        await manager.run_task(task.id)
        assert (await manager.run_task(task.id)).deliveries == 2
        lost = await manager.tasks.create(CreateTask("title", "prompt", once(10), THIS), Caller("gone"))
        with pytest.raises(UnknownSession):
            await manager.run_task(lost.id)
        with pytest.raises(ToolError):
            await manager.run_task("task-none")


@pytest.mark.parametrize("target", [ONCE, NEW])
def test_a_manager_decides_again_when_somebody_was_faster(target: TargetKind) -> None:
    """The task edited, or its session made, between its reading and its commit."""
    world = TaskWorld()
    store = FaultyStore(MemoryStore())
    done: list[object] = []

    async def main() -> None:
        async with open_manager(store, clock=world) as manager:
            task = await manager.tasks.create(CreateTask("title", "prompt", once(10), target), Caller(""))

            async def interfere(batch: object) -> None:
                if not done:
                    done.append(batch)
                    name = task.target.session_id or f"{task.id}.run.20260101T000000000Z"
                    await manager.ensure_session(name)
                    await manager.tasks.edit(UpdateTask(task.id, title="edited"), Caller(""))

            store.before = interfere
            after = await manager.run_task(task.id)
            assert (after.title, after.deliveries) == ("edited", 1)

    trio.run(main, clock=world)
    assert done


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
def test_a_manager_reads_back_an_uncertain_run(fate: Fate) -> None:
    """Kept, it is done; lost, it says that it does not know."""
    world = TaskWorld()
    store = FaultyStore(MemoryStore())

    async def main() -> None:
        async with open_manager(store, clock=world) as manager:
            task = await manager.tasks.create(CreateTask("title", "prompt", once(10), NEW), Caller(""))
            store.fail(fate)
            if fate is Fate.KEPT:
                assert (await manager.run_task(task.id)).deliveries == 1
            else:
                with pytest.raises(Exception, match="lost the connection"):
                    await manager.run_task(task.id)

    trio.run(main, clock=world)
