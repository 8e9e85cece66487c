"""Into an event loop from other threads: the safe way for synchronous code (SPEC 7.1).

One `Portal` serves trio (`whenidle.open_portal`) and asyncio (`whenidle.aio.open_portal`).
"""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, overload

import trio

from whenidle_actors.errors import WhenidleError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextvars import Context

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class PortalClosed(WhenidleError):
    """The portal's block has been left, so nothing answers the call."""


class WrongThread(WhenidleError, RuntimeError):
    """A portal was called from the thread of its own loop, which would wait for itself."""


class PortalCall(Generic[T]):
    """One call through a portal. `serve` belongs to the loop, the rest to any thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.context: Context = copy_context()
        """The context variables of the caller: the call is to be served in it."""
        self.future: Future[T] = Future()
        self.cancel: Callable[[], object] | None = None
        """Ends it in the loop; None while it is not served."""

    async def serve(self) -> None:
        """Call the function, await what it returned if there is something to await, and hand that over."""
        answer = self._function()
        if inspect.isawaitable(answer):
            answer = await answer
        self.future.set_result(answer)

    def fail(self, error: BaseException) -> None:
        """Hand over an exception instead."""
        if not self.future.done():
            self.future.set_exception(error)


class Portal:
    """Calls from any other thread into the loop it was opened in. Made by `open_portal`; safe to share.

    Args:
        enter: has the loop call something, from any thread.
        start: begins to serve a call, in the loop.
    """

    def __init__(
        self, enter: Callable[[Callable[[], object]], object], start: Callable[[PortalCall[Any]], None]
    ) -> None:
        self._enter = enter
        self._start = start
        self._thread = threading.get_ident()
        self._one_changes = threading.Lock()
        self._waiting: set[PortalCall[Any]] = set()
        self._is_closed = False

    @overload
    def call(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T: ...

    @overload
    def call(self, function: Callable[[*Ts], T], *args: *Ts) -> T: ...

    def call(self, function: Callable[[*Ts], Any], *args: *Ts) -> Any:
        """Call `function(*args)` in the loop, wait for it, and return or raise what it does.

        `function` is of the loop's kind: a method of a host or an agent, a coroutine function, or a plain one. It
        sees the caller's context variables. Calls of several threads run side by side. If the wait is interrupted,
        by Ctrl-C, the call is cancelled.

        Raises:
            WrongThread: called in the loop's own thread.
            PortalClosed: the portal's block was left, before or meanwhile. What the call had begun was cancelled.
                Or the loop has ended without that.
        """
        if threading.get_ident() == self._thread:
            raise WrongThread("this is the loop's own thread, which would wait for itself: call the function directly")
        call = PortalCall[Any](partial(function, *args))
        with self._one_changes:
            if self._is_closed:
                raise PortalClosed("this portal is closed; call within its `async with open_portal()` block")
            self._waiting.add(call)
            try:
                self._enter(partial(self._begin, call))
            except RuntimeError as error:  # both libraries say so by it
                self._waiting.discard(call)
                raise PortalClosed("the loop of this portal has ended, and its block was not left before") from error
        try:
            return call.future.result()
        except BaseException:
            if not call.future.done():
                self._abandon(call)
            raise

    def close(self) -> None:
        """Take no more calls, and fail those that have not begun. For the loop."""
        with self._one_changes:
            self._is_closed = True
            waiting, self._waiting = self._waiting, set()
        for call in waiting:
            call.fail(_closed())

    def _begin(self, call: PortalCall[Any]) -> None:
        with self._one_changes:
            is_wanted = call in self._waiting
            self._waiting.discard(call)
        if is_wanted:
            self._start(call)

    def _abandon(self, call: PortalCall[Any]) -> None:
        """Cancel a call that nobody waits for any more."""
        with self._one_changes:
            if call in self._waiting:
                self._waiting.remove(call)
            elif not self._is_closed:
                with suppress(RuntimeError):  # the loop has ended, and with it the call
                    self._enter(partial(_cancel, call))


def _cancel(call: PortalCall[Any]) -> None:
    if call.cancel is not None:
        call.cancel()


def _closed() -> PortalClosed:
    return PortalClosed("the portal was closed before the call was answered")


@asynccontextmanager
async def open_portal() -> AsyncGenerator[Portal]:
    """Let other threads call into this trio run for as long as the block runs.

        async with open_host(...) as host, open_portal() as portal:
            await trio.to_thread.run_sync(work, host, portal)

    and in `work`, `agent = portal.call(host.create_agent, "ada")`. Leaving the block cancels calls that are under way;
    each raises `PortalClosed` in its thread.
    """
    async with trio.open_nursery() as nursery:

        def start(call: PortalCall[Any]) -> None:
            scope = trio.CancelScope()
            call.cancel = scope.cancel
            call.context.run(nursery.start_soon, _serve, call, scope)

        portal = Portal(trio.lowlevel.current_trio_token().run_sync_soon, start)
        try:
            yield portal
        finally:
            portal.close()
            nursery.cancel_scope.cancel("the portal was closed")


async def _serve(call: PortalCall[Any], scope: trio.CancelScope) -> None:
    """Serve a call in a trio task of its own; what it raises is the caller's, and Ctrl-C the program's too."""
    with scope:
        try:
            await call.serve()
        except trio.Cancelled:
            call.fail(_closed())
            raise
        except KeyboardInterrupt as error:
            call.fail(error)
            raise
        except BaseException as error:  # noqa: BLE001 - whatever else it is, it belongs to the caller
            call.fail(error)
