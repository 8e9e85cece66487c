"""The trio run under an asyncio loop, in trio's guest mode.

Trio allows one run a thread, so everything of `whenidle.aio` on one loop shares it: the first that comes starts it, the
last that leaves ends it.
"""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from whenidle.aio.crossing import Crossing
from whenidle.aio.driving import Driver
from whenidle.aio.errors import HostClosed, WrongLoop
from whenidle.aio.holding import Settling, hold_of_work
from whenidle_actors.errors import CompositionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from outcome import Outcome

T = TypeVar("T")

_CALL: Final = "a call from asyncio"
_CLOSED: Final = "the hosts of this event loop are closed; make calls inside their `async with` blocks"


class _ThisThread(threading.local):
    guest: Guest | None = None


_this_thread = _ThisThread()


class Guest:
    """A trio run on the loop of this thread. Made by `join`; belongs to that thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: trio.abc.Clock | None) -> None:
        self.loop: asyncio.AbstractEventLoop = loop
        self.clock: trio.abc.Clock | None = clock
        self._users = 0
        self._is_leaving = False
        self._calls: set[Crossing[Any]] = set()
        self._stop = trio.Event()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._driver = Driver(loop)
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=self._driver.soon,
            done_callback=self._done,
            host_uses_signal_set_wakeup_fd=True,
            clock=clock,
        )
        # Real time runs on by itself.
        token = trio.lowlevel.current_trio_token()
        self._settling = None if clock is None else Settling(loop, token)

    # Joining and leaving ----------------------------------------------------------------------

    @staticmethod
    async def join(clock: object) -> Guest:
        """Return the run of the running loop, started if there is none; `leave` it in the end.

        Args:
            clock: the clock of who joins; one of trio's becomes that of the run.

        Raises:
            CompositionError: the thread has another trio run, or this one has another clock.
        """
        loop = _running_loop()
        while (found := _find(loop)) is not None and found._is_leaving:  # noqa: SLF001 - of this class
            await asyncio.shield(found._ended)  # noqa: SLF001 - the same
        wanted = clock if isinstance(clock, trio.abc.Clock) else None
        if found is None:
            found = _this_thread.guest = _start(loop, wanted)
        elif found.clock is not wanted:
            raise CompositionError(
                f"the hosts of one event loop share one trio run and its clock; it runs on {_name(found.clock)}, not "
                f"on {_name(wanted)}: give all hosts of this loop the same clock, or close the others first"
            )
        found._users += 1  # noqa: SLF001 - the same
        return found

    def stay(self) -> None:
        """Join a run that is there; `leave` it in the end.

        Raises:
            HostClosed: it ends, or has ended.
        """
        if self._is_leaving:
            raise HostClosed(_CLOSED)
        self._users += 1

    async def leave(self) -> None:
        """Leave the run; the last to do so ends it and waits for its end, cancelled or not."""
        self._users -= 1
        if self._users:
            return
        self._is_leaving = True
        self._stop.set()
        cancelled: asyncio.CancelledError | None = None
        try:
            while not self._ended.done():
                try:
                    await asyncio.shield(self._ended)
                except asyncio.CancelledError as request:
                    cancelled = cancelled or request
            if cancelled is not None:
                raise cancelled
            self._ended.result()
        finally:
            del cancelled

    # Calls ------------------------------------------------------------------------------------

    def begin(self, function: Callable[[], Awaitable[T]]) -> Crossing[T]:
        """Have `function()` run by trio, with the caller's context variables, and return the call under way.

        Raises:
            WrongLoop: this is not the loop, or not the thread, that trio runs on.
            HostClosed: the run has ended.
        """
        if asyncio.get_running_loop() is not self.loop:
            raise WrongLoop(
                "this host belongs to another event loop; from another thread call it through open_portal()"
            )
        if self._ended.done():
            raise HostClosed(_CLOSED)
        crossing = Crossing(function, self.loop.create_future(), hold_of_work.get(), self._over)
        self._calls.add(crossing)
        self._driver.wake()
        trio.lowlevel.spawn_system_task(crossing.run, name=_CALL, context=copy_context())
        return crossing

    async def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Have `function()` run by trio and return its answer; see `Crossing.truth`."""
        return await self.begin(function).truth()

    def reschedule(self, task: trio.lowlevel.Task) -> None:
        """Have a trio task go on."""
        self._driver.wake()
        trio.lowlevel.reschedule(task)

    def settle(self) -> None:
        """Hold virtual time still until asyncio code that was handed something has gone on with it."""
        if self._settling is not None:
            self._settling.begin()

    # ------------------------------------------------------------------------------------------

    def _over(self, crossing: Crossing[Any]) -> None:
        self._calls.discard(crossing)
        self.settle()

    async def _main(self) -> None:
        while not self._stop.is_set():
            try:
                await self._stop.wait()
            except KeyboardInterrupt as interrupt:
                # Where the loop left SIGINT alone, trio took it. It is the loop's to end by.
                self.loop.call_soon(partial(_raise, interrupt))

    def _done(self, outcome: Outcome[None]) -> None:
        _this_thread.guest = None
        self._settling = None
        try:
            outcome.unwrap()
        except trio.TrioInternalError as error:
            for crossing in tuple(self._calls):
                crossing.finish(error)
            self._ended.set_exception(error)
        except KeyboardInterrupt:
            # It came too late for `_main`: the run has ended in order, and who waits for that must not wait for ever.
            self._ended.set_result(None)
            raise
        else:
            self._ended.set_result(None)


def running_guest() -> Guest:
    """Return the trio run of the running loop.

    Raises:
        CompositionError: no host is open on this loop.
    """
    found = _find(_running_loop())
    if found is None:
        raise CompositionError(
            "no host is open on this event loop; do it inside `async with whenidle.aio.open_host(...)`"
        )
    return found


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        if trio.lowlevel.in_trio_run():
            raise CompositionError(
                "this code runs in trio: use `whenidle.open_host` here; whenidle.aio is for asyncio"
            ) from None
        raise


def _find(loop: asyncio.AbstractEventLoop) -> Guest | None:
    found = _this_thread.guest
    if found is not None and found.loop.is_closed():
        raise CompositionError(
            "an event loop of this thread was closed while hosts were open on it: they can stop no more, keep their "
            "stores, and trio allows one run a thread; open hosts in another thread, and leave their `async with` "
            "blocks before a loop is closed, as `asyncio.run` sees to"
        )
    if found is not None and found.loop is not loop:
        raise CompositionError(
            "another event loop of this thread has hosts open; leave their `async with` blocks while that loop runs, "
            "or use a thread for each loop"
        )
    return found


def _start(loop: asyncio.AbstractEventLoop, clock: trio.abc.Clock | None) -> Guest:
    if trio.lowlevel.in_trio_run():
        raise CompositionError(
            "a trio run owns this thread, and trio allows one a thread: open the host inside that run with "
            "`whenidle.open_host`, or run this event loop in a thread of its own"
        )
    return Guest(loop, clock)


def _name(clock: trio.abc.Clock | None) -> str:
    return "the system's time" if clock is None else repr(clock)


def _raise(error: BaseException) -> None:
    raise error
