"""Work that trio has asyncio do: a turn or a maintenance task, in an asyncio task of its own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from whenidle.aio.errors import WorkCancelled
from whenidle.aio.holding import Hold, hold_of_work
from whenidle_actors.logs import report

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from whenidle.aio.guest import Guest

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("whenidle.aio")

HELD_SECONDS = 10.0
"""Real seconds after which it is logged that virtual time stands still for a piece of work: it may wait for ever."""

_CANCELLED: Final = "cancelled by its host"


class Work(Generic[T]):
    """One asyncio coroutine that a trio task waits for.

    Args:
        guest: where both run.
        function: called, and awaited, on the asyncio side.
        name: of the asyncio task.
    """

    def __init__(self, guest: Guest, function: Callable[[], Awaitable[T]], name: str) -> None:
        self._guest = guest
        self._function = function
        self._name = name
        self._task: asyncio.Task[T] | None = None
        self._waiter: trio.lowlevel.Task | None = None
        self._raise_cancel: trio.lowlevel.RaiseCancelT | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_withdrawn = False
        self._has_begun = False
        self.was_cancelled_outside: bool = False
        """Whether somebody other than trio cancelled the asyncio task itself."""

    async def run(self) -> T:
        """Run it with the context variables of this trio task, and return or raise what it does.

        Cancelled, it cancels the asyncio task and waits for its end.

        Raises:
            WorkCancelled: the asyncio side ended it as cancelled, unasked.
        """
        self._waiter = trio.lowlevel.current_task()
        hold = Hold()
        try:
            # Not at once: an eager task would run inside of trio.
            self._guest.loop.call_soon(self._start, hold)
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        finally:
            hold.end()
            self._guest.settle()
        return self._result()

    def cancel_again(self) -> None:
        """Cancel the asyncio task once more if it was cancelled and has gone on all the same."""
        if self._raise_cancel is not None and self._task is not None:
            self._task.cancel("the host stops")

    def _start(self, hold: Hold) -> None:
        if self._is_withdrawn:
            return
        hold_of_work.set(hold)
        self._has_begun = True  # an eager task runs before there is a task to be cancelled
        self._task = self._guest.loop.create_task(self._call(), name=self._name)
        self._task.add_done_callback(self._done)
        if self._guest.clock is not None and not self._task.done():
            self._time(hold)
        if self._raise_cancel is not None:
            self._task.cancel(_CANCELLED)

    async def _call(self) -> T:
        return await self._function()

    def _time(self, hold: Hold) -> None:
        """Look in some time whether virtual time stands still for this."""
        self._timer = self._guest.loop.call_later(HELD_SECONDS, self._look, hold)

    def _look(self, hold: Hold) -> None:
        """Tell once that it does: who waits for that time to pass sees nothing but that it does not."""
        if not hold.holds:
            self._time(hold)
            return
        report(
            logger,
            logging.WARNING,
            "time-held",
            "virtual time stands still for %s, which has run for more than %g real seconds: it passes when that ends, "
            "or waits in a call of the host",
            self._name,
            HELD_SECONDS,
            work=self._name,
        )

    def _done(self, _: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._waiter is not None  # noqa: S101 - set before anything was started
        self._guest.reschedule(self._waiter)

    def _abort(self, raise_cancel: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        if not self._has_begun:
            self._is_withdrawn = True
            return trio.lowlevel.Abort.SUCCEEDED
        self._raise_cancel = raise_cancel
        if self._task is not None:
            self._task.cancel(_CANCELLED)
        return trio.lowlevel.Abort.FAILED

    def _result(self) -> T:
        task, raise_cancel = self._task, self._raise_cancel
        self._raise_cancel = None  # what it raises refers back to this
        assert task is not None  # noqa: S101 - it has ended
        if not task.cancelled():
            return task.result()
        if raise_cancel is not None:
            raise_cancel()
        self.was_cancelled_outside = task.cancelling() > 0
        raise WorkCancelled(f"{self._name} ended as cancelled, and not because its host asked for it")
