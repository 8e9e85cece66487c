"""Commits that wait together, and stores whose transactions wait for the test."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from tests.stores.helpers import Gate, connections, creates
from whenidle_actors.errors import StoreError
from whenidle_actors.stores.base import Batch
from whenidle_actors.stores.sqlite import SqliteStore


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


def gated(path: Path, gate: Gate, note: Callable[[str], object] = lambda _: None, **options: Any) -> SqliteStore:
    """Return a store whose transactions begin when the gate is open; each statement is noted before that."""

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        note(statement)
        if statement == "BEGIN IMMEDIATE":
            gate.pass_through()

    return SqliteStore(path, connection_factory=connections(before), **options)
