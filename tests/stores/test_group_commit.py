"""How commits of the SQLite store share transactions, and what cancelling them does."""

import queue
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import (
    CommitRefused,
    CommitUncertain,
    SequenceConflict,
    SessionExists,
    StoreBusy,
    StoreError,
    TaskConflict,
    UnknownSession,
    UnknownTask,
)
from whenidle_actors.stores.base import Batch, Receipt, Retention, Role, SessionIndex, StoreStatistics, TaskPage
from whenidle_actors.stores.sqlite import SqliteStore, writer

from .helpers import (
    Gate,
    appends,
    connections,
    contents,
    creates,
    deletes,
    header,
    puts,
    receipt,
    record,
    records,
    sqlite_error,
    task,
)


class Crowd:
    """Tasks that commit while the writing thread is held, so that all of them wait together."""

    def __init__(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        self.outcomes: dict[str, StoreError | None] = {}
        self._store = store
        self._nursery = nursery

    async def commit(self, name: str, batch: Batch) -> None:
        self._nursery.start_soon(self._commit, name, batch)
        await wait_all_tasks_blocked()

    async def _commit(self, name: str, batch: Batch) -> None:
        try:
            await self._store.commit(batch)
        except StoreError as error:
            self.outcomes[name] = error
        else:
            self.outcomes[name] = None


@pytest.fixture
def gate() -> Gate:
    """What holds the writing thread."""
    return Gate()


@pytest.fixture
def store(path: Path, gate: Gate) -> SqliteStore:
    """A store whose transactions begin when the gate is open."""

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            gate.pass_through()

    return SqliteStore(path, connection_factory=connections(before))


@asynccontextmanager
async def held_back(store: SqliteStore, gate: Gate, first: Batch | None = None) -> AsyncIterator[Crowd]:
    """Hold the thread in a commit of its own; what is handed in inside the block forms one group with it."""
    gate.close()
    async with trio.open_nursery() as nursery:
        crowd = Crowd(store, nursery)
        try:
            await crowd.commit("first", first or creates("first"))
            await trio.to_thread.run_sync(gate.arrivals.get)
            yield crowd
        finally:
            gate.open()


async def test_waiting_commits_share_one_transaction(store: SqliteStore, gate: Gate) -> None:
    """All commits that wait when the thread becomes free are one transaction, as the counters show."""
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            for number in range(50):
                await crowd.commit(f"c{number}", creates(f"s{number}"))
            assert store.statistics().waiting == 51
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics() == StoreStatistics(commits=51, groups=1)
        assert len(await store.sessions()) == 51


async def test_plain_appends_are_written_together(path: Path, gate: Gate) -> None:
    """Appends of a group take a few statements, and each session gets its own events and index."""
    statements: list[str] = []

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        statements.append(statement)
        if statement == "BEGIN IMMEDIATE":
            gate.pass_through()

    store = SqliteStore(path, connection_factory=connections(before))
    async with store.opened(Role.HOST):
        names = [f"s{number}" for number in range(20)]
        await store.commit(creates(*names))
        await store.commit(appends("s1", 0, records(3), SessionIndex(7)))
        for index in (SessionIndex(7), SessionIndex(runnable=True), SessionIndex(7, runnable=True), SessionIndex()):
            before_them = await contents(store)
            async with held_back(store, gate, first=appends("s0", before_them["s0"].length, index=index)) as crowd:
                for number, name in enumerate(names[1:], 1):
                    length = before_them[name].length
                    await crowd.commit(name, appends(name, length, records(1 + number % 3, length), index))
                statements.clear()
            assert set(crowd.outcomes.values()) == {None}
            written = [statement for statement in statements if statement.startswith(("INSERT", "UPDATE"))]
            assert len(written) < len(names)
            for number, name in enumerate(names):
                part = before_them[name]
                after = await store.read(name)
                assert after.records == (*part.records, *records(1 + number % 3, part.length))
                assert after.index == index
        assert list(await store.check()) == []


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (appends("a", 1), SequenceConflict),
        (appends("unknown", 0), UnknownSession),
        (appends("a", 0, [record(data="\ud800")]), CommitRefused),
    ],
)
async def test_an_append_that_cannot_be_written_does_not_harm_plain_ones(
    store: SqliteStore, gate: Gate, wrong: Batch, reason: type[StoreError]
) -> None:
    """In a group of appends the one that is refused gets its reason, and the others become durable together."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b", "c"))
        async with held_back(store, gate, first=appends("b", 0)) as crowd:
            await crowd.commit("wrong", wrong)
            await crowd.commit("last", appends("c", 0))
        assert type(crowd.outcomes.pop("wrong")) is reason
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics() == StoreStatistics(commits=3, refused=1, groups=2)
        assert [(await store.read(name)).length for name in "abc"] == [0, 1, 1]


async def test_a_refused_commit_does_not_harm_its_neighbours(store: SqliteStore, gate: Gate) -> None:
    """In one group, the commits around refused ones become durable, and each refusal has its own reason."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        async with held_back(store, gate) as crowd:
            await crowd.commit("good", appends("a", 0))
            await crowd.commit("conflict", Batch(appends("a", 0).appends, (header("never"),)))
            await crowd.commit("exists", creates("new", "a"))
            await crowd.commit("unstorable", appends("a", 1, [record(1), record(data="\ud800")]))
            await crowd.commit("last", appends("a", 1))
        assert crowd.outcomes["good"] is crowd.outcomes["last"] is crowd.outcomes["first"] is None
        assert isinstance(crowd.outcomes["conflict"], SequenceConflict)
        assert isinstance(crowd.outcomes["exists"], SessionExists)
        assert type(crowd.outcomes["unstorable"]) is CommitRefused
        assert store.statistics() == StoreStatistics(commits=4, refused=3, groups=2)
        assert {name: part.length for name, part in (await contents(store)).items()} == {"a": 2, "first": 0}


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

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        statements.append(statement)
        if statement == "BEGIN IMMEDIATE":
            gate.pass_through()

    store = SqliteStore(path, retention=Retention(records=2), connection_factory=connections(before))
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


async def test_a_commit_of_a_group_whose_outcome_is_unknown_leaves_all_of_it_in_doubt(path: Path) -> None:
    """Deliveries that were written together are uncertain together, and all are there or none."""
    gate = Gate()

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            gate.pass_through()
        if statement == "COMMIT" and failing:
            failing.clear()
            raise sqlite_error(sqlite3.SQLITE_IOERR, "disk I/O error")

    failing: list[bool] = []
    store = SqliteStore(path, connection_factory=connections(before))
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


async def test_a_group_of_refusals_writes_nothing(store: SqliteStore, gate: Gate) -> None:
    """A group in which every commit is refused is not a transaction that counts."""
    async with store.opened(Role.HOST):
        await store.commit(creates("first"))
        async with held_back(store, gate) as crowd:
            await crowd.commit("second", creates("first"))
        assert [type(error) for error in crowd.outcomes.values()] == [SessionExists, SessionExists]
        assert store.statistics() == StoreStatistics(commits=1, refused=2, groups=1)


async def test_appends_to_one_log_follow_one_another_within_a_group(store: SqliteStore, gate: Gate) -> None:
    """Several commits to the same session in one group see each other's events."""
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            for number in range(10):
                await crowd.commit(f"c{number}", appends("first", number))
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics().groups == 1
        assert (await store.read("first")).records == tuple(record(number) for number in range(10))


async def test_a_very_large_crowd_takes_several_transactions(
    store: SqliteStore, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group has a bound, so that the first of many waiters does not wait for all of them."""
    monkeypatch.setattr(writer, "_GROUP_LIMIT", 4)
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            for number in range(9):
                await crowd.commit(f"c{number}", creates(f"s{number}"))
        assert store.statistics() == StoreStatistics(commits=10, groups=3)


async def test_a_commit_cancelled_before_its_write_began_is_withdrawn(store: SqliteStore, gate: Gate) -> None:
    """A waiting commit that is cancelled leaves at once, and the group is committed without it."""
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(store.commit, creates("withdrawn"))
                    await wait_all_tasks_blocked()
                    assert store.statistics().waiting == 2
                    scope.cancel()
            assert scope.cancelled_caught
            assert store.statistics().waiting == 1
            await crowd.commit("after", creates("after"))
        assert [head.id for head in await store.sessions()] == ["after", "first"]
        assert store.statistics() == StoreStatistics(commits=2, groups=1)


async def test_a_group_of_withdrawn_commits_is_no_transaction(store: SqliteStore, gate: Gate) -> None:
    """When all that waited have left, nothing is written."""
    async with store.opened(Role.HOST):
        gate.close()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.commit, creates("withdrawn"))
                await trio.to_thread.run_sync(gate.arrivals.get)
                scope.cancel()
        gate.open()
        await store.commit(creates("a"))
        assert [head.id for head in await store.sessions()] == ["a"]
        assert store.statistics() == StoreStatistics(commits=1, groups=1)


async def test_a_group_that_was_withdrawn_leaves_no_doubt(path: Path, gate: Gate) -> None:
    """Its transaction is rolled back; the connection stays, and nothing has to be settled."""
    statements: queue.SimpleQueue[str] = queue.SimpleQueue()

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        statements.put(statement)
        if statement == "BEGIN IMMEDIATE":
            gate.pass_through()

    store = SqliteStore(path, connection_factory=connections(before))
    async with store.opened(Role.HOST):
        gate.close()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit, creates("withdrawn"))
            await trio.to_thread.run_sync(gate.arrivals.get)
            nursery.cancel_scope.cancel()
        gate.open()
        following = partial(statements.get, timeout=60)
        while await trio.to_thread.run_sync(following) != "BEGIN IMMEDIATE":
            continue
        assert await trio.to_thread.run_sync(following) == "ROLLBACK"
        assert await store.commit_all([]) == []
        await store.commit(creates("a"))
    assert not any("PRAGMA application_id =" in statements.get() for _ in range(statements.qsize()))


async def test_a_commit_cancelled_after_its_write_began_is_awaited(path: Path) -> None:
    """Once the write has begun the outcome is waited for and told, whatever is cancelled."""
    gate = Gate()

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        if statement == "COMMIT":
            gate.pass_through()

    returned = trio.Event()
    store = SqliteStore(path, connection_factory=connections(before))
    async with store.opened(Role.HOST):
        gate.close()

        async def commit() -> None:
            await store.commit(creates("a"))
            returned.set()
            await trio.lowlevel.checkpoint()

        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(commit)
                await trio.to_thread.run_sync(gate.arrivals.get)
                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await wait_all_tasks_blocked()
                assert not returned.is_set()
                gate.open()
        assert returned.is_set()
        assert not scope.cancelled_caught
        assert [head.id for head in await store.sessions()] == ["a"]


async def test_closing_finishes_what_was_handed_in(store: SqliteStore, gate: Gate) -> None:
    """Commits that wait when the store is closed are written first; later ones are told it is closed."""
    await store.open(Role.HOST)
    closed = trio.Event()

    async def close() -> None:
        await store.aclose()
        closed.set()

    async with trio.open_nursery() as nursery, held_back(store, gate) as crowd:
        await crowd.commit("second", creates("second"))
        nursery.start_soon(close)
        nursery.start_soon(close)
        await wait_all_tasks_blocked()
        assert not closed.is_set()
        await crowd.commit("late", creates("late"))
        assert set(crowd.outcomes) == {"late"}
    assert crowd.outcomes["first"] is crowd.outcomes["second"] is None
    async with store.opened(Role.HOST):
        assert [head.id for head in await store.sessions()] == ["first", "second"]


async def test_closing_leaves_no_thread_and_no_log(store: SqliteStore, path: Path) -> None:
    """After closing there is no thread of the store, and of its files only the database and the lock file."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        assert [thread.name for thread in threading.enumerate()].count("whenidle-store") == 1
    assert "whenidle-store" not in [thread.name for thread in threading.enumerate()]
    assert sorted(file.name for file in path.parent.iterdir()) == ["test.store", "test.store-host"]


async def test_a_commit_that_finds_the_file_locked_is_refused(path: Path) -> None:
    """When another process holds the write lock past the busy timeout, the commit changes nothing."""
    store = SqliteStore(path, busy_timeout=0.01)
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="write lock"):
            await store.commit(appends("a", 0))
        assert (await store.read("a")).length == 0
        other.execute("ROLLBACK")
        other.close()
        await store.commit(appends("a", 0))
        assert store.statistics() == StoreStatistics(commits=2, refused=1, groups=2)


async def test_a_store_whose_trio_ended_lets_its_thread_end(path: Path) -> None:
    """A run that ends without closing its store does not keep the thread past its next report."""
    store = SqliteStore(path)

    async def abandon() -> None:
        await store.open(Role.HOST)

    await trio.to_thread.run_sync(trio.run, abandon)
    other = SqliteStore(path)
    async with other.opened(Role.MANAGER):
        await other.commit(creates("a"))
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "whenidle-store"]
    await trio.to_thread.run_sync(thread.join, 10)
    assert not thread.is_alive()
