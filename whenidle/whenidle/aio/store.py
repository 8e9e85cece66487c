"""A host's store, for asyncio."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs

from whenidle.aio.mirroring import mirrors
from whenidle_actors.stores import base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle.aio.guest import Guest
    from whenidle_actors.stores.base import (
        Batch,
        ReceiptPage,
        SessionHeader,
        SessionSlice,
        StoreStatistics,
        TaskPage,
        TaskRow,
    )


@mirrors(base.Store)
@attrs.frozen
class Store:
    """An open store, to be used from asyncio; see `whenidle.Store`. Its host opens and closes it."""

    _guest: Guest = attrs.field(repr=False)
    _store: base.Store

    @property
    def name(self) -> str:
        """See `whenidle.Store.name`."""
        return self._store.name

    async def commit(self, batch: Batch) -> None:
        """See `whenidle.Store.commit`."""
        await self._guest.call(partial(self._store.commit, batch))

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `whenidle.Store.read`."""
        return await self._guest.call(partial(self._store.read, session_id, start))

    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        """See `whenidle.Store.sessions`."""
        return await self._guest.call(partial(self._store.sessions, after=after, limit=limit))

    async def task(self, task_id: str) -> TaskRow:
        """See `whenidle.Store.task`."""
        return await self._guest.call(partial(self._store.task, task_id))

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """See `whenidle.Store.tasks`."""
        return await self._guest.call(partial(self._store.tasks, active=active, limit=limit, offset=offset))

    async def count_active_tasks(self, creator: str | None = None) -> int:
        """See `whenidle.Store.count_active_tasks`."""
        return await self._guest.call(partial(self._store.count_active_tasks, creator))

    async def due_tasks(
        self,
        until_millis: int,
        *,
        session_id: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 500,
    ) -> tuple[TaskRow, ...]:
        """See `whenidle.Store.due_tasks`."""
        ask = partial(self._store.due_tasks, until_millis, session_id=session_id, after=after, limit=limit)
        return await self._guest.call(ask)

    async def next_due(self, after_millis: int | None = None) -> int | None:
        """See `whenidle.Store.next_due`."""
        return await self._guest.call(partial(self._store.next_due, after_millis))

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """See `whenidle.Store.receipts`."""
        return await self._guest.call(partial(self._store.receipts, task_id, before=before, limit=limit))

    async def check(self) -> Sequence[str]:
        """See `whenidle.Store.check`."""
        return await self._guest.call(self._store.check)

    def statistics(self) -> StoreStatistics:
        """See `whenidle.Store.statistics`."""
        return self._store.statistics()
