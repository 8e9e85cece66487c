"""A store that lives in memory: for tests and for hosts that need no memory of their own."""

from __future__ import annotations

import os
from operator import itemgetter
from typing import TYPE_CHECKING, NoReturn

import attrs
import trio

from whenidle_actors.errors import (
    CommitRefused,
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
from whenidle_actors.stores.paging import Pages, check_limit, check_start
from whenidle_protocol.events import EventRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from whenidle_actors.stores.base import Append, Batch, Role


@attrs.define
class _Log:
    header: SessionHeader
    index: SessionIndex = IDLE_INDEX
    records: list[EventRecord] = attrs.Factory(list[EventRecord])


class MemoryStore(Store):
    """A store that keeps nothing: what it holds is gone when the process ends (SPEC 5.1).

    Within the process it outlives closing, so that a test can take a host down and start another on the
    same store object and find what was committed.
    """

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._is_open = False
        self._closed = trio.Event()
        self._statistics = StoreStatistics()

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
        self._statistics = StoreStatistics()

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        self._is_open = False
        self._closed.set()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`. The write is one step that nothing can interrupt."""
        await trio.lowlevel.checkpoint()
        self._require_open()
        try:
            changed = self._prepare(batch)
        except StoreError:
            self._statistics = attrs.evolve(self._statistics, refused=self._statistics.refused + 1)
            raise
        for session_id, change in changed.items():
            log = self._logs.setdefault(session_id, _Log(change.header))
            log.index = change.index
            log.records += change.records
        commits = self._statistics.commits + 1
        self._statistics = attrs.evolve(self._statistics, commits=commits, groups=commits)

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
        return self._statistics

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
            _require_storable(header.id)
            changed[header.id] = _Log(header)
        for append in batch.appends:
            self._prepare_append(append, changed)
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
        _require_storable(append.index.due_millis)
        for record in append.records:
            for value in (record.type, record.at_millis, record.data):
                _require_storable(value)
        change.records += append.records
        change.index = append.index


def _require_storable(value: str | int | None) -> None:
    """Refuse what a database would: text that has no UTF-8, and numbers beyond 64 bits."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise CommitRefused(f"memory: the commit changed nothing: {error}") from error
    elif value is not None and not _MIN_NUMBER <= value <= _MAX_NUMBER:
        raise CommitRefused(f"memory: the commit changed nothing: {value} does not fit 64 bits")


_MIN_NUMBER = -(2**63)
_MAX_NUMBER = 2**63 - 1
