"""An engine with the codec, the schema and the statements of the SQLite store, without its file and its threads."""

from __future__ import annotations

import itertools
import os
import sqlite3
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import trio

from whenidle_actors.errors import CommitUncertain, StoreClosed, StoreError, StoreLocked
from whenidle_actors.stores.base import DEFAULT_RETENTION, SessionSlice, StoreStatistics
from whenidle_actors.stores.paging import Pages, check_limit, check_offset, check_start
from whenidle_actors.stores.sqlite import reading, task_reading
from whenidle_actors.stores.sqlite.applying import apply_batch
from whenidle_actors.stores.sqlite.check import all_faults
from whenidle_actors.stores.sqlite.opening import Place
from whenidle_actors.stores.sqlite.requests import Part
from whenidle_actors.stores.sqlite.schema import migrate
from whenidle_actors.stores.sqlite.writing import WritingConnection
from whenidle_lab.engines.base import Engine, Mishap, told

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from whenidle_actors.stores.base import (
        Attention,
        Batch,
        ReceiptPage,
        Role,
        SessionHeader,
        TaskPage,
        TaskRow,
    )

_NUMBERS = itertools.count()
"""Tell the databases of one process apart; nothing in a run shows them."""

_AT_WRITE = {
    Mishap.FULL: (sqlite3.SQLITE_FULL, "database or disk is full"),
    Mishap.BUSY: (sqlite3.SQLITE_BUSY, "database is locked"),
    Mishap.REFUSED: (sqlite3.SQLITE_IOERR, "disk I/O error"),
}
"""What SQLite says when a transaction cannot begin."""


class _Connection(sqlite3.Connection):
    """A connection whose next statement of some kind fails."""

    mishap: Mishap | None = None

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        mishap = self.mishap
        if mishap is None:
            return super().execute(sql, parameters)
        if mishap in _AT_WRITE:
            raise _sqlite_error(*_AT_WRITE[mishap])
        if sql != "COMMIT":
            return super().execute(sql, parameters)
        if mishap is Mishap.UNCERTAIN_KEPT:
            super().execute(sql, parameters)
        raise _sqlite_error(sqlite3.SQLITE_IOERR, "disk I/O error")


def _told(error: StoreError | None, mishap: Mishap | None) -> StoreError | None:
    """Return what the caller is told: the words of every engine, if the store took a mishap for what it was."""
    if error is None or mishap is None:
        return error
    expected = told(mishap)
    return expected if type(error) is type(expected) else error


def _sqlite_error(code: int, message: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


@attrs.frozen
class _InMemory(Place):
    """A database that exists for as long as some connection to it is open."""

    uri: str = ""

    def _connect(self, factory: type[sqlite3.Connection], mode: str) -> sqlite3.Connection:  # noqa: ARG002 - no file
        # Whichever thread the collector runs in closes what nobody has closed.
        return sqlite3.connect(self.uri, uri=True, isolation_level=None, factory=factory, check_same_thread=False)


class SqliteEngine(Engine):
    """A store in one SQLite database that is never on a disk; used by one thread."""

    def __init__(self) -> None:
        uri = f"file:/whenidle-lab-{next(_NUMBERS)}?vfs=memdb"
        self._place = _InMemory(Path("simulated.store"), 0.0, _Connection, uri)
        self._reader = self._place.connect_reader()
        self._reader.execute("PRAGMA query_only = OFF")
        migrate(self._reader)
        self._reader.execute("PRAGMA query_only = ON")
        weakref.finalize(self, self._reader.close)
        self._writing: WritingConnection | None = None
        self._closed = trio.Event()
        self._statistics = StoreStatistics()

    @property
    def name(self) -> str:
        """`memory`: there is no file."""
        return "memory"

    async def open(self, role: Role) -> None:  # noqa: ARG002 - nobody else can reach this store
        """See `Store.open`."""
        await trio.lowlevel.checkpoint()
        if self._writing is not None:
            raise StoreLocked(self.name, os.getpid())
        self._writing = WritingConnection(self._place, self._place.connect_writer(), DEFAULT_RETENTION, tell_host=False)
        self._closed = trio.Event()
        self._statistics = StoreStatistics()

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        self.begin_life()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def begin_life(self) -> None:
        """See `Engine.begin_life`. A transaction that is open is rolled back with its connection."""
        if self._writing is not None:
            self._writing.close()
            self._writing = None
        self._closed.set()

    # Commits ----------------------------------------------------------------------------------

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        await trio.lowlevel.checkpoint()
        (error,) = self.apply([batch])
        if error is not None:
            raise error

    def apply(self, batches: Sequence[Batch], mishap: Mishap | None = None) -> Sequence[StoreError | None]:
        """See `Engine.apply`. The mishap is one of SQLite's, and what follows is what the real store makes of it."""
        writing = self._opened()
        connection = writing.settle()
        group = [Part(batch) for batch in batches]
        assert isinstance(connection, _Connection)  # noqa: S101 - made by our place
        connection.mishap = mishap
        try:
            groups = writing.commit(lambda: group)
        finally:
            connection.mishap = None
        self._count(group, groups)
        return [_told(part.error, mishap) for part in group]

    def tear(self, batch: Batch) -> None:
        """See `Engine.tear`."""
        connection = self._place.connect_writer()
        connection.execute("BEGIN IMMEDIATE")
        try:
            apply_batch(connection, batch, retention=DEFAULT_RETENTION, tell_host=False)
        except (StoreError, sqlite3.Error, UnicodeError, OverflowError, ValueError):
            pass  # it would have been refused; the process does not get to know
        finally:
            connection.close()

    def _count(self, group: Sequence[Part], groups: int) -> None:
        errors = [part.error for part in group]
        uncertain = sum(isinstance(error, CommitUncertain) for error in errors)
        done = errors.count(None)
        before = self._statistics
        self._statistics = attrs.evolve(
            before,
            commits=before.commits + done,
            refused=before.refused + len(errors) - uncertain - done,
            uncertain=before.uncertain + uncertain,
            groups=before.groups + groups,
        )

    # Reads ------------------------------------------------------------------------------------

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `Store.read`."""
        check_start(start)
        connection = await self._readable()
        head, records = reading.read_head(connection, session_id, start)
        first = min(start, head.length)
        while first + len(records) < head.length:
            records += reading.read_records(connection, head, first + len(records))
        return SessionSlice(head.header, head.index, first, tuple(records))

    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        """See `Store.sessions`."""
        check_limit(limit)
        return reading.read_headers(await self._readable(), after, limit)

    def attention(self) -> AsyncIterator[Attention]:
        """See `Store.attention`. All of it is read when the first is asked for, as in memory."""
        cursor: reading.Cursor | None = reading.FIRST

        async def fetch() -> Sequence[Attention]:
            nonlocal cursor
            connection = await self._readable()
            found: list[Attention] = []
            while cursor is not None:
                page, cursor = reading.read_attention(connection, cursor)
                found += page
            return found

        return Pages(fetch)

    async def task(self, task_id: str) -> TaskRow:
        """See `Store.task`."""
        return task_reading.read_task(await self._readable(), task_id)

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """See `Store.tasks`."""
        check_limit(limit)
        check_offset(offset)
        return task_reading.read_page(await self._readable(), active, limit, offset)

    async def count_active_tasks(self, creator: str | None = None) -> int:
        """See `Store.count_active_tasks`."""
        return task_reading.read_active_count(await self._readable(), creator)

    async def due_tasks(
        self,
        until_millis: int,
        *,
        session_id: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 500,
    ) -> tuple[TaskRow, ...]:
        """See `Store.due_tasks`."""
        check_limit(limit)
        return task_reading.read_due(await self._readable(), until_millis, session_id, after, limit)

    async def next_due(self, after_millis: int | None = None) -> int | None:
        """See `Store.next_due`."""
        return task_reading.read_next_due(await self._readable(), after_millis)

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """See `Store.receipts`."""
        check_limit(limit)
        return task_reading.read_receipts(await self._readable(), task_id, before, limit)

    async def changed_elsewhere(self) -> NoReturn:
        """See `Store.changed_elsewhere`. Nobody else can reach this store, so it waits until cancelled."""
        await trio.lowlevel.checkpoint()
        self._opened()
        await self._closed.wait()
        raise StoreClosed("the store was closed while waiting for changes by other processes")

    async def check(self) -> Sequence[str]:
        """See `Store.check`."""
        return list(all_faults(await self._readable()))

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`."""
        return self._statistics

    async def _readable(self) -> sqlite3.Connection:
        await trio.lowlevel.checkpoint()
        self._opened().settle()
        return self._reader

    def _opened(self) -> WritingConnection:
        if self._writing is None:
            raise StoreClosed(f"{self.name} is not open")
        return self._writing
