"""A store double: what becomes of each commit is for the test to say."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from whenidle_actors.errors import CommitRefused, CommitUncertain, StoreClosed, StoreFull
from whenidle_actors.stores.base import Store
from whenidle_actors.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from whenidle_actors.stores.base import (
        Attention,
        Batch,
        Changes,
        ReceiptPage,
        Role,
        SessionHeader,
        SessionSlice,
        StoreStatistics,
        TaskPage,
        TaskRow,
    )


class Fate(enum.Enum):
    """What becomes of a commit."""

    GOES_WELL = "goes well"
    REFUSED = "refused"
    FULL = "disk full"
    LOST = "uncertain, and not durable"
    KEPT = "uncertain, and durable"
    DIE_BEFORE = "the process dies before it"
    DIE_AFTER = "the process dies when it is durable, before it returns"


DURABLE = frozenset({Fate.GOES_WELL, Fate.KEPT, Fate.DIE_AFTER})


async def _nothing(_: Batch) -> None:
    """Let a commit go on."""


async def _at_once() -> None:
    """Let a read return."""


class FaultyStore(Store):
    """A store, in memory if no other is given, under a judge; dead, it keeps what is durable and does nothing more."""

    def __init__(self, inner: Store | None = None) -> None:
        self.inner: Store = MemoryStore() if inner is None else inner
        self.judge: Callable[[Batch], Fate] = lambda _: Fate.GOES_WELL
        self.before: Callable[[Batch], Awaitable[object]] = _nothing
        """Awaited ahead of each commit, when everything about it is decided."""
        self.before_read: Callable[[], object] = lambda: None
        self.after_read: Callable[[], Awaitable[object]] = _at_once
        """Awaited behind each read of a session, when what was found is in hand."""
        self.after_tasks: Callable[[], Awaitable[object]] = _at_once
        """Awaited behind each read of a task, and of those that are due."""
        self.batches: list[Batch] = []
        """What was durably committed, in order."""
        self.reads = 0
        self.unreadable = False
        self.unreadable_tasks = False
        self.dead = False
        self.on_death: Callable[[], object] = lambda: None

    def fail(self, *fates: Fate, of: Callable[[Batch], bool] = lambda _: True) -> None:
        """Deal out `fates` to the next commits that `of` picks."""
        rest = list(fates)
        self.judge = lambda batch: rest.pop(0) if rest and of(batch) else Fate.GOES_WELL

    def die(self) -> None:
        self.dead = True
        self.on_death()

    @property
    def name(self) -> str:
        return self.inner.name

    async def open(self, role: Role) -> None:
        await self.inner.open(role)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def commit(self, batch: Batch) -> None:
        self._require_alive()
        await self.before(batch)
        fate = self.judge(batch)
        if fate is Fate.DIE_BEFORE:
            self.die()
        self._require_alive()
        if fate in DURABLE:
            await self.inner.commit(batch)
            self._require_alive()
            self.batches.append(batch)
        if fate is Fate.DIE_AFTER:
            self.die()
        self._require_alive()
        if fate is Fate.REFUSED:
            raise CommitRefused("the test refused it")
        if fate is Fate.FULL:
            raise StoreFull("no space left on the test's disk")
        if fate is not Fate.GOES_WELL:
            raise CommitUncertain("the test lost the connection")

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        self._require_alive()
        if self.unreadable:
            raise CommitUncertain("the test has no connection")
        self.reads += 1
        self.before_read()
        found = await self.inner.read(session_id, start)
        await self.after_read()
        return found

    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        return await self.inner.sessions(after=after, limit=limit)

    def attention(self) -> AsyncIterator[Attention]:
        return self.inner.attention()

    async def task(self, task_id: str) -> TaskRow:
        self._require_readable()
        found = await self.inner.task(task_id)
        await self.after_tasks()
        return found

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        self._require_readable()
        return await self.inner.tasks(active=active, limit=limit, offset=offset)

    async def count_active_tasks(self, creator: str | None = None) -> int:
        self._require_readable()
        return await self.inner.count_active_tasks(creator)

    async def due_tasks(
        self,
        until_millis: int,
        *,
        session_id: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 500,
    ) -> tuple[TaskRow, ...]:
        self._require_readable()
        found = await self.inner.due_tasks(until_millis, session_id=session_id, after=after, limit=limit)
        await self.after_tasks()
        return found

    async def next_due(self, after_millis: int | None = None) -> int | None:
        self._require_readable()
        return await self.inner.next_due(after_millis)

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        self._require_readable()
        return await self.inner.receipts(task_id, before=before, limit=limit)

    async def changed_elsewhere(self) -> Changes:
        return await self.inner.changed_elsewhere()

    async def check(self) -> Sequence[str]:
        return await self.inner.check()

    def statistics(self) -> StoreStatistics:
        return self.inner.statistics()

    def _require_readable(self) -> None:
        self._require_alive()
        if self.unreadable_tasks:
            raise CommitUncertain("the test has no connection")

    def _require_alive(self) -> None:
        if self.dead:
            raise StoreClosed("the process is dead")


def changes_schedule(batch: Batch) -> bool:
    """Return whether it creates, deletes or dispatches a reminder."""
    return any(record.type == "schedule/change" for append in batch.appends for record in append.records)


def delivers(batch: Batch) -> bool:
    """Return whether it dispatches a reminder."""
    return any('"dispatch"' in record.data for append in batch.appends for record in append.records)
