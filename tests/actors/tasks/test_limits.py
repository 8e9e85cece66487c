"""Many due at once, wakes that could be lost, and a host that closes meanwhile."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from tests.actors.reminders.faults import Fate
from whenidle_actors.errors import AgentDisposed
from whenidle_actors.observation import EventKind
from whenidle_actors.stores.base import Append, Batch, TaskRow
from whenidle_actors.task_rows import change
from whenidle_protocol.events import EventRecord
from whenidle_protocol.task_requests import UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import NEW, START, T0, TaskWorld, call, create, every, once, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_protocol.task_record import Task


def _limit(monkeypatch: pytest.MonkeyPatch, most: int, sweep: int = 2) -> None:
    monkeypatch.setattr("whenidle_actors.task_deliveries._MOST_PURSUITS", most)
    monkeypatch.setattr("whenidle_actors.task_deliveries._SWEEP", sweep)


@pytest.mark.parametrize("most", [1, 2, 7])
async def test_more_destinations_than_are_pursued_at_once_are_all_reached(
    any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """What there is no room for waits in the store and comes in its turn, at the same instant."""
    world = any_world
    _limit(monkeypatch, most)
    async with world.host() as host:
        for number in range(15):
            await host.create_agent(f"agent-{number}")
            await world.make(every(300, 10), by=f"agent-{number}", title=f"{number}")
            await world.make(once(10), NEW, title=f"new {number}")
        await world.wait(10)
        assert len({title for _, title, _, _ in await world.delivered()}) == 30
        assert {when for when, _, _, _ in await world.delivered()} == {10}
        await world.wait(300)
        assert len(await world.delivered()) == 45


async def test_agents_that_are_busy_take_no_room_from_others(world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """More busy destinations than pursuits: those that are idle get theirs at once, the busy ones when idle."""
    _limit(monkeypatch, 2)
    world.turn_seconds = 1000
    async with world.host() as host:
        for number in range(8):
            agent = await host.create_agent(f"busy-{number}")
            await agent.followup("work")
            await world.make(once(5 + number / 10), by=f"busy-{number}", title="late")
        await host.create_agent("free")
        await world.make(once(20), by="free", title="in time")
        await world.wait(20)
        assert await world.delivered() == [(20, "in time", 20, 0)]
        await world.wait(980)
        assert [when for when, title, _, _ in await world.delivered() if title == "late"] == [1000] * 8


async def test_a_task_made_while_sweeping_with_an_earlier_target_is_not_missed(world: TaskWorld) -> None:
    """Created between the two reads of a sweep, before what the sweep sets the alarm for."""
    async with world.root():
        await world.make(once(10), title="first")
        await world.make(once(1000), title="last")
        real = world.store.next_due
        made: list[Task] = []

        async def next_due(after_millis: int | None = None) -> int | None:
            found = await real(after_millis)
            if not made:
                made.append(await world.make(once(12), title="between"))
            return found

        world.store.next_due = next_due  # type: ignore[method-assign]
        await world.wait(12)
        assert [title for _, title, _, _ in await world.delivered()] == ["first", "between"]
        await world.wait(988)
        assert [title for _, title, _, _ in await world.delivered()] == ["first", "between", "last"]


async def test_a_task_that_becomes_due_while_a_pursuit_ends_is_not_missed(world: TaskWorld) -> None:
    """The last look of a pursuit and a new due task at the same moment."""
    async with world.root() as agent:
        await world.make(once(10), title="first")
        real, edited = world.store.next_due, False

        async def next_due(after_millis: int | None = None) -> int | None:
            nonlocal edited
            if not edited and after_millis is not None and after_millis >= T0 + 10_000:
                edited = True
                await world.make(once(10.001), title="second")
                await world.make(once(10.001), title="third", by="root")
                world.suspend(seconds(0.002))
            return await real(after_millis)

        world.store.next_due = next_due  # type: ignore[method-assign]
        await world.wait(11)
        await agent.when_idle()
        assert sorted(title for _, title, _, _ in await world.delivered()) == ["first", "second", "third"]


async def test_the_alarm_after_a_wall_set_back_and_forward_while_waiting(world: TaskWorld) -> None:
    """Set back below what was due while the store fails, and on again: nothing is lost, nothing comes early."""
    async with world.root():
        await world.make(once(10), title="a")
        await world.make(once(15), title="b")
        world.store.judge = lambda _: Fate.FULL
        await world.wait(10)
        world.step(seconds(-10))
        world.store.judge = lambda _: Fate.GOES_WELL
        await world.wait(9)
        assert await world.delivered() == []
        await world.wait(1)
        assert [title for _, title, _, _ in await world.delivered()] == ["a"]
        await world.wait(5)
        assert [title for _, title, _, _ in await world.delivered()] == ["a", "b"]


async def test_a_target_moved_away_while_its_delivery_waits_is_followed(world: TaskWorld) -> None:
    """Edited to go elsewhere while its agent is busy: the new destination gets it at once."""
    world.turn_seconds = 100
    async with world.host() as host:
        agent, other = await host.create_agent("root"), await host.create_agent("other")
        await agent.followup("work")
        made = await create(agent)
        await world.wait(15)
        await call(other, "edit", id=made["id"], action="update", target="this_session")
        await world.wait(1)
        (only,) = (await world.account()).deliveries
        assert (only.session, only.at - T0, only.occurrence - T0) == ("other", 15_000, 10_000)


async def test_a_host_that_closes_while_deliveries_wait_ends_promptly_and_restores_nothing(world: TaskWorld) -> None:
    """Busy agents, failing commits, faulted sessions: closing waits for none of it, and what is due stays due."""
    world.turn_seconds = 1000
    async with world.host() as host:
        agent = await host.create_agent("root")
        await agent.followup("work")
        await world.make(once(10), title="waits")
        await host.create_agent("cold")
        await world.make(once(10), by="cold", title="fails")
        await host.dispose("cold")
        world.store.judge = lambda batch: Fate.FULL if batch.receipts else Fate.GOES_WELL
        await world.wait(15)
        reads = world.store.reads
        started = world.count(EventKind.AGENT_STARTED)
        before = trio.current_time()
    assert trio.current_time() == before
    assert (world.store.reads, world.count(EventKind.AGENT_STARTED)) == (reads, started)
    world.store.judge = lambda _: Fate.GOES_WELL
    world.turn_seconds = 0
    async with world.host():
        await world.wait(1)
        assert {title for _, title, _, _ in await world.delivered()} == {"waits", "fails"}


async def test_a_run_by_hand_that_waits_when_the_host_closes_raises(world: TaskWorld) -> None:
    """It does not restore what is being disposed, and its caller is told."""
    world.turn_seconds = 5
    raised: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        async with world.host(shutdown_timeout=100) as host:
            agent = await host.create_agent("root")
            task = await world.make(every(300, 300))
            await agent.followup("work")

            async def run() -> None:
                try:
                    await world.tasks.run(task.id)
                except AgentDisposed as error:
                    raised.append(error)

            nursery.start_soon(run)
            await world.wait(1)
            nursery.start_soon(world.advance, seconds(10))
        nursery.cancel_scope.deadline = trio.current_time() + 20
    assert len(raised) == 1
    async with world.host():
        assert await world.delivered() == []


async def test_memory_does_not_grow_with_the_tasks_that_are_stored(world: TaskWorld) -> None:
    """Twenty thousand tasks that are not due cost a host nothing but their place in the store."""
    async with world.host():
        model = await world.make(every(3600, 3600), NEW, by="")
        rows = [attrs.evolve(model, id=f"task-{number}") for number in range(20_000)]
        for first in range(0, len(rows), 1000):
            batch = Batch(tasks=tuple(change(None, task) for task in rows[first : first + 1000]))
            await world.store.commit(batch)
        del rows
    gc.collect()
    world.store.batches.clear()
    tracemalloc.start()
    try:
        async with world.host() as host:
            await world.wait(3000)
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 500_000
            assert host.agents == ()
    finally:
        tracemalloc.stop()


async def test_a_task_edited_by_the_host_api_comes_due_at_its_new_time(world: TaskWorld) -> None:
    """Earlier or later than before."""
    async with world.root():
        sooner, later = await world.make(once(100), title="sooner"), await world.make(once(20), title="later")
        await world.desk.edit(UpdateTask(sooner.id, rule=once(10)), Caller(""))
        await world.desk.edit(UpdateTask(later.id, rule=once(200)), Caller(""))
        await world.wait(300)
        assert await world.delivered() == [(10, "sooner", 10, 0), (200, "later", 200, 0)]


async def test_a_task_that_becomes_due_while_another_is_being_delivered_is_not_missed(world: TaskWorld) -> None:
    """The last delivery of a pursuit is on its way to the disk when something new comes due for its session."""
    async with world.root():
        await world.make(every(300, 10), title="first")
        await world.make(every(300, 11), title="second")
        gate = trio.Event()

        async def hold(_: Batch) -> None:
            await gate.wait()

        world.store.before = hold
        await world.wait(15)
        gate.set()
        await world.wait(0)
        assert await world.delivered() == [(10, "first", 10, 0), (15, "second", 11, 0)]


async def test_more_destinations_than_are_pursued_at_once_when_the_host_closes(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for room is not taken up any more, and nothing spins until the last turn has ended."""
    _limit(monkeypatch, 1)
    async with trio.open_nursery() as nursery, world.host(shutdown_timeout=100) as host:
        agent = await host.create_agent("busy")
        for number in range(5):
            await host.create_agent(f"agent-{number}")
            await world.make(every(300, 10), by=f"agent-{number}")
        world.store.judge = lambda batch: Fate.FULL if batch.receipts else Fate.GOES_WELL
        await world.wait(10)
        world.turn_seconds = 60
        await agent.followup("work")
        await world.wait(1)
        nursery.start_soon(world.advance, seconds(100))
    assert [moment - T0 for moment, _, _ in world.runs] == [10_000]


async def test_a_task_that_becomes_due_between_the_two_reads_of_a_sweep_is_not_missed(world: TaskWorld) -> None:
    """Time passes after what is due was read and before what comes next is asked for."""
    async with world.root():
        await world.make(once(10), title="first")
        await world.make(once(10.5), NEW, title="second")
    async with world.host():
        real = world.store.due_tasks
        passed = False

        async def due_tasks(until_millis: int, **options: Any) -> tuple[TaskRow, ...]:
            nonlocal passed
            rows = await real(until_millis, **options)
            if rows and not passed:
                passed = True
                world.suspend(seconds(1))
            return rows

        world.store.due_tasks = due_tasks  # type: ignore[method-assign]
        await world.wait(20)
        assert sorted(await world.delivered()) == [(11, "first", 10, 0), (11, "second", 10.5, 0)]


async def test_sessions_that_cannot_be_read_take_no_room_from_others(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as are pursued at once wait for their next try for ever: all others get theirs in time."""
    _limit(monkeypatch, 4)
    async with world.host() as host:
        for number in range(6):
            name = f"agent-{number}"
            agent = await host.create_agent(name)
            await world.make(once(10 + 10 * number), by=name, title=name)
            await agent.dispose()
            if number < 4:
                newer = EventRecord("future/event", T0, "{}")
                await world.store.commit(Batch((Append(name, 0, (newer,)),)))
        for _ in range(60):
            await world.wait(1)
        assert await world.store.inner.count_active_tasks() == 4
        assert [when for when, kind in _deliveries(world) if kind == "agent-4"] == [50]
        assert [when for when, kind in _deliveries(world) if kind == "agent-5"] == [60]


def _deliveries(world: TaskWorld) -> list[tuple[float, str | None]]:
    """Return when a task was delivered, and to which session."""
    told = (event for event in world.events if event.kind is EventKind.TASK_DELIVERED)
    return [((event.at - START).total_seconds(), event.session_id) for event in told]


@pytest.mark.parametrize("remembered", [10_000, 1])
async def test_a_session_with_tasks_on_many_pages_is_claimed_once(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """A sweep that finds it again looks no further; if it could not remember all, that costs a claim and no more."""
    monkeypatch.setattr("whenidle_actors.task_deliveries._SWEEP", 2)
    monkeypatch.setattr("whenidle_actors.task_deliveries._REMEMBERED", remembered)
    world.turn_seconds = 1
    async with world.host() as host:
        for name in ("ada", "bob", "cyd"):
            await host.create_agent(name)
            for number in range(3):
                await world.make(every(600, 10), by=name, title=f"{name} {number}")
        read: list[str] = []
        real = world.store.due_tasks_of

        async def due_tasks_of(session_ids: Sequence[str], *args: Any, **options: Any) -> list[tuple[TaskRow, ...]]:
            read.extend(session_ids)
            return await real(session_ids, *args, **options)

        monkeypatch.setattr(world.store, "due_tasks_of", due_tasks_of)
        await world.wait(20)
        if remembered > 1:
            assert sorted(read) == ["ada", "bob", "cyd"]
        assert sorted({(when, title) for when, title, _, _ in await world.delivered()}) == [
            (10, f"{name} {number}") for name in ("ada", "bob", "cyd") for number in range(3)
        ]
        assert len(world.runs) == 3
