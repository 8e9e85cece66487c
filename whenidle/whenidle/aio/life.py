"""A trio context manager around an asyncio block: entered and left in one trio task, which lives as long."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from whenidle.aio.crossing import Crossing
    from whenidle.aio.guest import Guest

T = TypeVar("T")


class Life(Generic[T]):
    """What is open in trio while an asyncio block runs.

    The block's end is the trio context manager's: left by an exception or a cancellation, it is cancelled. Both ends
    are waited for, whoever is cancelled meanwhile. If it fails while the block runs, the block is cancelled, and what
    it failed with leaves the block.

    Args:
        guest: where trio runs.
        opening: what to open.
        on_leave: called when the block has been left, before trio is told.
    """

    def __init__(
        self,
        guest: Guest,
        opening: AbstractAsyncContextManager[T],
        on_leave: Callable[[], object] = lambda: None,
    ) -> None:
        self._guest = guest
        self._opening = opening
        self._on_leave = on_leave
        self._opened: asyncio.Future[None] = guest.loop.create_future()
        self._value: list[T] = []
        self._stop = trio.Event()
        self._block_runs = False
        self._owner: asyncio.Task[Any] | None = None
        self._cancelled_owner = False
        self._crossing: Crossing[None]

    async def __aenter__(self) -> T:
        """Open it. Cancelled, it is closed again first."""
        self._owner = asyncio.current_task()
        self._crossing = self._guest.begin(self._live)
        try:
            await self._opened
        except asyncio.CancelledError:
            self._crossing.scope.cancel("the asyncio task was cancelled")
            await self._crossing.over()
            raise
        if self._crossing.is_over:
            await self._crossing.over()
        self._block_runs = True
        return self._value[0]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it, and raise what it failed with, if it did."""
        self._block_runs = False
        self._on_leave()
        if error is None:
            self._stop.set()
        else:
            self._crossing.scope.cancel("the asyncio block was left by an exception")
        if self._cancelled_owner:
            await self._forgive(error)
        await self._crossing.over()

    async def _live(self) -> None:
        """Open, wait, close, in trio."""
        try:
            async with self._opening as value:
                self._value.append(value)
                self._tell()
                await self._stop.wait()
        finally:
            self._tell()
            if self._block_runs and self._owner is not None:
                self._cancelled_owner = self._owner.cancel("what this block has opened in trio failed")

    def _tell(self) -> None:
        """Let asyncio go on, which waits for this to be open, or to have failed."""
        if not self._opened.done():
            self._guest.settle()
            self._opened.set_result(None)

    async def _forgive(self, error: BaseException | None) -> None:
        """Take back the cancellation of the block, which has done its work."""
        assert self._owner is not None  # noqa: S101 - it was cancelled
        if not isinstance(error, asyncio.CancelledError):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        self._owner.uncancel()
