"""The thread that writes: when it ends, and what it meets."""

import sqlite3
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.stores.helpers import Gate, appends, creates
from whenidle_actors.errors import StoreBusy
from whenidle_actors.stores.base import Role, StoreStatistics
from whenidle_actors.stores.sqlite import SqliteStore

from .crowds import held_back


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
