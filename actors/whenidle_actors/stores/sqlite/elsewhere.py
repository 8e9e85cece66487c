"""Trio's side of the changes that other processes make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from whenidle_actors.errors import StoreClosed
from whenidle_actors.stores.base import Changes

if TYPE_CHECKING:
    from collections.abc import Callable


class ForeignChanges:
    """Collects reports from the writing thread until somebody asks.

    What was returned is forgotten only when the next report is asked for: a consumer that dies over one
    finds it again when the store is next opened.
    """

    def __init__(self) -> None:
        self._sessions: set[str] = set()
        self._tasks = False
        self._last_change = 0
        self._returned = 0
        self._closed = False
        self._arrived = trio.lowlevel.ParkingLot()

    def report(self, changes: list[tuple[int, str | None]]) -> None:
        """Take in changes, numbered upwards, each of a session or, if that is None, of tasks."""
        changed = {session_id for _, session_id in changes}
        self._tasks |= None in changed
        self._sessions.update(session_id for session_id in changed if session_id is not None)
        self._last_change = changes[-1][0]
        self._arrived.unpark_all()

    def close(self) -> None:
        """End every wait with `StoreClosed`."""
        self._closed = True
        self._arrived.unpark_all()

    async def wait(self, forget: Callable[[int], object]) -> Changes:
        """See `Store.changed_elsewhere`. `forget` is told up to which change the consumer is done."""
        await trio.lowlevel.checkpoint()
        if self._returned and not self._closed:
            forget(self._returned)
            self._returned = 0
        while not self._sessions and not self._tasks:
            if self._closed:
                raise StoreClosed("the store was closed while waiting for changes by other processes")
            await self._arrived.park()
        changes = Changes(frozenset(self._sessions), self._tasks)
        self._sessions.clear()
        self._tasks = False
        self._returned = self._last_change
        return changes
