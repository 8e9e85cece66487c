"""What trio tasks hand to the writing thread, and how they wait for the answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import attrs
import trio

from whenidle_clock.inflight import work_in_flight

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whenidle_actors.errors import StoreError
    from whenidle_actors.stores.base import Batch


class Request:
    """Something for the writing thread to do, and the task that waits until it is done.

    Task and thread race for it by `claim`: the thread before it begins, the task when it is cancelled.
    Whoever is first decides whether it is done or withdrawn.
    """

    __slots__ = ("_claimed", "_task", "error")

    def __init__(self) -> None:
        self._claimed = threading.Lock()
        self._task = trio.lowlevel.current_task()
        self.error: StoreError | None = None
        """What the waiting task is told; None for success."""

    def claim(self) -> bool:
        """Return True to the first caller and False to the second; safe from any thread."""
        return self._claimed.acquire(blocking=False)

    def answer(self) -> None:
        """Let the waiting task go on. Only in trio's thread, once, and only after the thread's claim."""
        trio.lowlevel.reschedule(self._task)

    async def wait(self) -> None:
        """Wait for the answer; virtual time holds still meanwhile.

        Cancellation withdraws a request that is not claimed yet, and is put off otherwise.

        Raises:
            StoreError: what the writing thread said.
        """
        with work_in_flight():
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        if self.error is not None:
            raise self.error

    def _abort(self, _raise_cancel: Any) -> trio.lowlevel.Abort:
        return trio.lowlevel.Abort.SUCCEEDED if self.claim() else trio.lowlevel.Abort.FAILED


@attrs.define(eq=False)
class Part:
    """One batch of a commit, and how it ended."""

    batch: Batch
    error: StoreError | None = None
    """Why it is not durable; None if it is."""


class Commit(Request):
    """Make batches durable, each by itself."""

    __slots__ = ("parts",)

    def __init__(self, batches: Iterable[Batch]) -> None:
        super().__init__()
        self.parts: tuple[Part, ...] = tuple(map(Part, batches))


class Settle(Request):
    """Find out, and fix for good, what an uncertain commit has left."""

    __slots__ = ()


class Close(Request):
    """Close the connection and end the thread."""

    __slots__ = ()


@attrs.frozen
class Forget:
    """Delete the notes of foreign changes up to a number: they were dealt with. Nobody waits for it."""

    up_to: int
