"""The half of a simulated store that reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

import trio

from whenidle_actors.errors import CommitUncertain, StoreClosed
from whenidle_actors.stores.base import Store
from whenidle_actors.stores.paging import Pages
from whenidle_lab.faults import FaultKind
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from whenidle_actors.stores.base import (
        Attention,
        ReceiptPage,
        SessionHeader,
        SessionSlice,
        StoreStatistics,
        TaskPage,
        TaskRow,
    )
    from whenidle_lab.engines import Engine
    from whenidle_lab.faults.plan import Fault
    from whenidle_lab.machine import Machine

T = TypeVar("T")


class SimulatedReads(Store):
    """Reads what an engine holds: when the process is not dead, the store answers, and as fast as it does."""

    def __init__(self, machine: Machine, engine: Engine) -> None:
        self._machine = machine
        self._engine = engine
        self._slow: Fault | None = None
        """How slow it is, from the first slow commit on."""
        self._slow_until_ns = 0

    @property
    def engine(self) -> Engine:
        """What it keeps its contents in, where no fault happens: to be looked at, not to be written."""
        return self._engine

    @property
    def name(self) -> str:
        """That of the engine."""
        return self._engine.name

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `Store.read`."""
        return await self._reading(lambda: self._engine.read(session_id, start))

    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        """See `Store.sessions`."""
        return await self._reading(lambda: self._engine.sessions(after=after, limit=limit))

    def attention(self) -> AsyncIterator[Attention]:
        """See `Store.attention`."""
        pages = self._engine.attention()

        async def fetch() -> Sequence[Attention]:
            try:
                return [await self._reading(lambda: anext(pages))]
            except StopAsyncIteration:
                return []

        return Pages(fetch)

    async def task(self, task_id: str) -> TaskRow:
        """See `Store.task`."""
        return await self._reading(lambda: self._engine.task(task_id))

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """See `Store.tasks`."""
        return await self._reading(lambda: self._engine.tasks(active=active, limit=limit, offset=offset))

    async def count_active_tasks(self, creator: str | None = None) -> int:
        """See `Store.count_active_tasks`."""
        return await self._reading(lambda: self._engine.count_active_tasks(creator))

    async def due_tasks(
        self,
        until_millis: int,
        *,
        session_id: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 500,
    ) -> tuple[TaskRow, ...]:
        """See `Store.due_tasks`."""
        return await self._reading(
            lambda: self._engine.due_tasks(until_millis, session_id=session_id, after=after, limit=limit)
        )

    async def next_due(self, after_millis: int | None = None) -> int | None:
        """See `Store.next_due`."""
        return await self._reading(lambda: self._engine.next_due(after_millis))

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """See `Store.receipts`."""
        return await self._reading(lambda: self._engine.receipts(task_id, before=before, limit=limit))

    async def check(self) -> Sequence[str]:
        """See `Store.check`."""
        return await self._reading(self._engine.check)

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`."""
        return self._engine.statistics()

    async def _reading(self, read: Callable[[], Awaitable[T]]) -> T:
        """Read, unless reads fail now; what a slow disk has read is told late."""
        self._require_alive()
        now_ns = self._machine.clock.monotonic_ns
        if self._machine.mischief.is_unreadable(now_ns):
            await self._refuse_to_read()
        found = await read()
        if now_ns < self._slow_until_ns and self._slow is not None:
            await self._machine.mischief.delay(self._slow.delay)
        self._require_alive()
        return found

    async def _refuse_to_read(self) -> NoReturn:
        self._machine.mischief.note(FaultKind.UNREADABLE)
        await trio.lowlevel.checkpoint()
        self._require_alive()
        self._machine.happened(What.READ_FAILED, error=CommitUncertain.__name__)
        raise CommitUncertain("the store does not answer")

    def _require_alive(self) -> None:
        if self._machine.dead:
            raise StoreClosed("the process is dead")
