"""Messages as lines on two descriptors: what the SDK's server reads from and writes to.

The SDK's own transport hands every line to a thread and takes lines of any length. Here nothing leaves the loop, a
line has a limit, and so has what is asked and not answered yet.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
import trio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from whenidle.mcp.lines import LONGEST_LINE, Lines, LineTooLong
from whenidle.mcp.stdio import Wire
from whenidle_actors.logs import report

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream

logger: logging.Logger = logging.getLogger("whenidle.mcp")

MOST_AT_ONCE = 64
"""Requests that are read and not answered; while there are so many, no more is read."""
LAST_ANSWERS_SECONDS = 5.0
"""How long the end waits for the answers to what was asked before the client closed its side."""

_LONG_LIVED = frozenset({"subscriptions/listen"})
"""Requests whose answer is the end of a subscription."""


class ReadyResult(str):
    """The JSON text of a whole result, which goes on the wire as it is."""

    __slots__ = ()


class Transport:
    """One client's messages; `reading` and `writing` are the streams that the SDK's server takes.

    Args:
        wire: the descriptors; closed with the transport.
        on_broken: called once when the client does not take anything any more.
    """

    def __init__(self, wire: Wire, on_broken: Callable[[], object]) -> None:
        self._incoming = trio.lowlevel.FdStream(wire.incoming)
        self._outgoing = trio.lowlevel.FdStream(wire.outgoing)
        self._lines = Lines(self._incoming.receive_some)
        self._on_broken = on_broken
        self._broken = False
        self._sending = trio.Lock()
        self._open: Counter[RequestId] = Counter()
        """Requests that are not answered yet, and how many of each id."""
        self._settled = trio.Event()
        self.reading: _Reading = _Reading(self)
        self.writing: _Writing = _Writing(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True):
            await self._incoming.aclose()
            await self._outgoing.aclose()

    async def receive(self) -> SessionMessage | None:
        """Return the next message that is one, and answer what is none; None when the client has said all.

        That is when everything it asked has been answered, too, or enough time has gone by.
        """
        while True:
            await self._room(MOST_AT_ONCE)
            try:
                line = await self._lines.next()
            except LineTooLong:
                await self._refuse(INVALID_REQUEST, f"a message has at most {LONGEST_LINE} bytes", None)
                continue
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                line = None
            if line is None:
                with trio.move_on_after(LAST_ANSWERS_SECONDS):
                    await self._room(1)
                if self._open:
                    self.give_up()
                return None
            if line and not line.isspace():
                message = await self._parsed(line)
                if message is not None:
                    return message

    async def send(self, message: SessionMessage) -> None:
        """Write a message; one that answers a request settles it, also when nobody reads it any more.

        Raises:
            anyio.BrokenResourceError: the client has gone.
        """
        content = message.message
        try:
            await self._send_line(_text(content))
        finally:
            if isinstance(content, JSONRPCResponse | JSONRPCError) and content.id is not None:
                self._settle(content.id)

    async def _parsed(self, line: bytes) -> SessionMessage | None:
        message = _message_in(line)
        if message is None:
            found = _object_in(line)
            if found is None:
                await self._refuse(PARSE_ERROR, "the message is not JSON", None)
            else:
                await self._refuse(INVALID_REQUEST, "the message is not one of JSON-RPC 2.0", found.get("id"))
            return None
        if not isinstance(message, JSONRPCRequest) or message.method in _LONG_LIVED:
            return SessionMessage(message)
        request_id = message.id
        self._open[request_id] += 1

        async def unanswered() -> None:
            self._settle(request_id)
            await trio.lowlevel.checkpoint()

        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=unanswered))

    async def _refuse(self, code: int, why: str, request_id: object) -> None:
        known = request_id if type(request_id) in {int, str} else None
        error = {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": why}}
        report(logger, logging.WARNING, "message-refused", "a message of the client was refused: %s", why)
        with suppress(anyio.BrokenResourceError):  # it is read to its end all the same
            await self._send_line(json.dumps(error))

    async def _send_line(self, text: str) -> None:
        async with self._sending:
            # A request that is cancelled now must not leave half a line behind; `give_up` ends the wait.
            with trio.CancelScope(shield=True):
                try:
                    await self._outgoing.send_all(f"{text}\n".encode())
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self.give_up()
                    raise anyio.BrokenResourceError from None

    def give_up(self) -> None:
        """Write nothing any more, and end whatever waits for the client to read."""
        if not self._broken:
            self._broken = True
            self._outgoing.close()
            self._on_broken()

    async def _room(self, limit: int) -> None:
        while self._open.total() >= limit:
            self._settled = trio.Event()
            await self._settled.wait()

    def _settle(self, request_id: RequestId) -> None:
        if self._open[request_id] > 1:
            self._open[request_id] -= 1
        else:
            del self._open[request_id]
        self._settled.set()


class _Reading:
    """The receiving side, in the form that the SDK asks for."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def receive(self) -> SessionMessage | Exception:
        message = await self._transport.receive()
        if message is None:
            raise anyio.EndOfStream
        return message

    def __aiter__(self) -> "ReadStream[SessionMessage | Exception]":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message = await self._transport.receive()
        if message is None:
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        """Leave it to the transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None: ...


class _Writing:
    """The sending side, in the form that the SDK asks for."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, item: SessionMessage, /) -> None:
        await self._transport.send(item)

    async def aclose(self) -> None:
        """Leave it to the transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None: ...


def _text(message: Any) -> str:
    if isinstance(message, JSONRPCResponse):
        ready = message.result.get("structuredContent")
        if type(ready) is ReadyResult:
            return f'{{"jsonrpc":"2.0","id":{json.dumps(message.id)},"result":{ready}}}'
    text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text


def _message_in(line: bytes) -> JSONRPCMessage | None:
    """Return the message that a line holds; None if it holds none."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None
    if isinstance(message, JSONRPCNotification) and "id" in (_object_in(line) or {}):
        return None  # a request whose id can be none, which the SDK takes for a notification: nobody would answer
    return message


def _object_in(line: bytes) -> dict[str, Any] | None:
    """Return the object that a line holds which the SDK did not take, None if it holds none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
