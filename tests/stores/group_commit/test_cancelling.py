"""What cancelling a commit does to it and to its group."""

import queue
import sqlite3
from functools import partial
from pathlib import Path

import trio
from trio.testing import wait_all_tasks_blocked

from tests.stores.helpers import Gate, connections, creates
from whenidle_actors.stores.base import Role, StoreStatistics
from whenidle_actors.stores.sqlite import SqliteStore

from .crowds import gated, held_back


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
    store = gated(path, gate, statements.put)
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


async def test_a_commit_cancelled_after_its_write_began_is_awaited(path: Path, gate: Gate) -> None:
    """Once the write has begun the outcome is waited for and told, whatever is cancelled."""

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
