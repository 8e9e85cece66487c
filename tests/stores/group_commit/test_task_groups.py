"""How commits that write tasks, and deliveries above all, share transactions."""

import sqlite3
from pathlib import Path

import pytest

from tests.stores.helpers import Gate, appends, creates, deletes, puts, receipt, sqlite_error, task
from whenidle_actors.errors import (
    CommitRefused,
    CommitUncertain,
    SequenceConflict,
    StoreError,
    TaskConflict,
    UnknownSession,
    UnknownTask,
)
from whenidle_actors.stores.base import Batch, Receipt, Retention, Role, StoreStatistics, TaskPage
from whenidle_actors.stores.sqlite import SqliteStore

from .crowds import gated, held_back


async def test_a_refused_task_write_does_not_harm_its_neighbours(store: SqliteStore, gate: Gate) -> None:
    """In one group, task writes around refused ones are committed, and the counters follow only those."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 5, creator="c")))
        async with held_back(store, gate) as crowd:
            await crowd.commit("good", puts(task("t", 6, 2, creator="c"), expected=1))
            await crowd.commit("conflict", puts(task("u", 1, creator="c"), task("t", 7, 2, creator="c")))
            await crowd.commit("stale", puts(task("t", None, 2, creator="c"), expected=1))
            await crowd.commit("nobody's", Batch(tasks=puts(task("v", 1)).tasks, receipts=(receipt("u"),)))
            await crowd.commit("last", Batch(tasks=deletes("t", 2).tasks + puts(task("w", 9, creator="d")).tasks))
        assert crowd.outcomes["good"] is crowd.outcomes["last"] is crowd.outcomes["first"] is None
        assert isinstance(crowd.outcomes["conflict"], TaskConflict)
        assert isinstance(crowd.outcomes["stale"], TaskConflict)
        assert isinstance(crowd.outcomes["nobody's"], UnknownTask)
        assert store.statistics() == StoreStatistics(commits=4, refused=3, groups=2)
        assert await store.tasks() == TaskPage((task("w", 9, creator="d"),), 1)
        assert list(await store.check()) == []


def delivers(
    task_id: str, session_id: str, *, next_millis: int | None = 50, version: int = 1, length: int = 0
) -> Batch:
    """Return what a delivery writes: a message, the task after it, and its receipt."""
    row = task(task_id, next_millis, version + 1, session_id=session_id, creator="c")
    return Batch(appends(session_id, length).appends, (), puts(row, expected=version).tasks, (receipt(task_id),))


def tasks_of(*names: str) -> Batch:
    """Return one session and one active task for each name."""
    rows = tuple(task(name, 5, session_id=name, creator="c") for name in names)
    return Batch(created=creates(*names).created, tasks=puts(*rows).tasks)


async def test_deliveries_are_written_together(path: Path, gate: Gate) -> None:
    """Deliveries of a group take a few statements; tasks that go on and tasks that end are counted."""
    statements: list[str] = []
    store = gated(path, gate, statements.append, retention=Retention(records=2))
    names = [f"s{number}" for number in range(300)]
    async with store.opened(Role.HOST):
        await store.commit(tasks_of(*names))
        for round_ in range(1, 4):
            first = delivers("s0", "s0", version=round_, length=round_ - 1)
            async with held_back(store, gate, first=first) as crowd:
                for number, name in enumerate(names[1:], 1):
                    next_millis = 50 + number if round_ < 3 or number % 2 else None
                    batch = delivers(name, name, next_millis=next_millis, version=round_, length=round_ - 1)
                    await crowd.commit(name, batch)
                statements.clear()
            assert set(crowd.outcomes.values()) == {None}
            written = [each for each in statements if each.startswith(("INSERT", "UPDATE", "SELECT"))]
            assert len(written) < 30 + (2 * len(names) if round_ == 3 else 0)  # the third receipt pushes the first out
        assert store.statistics() == StoreStatistics(commits=901, groups=4)
        assert await store.count_active_tasks() == await store.count_active_tasks("c") == 151
        for name in ("s0", "s1", "s2", "s299"):
            assert (await store.read(name)).length == 3
            assert len((await store.receipts(name)).receipts) == 2
        assert (await store.task("s299")).next_millis == 349
        assert (await store.task("s298")).next_millis is None
        assert list(await store.check()) == []


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (delivers("a", "a", version=7), TaskConflict),
        (delivers("a", "a", length=1), SequenceConflict),
        (delivers("a", "unknown"), UnknownSession),
        (delivers("unknown", "a"), TaskConflict),
        (Batch(appends("a", 0).appends, receipts=(receipt("unknown"),)), UnknownTask),
        (Batch(appends("a", 0).appends, receipts=(Receipt("a", 1, 1, "\ud800"),)), CommitRefused),
    ],
)
async def test_a_delivery_that_cannot_be_written_does_not_harm_its_neighbours(
    store: SqliteStore, gate: Gate, wrong: Batch, reason: type[StoreError]
) -> None:
    """In a group of deliveries the one that is refused gets its reason and leaves nothing; the others are durable."""
    async with store.opened(Role.HOST):
        await store.commit(tasks_of("a", "b", "c"))
        async with held_back(store, gate, first=delivers("b", "b")) as crowd:
            await crowd.commit("wrong", wrong)
            await crowd.commit("last", delivers("c", "c", next_millis=None))
        assert type(crowd.outcomes.pop("wrong")) is reason
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics() == StoreStatistics(commits=3, refused=1, groups=2)
        assert [(await store.read(name)).length for name in "abc"] == [0, 1, 1]
        assert [len((await store.receipts(name)).receipts) for name in "abc"] == [0, 1, 1]
        assert await store.count_active_tasks("c") == 2
        assert list(await store.check()) == []


async def test_what_is_unusual_about_a_task_is_written_too(store: SqliteStore, gate: Gate) -> None:
    """In a group: a task that was paused, one that changes twice, and two receipts of one task in one commit."""
    async with store.opened(Role.HOST):
        await store.commit(tasks_of("a", "b", "c"))
        await store.commit(puts(task("b", None, 2, creator="c"), expected=1))
        async with held_back(store, gate, first=delivers("a", "a")) as crowd:
            await crowd.commit("paused", puts(task("b", 9, 3, creator="c"), expected=2))
            await crowd.commit("again", delivers("a", "a", version=2, length=1))
            await crowd.commit("twice", Batch(receipts=(receipt("c", 1), receipt("c", 2))))
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics().groups == 3
        assert await store.count_active_tasks("c") == 3
        assert [len((await store.receipts(name)).receipts) for name in "abc"] == [2, 0, 2]
        assert list(await store.check()) == []


async def test_a_commit_of_a_group_whose_outcome_is_unknown_leaves_all_of_it_in_doubt(path: Path, gate: Gate) -> None:
    """Deliveries that were written together are uncertain together, and all are there or none."""
    failing: list[bool] = []

    def fail_once(statement: str) -> None:
        if statement == "COMMIT" and failing:
            failing.clear()
            raise sqlite_error(sqlite3.SQLITE_IOERR, "disk I/O error")

    store = gated(path, gate, fail_once)
    async with store.opened(Role.HOST):
        await store.commit(tasks_of("a", "b", "c"))
        async with held_back(store, gate, first=delivers("a", "a")) as crowd:
            await crowd.commit("b", delivers("b", "b"))
            await crowd.commit("c", delivers("c", "c"))
            failing.append(True)
        assert {type(error) for error in crowd.outcomes.values()} == {CommitUncertain}
        assert store.statistics() == StoreStatistics(commits=1, uncertain=3, groups=1)
        assert {(await store.read(name)).length for name in "abc"} == {0}
        await store.commit(delivers("a", "a"))
        assert list(await store.check()) == []
