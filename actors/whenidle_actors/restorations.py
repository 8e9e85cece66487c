"""Sessions that are to be restored, and the tasks that do it: as many as there is need for, up to a bound."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Restore = Callable[[str], Awaitable[None]]
    """Makes the agent of a session live; must not raise but for a cancellation."""

    Start = Callable[[Callable[[], Awaitable[None]]], None]
    """Starts a task."""


class Restorations:
    """The sessions that wait to be restored: what is asked for before `begin` until then, after `end` for ever.

    Args:
        most: how many are restored at once; of the others the one that has waited longest is next.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[str] = deque()
        self._working = 0
        self._restore: Restore
        self._start: Start | None = None

    def soon(self, session_id: str) -> None:
        """Have a session restored, without waiting for it. Never blocks."""
        self._waiting.append(session_id)
        self._call()

    def begin(self, start: Start, restore: Restore) -> None:
        """Have what waits, and what comes, restored by tasks that `start` starts."""
        self._start, self._restore = start, restore
        for _ in range(min(self._most, len(self._waiting))):
            self._call()

    def end(self) -> None:
        """Have nothing more restored; call it when the tasks have ended that were started."""
        self._start = None

    def _call(self) -> None:
        if self._start is not None and self._working < self._most:
            self._working += 1
            self._start(self._work)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._restore(self._waiting.popleft())
        finally:
            self._working -= 1
