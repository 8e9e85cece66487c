"""Lines of a byte stream, none longer than a limit, whatever the other side sends."""

from collections.abc import Awaitable, Callable

LONGEST_LINE = 8 * 1024 * 1024
"""Bytes of a message: what every tool would refuse is far shorter, so that a client gets the tool's own answer."""

_CHUNK = 65_536


class LineTooLong(Exception):
    """A line was longer than the limit and was passed over; the next one can be read."""


class Lines:
    """Reads lines.

    Args:
        receive: reads up to so many bytes; none means that there are no more.
        longest: bytes of a line, without its end.
    """

    def __init__(self, receive: Callable[[int], Awaitable[bytes | bytearray]], longest: int = LONGEST_LINE) -> None:
        self._receive = receive
        self._longest = longest
        self._buffer = bytearray()
        self._searched = 0
        self._skipping = False

    async def next(self) -> bytes | None:
        """Return the next line without its end, the last one also if it has none; None when there are no more.

        Cancelling it loses nothing.

        Raises:
            LineTooLong: one was passed over.
        """
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if self._ended_skipping() or len(line) > self._longest:
                    raise LineTooLong
                return line
            self._searched = len(self._buffer)
            if self._searched > self._longest:
                self._skipping = True
                self._buffer.clear()
                self._searched = 0
            chunk = await self._receive(_CHUNK)
            if not chunk:
                return self._rest()
            self._buffer += chunk

    def _rest(self) -> bytes | None:
        line = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        if self._ended_skipping():
            raise LineTooLong
        return line or None

    def _ended_skipping(self) -> bool:
        skipping, self._skipping = self._skipping, False
        return skipping
