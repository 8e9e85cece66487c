"""The events of a host as an asyncio stream."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

import trio

from whenidle.aio.errors import HostClosed
from whenidle.aio.mirroring import mirrors
from whenidle_actors import event_stream

if TYPE_CHECKING:
    from types import TracebackType

    from whenidle.aio.guest import Guest
    from whenidle_actors.event_stream import EventStreamStatistics
    from whenidle_actors.observation import EventGap, HostEvent


@mirrors(event_stream.EventStream)
class EventStream:
    """Everything that happens on a host, in order; see `whenidle.EventStream`. Made by `Host.events`.

        async with host.events() as stream:
            async for event in stream:
                ...

    Within `async with` it can be read to the end, also when the last host of the loop has stopped. Without, it ends
    with that host, and what was not read by then is gone.
    """

    def __init__(self, guest: Guest, stream: event_stream.EventStream) -> None:
        self._guest = guest
        self._stream = stream
        self._taken: deque[HostEvent | EventGap] = deque()
        """What trio has handed over and nobody has read: a call takes all that waits."""
        self._one_takes = trio.Lock()

    async def receive(self) -> HostEvent | EventGap:
        """See `whenidle.EventStream.receive`."""
        if self._taken:
            await asyncio.sleep(0)
        while not self._taken:
            await self._guest.call(self._take)
        return self._taken.popleft()

    def close(self) -> None:
        """See `whenidle.EventStream.close`."""
        self._taken.clear()
        self._stream.close()

    async def aclose(self) -> None:
        """See `whenidle.EventStream.aclose`."""
        self.close()
        await asyncio.sleep(0)

    def statistics(self) -> EventStreamStatistics:
        """See `whenidle.EventStream.statistics`.

        An event is received when asyncio has it: some of those may not have been read.
        """
        return self._stream.statistics()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> HostEvent | EventGap:
        try:
            return await self.receive()
        except (trio.EndOfChannel, HostClosed):
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        self._guest.stay()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        await self._guest.leave()

    async def _take(self) -> None:
        """Take what waits, in trio; at least one, unless another reader has taken some meanwhile."""
        # One at a time, or one would wait here for what another has taken, and keep what it has.
        async with self._one_takes:
            if self._taken:
                return
            self._taken.append(await self._stream.receive())
            for _ in range(self._stream.statistics().waiting):
                self._taken.append(await self._stream.receive())
