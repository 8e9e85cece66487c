"""What befalls commits and reads of a simulated store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.stores.helpers import appends, creates, puts, task
from whenidle_actors.errors import (
    CommitRefused,
    CommitUncertain,
    SequenceConflict,
    SessionExists,
    StoreBusy,
    StoreClosed,
    StoreFull,
    UnknownSession,
)
from whenidle_actors.stores.base import Append, Batch, Role
from whenidle_clock import VirtualClock
from whenidle_lab.faults import FaultKind
from whenidle_lab.store import Defect
from whenidle_lab.trace import What

from .worlds import FaultyWorld, fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_lab.faults.plan import Fault
    from whenidle_lab.store import SimulatedStore


@pytest.fixture(params=["memory", "sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine."""
    return str(request.param)


def play(world: FaultyWorld, story: Callable[[SimulatedStore], Awaitable[None]]) -> None:
    """Run a story on the open store of a world, on its clock."""

    async def main() -> None:
        async with world.store.opened(Role.HOST):
            await story(world.store)

    world.clock = VirtualClock(autojump=True)
    trio.run(main, clock=world.clock)


async def exists(store: SimulatedStore, session_id: str) -> bool:
    """Return whether a session is in the store, whatever befalls reads."""
    try:
        await store.engine.read(session_id)
    except UnknownSession:
        return False
    return True


@pytest.mark.parametrize(
    ("befalls", "error", "kept"),
    [
        (fault(FaultKind.REFUSED, variant=0), StoreFull, False),
        (fault(FaultKind.REFUSED, variant=1), StoreBusy, False),
        (fault(FaultKind.REFUSED, variant=2), CommitRefused, False),
        (fault(FaultKind.UNCERTAIN_LOST), CommitUncertain, False),
        (fault(FaultKind.UNCERTAIN_KEPT), CommitUncertain, True),
        (fault(FaultKind.FAILED_KEPT), CommitRefused, True),
        (fault(FaultKind.DEFECT), Defect, False),
    ],
)
def test_a_commit_raises_what_its_fault_says(
    engine: str, befalls: Fault, error: type[Exception], *, kept: bool
) -> None:
    """The caller gets that error, the store holds all of the batch or nothing, and the next commit succeeds."""
    world = FaultyWorld(engine, [befalls])

    async def story(store: SimulatedStore) -> None:
        with pytest.raises(error) as caught:
            await store.commit(creates("a"))
        assert type(caught.value) is error
        assert await exists(store, "a") is kept
        await store.commit(creates("b"))
        assert await exists(store, "b")

    play(world, story)
    assert [detail["fate"] for detail in world.those(What.COMMIT_ENDED)] == [befalls.kind, "done"]
    assert len(world.those(What.COMMIT_DURABLE)) == 1 + kept
    assert world.mischief.happened() == {befalls.kind.value}


@pytest.mark.parametrize("kind", [FaultKind.UNCERTAIN_LOST, FaultKind.UNCERTAIN_KEPT])
def test_what_is_refused_anyway_is_not_uncertain(engine: str, kind: FaultKind) -> None:
    """A conflict is found before the write whose answer is lost, so it is what the caller is told."""

    async def story(store: SimulatedStore) -> None:
        await store.commit(creates("a"))
        with pytest.raises(SessionExists):
            await store.commit(creates("a"))

    play(FaultyWorld(engine, [fault(kind, 1)]), story)


def test_a_disk_that_lies_keeps_nothing(engine: str) -> None:
    """A commit returns, and what it wrote is not there."""

    async def story(store: SimulatedStore) -> None:
        await store.commit(creates("a"))
        assert not await exists(store, "a")

    play(FaultyWorld(engine, [fault(FaultKind.LOST)]), story)


def test_a_full_disk_has_room_again_after_a_while(engine: str) -> None:
    """For a stretch of time there is no room for anything."""

    async def story(store: SimulatedStore) -> None:
        for _ in range(2):
            with pytest.raises(StoreFull):
                await store.commit(creates("a"))
            await trio.sleep(1)
        await trio.sleep(0.1)
        await store.commit(creates("a"))

    play(FaultyWorld(engine, [fault(FaultKind.DISK_FULL)]), story)


def test_healing_gives_the_disk_room_at_once(engine: str) -> None:
    """When nothing goes wrong any more, whatever lasts ends."""
    world = FaultyWorld(engine, [fault(FaultKind.DISK_FULL, exponent=22)])

    async def story(store: SimulatedStore) -> None:
        with pytest.raises(StoreFull):
            await store.commit(creates("a"))
        world.mischief.stop(world)
        await store.commit(creates("a"))

    play(world, story)


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (FaultKind.CRASH_BEFORE_COMMIT, []),
        (FaultKind.CRASH_IN_COMMIT, []),
        (FaultKind.CRASH_AFTER_COMMIT, ["a", "b"]),
        (FaultKind.PARTLY_KEPT, ["a"]),
    ],
)
def test_a_process_that_dies_at_a_commit_leaves_all_or_nothing(engine: str, kind: FaultKind, kept: list[str]) -> None:
    """The next life finds what was durable; only a disk that tears shows a part."""
    world = FaultyWorld(engine, [fault(kind, 1)])

    async def dies(store: SimulatedStore) -> None:
        await store.commit(creates("a", "b"))
        batch = Batch(appends=(Append("a", 0, appends("a", 0).appends[0].records), *appends("b", 0).appends))
        with pytest.raises(StoreClosed):
            await store.commit(batch)
        with pytest.raises(StoreClosed):
            await store.commit(creates("c"))
        with pytest.raises(StoreClosed):
            await store.read("a")

    async def finds(store: SimulatedStore) -> None:
        assert [name for name in ("a", "b") if (await store.read(name)).length] == kept
        assert list(await store.check()) == []

    play(world, dies)
    assert world.dead
    world.begin_life(0.0)
    play(world, finds)
    assert world.mischief.happened() == {kind.value}


def test_a_torn_batch_that_would_have_been_refused_is_refused_by_nobody(engine: str) -> None:
    """A process that dies while it writes what cannot be written leaves nothing, too."""
    world = FaultyWorld(engine, [fault(FaultKind.CRASH_IN_COMMIT)])

    async def story(store: SimulatedStore) -> None:
        with pytest.raises(StoreClosed):
            await store.commit(appends("nowhere", 3))

    play(world, story)
    assert world.those(What.COMMIT_DURABLE) == []


def test_a_disk_tears_a_log_in_the_middle(engine: str) -> None:
    """Of several records of one session the first half is kept, and of tasks nothing."""
    world = FaultyWorld(engine, [fault(FaultKind.PARTLY_KEPT, 1)])

    async def story(store: SimulatedStore) -> None:
        await store.commit(creates("a"))
        with pytest.raises(StoreClosed):
            await store.commit(appends("a", 0, [*appends("a", 0).appends[0].records] * 4))

    play(world, story)
    assert len(world.those(What.COMMIT_DURABLE)[1]["appends"][0]["records"]) == 2


def test_a_disk_tears_tasks_from_their_messages(engine: str) -> None:
    """A batch of one append and a task is kept without the task."""
    world = FaultyWorld(engine, [fault(FaultKind.PARTLY_KEPT, 1)])

    async def story(store: SimulatedStore) -> None:
        await store.commit(creates("a"))
        with pytest.raises(StoreClosed):
            await store.commit(Batch(appends("a", 0).appends, tasks=puts(task("t", 5)).tasks))

    play(world, story)
    assert [(len(detail["appends"]), detail["tasks"]) for detail in world.those(What.COMMIT_DURABLE)][1] == (1, [])


@pytest.mark.parametrize(("variant", "before", "after"), [(0, 0.512, 0.512), (1, 1.024, 0.0), (2, 0.0, 1.024)])
def test_a_slow_commit_takes_time(engine: str, variant: int, before: float, after: float) -> None:
    """Before it is durable, behind that, or both; and a read waits for the slow disk, too."""
    world = FaultyWorld(engine, [fault(FaultKind.SLOW, variant=variant)])

    async def story(store: SimulatedStore) -> None:
        await store.commit(creates("a"))
        assert trio.current_time() == pytest.approx(before + after)
        began = trio.current_time()
        await store.read("a")
        assert trio.current_time() == pytest.approx(began + 1.024)

    play(world, story)
    (kept,) = [one.monotonic_ns for one in world.trace if one.what is What.COMMIT_DURABLE]
    assert kept / 1e9 == pytest.approx(before)


def test_once_a_slow_write_has_begun_its_end_is_awaited(engine: str) -> None:
    """A caller that is cancelled meanwhile gets to know that it happened."""

    async def story(store: SimulatedStore) -> None:
        with trio.move_on_after(0.1) as limit:
            await store.commit(creates("a"))
        assert not limit.cancelled_caught
        assert trio.current_time() == pytest.approx(1.024)

    play(FaultyWorld(engine, [fault(FaultKind.SLOW)]), story)


def test_commits_that_wait_meanwhile_share_a_group(engine: str) -> None:
    """What is handed in while the store writes becomes durable together, each by itself, when it is free."""
    world = FaultyWorld(engine, [fault(FaultKind.SLOW)])
    errors: list[str] = []

    async def story(store: SimulatedStore) -> None:
        async def commit(batch: Batch) -> None:
            try:
                await store.commit(batch)
            except SequenceConflict as error:
                errors.append(type(error).__name__)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit, creates("a", "b"))
            await trio.sleep(0.1)
            for batch in (appends("a", 0), appends("b", 0), appends("a", 7)):
                nursery.start_soon(commit, batch)
        assert (await store.engine.read("a")).length == (await store.engine.read("b")).length == 1

    play(world, story)
    assert errors == ["SequenceConflict"]
    kept = [one.monotonic_ns for one in world.trace if one.what is What.COMMIT_DURABLE]
    assert kept[0] < kept[1] == kept[2]


def test_a_commit_that_waits_can_be_withdrawn(engine: str) -> None:
    """Cancelled before its write began, it changes nothing."""
    world = FaultyWorld(engine, [fault(FaultKind.SLOW)])

    async def story(store: SimulatedStore) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, creates("a"))
            await trio.sleep(0.1)
            with trio.move_on_after(0.1) as limit:
                await store.commit(creates("b"))
            assert limit.cancelled_caught
        assert not await exists(store, "b")

    play(world, story)
    assert {detail["commit"]: detail["fate"] for detail in world.those(What.COMMIT_ENDED)} == {
        0: "slow",
        1: "withdrawn",
    }


def test_a_commit_that_is_cancelled_at_once_is_withdrawn(engine: str) -> None:
    """Cancelled before its write began, it changes nothing, and the trace says so."""
    world = FaultyWorld(engine)

    async def story(store: SimulatedStore) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.commit_all([creates("a"), creates("b")])
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.commit(creates("c"))
        assert await store.engine.sessions() == ()

    play(world, story)
    assert [detail["fate"] for detail in world.those(What.COMMIT_ENDED)] == ["withdrawn"] * 3


def test_several_commits_at_once_are_one_group(engine: str) -> None:
    """Each is answered for itself, and those that succeed are durable in the same instant."""
    world = FaultyWorld(engine)

    async def story(store: SimulatedStore) -> None:
        answers = await store.commit_all([creates("a"), creates("a"), creates("b")])
        assert [type(answer) for answer in answers] == [type(None), SessionExists, type(None)]
        assert await store.commit_all([]) == []

    play(world, story)
    assert len({one.step for one in world.trace if one.what is What.COMMIT_DURABLE}) == 1


def test_of_several_commits_at_once_one_may_meet_a_fault(engine: str) -> None:
    """The others are committed all the same."""

    async def story(store: SimulatedStore) -> None:
        answers = await store.commit_all([creates("a"), creates("b"), creates("c")])
        assert [type(answer) for answer in answers] == [type(None), StoreFull, type(None)]

    play(FaultyWorld(engine, [fault(FaultKind.REFUSED, 1)]), story)


def test_of_several_commits_at_once_those_not_begun_are_withdrawn(engine: str) -> None:
    """Cancelled while the first is written slowly, the others change nothing."""
    world = FaultyWorld(engine, [fault(FaultKind.SLOW)])

    async def story(store: SimulatedStore) -> None:
        with trio.move_on_after(0.1):
            await store.commit_all([creates("a"), creates("b"), creates("c")])
        assert [head.id for head in await store.engine.sessions()] == ["a"]

    play(world, story)
    ends = {detail["commit"]: detail["fate"] for detail in world.those(What.COMMIT_ENDED)}
    assert ends == {0: "slow", 1: "withdrawn", 2: "withdrawn"}


def test_reads_may_fail_behind_an_answer_that_was_lost(engine: str) -> None:
    """While the store does not answer nothing can be read back; later it can."""
    world = FaultyWorld(engine, [fault(FaultKind.UNCERTAIN_KEPT, variant=1)])
    world.mischief.faults = world.mischief.faults.all()

    async def story(store: SimulatedStore) -> None:
        with pytest.raises(CommitUncertain):
            await store.commit(creates("a"))
        reads: list[Callable[[], Awaitable[object]]] = [
            lambda: store.read("a"),
            store.sessions,
            lambda: anext(store.attention()),
            lambda: store.task("t"),
            store.tasks,
            store.count_active_tasks,
            lambda: store.due_tasks(0),
            store.next_due,
            lambda: store.receipts("t"),
            store.check,
        ]
        for read in reads:
            with pytest.raises(CommitUncertain):
                await read()
        await trio.sleep(2)
        assert (await store.read("a")).length == 0

    play(world, story)
    assert len(world.those(What.READ_FAILED)) == 10


def test_an_unknown_engine_is_named() -> None:
    """A scenario that asks for an engine that is none learns which there are."""
    with pytest.raises(ValueError, match="there is no engine 'paper': it is 'memory' or 'sqlite'"):
        FaultyWorld("paper")
