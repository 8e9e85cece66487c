"""A store that lives in memory: for tests and for hosts that need no memory of their own."""

from __future__ import annotations

import os
from operator import itemgetter
from typing import TYPE_CHECKING, NoReturn

import attrs
import trio

from whenidle_actors.errors import (
    SequenceConflict,
    SessionExists,
    StoreClosed,
    StoreError,
    StoreLocked,
    UnknownSession,
)
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Attention,
    SessionHeader,
    SessionIndex,
    SessionSlice,
    Store,
    StoreStatistics,
)
from whenidle_actors.stores.memory_tasks import MemoryTasks
from whenidle_actors.stores.paging import Pages, check_limit, check_offset, check_start
from whenidle_actors.stores.storable import require_storable
from whenidle_actors.stores.task_rows import DEFAULT_RETENTION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from whenidle_actors.stores.base import Append, Batch, Role
    from whenidle_actors.stores.task_rows import ReceiptPage, Retention, TaskPage, TaskRow
    from whenidle_protocol.events import EventRecord


def _no_records() -> list[EventRecord]:
    return []  # a call of `list[EventRecord]` takes ten times as long, and each commit makes one


@attrs.define
class _Log:
    header: SessionHeader
    index: SessionIndex = IDLE_INDEX
    records: list[EventRecord] = attrs.Factory(_no_records)


class MemoryStore(Store):
    """A store that keeps nothing: what it holds is gone when the process ends (SPEC 5.1).

    Within the process it outlives closing, so that a test can take a host down and start another on the
    same store object and find what was committed.
    """

    def __init__(self, *, retention: Retention = DEFAULT_RETENTION) -> None:
        """Make a store without contents that keeps receipts of tasks as `retention` says."""
        self._logs: dict[str, _Log] = {}
        self._tasks = MemoryTasks(retention)
        self._is_open = False
        self._closed = trio.Event()
        self._commits = self._refused = 0

    @property
    def name(self) -> str:
        """`memory`."""
        return "memory"

    async def open(self, role: Role) -> None:  # noqa: ARG002 - nobody else can reach this store
        """See `Store.open`. One at a time may have it open, host or manager."""
        await trio.lowlevel.checkpoint()
        if self._is_open:
            raise StoreLocked(self.name, os.getpid())
        self._is_open = True
        self._closed = trio.Event()
        self._commits = self._refused = 0

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        self._is_open = False
        self._closed.set()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`. The write is one step that nothing can interrupt."""
        await trio.lowlevel.checkpoint()
        self.apply_now(batch)

    def apply_now(self, batch: Batch) -> None:
        """Commit like `commit`, without letting others run first."""
        self._require_open()
        try:
            changed = self._prepare(batch)
        except StoreError:
            self._refused += 1
            raise
        for session_id, change in changed.items():
            log = self._logs.get(session_id)
            if log is None:
                log = self._logs[session_id] = _Log(change.header)
            log.index = change.index
            log.records += change.records
        self._tasks.apply(batch)
        self._commits += 1

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `Store.read`."""
        check_start(start)
        await trio.lowlevel.checkpoint()
        self._require_open()
        log = self._logs.get(session_id)
        if log is None:
            raise UnknownSession(session_id)
        return SessionSlice(log.header, log.index, min(start, len(log.records)), tuple(log.records[start:]))

    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        """See `Store.sessions`."""
        check_limit(limit)
        await trio.lowlevel.checkpoint()
        self._require_open()
        ids = sorted(session_id for session_id in self._logs if session_id > after)
        return tuple(self._logs[session_id].header for session_id in ids[:limit])

    def attention(self) -> AsyncIterator[Attention]:
        """See `Store.attention`. All of it is read when the first is asked for."""
        rest: list[Attention] | None = None

        async def fetch() -> Sequence[Attention]:
            nonlocal rest
            await trio.lowlevel.checkpoint()
            self._require_open()
            page, rest = self._attention() if rest is None else rest, []
            return page

        return Pages(fetch)

    async def task(self, task_id: str) -> TaskRow:
        """See `Store.task`."""
        return (await self._opened_tasks()).row(task_id)

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """See `Store.tasks`."""
        check_limit(limit)
        check_offset(offset)
        return (await self._opened_tasks()).page(active=active, limit=limit, offset=offset)

    async def count_active_tasks(self, creator: str | None = None) -> int:
        """See `Store.count_active_tasks`."""
        return (await self._opened_tasks()).count_active(creator)

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
        return (await self._opened_tasks()).due(until_millis, session_id, after, limit)

    async def next_due(self, after_millis: int | None = None) -> int | None:
        """See `Store.next_due`."""
        return (await self._opened_tasks()).next_due(after_millis)

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """See `Store.receipts`."""
        check_limit(limit)
        return (await self._opened_tasks()).receipts(task_id, before, limit)

    async def changed_elsewhere(self) -> NoReturn:
        """See `Store.changed_elsewhere`. Nobody else can reach this store, so it waits until cancelled."""
        await trio.lowlevel.checkpoint()
        self._require_open()
        await self._closed.wait()
        raise StoreClosed("the store was closed while waiting for changes by other processes")

    async def check(self) -> Sequence[str]:
        """See `Store.check`. There is nothing that could be wrong."""
        await trio.lowlevel.checkpoint()
        self._require_open()
        return ()

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`; those of the last time it was open if it is closed."""
        return StoreStatistics(commits=self._commits, refused=self._refused, groups=self._commits)

    async def _opened_tasks(self) -> MemoryTasks:
        await trio.lowlevel.checkpoint()
        self._require_open()
        return self._tasks

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreClosed(f"{self.name} is not open")

    def _attention(self) -> list[Attention]:
        found = [Attention(session_id, log.index) for session_id, log in self._logs.items()]
        runnable = [item for item in found if item.index.runnable]
        due = [(item.index.due_millis, item) for item in found if not item.index.runnable]
        waiting = [(millis, item) for millis, item in due if millis is not None]
        return runnable + [item for _, item in sorted(waiting, key=itemgetter(0))]

    def _prepare(self, batch: Batch) -> dict[str, _Log]:
        """Return what `batch` adds, by session, or raise and leave everything as it is."""
        changed: dict[str, _Log] = {}
        for header in batch.created:
            if header.id in self._logs or header.id in changed:
                raise SessionExists(header.id)
            require_storable(header.id)
            changed[header.id] = _Log(header)
        for append in batch.appends:
            self._prepare_append(append, changed)
        self._tasks.require_applicable(batch)
        return changed

    def _prepare_append(self, append: Append, changed: dict[str, _Log]) -> None:
        before = self._logs.get(append.session_id)
        change = changed.get(append.session_id)
        if change is None:
            if before is None:
                raise UnknownSession(append.session_id)
            change = changed[append.session_id] = _Log(before.header)
        length = len(change.records) + (0 if before is None else len(before.records))
        if length != append.expected:
            raise SequenceConflict(append.session_id, append.expected, length)
        require_storable(append.index.due_millis)
        for record in append.records:
            require_storable(record.type, record.at_millis, record.data)
        change.records += append.records
        change.index = append.index
