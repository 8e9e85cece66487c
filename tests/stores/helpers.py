"""Values and faults that the store tests share."""

import queue
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from whenidle_actors.errors import StoreError, StoreTooNew
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Append,
    Batch,
    Receipt,
    Role,
    SessionHeader,
    SessionIndex,
    SessionSlice,
    Store,
    TaskRow,
    TaskWrite,
)
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_protocol.events import EventRecord

CREATED_AT = datetime(2026, 1, 5, 8, tzinfo=UTC)


def header(session_id: str, **fields: Any) -> SessionHeader:
    """Return a header with nothing special in it."""
    return SessionHeader(session_id, CREATED_AT, **fields)


def record(number: int = 0, **fields: Any) -> EventRecord:
    """Return an event that differs by its number."""
    given: dict[str, Any] = {"type": "test/event", "at_millis": 1000 + number, "data": f'{{"n":{number}}}'} | fields
    return EventRecord(**given)


def records(count: int, first: int = 0) -> tuple[EventRecord, ...]:
    """Return `count` events that differ."""
    return tuple(record(number) for number in range(first, first + count))


def creates(*session_ids: str) -> Batch:
    """Return a batch that creates sessions."""
    return Batch(created=tuple(header(session_id) for session_id in session_ids))


def appends(
    session_id: str, expected: int, events: Sequence[EventRecord] | None = None, index: SessionIndex = IDLE_INDEX
) -> Batch:
    """Return a batch of one append, of one event unless told otherwise."""
    events = (record(expected),) if events is None else tuple(events)
    return Batch(appends=(Append(session_id, expected, events, index),))


def task(task_id: str, next_millis: int | None = None, updated_millis: int = 1, **fields: Any) -> TaskRow:
    """Return a task with nothing special in it; it is active if it has a next occurrence."""
    given: dict[str, Any] = {"data": f'{{"id":"{task_id}"}}'} | fields
    return TaskRow(task_id, updated_millis=updated_millis, next_millis=next_millis, **given)


def puts(*rows: TaskRow, expected: int | None = None) -> Batch:
    """Return a batch that writes tasks: new ones, unless the version before is given."""
    return Batch(tasks=tuple(TaskWrite(row.id, expected, row) for row in rows))


def deletes(task_id: str, expected: int) -> Batch:
    """Return a batch that deletes a task."""
    return Batch(tasks=(TaskWrite(task_id, expected, None),))


def receipt(task_id: str, number: int = 0, **fields: Any) -> Receipt:
    """Return a receipt that differs by its number."""
    given: dict[str, Any] = {"scheduled_millis": number, "delivered_millis": 1000 + number} | fields
    return Receipt(task_id, data=f'{{"n":{number}}}', **given)


async def contents(store: Store) -> dict[str, SessionSlice]:
    """Return all that a store holds."""
    return {head.id: await store.read(head.id) for head in await store.sessions()}


class Gate:
    """Lets a test hold the writing thread at the start of a transaction."""

    def __init__(self) -> None:
        self.arrivals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._open = threading.Event()
        self._open.set()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def pass_through(self) -> None:
        if not self._open.is_set():
            self.arrivals.put(None)
            self._open.wait()


def connections(before: Callable[[sqlite3.Connection, str], None]) -> type[sqlite3.Connection]:
    """Return a class of connections that call `before(connection, statement)` ahead of each statement."""

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            before(self, sql)
            return super().execute(sql, parameters)

    return Watched


def sqlite_error(code: int, message: str) -> sqlite3.OperationalError:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


async def refused(path: Path, kind: type[StoreError], role: Role = Role.HOST) -> str:
    """Check that opening fails with exactly `kind`, and return the message."""
    with pytest.raises(StoreError) as caught:
        await SqliteStore(path, busy_timeout=0.05).open(role)
    assert type(caught.value) is kind
    assert str(path) in str(caught.value) or kind is StoreTooNew
    return str(caught.value)


async def works(path: Path) -> None:
    """Check that a store can be opened, written and closed."""
    store = SqliteStore(path)
    async with store.opened(Role.HOST):
        await store.commit(creates("works"))
        assert list(await store.check()) == []


_DYING = """
import os, sqlite3, sys, trio
from whenidle_actors.stores.base import Role
from whenidle_actors.stores.sqlite import SqliteStore, opening
class Dying(sqlite3.Connection):
    def execute(self, sql, *rest):
        global left
        left -= 1
        if left == 0: os._exit(9)
        return super().execute(sql, *rest)
connect = opening.Place._connect
opening.Place._connect = lambda place, factory, mode: connect(place, Dying, mode)
for left, path in enumerate(sys.argv[1:], 1):
    child = os.fork()
    if child == 0:
        trio.run(SqliteStore(path).open, Role.HOST)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


async def die_while_opening(*paths: Path) -> int:
    """Open each store in a process that dies ahead of a statement: the first, the second, and so on.

    Return how many died so, after checking that all others opened their stores.
    """
    done = await trio.run_process([sys.executable, "-c", _DYING, *map(str, paths)], capture_stdout=True)
    codes = list(map(int, done.stdout.split()))
    deaths = codes.count(9)
    assert codes == [9] * deaths + [0] * (len(paths) - deaths)
    return deaths
