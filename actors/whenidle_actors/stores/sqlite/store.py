"""The default store: one SQLite file (SPEC 3.3)."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs
import trio

from whenidle_actors.errors import StoreClosed, StoreLocked, StoreUnavailable
from whenidle_actors.stores.base import DEFAULT_RETENTION, Role, SessionSlice, Store, StoreStatistics
from whenidle_actors.stores.paging import Pages, check_limit, check_offset, check_start
from whenidle_actors.stores.sqlite import reading, task_reading
from whenidle_actors.stores.sqlite.check import all_faults
from whenidle_actors.stores.sqlite.elsewhere import ForeignChanges
from whenidle_actors.stores.sqlite.failures import read_failure
from whenidle_actors.stores.sqlite.opening import Place, open_database
from whenidle_actors.stores.sqlite.writer import Writer
from whenidle_actors.stores.sqlite.writing import WritingConnection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from whenidle_actors.stores.base import (
        Attention,
        Batch,
        Changes,
        DueTask,
        ReceiptPage,
        Retention,
        SessionHeader,
        TaskPage,
        TaskRow,
    )
    from whenidle_actors.stores.sqlite.lock import HostLock

T = TypeVar("T")


@attrs.define
class _Open:
    """What there is only while the store is open."""

    writer: Writer
    reader: sqlite3.Connection
    lock: HostLock | None
    changes: ForeignChanges
    reading: trio.CapacityLimiter = attrs.Factory(lambda: trio.CapacityLimiter(1))
    closed: trio.Event | None = None
    """Set once the store is closed; None until somebody begins to close it."""


class SqliteStore(Store):
    """A store in one SQLite file, in WAL mode with `synchronous=FULL` (SPEC 3.3).

    Beside `path` there are, while it is open, SQLite's `-wal` and `-shm` files, and once a host has run
    a `-host` file whose lock says that one is running. A copy of the store must include the `-wal`.
    Keep it on a local disk: network file systems do not lock reliably.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout: float = 5.0,
        retention: Retention = DEFAULT_RETENTION,
        connection_factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        """Describe the store; `open` touches the file.

        Args:
            path: of the database file. Its folder must exist, the file need not.
            busy_timeout: seconds a commit waits for another process's write lock before `StoreBusy`.
            retention: how long receipts of tasks are kept.
            connection_factory: class of the connection that writes; a test can inject faults by it.

        Raises:
            StoreUnavailable: `path` cannot name a file.
        """
        try:
            resolved = Path(path).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null character
            raise StoreUnavailable(f"{os.fspath(path)!r} cannot name a store: {error}") from error
        self._place = Place(resolved, busy_timeout, connection_factory)
        self._retention = retention
        self._open: _Open | None = None
        self._opening = False
        self._last_statistics = StoreStatistics()

    @property
    def name(self) -> str:
        """The path, with symbolic links resolved."""
        return str(self._place.path)

    async def open(self, role: Role) -> None:
        """See `Store.open`. Not left half done when cancelled.

        A store of an older schema is migrated, which only succeeds while no host runs on it.
        """
        await trio.lowlevel.checkpoint()
        if self._open is not None or self._opening:
            raise StoreLocked(self.name, os.getpid())
        self._opening = True
        try:
            with trio.CancelScope(shield=True):
                self._open = await self._open_as(role)
        finally:
            self._opening = False

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        opened = self._open
        if opened is None:
            await trio.lowlevel.checkpoint()
            return
        with trio.CancelScope(shield=True):
            if opened.closed is not None:
                await opened.closed.wait()
                return
            opened.closed = trio.Event()
            opened.changes.close()
            async with opened.reading:
                opened.reader.close()
            await opened.writer.aclose()
            if opened.lock is not None:
                opened.lock.release()
            self._last_statistics = opened.writer.statistics()
            self._open = None
            opened.closed.set()

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._opened().writer.commit(batch)

    async def commit_all(self, batches: Sequence[Batch]) -> list[Exception | None]:
        """See `Store.commit_all`. They share a transaction as those of several callers do."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return [*await self._opened().writer.commit_all(batches)] if batches else []

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `Store.read`. A long log is read in pieces, between which it can be cancelled."""
        check_start(start)
        head, records = await self._read(reading.read_head, session_id, start)
        first = min(start, head.length)
        pieces = list(records)
        while first + len(pieces) < head.length:
            pieces += await self._read(reading.read_records, head, first + len(pieces))
        return SessionSlice(head.header, head.index, first, tuple(pieces))

    async def read_all(self, session_ids: Sequence[str]) -> list[SessionSlice | None]:
        """See `Store.read_all`. A session takes long if its log is read in several pieces."""
        return await self._read(reading.read_sessions, session_ids)

    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        """See `Store.sessions`."""
        check_limit(limit)
        return await self._read(reading.read_headers, after, limit)

    def attention(self) -> AsyncIterator[Attention]:
        """See `Store.attention`. Read in pieces, so that a change meanwhile may or may not be in it."""
        cursor: reading.Cursor | None = reading.FIRST

        async def fetch() -> Sequence[Attention]:
            nonlocal cursor
            found: list[Attention] = []
            while cursor is not None and not found:
                found, cursor = await self._read(reading.read_attention, cursor)
            return found

        return Pages(fetch)

    async def task(self, task_id: str) -> TaskRow:
        """See `Store.task`."""
        return await self._read(task_reading.read_task, task_id)

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """See `Store.tasks`. What `offset` leaves out is walked over in the index: milliseconds for 100,000."""
        check_limit(limit)
        check_offset(offset)
        return await self._read(task_reading.read_page, active, limit, offset)

    async def count_active_tasks(self, creator: str | None = None) -> int:
        """See `Store.count_active_tasks`."""
        return await self._read(task_reading.read_active_count, creator)

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
        return await self._read(task_reading.read_due, until_millis, session_id, after, limit)

    async def due_destinations(
        self, until_millis: int, *, after: tuple[int, str] | None = None, limit: int = 500
    ) -> tuple[DueTask, ...]:
        """See `Store.due_destinations`."""
        check_limit(limit)
        return await self._read(task_reading.read_due_destinations, until_millis, after, limit)

    async def due_tasks_of(
        self, session_ids: Sequence[str], until_millis: int, *, limit: int = 500
    ) -> list[tuple[TaskRow, ...]]:
        """See `Store.due_tasks_of`."""
        check_limit(limit)
        return await self._read(task_reading.read_due_of, session_ids, until_millis, limit)

    async def next_due(self, after_millis: int | None = None) -> int | None:
        """See `Store.next_due`."""
        return await self._read(task_reading.read_next_due, after_millis)

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """See `Store.receipts`."""
        check_limit(limit)
        return await self._read(task_reading.read_receipts, task_id, before, limit)

    async def changed_elsewhere(self) -> Changes:
        """See `Store.changed_elsewhere`. Only a host gets reports; a manager waits until it is cancelled."""
        opened = self._opened()
        return await opened.changes.wait(opened.writer.forget_changes)

    async def revision(self) -> int:
        """See `Store.revision`."""
        return await self._read(reading.read_revision)

    async def check(self) -> Sequence[str]:
        """See `Store.check`. Reads every page while commits go on; can be cancelled."""
        await self._opened().writer.settle()
        return await trio.to_thread.run_sync(self._check)

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`; those of the last time it was open if it is closed."""
        return self._last_statistics if self._open is None else self._open.writer.statistics()

    def _opened(self) -> _Open:
        if self._open is None or self._open.closed is not None:
            raise StoreClosed(f"{self.name} is not open")
        return self._open

    async def _open_as(self, role: Role) -> _Open:
        host = role is Role.HOST
        connection, reader, lock = await trio.to_thread.run_sync(self._connect, host)
        writing = WritingConnection(self._place, connection, self._retention, tell_host=not host)
        changes = ForeignChanges()
        writer = Writer(writing, changes.report if host else None)
        return _Open(writer, reader, lock, changes)

    def _connect(self, host: bool) -> tuple[sqlite3.Connection, sqlite3.Connection, HostLock | None]:  # noqa: FBT001 - a thread is handed positions
        connection, lock = open_database(self._place, host=host)
        return connection, self._place.connect_reader(), lock

    async def _read(self, function: Callable[..., T], *arguments: object) -> T:
        """Call `function(connection, *arguments)` in a thread."""
        opened = self._opened()
        await opened.writer.settle()
        try:
            return await trio.to_thread.run_sync(function, opened.reader, *arguments, limiter=opened.reading)
        except sqlite3.Error as error:
            if opened.closed is not None:
                raise StoreClosed(f"{self.name} was closed meanwhile") from error
            raise read_failure(error, self.name) from error

    def _check(self) -> list[str]:
        faults: list[str] = []
        try:
            with closing(self._place.connect_reader()) as connection:
                connection.set_progress_handler(_is_cancelled, _STEPS_BETWEEN_LOOKS)
                faults.extend(all_faults(connection))
        except sqlite3.Error as error:
            trio.from_thread.check_cancelled()
            faults.append(str(error))
        return faults


_STEPS_BETWEEN_LOOKS = 10_000
"""Of SQLite's virtual machine, between two looks whether a check was cancelled: a few milliseconds."""


def _is_cancelled() -> bool:
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:
        return True
    return False
