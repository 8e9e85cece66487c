"""Virtual time and the asyncio side, which trio cannot see the end of (SPEC 1.4).

A turn or maintenance task on the asyncio side is work in flight, except while it waits for trio. Other code cannot be
told apart from code that waits for something, so whenever trio hands something to it, virtual time holds still
for some passes of the loop: enough for what goes on at once to come back with its next call.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import trio

from whenidle_clock import work_in_flight

if TYPE_CHECKING:
    import asyncio

_PASSES: Final = 20
"""Passes of the loop: a result climbs through ten tasks that await one another, at two passes a task."""


class Hold:
    """One piece of work on the asyncio side that virtual time holds still for."""

    __slots__ = ("_calls", "_over", "_work")

    def __init__(self) -> None:
        self._calls = 0
        self._over = False
        self._work = work_in_flight()
        self._work.__enter__()

    @property
    def holds(self) -> bool:
        """Whether virtual time stands still for it now."""
        return not self._over and not self._calls

    def pause(self) -> None:
        """Let time pass: the work, or a part of it, waits for trio from now on."""
        self._calls += 1
        if self._calls == 1 and not self._over:
            self._work.__exit__()

    def resume(self) -> None:
        """Take note that one of the calls it waited for has been answered."""
        self._calls -= 1
        if not self._calls and not self._over:
            self._work.__enter__()

    def end(self) -> None:
        """Let time pass from now on, also if a task that the work has left behind still calls."""
        if not self._calls:
            self._work.__exit__()
        self._over = True


hold_of_work: ContextVar[Hold | None] = ContextVar("whenidle_aio_hold", default=None)
"""The hold of the turn or maintenance task that the current asyncio task is part of."""


class Settling:
    """Holds virtual time still until asyncio has had its passes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, token: trio.lowlevel.TrioToken) -> None:
        self._loop = loop
        self._token = token
        self._left = 0
        self._work = work_in_flight()

    def begin(self) -> None:
        """Hold still for as many passes as it takes, from now."""
        if not self._left:
            self._work.__enter__()
            self._loop.call_soon(self._pass)
        self._left = _PASSES

    def _pass(self) -> None:
        self._left -= 1
        if self._left:
            self._loop.call_soon(self._pass)
            return
        self._work.__exit__()
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(_look_again)


def _look_again() -> None:
    """Run by trio, so that its clock is asked anew whether time may move."""
