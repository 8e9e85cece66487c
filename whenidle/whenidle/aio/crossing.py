"""One call from asyncio into trio: made in a trio task, answered in the asyncio task that made it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from whenidle.aio.errors import HostClosed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle.aio.holding import Hold

T = TypeVar("T")

_CLOSED: Final = "the last host of this event loop was closed before the call was answered"


class Crossing(Generic[T]):
    """A call under way.

    Args:
        function: what trio is to run.
        future: completed when it is over.
        hold: of the asyncio work that waits for it, if it is part of any.
        on_over: called when it is over, on whichever side.
    """

    __slots__ = ("_answer", "_error", "_function", "_future", "_hold", "_on_over", "is_over", "scope")

    def __init__(
        self,
        function: Callable[[], Awaitable[T]],
        future: asyncio.Future[None],
        hold: Hold | None,
        on_over: Callable[[Crossing[T]], None],
    ) -> None:
        self._function = function
        self._future = future
        self._hold = hold
        self._on_over = on_over
        self._answer: list[T] = []
        self._error: BaseException | None = None
        self.is_over: bool = False
        self.scope: trio.CancelScope = trio.CancelScope()
        if hold is not None:
            hold.pause()

    async def run(self) -> None:
        """Run the function, in a trio task of its own, and keep what becomes of it."""
        error: BaseException | None = None
        try:
            with self.scope:
                self._answer.append(await self._function())
        except trio.Cancelled:
            error = HostClosed(_CLOSED)
            raise
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it belongs to the caller
            error = raised
        finally:
            self.finish(error)
            del error  # or its traceback, which holds this frame, would be a cycle

    def finish(self, error: BaseException | None) -> None:
        """Take note that it is over, if it is news."""
        if self.is_over:
            return
        self._error = error
        self.is_over = True
        if self._hold is not None:
            self._hold.resume()
        self._on_over(self)
        if not self._future.done():
            self._future.set_result(None)

    async def truth(self) -> T:
        """Return the answer, in asyncio; raises as `over`."""
        await self.over()
        return self._answer[0]

    async def over(self) -> None:
        """Wait until it is over, in asyncio.

        Cancelled, it cancels the function, and raises when that has ended: what the function raised, else
        `CancelledError`, also if the function had done its work all the same.
        """
        cancelled: asyncio.CancelledError | None = None
        error: BaseException | None = None
        try:
            while not self.is_over:
                try:
                    await self._future
                except asyncio.CancelledError as request:
                    cancelled = cancelled or request
                    self.scope.cancel("the asyncio task was cancelled")
                    self._future = self._future.get_loop().create_future()
            error, self._error = self._error, None
            if error is not None and (cancelled is None or _is_news(error)):
                raise error
            if cancelled is not None:
                raise cancelled
        finally:
            del cancelled, error


def _is_news(error: BaseException) -> bool:
    """Return whether a caller that is cancelled is to learn of it.

    A KeyboardInterrupt or SystemExit has left the loop already; that all is closed is why it is cancelled.
    """
    return isinstance(error, Exception) and not isinstance(error, HostClosed)
