"""One-shots of many sessions: one a turn and in order, together with those of other sessions that are idle."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from tests.actors.reminders.faults import Fate
from whenidle_actors.errors import AgentFaulted
from whenidle_actors.observation import EventKind
from whenidle_actors.stores.base import Batch, TaskWrite
from whenidle_actors.supervision import Supervision
from whenidle_actors.task_rounds import Keeping, Place
from whenidle_protocol.task_requests import UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import ONCE, T0, TaskWorld, every, once, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn
    from whenidle_protocol.task_record import Task

NAMES = tuple(f"s{number}" for number in range(5))


@pytest.fixture(autouse=True)
def _small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sessions a round, so that five take several."""
    monkeypatch.setattr("whenidle_actors.task_line._ROUND", 3)
    monkeypatch.setattr("whenidle_actors.task_rounds._AT_A_TIME", 2)


async def populate(world: TaskWorld, host: Host, each: int = 4) -> dict[str, list[Task]]:
    """Make an agent for each name, with one-shots that are due at 10 s, made in the order of their numbers."""
    made: dict[str, list[Task]] = {}
    for name in NAMES:
        await host.create_agent(name)
        made[name] = [await make_next(world, once(10), by=name, title=f"{name} {n}") for n in range(each)]
    return made


async def make_next(world: TaskWorld, *args: Any, **options: Any) -> Task:
    """Make a task a millisecond after the one before, so that they have an order."""
    await world.advance(seconds(0.001))
    return await world.make(*args, **options)


async def until(world: TaskWorld, second: float) -> None:
    """Wait until the clock shows that second."""
    await world.wait(second - (world.now_millis() - T0) / 1000)


async def of(world: TaskWorld, name: str) -> list[tuple[float, str]]:
    """Return second and title of what a session got, in order."""
    return [(when, title) for when, title, _, _ in await world.delivered() if title.startswith(f"{name} ")]


def all_of(name: str, times: Iterable[float]) -> list[tuple[float, str]]:
    """Return what a session gets that has a one-shot for each of these seconds."""
    return [(when, f"{name} {number}") for number, when in enumerate(times)]


def is_delivery_to(name: str) -> Any:
    """Return a question whether a batch delivers to a session."""
    return lambda batch: any(append.session_id == name for append in batch.appends) and bool(batch.receipts)


def count_reads(world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Keep a list of the reads of what is due for sessions: how, and for how many."""
    reads: list[tuple[str, int]] = []
    of_many, of_one = world.store.due_tasks_of, world.store.due_tasks
    together = 0

    async def due_tasks_of(session_ids: Any, *args: Any, **options: Any) -> Any:
        nonlocal together
        reads.append(("together", len(session_ids)))
        together += 1
        try:
            return await of_many(session_ids, *args, **options)
        finally:
            together -= 1

    async def due_tasks(*args: Any, **options: Any) -> Any:
        if options.get("session_id") is not None and not together:  # a store may read one after the other
            reads.append(("alone", 1))
        return await of_one(*args, **options)

    monkeypatch.setattr(world.store, "due_tasks_of", due_tasks_of)
    monkeypatch.setattr(world.store, "due_tasks", due_tasks)
    return reads


async def test_one_shots_come_in_order_one_a_turn_without_being_read_again(
    any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in a turn of its own, in the order they were made; what is due is read once for each session."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        made = await populate(world, host)
        reads = count_reads(world, monkeypatch)
        await world.wait(60)
        for name in NAMES:
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))
        assert sum(count for how, count in reads if how == "together") == len(NAMES)
        assert ("alone", 1) not in reads
        assert len(world.runs) == len({(name, when) for name in NAMES for when, _ in await of(world, name)}) == 20
        for tasks in made.values():
            assert [len((await world.store.receipts(task.id)).receipts) for task in tasks] == [1] * 4
        deliveries = world.tasks._deliveries
        assert deliveries is not None
        assert deliveries._line.keeping.room == Keeping().room  # nothing is kept any more


async def test_what_recurs_comes_behind_the_one_shots_in_one_message(any_world: TaskWorld) -> None:
    """However it lies between them; and what comes due while they wait is read, too."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await host.create_agent("s0")
        await make_next(world, every(300, 9), by="s0", title="s0 a")
        await make_next(world, once(10), by="s0", title="s0 0")
        await make_next(world, every(300, 10), by="s0", title="s0 b")
        await make_next(world, once(10), by="s0", title="s0 1")
        await make_next(world, once(10), by="s0", title="s0 2")
        await make_next(world, once(14), by="s0", title="s0 3")
        await make_next(world, every(300, 16), by="s0", title="s0 c")
        await until(world, 2)
        agent = await host.agent("s0")
        agent.services.start(agent.run_maintenance, partial(trio.sleep, 10))
        await world.wait(60)
        found = await of(world, "s0")
        assert found[:4] == [(12, "s0 0"), (17, "s0 1"), (22, "s0 2"), (27, "s0 3")]
        assert sorted(found[4:]) == [(32, "s0 a"), (32, "s0 b"), (32, "s0 c")]
        assert len(world.runs) == 5


@pytest.mark.parametrize("most", [1, 2, 3, 4])
async def test_more_than_a_round_reads_come_in_order_all_the_same(
    any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Those at one instant, those one after the other, and what recurs between them."""
    monkeypatch.setattr("whenidle_actors.task_rounds.MOST_TASKS", most)
    world = any_world
    async with world.host() as host:
        for name in ("s0", "s1"):
            await host.create_agent(name)
        for number, second in enumerate((10, 10, 10, 11, 11, 12, 12, 13)):
            await make_next(world, once(second), by="s0", title=f"s0 {number}")
        for number in range(4):
            await make_next(world, every(300, 9 + number), by="s0", title=f"s0 r{number}")
        await make_next(world, once(10), by="s1", title="s1 0")
    await world.advance(seconds(20))
    async with world.host():
        await world.wait(0)
        found = [title for _, title in await of(world, "s0")]
        assert found[:8] == [f"s0 {number}" for number in range(8)]
        assert sorted(found[8:]) == [f"s0 r{number}" for number in range(4)]
        assert [title for _, title in await of(world, "s1")] == ["s1 0"]
        assert len(world.runs) == 10


async def test_what_is_kept_in_line_is_bounded(any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is no room for is read again when its turn comes, and nothing is lost."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host)
        deliveries = world.tasks._deliveries
        assert deliveries is not None
        keeping = deliveries._line.keeping
        keeping.room = room = 1500  # for two one-shots
        reads = count_reads(world, monkeypatch)
        least = room

        async def look(_: Turn) -> None:
            nonlocal least
            least = min(least, keeping.room)

        world.during_turn = look
        await world.wait(60)
        for name in NAMES:
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))
        assert 0 <= least < room
        assert keeping.room == room
        assert sum(count for how, count in reads if how == "together") > len(NAMES)


def test_tasks_that_are_too_large_to_be_kept_leave_the_rest_in_order() -> None:
    """Nothing is kept that stands behind one that is not."""
    keeping, place = Keeping(room=2000), Place("s0", unread=False)
    tasks: list[Any] = [_Text("a", 100), _Text("b", 5000), _Text("c", 1)]
    keeping.keep(place, tasks)
    assert (list(place.waiting), place.unread, place.over) == (tasks[:1], True, False)
    keeping.drop(place)
    assert (list(place.waiting), keeping.room) == ([], 2000)


@attrs.frozen
class _Text:
    title: str
    length: int

    @property
    def prompt(self) -> str:
        return "x" * self.length


@pytest.mark.parametrize("act", ["cancel", "dispose"])
async def test_an_agent_that_is_aborted_in_a_turn_gets_its_next_one_shot(any_world: TaskWorld, act: str) -> None:
    """Cancelled, when the turn has ended; disposed, by the next agent of the session. The others notice nothing."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host)
        await until(world, 12)
        agent = await host.agent("s1")
        await (agent.cancel("stop") if act == "cancel" else agent.dispose())
        await world.wait(60)
        assert await of(world, "s1") == all_of("s1", (10, 12, 17, 22))
        for name in ("s0", "s2", "s3", "s4"):
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))


async def test_an_agent_that_is_given_up_gets_its_next_one_shot_when_it_is_disposed(any_world: TaskWorld) -> None:
    """Faulted in its turn: what is due for it waits until somebody starts it anew, and the others notice nothing."""
    world = any_world
    world.turn_seconds = 5
    async with world.host(supervision=Supervision(intensity=0)) as host:
        await populate(world, host)
        await until(world, 12)
        agent = await host.agent("s1")

        async def fail() -> None:
            await trio.lowlevel.checkpoint()
            raise ZeroDivisionError("a defect")

        with pytest.raises((ZeroDivisionError, AgentFaulted)):
            await agent.in_mailbox(fail)
        assert agent.is_faulted
        await world.wait(60)
        assert await of(world, "s1") == all_of("s1", (10,))
        for name in ("s0", "s2", "s3", "s4"):
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))
        await agent.dispose()
        await world.wait(60)
        assert await of(world, "s1") == all_of("s1", (10, 77, 82, 87))  # the turn that was cut off runs first


async def test_a_host_that_stops_leaves_what_is_in_line_to_the_next(any_world: TaskWorld) -> None:
    """In the middle of the turns: each one-shot comes once, in order, none in a turn of the host that stops."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host)
        await until(world, 17)
        assert len(await world.delivered()) == 2 * len(NAMES)
    async with world.host():
        await world.wait(60)
        for name in NAMES:
            found = await of(world, name)
            assert [title for _, title in found] == [f"{name} {number}" for number in range(4)]
            assert len({when for when, _ in found}) == 4


async def test_a_clock_set_back_delivers_nothing_early_and_nothing_twice(any_world: TaskWorld) -> None:
    """What waits in line waits until its time has come once more."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host)
        await until(world, 12)
        world.step(seconds(-10))  # it shows 2 s; the turns end at 5 s
        await until(world, 7)
        assert len(await world.delivered()) == len(NAMES)
        await world.wait(60)
        for name in NAMES:
            assert await of(world, name) == all_of(name, (10, 10, 15, 20))


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.FULL, Fate.LOST, Fate.KEPT])
async def test_a_store_that_fails_for_one_session_puts_off_no_other(any_world: TaskWorld, fate: Fate) -> None:
    """It gets its second one-shot after a pause, if it has not got it, and the rest behind it."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host)
        await until(world, 12)
        world.store.fail(fate, of=is_delivery_to("s1"))
        await world.wait(60)
        for name in ("s0", "s2", "s3", "s4"):
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))
        late = 0 if fate is Fate.KEPT else 0.1
        found = await of(world, "s1")
        expected = all_of("s1", (10, 15 + late, 20 + late, 25 + late))
        assert [(round(when, 3), title) for when, title in found] == expected
        assert len(world.runs) == 4 * len(NAMES)


@pytest.mark.parametrize("change", ["pause", "delete"])
async def test_a_one_shot_that_changes_in_line_is_decided_about_anew(any_world: TaskWorld, change: str) -> None:
    """Paused or deleted while it waits: it is not delivered, the next comes in its place, and no failure shows."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        made = await populate(world, host)
        await until(world, 12)
        task = made["s1"][1]
        if change == "pause":
            await world.desk.edit(UpdateTask(task.id, active=False), Caller("s1"))
        else:
            row = await world.store.inner.task(task.id)
            await world.store.inner.commit(Batch(tasks=(TaskWrite(row.id, row.updated_millis, None),)))
        await world.wait(60)
        assert [title for _, title in await of(world, "s1")] == ["s1 0", "s1 2", "s1 3"]
        for name in ("s0", "s2", "s3", "s4"):
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))
        assert world.count(EventKind.DELIVERY_FAILED) == 0


async def test_who_is_busy_delays_nobody(any_world: TaskWorld) -> None:
    """One session has turns of a minute and gets its next at the end of each; the others get theirs meanwhile."""
    world = any_world

    async def work(turn: Turn) -> None:
        await trio.sleep(60 if turn.agent.id == "s1" else 1)

    world.during_turn = work
    async with world.host() as host:
        await populate(world, host)
        await world.wait(300)
        assert await of(world, "s1") == all_of("s1", (10, 70, 130, 190))
        for name in ("s0", "s2", "s3", "s4"):
            assert await of(world, name) == all_of(name, (10, 11, 12, 13))


async def test_who_has_much_due_does_not_keep_others_waiting(world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with many one-shots and turns that take no time: one that comes due later is next but a round or two."""
    monkeypatch.setattr("whenidle_actors.task_line._ROUND", 1)
    async with world.host() as host:
        await populate(world, host, 30)
        await host.create_agent("late")
        made: list[Task] = []

        async def work(turn: Turn) -> None:
            if len(world.runs) == 10:
                made.append(await world.make(once(10.001), by="late", title="late 0"))
                world.suspend(seconds(0.002))
            await trio.lowlevel.checkpoint()

        world.during_turn = work
        await world.wait(20)
        titles = [title for _, title, _, _ in await world.delivered()]
        assert len(titles) == 30 * len(NAMES) + 1
        log_order = [batch.receipts[0].task_id for batch in world.store.batches if batch.receipts]
        assert log_order.index(made[0].id) < 10 + 10 * len(NAMES)


async def test_a_message_that_comes_first_puts_the_one_shot_behind_its_turn(any_world: TaskWorld) -> None:
    """A user writes during the turn: that runs next, then the one-shot, in a claim of the idle agent."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host, 3)
        await until(world, 12)
        await (await host.agent("s1")).followup("hello")
        await world.wait(60)
        assert await of(world, "s1") == all_of("s1", (10, 20, 25))
        assert await of(world, "s2") == all_of("s2", (10, 15, 20))


async def test_a_session_that_is_made_by_a_delivery_goes_on_in_line(any_world: TaskWorld) -> None:
    """The first of its one-shots makes it, the others follow one a turn."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await host.create_agent("maker")
        first = await make_next(world, once(10), ONCE, by="maker", title="new 0")
        session_id = first.target.session_id
        assert session_id is not None
        for number in range(1, 4):
            await make_next(world, once(10), by=session_id, title=f"new {number}")
        await world.wait(60)
        assert await of(world, "new") == all_of("new", (10, 15, 20, 25))
        assert (await world.view(first)).target.session_id == session_id


async def test_with_a_probe_one_shots_come_one_by_one(any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attached while some are in line: from then on each session is pursued by itself, and none is lost."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        await populate(world, host)
        await until(world, 12)
        detach = host.attach(_Probe())
        reads = count_reads(world, monkeypatch)
        await world.wait(5)
        assert reads == [("alone", 1)] * len(NAMES)
        detach()
        await world.wait(60)
        for name in NAMES:
            assert await of(world, name) == all_of(name, (10, 15, 20, 25))
        assert len(reads) < 3 * len(NAMES)


class _Probe:
    """Sees everything and does nothing."""

    def work(self, *_: Any) -> Any:
        return nullcontext(lambda **_: None)

    def carry(self, operation: Any) -> Any:
        return operation

    def trace(self) -> str | None:
        return None
