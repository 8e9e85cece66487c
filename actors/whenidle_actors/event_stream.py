"""The events of a host as a stream, for readers who may be slower than the host (SPEC 7.4)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle_actors.errors import InvalidArgument
from whenidle_actors.observation import EventGap, HostEvent

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

STREAM_CAPACITY = 1_000
"""Events that wait for a reader unless it says otherwise: what a busy host does in some tenths of a second."""


@attrs.frozen
class EventStreamStatistics:
    """The account of one stream (SPEC 2.12)."""

    capacity: int
    """Most events that wait."""
    waiting: int
    """Events that wait now."""
    received: int
    """Events handed to the reader so far, gaps not counted."""
    lost: int
    """Events that were given up so far, told as a gap or yet to be."""


class EventStream(trio.abc.ReceiveChannel[HostEvent | EventGap]):
    """Everything that happens on a host, in order; made by `Host.events`.

        async with host.events() as stream:
            async for event in stream:
                ...

    The host never waits for a reader. When more than `capacity` events wait, the oldest are given up, and in their
    place the reader gets one `EventGap` that says how many. The stream ends when its host has stopped and
    everything was read, and when it is closed. Several tasks may read from it; each event goes to one of them.
    """

    def __init__(self, capacity: int, leave: Callable[[], None]) -> None:
        if type(capacity) is not int or capacity < 1:
            raise InvalidArgument(f"capacity is {capacity!r}; write a whole number, 1 or more")
        self._capacity = capacity
        self._leave = leave
        self._waiting: deque[HostEvent] = deque()
        self._gap: EventGap | None = None
        """What comes before all that waits."""
        self._ended = self._closed = False
        self._news: trio.Event | None = None
        self._received = self._lost = 0

    async def receive(self) -> HostEvent | EventGap:
        """Return the next event, or the gap that stands in its place. Cancelled, it takes nothing.

        Raises:
            trio.EndOfChannel: the host has stopped, and all was read.
            trio.ClosedResourceError: the stream was closed.
        """
        await trio.lowlevel.checkpoint()
        while True:
            if self._closed:
                raise trio.ClosedResourceError("this stream of events is closed")
            if self._gap is not None:
                gap, self._gap = self._gap, None
                return gap
            if self._waiting:
                self._received += 1
                return self._waiting.popleft()
            if self._ended:
                raise trio.EndOfChannel
            if self._news is None:
                self._news = trio.Event()
            await self._news.wait()

    def close(self) -> None:
        """Leave the host's observers and forget what waits. Idempotent; a task that reads gets ClosedResourceError."""
        self._leave()
        self._closed = True
        self._waiting.clear()
        self._gap = None
        self._wake()

    async def aclose(self) -> None:
        """Close it; see `close`."""
        self.close()
        await trio.lowlevel.checkpoint()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def statistics(self) -> EventStreamStatistics:
        """Return the account of the stream."""
        return EventStreamStatistics(self._capacity, len(self._waiting), self._received, self._lost)

    # For the host -----------------------------------------------------------------------------

    def put(self, event: HostEvent) -> None:
        """Take an event, in place of the oldest that waits if there is no room. Never blocks."""
        if len(self._waiting) == self._capacity:
            lost = self._waiting.popleft().sequence
            self._gap = EventGap(lost if self._gap is None else self._gap.first, lost)
            self._lost += 1
        self._waiting.append(event)
        self._wake()

    def end(self) -> None:
        """Let readers reach the end: nothing will happen any more. Never blocks."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None
