"""What the SQLite store says of commits that the disk did not take, or that nobody knows of."""

# ruff: noqa: ASYNC240 - a test may wait for the disk

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from whenidle_actors.errors import CommitRefused, CommitUncertain, StoreError, StoreFull
from whenidle_actors.stores.base import Batch, Role, StoreStatistics
from whenidle_actors.stores.sqlite import SqliteStore, schema

from .helpers import Gate, appends, connections, contents, creates, record, sqlite_error

BIG = record(data=f'"{"x" * 200_000}"')


class Disk:
    """A connection hook that fails on order, and remembers the connections it saw."""

    def __init__(self) -> None:
        self.seen: list[sqlite3.Connection] = []
        self.fault: Callable[[sqlite3.Connection, str], None] | None = None
        self.gate = Gate()

    def before(self, connection: sqlite3.Connection, statement: str) -> None:
        if connection not in self.seen:
            self.seen.append(connection)
        if statement == "BEGIN IMMEDIATE":
            self.gate.pass_through()
        if self.fault is not None:
            self.fault(connection, statement)

    def fail(self, statement: str, error: Exception, *, after: bool = False, times: int = 1) -> None:
        """Raise `error` at the next `times` of `statement`, `after` doing it or instead of doing it."""
        left = times

        def fault(connection: sqlite3.Connection, executed: str) -> None:
            nonlocal left
            if executed == statement and left:
                left -= 1
                if after:
                    sqlite3.Connection.execute(connection, executed)
                raise error

        self.fault = fault


@pytest.fixture
def disk() -> Disk:
    """What fails on order."""
    return Disk()


@pytest.fixture
def store(path: Path, disk: Disk) -> SqliteStore:
    """A store on that disk."""
    return SqliteStore(path, connection_factory=connections(disk.before))


async def commit_together(store: SqliteStore, disk: Disk, *batches: Batch) -> list[StoreError | None]:
    """Commit `batches` in one group, in this order, and return what each was told."""
    outcomes: list[StoreError | None] = [None] * len(batches)

    async def commit(position: int, batch: Batch) -> None:
        try:
            await store.commit(batch)
        except StoreError as error:
            outcomes[position] = error

    disk.gate.close()
    async with trio.open_nursery() as nursery:
        for position, batch in enumerate(batches):
            nursery.start_soon(commit, position, batch)
            await trio.testing.wait_all_tasks_blocked()
        await trio.to_thread.run_sync(disk.gate.arrivals.get)
        disk.gate.open()
    return outcomes


def io_error() -> sqlite3.OperationalError:
    """Return what SQLite raises when a sync fails."""
    return sqlite_error(sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error")


@contextmanager
def limited_file_size(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_store_refuses_and_works_again_when_there_is_room(store: SqliteStore, disk: Disk) -> None:
    """Without room a commit raises `StoreFull` and changes nothing; with room again the same commit works."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        before = await contents(store)
        disk.seen[-1].execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreFull, match="no room"):
            await store.commit(appends("a", 0, [BIG]))
        assert await contents(store) == before
        await store.commit(appends("a", 0))
        disk.seen[-1].execute("PRAGMA max_page_count = 1000000")
        await store.commit(appends("a", 1, [BIG]))
        assert (await store.read("a")).records == (record(0), BIG)
        assert list(await store.check()) == []


async def test_a_commit_without_room_does_not_harm_its_neighbours(store: SqliteStore, disk: Disk) -> None:
    """In a group, only the commit that does not fit is refused, even if SQLite undoes the whole group."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.seen[-1].execute("PRAGMA max_page_count = 20")
        first, big, last = await commit_together(store, disk, appends("a", 0), appends("a", 1, [BIG]), appends("a", 1))
        assert (first, type(big), last) == (None, StoreFull, None)
        assert (await store.read("a")).records == (record(0), record(1))


async def test_no_room_at_the_commit_itself_is_a_refusal(store: SqliteStore, disk: Disk) -> None:
    """SQLITE_FULL from COMMIT leaves no doubt: nothing happened, and the next commit goes on."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("COMMIT", sqlite_error(sqlite3.SQLITE_FULL, "database or disk is full"))
        with pytest.raises(StoreFull):
            await store.commit(appends("a", 0))
        assert (await store.read("a")).length == 0
        await store.commit(appends("a", 0))
        assert store.statistics() == StoreStatistics(commits=2, refused=1, groups=2)


async def test_a_group_without_room_is_tried_one_by_one(store: SqliteStore, disk: Disk) -> None:
    """When a whole group does not fit, those of it that fit by themselves are committed."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("COMMIT", sqlite_error(sqlite3.SQLITE_FULL, "database or disk is full"), times=2)
        first, second = await commit_together(store, disk, appends("a", 0), appends("a", 0))
        assert (type(first), second) == (StoreFull, None)
        assert (await store.read("a")).length == 1


@pytest.mark.parametrize("after", [False, True])
async def test_an_uncertain_commit_is_resolved_by_reading_back(store: SqliteStore, disk: Disk, after: bool) -> None:
    """An I/O error at COMMIT is reported as uncertain, and the next read tells what is true."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("COMMIT", io_error(), after=after)
        with pytest.raises(CommitUncertain, match="not known; read it back"):
            await store.commit(appends("a", 0))
        assert (await store.read("a")).length == int(after)
        assert len(disk.seen) == 2
        await store.commit(appends("a", int(after)))
        assert store.statistics() == StoreStatistics(commits=2, uncertain=1, groups=2)


async def test_all_of_an_uncertain_group_are_told(store: SqliteStore, disk: Disk) -> None:
    """Every commit of a group whose outcome is unknown is uncertain, except those refused before."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b"))
        disk.fail("COMMIT", io_error(), after=True)
        outcomes = await commit_together(store, disk, appends("a", 0), appends("a", 5), appends("b", 0), creates("c"))
        kinds = [type(outcome).__name__ for outcome in outcomes]
        assert kinds == ["CommitUncertain", "SequenceConflict", "CommitUncertain", "CommitUncertain"]
        assert len({id(outcome) for outcome in outcomes}) == 4
        assert {name: part.length for name, part in (await contents(store)).items()} == {"a": 1, "b": 1, "c": 0}


async def test_an_error_that_is_not_sqlites_is_uncertain_too(store: SqliteStore, disk: Disk) -> None:
    """Whatever a COMMIT raises, the caller is not told something that may be false."""
    async with store.opened(Role.HOST):
        disk.fail("COMMIT", MemoryError(), after=True)
        with pytest.raises(CommitUncertain):
            await store.commit(creates("a"))
        assert [head.id for head in await store.sessions()] == ["a"]


async def test_a_failing_rollback_is_uncertain(store: SqliteStore, disk: Disk) -> None:
    """If not even undoing works, the refused commit keeps its reason and the store recovers."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("ROLLBACK TO batch", io_error())
        outcomes = await commit_together(store, disk, creates("b"), creates("a"), creates("c"))
        kinds = [type(outcome).__name__ for outcome in outcomes]
        assert kinds == ["CommitUncertain", "SessionExists", "CommitUncertain"]
        assert [head.id for head in await store.sessions()] == ["a"]


async def test_nothing_is_read_while_the_truth_cannot_be_told(store: SqliteStore, disk: Disk) -> None:
    """Until the disk works again, reads after an uncertain commit raise, and commits are refused."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("COMMIT", io_error())
        with pytest.raises(CommitUncertain):
            await store.commit(appends("a", 0))
        disk.fail(f"PRAGMA application_id = {schema.APPLICATION_ID}", io_error(), times=6)
        with pytest.raises(CommitUncertain):
            await store.read("a")
        with pytest.raises(CommitUncertain):
            await store.sessions()
        with pytest.raises(CommitUncertain):
            await store.check()
        with pytest.raises(CommitUncertain):
            await anext(store.attention())
        with pytest.raises(CommitUncertain):
            await store.next_due()
        with pytest.raises(CommitRefused, match="changed nothing"):
            await store.commit(appends("a", 0))
        assert (await store.read("a")).length == 0


async def test_a_connection_that_cannot_be_opened_again_refuses_commits(store: SqliteStore, disk: Disk) -> None:
    """When the reopening after an uncertain commit fails, commits say so and later ones try again."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("COMMIT", io_error())
        with pytest.raises(CommitUncertain):
            await store.commit(appends("a", 0))
        disk.fail("PRAGMA synchronous = FULL", io_error())
        with pytest.raises(CommitRefused, match="changed nothing"):
            await store.commit(appends("a", 0))
        await store.commit(appends("a", 0))
        assert (await store.read("a")).length == 1


async def test_a_failing_begin_is_a_refusal(store: SqliteStore, disk: Disk) -> None:
    """An error before anything was written leaves no doubt."""
    async with store.opened(Role.HOST):
        disk.fail("BEGIN IMMEDIATE", io_error())
        with pytest.raises(CommitRefused, match="disk I/O error"):
            await store.commit(creates("a"))
        await store.commit(creates("a"))


async def test_one_by_one_goes_on_after_a_commit_that_could_not_begin(store: SqliteStore, disk: Disk) -> None:
    """In a group tried one by one, an error at one commit's beginning is that commit's only."""
    statements: list[str] = []
    faults = {
        "COMMIT": {1: sqlite_error(sqlite3.SQLITE_FULL, "full")},
        "BEGIN IMMEDIATE": {3: io_error()},  # the group has begun twice: written together, and then each by itself
    }

    def fault(_connection: sqlite3.Connection, statement: str) -> None:
        statements.append(statement)
        error = faults.get(statement, {}).get(statements.count(statement))
        if error is not None:
            raise error

    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fault = fault
        first, second = await commit_together(store, disk, appends("a", 0), appends("a", 0))
        assert (type(first), second) == (CommitRefused, None)


async def test_a_group_that_cannot_begin_again_is_refused(store: SqliteStore, disk: Disk) -> None:
    """When a group cannot be written together and there is no second transaction, nothing is written or in doubt."""
    begun = 0

    def fault(_connection: sqlite3.Connection, statement: str) -> None:
        nonlocal begun
        begun += statement == "BEGIN IMMEDIATE"
        if statement == "BEGIN IMMEDIATE" and begun == 2:
            raise io_error()

    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b"))
        disk.fault = fault
        outcomes = await commit_together(store, disk, appends("a", 0), appends("b", 1), appends("unknown", 0))
        assert [type(outcome) for outcome in outcomes] == [CommitRefused] * 3
        assert {part.length for part in (await contents(store)).values()} == {0}
        assert store.statistics() == StoreStatistics(commits=1, refused=3, groups=1)


async def test_a_real_write_error_is_uncertain_and_settles(store: SqliteStore, path: Path) -> None:
    """A log file that really cannot grow makes a commit uncertain; nothing of it is there afterwards."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0))
        size = Path(f"{path}-wal").stat().st_size
        with limited_file_size(size), pytest.raises(CommitUncertain, match="disk I/O error"):
            await store.commit(appends("a", 1, [BIG]))
        assert (await store.read("a")).records == (record(0),)
        await store.commit(appends("a", 1, [BIG]))
        assert list(await store.check()) == []
    async with store.opened(Role.HOST):
        assert (await store.read("a")).records == (record(0), BIG)


async def test_settling_writes(store: SqliteStore, disk: Disk, path: Path) -> None:
    """Settling an uncertain commit is a write of its own, which takes the place of what may be in the log."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        disk.fail("COMMIT", io_error())
        with pytest.raises(CommitUncertain):
            await store.commit(appends("a", 0))
        watcher = sqlite3.connect(path)
        before = watcher.execute("PRAGMA data_version").fetchone()
        await store.read("a")
        assert watcher.execute("PRAGMA data_version").fetchone() != before
        watcher.close()
