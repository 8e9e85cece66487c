"""A store that fails when it is told to: for everything that must bear it."""

from __future__ import annotations

import enum
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from whenidle_actors.errors import CommitUncertain, StoreBusy, StoreError, StoreFull
from whenidle_actors.stores.base import Changes
from whenidle_actors.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from whenidle_actors.stores.base import Batch, SessionSlice


class Fault(enum.Enum):
    """What a commit meets. Those that are `UNCERTAIN` differ only in what a read finds afterwards."""

    REFUSED = enum.auto()
    """`StoreFull`, and nothing changed."""
    UNCERTAIN_LOST = enum.auto()
    """`CommitUncertain`, and nothing changed."""
    UNCERTAIN_KEPT = enum.auto()
    """`CommitUncertain`, and yet it was committed."""
    LOST = enum.auto()
    """It returns like a commit that was made, and nothing is kept: a disk that lies."""
    BROKEN = enum.auto()
    """An exception that no store should raise: a defect in the store, and nothing changed."""
    DEATH = enum.auto()
    """The process died here, as far as the log can tell: this and all that follows is refused."""
    DEATH_AFTER = enum.auto()
    """This is committed, its answer is lost, and all that follows is refused."""


class FaultyStore(MemoryStore):
    """A `MemoryStore` whose next commits fail as planned; it commits like any other without a plan."""

    def __init__(self) -> None:
        super().__init__()
        self.plan: deque[Fault | None] = deque()
        """What the next commits meet, in order; None lets one pass."""
        self.unreadable = 0
        """How many of the next reads fail."""
        self.dead = False
        self.gate: trio.Event | None = None
        """While this is an event, a commit waits for it before it begins."""
        self.slow: trio.Event | None = None
        """While this is an event, a commit that was made waits for it before it returns."""
        self.slow_read: trio.Event | None = None
        """While this is an event, a read waits for it before it returns what it found."""
        self.attempts = 0
        """Commits that were asked for."""

    def will(self, *faults: Fault | None) -> None:
        """Plan what the next commits meet."""
        self.plan.extend(faults)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold every commit that begins inside the block until the block ends."""
        gate = self.gate = trio.Event()
        try:
            yield
        finally:
            self.gate = None
            gate.set()

    def die_at(self, nth: int) -> None:
        """Plan the death of the store at its `nth` commit from now."""
        self.plan.extend([None] * (nth - 1))
        self.plan.append(Fault.DEATH)

    def revive(self) -> None:
        """Forget every plan and work again, with what was committed."""
        self.plan.clear()
        self.unreadable = 0
        self.dead = False

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        self.attempts += 1
        if self.gate is not None:
            await self.gate.wait()
        await self._meet(self.plan.popleft() if self.plan else None, batch)
        if self.slow is not None:
            with trio.CancelScope(shield=True):
                await self.slow.wait()

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `Store.read`."""
        if self.unreadable:
            self.unreadable -= 1
            await trio.lowlevel.checkpoint()
            raise CommitUncertain("the store cannot be read just now")
        found, slow = await super().read(session_id, start), self.slow_read
        if slow is not None:
            await slow.wait()
        return found

    async def _meet(self, fault: Fault | None, batch: Batch) -> None:
        if self.dead or fault is Fault.DEATH:
            self.dead = True
            await self._fail(StoreBusy("the store is dead"))
        elif fault is None:
            await super().commit(batch)
        elif fault is Fault.REFUSED:
            await self._fail(StoreFull("no room"))
        elif fault is Fault.BROKEN:
            await self._fail(ZeroDivisionError("a defect of the store"))
        elif fault is Fault.UNCERTAIN_LOST:
            await self._fail(CommitUncertain("the answer was lost"))
        elif fault is Fault.LOST:
            await trio.lowlevel.checkpoint()
        else:
            await super().commit(batch)
            self.dead = fault is Fault.DEATH_AFTER
            raise CommitUncertain("the answer was lost")

    @staticmethod
    async def _fail(error: Exception) -> None:
        await trio.lowlevel.checkpoint()
        raise error


class SharedStore(FaultyStore):
    """A store whose host is told of changes elsewhere by the test."""

    def __init__(self) -> None:
        super().__init__()
        self._tell, self._told = trio.open_memory_channel[Changes](10)

    def tell(self, session_id: str) -> None:
        """Report that another process has appended to a session."""
        self._tell.send_nowait(Changes(frozenset({session_id})))

    async def changed_elsewhere(self) -> Changes:  # type: ignore[override]  # a memory store never returns
        """See `Store.changed_elsewhere`."""
        return await self._told.receive()


UNCERTAIN: Iterable[Fault] = (Fault.UNCERTAIN_LOST, Fault.UNCERTAIN_KEPT)
"""Both ways in which an uncertain commit can turn out."""

FAILED: Iterable[tuple[Fault, type[StoreError]]] = (
    (Fault.REFUSED, StoreFull),
    (Fault.UNCERTAIN_LOST, CommitUncertain),
    (Fault.UNCERTAIN_KEPT, CommitUncertain),
)
"""The faults a caller is told of, with what it gets."""
