"""Values and faults that the store tests share."""

import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from whenidle_actors.errors import StoreError, StoreTooNew
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Append,
    Batch,
    Role,
    SessionHeader,
    SessionIndex,
    SessionSlice,
    Store,
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
