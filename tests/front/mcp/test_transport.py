"""Messages over pipes: what is none is answered, what is too much is not read, what is broken is not waited for."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import attrs
import pytest
import trio
import trio.testing
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from whenidle.mcp.lines import LONGEST_LINE
from whenidle.mcp.transport import LAST_ANSWERS_SECONDS, MOST_AT_ONCE, ReadyResult, Transport

from .worlds import pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@attrs.define
class Peer:
    """The client's end, and the server's transport."""

    transport: Transport
    incoming: int
    outgoing: int
    broken: list[bool] = attrs.Factory(list[bool])

    def say(self, *messages: Any) -> None:
        """Send messages, or raw lines."""
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self.outgoing, line + b"\n")

    def hear(self) -> Any:
        """Return the next message that came back."""
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self.incoming, 1)
        return json.loads(line)

    def hang_up(self) -> None:
        """Close the client's end of both."""
        for descriptor in {self.incoming, self.outgoing} - {-1}:
            os.close(descriptor)
        self.incoming = self.outgoing = -1

    async def next(self) -> Any:
        """Return what the server reads next."""
        message = await self.transport.reading.receive()
        assert isinstance(message, SessionMessage)
        return message

    async def answer(self, request_id: int) -> None:
        """Answer a request."""
        await self.transport.writing.send(
            SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=request_id, result={"ok": request_id}))
        )


def request(request_id: object, method: str = "tools/call") -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method}


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """Return both ends of a connection."""
    async with connected() as peer:
        yield peer


@asynccontextmanager
async def connected() -> AsyncIterator[Peer]:
    """Connect the two ends while the block runs."""
    ours, theirs = pipes()
    broken: list[bool] = []
    async with Transport(ours, lambda: broken.append(True)) as transport:
        peer = Peer(transport, theirs.incoming, theirs.outgoing, broken)
        try:
            yield peer
        finally:
            peer.hang_up()


async def test_messages_go_both_ways(peer: Peer) -> None:
    """Blank lines are nothing; a result that is ready is written as it is."""
    peer.say(b"", b" \r", request(1), {"jsonrpc": "2.0", "method": "notifications/initialized"})
    message = (await peer.next()).message
    assert isinstance(message, JSONRPCRequest)
    assert isinstance((await peer.next()).message, JSONRPCNotification)
    await peer.answer(1)
    assert peer.hear() == {"jsonrpc": "2.0", "id": 1, "result": {"ok": 1}}
    ready = {"structuredContent": ReadyResult('{"é":1}')}
    await peer.transport.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id="x", result=ready)))
    assert peer.hear() == {"jsonrpc": "2.0", "id": "x", "result": {"é": 1}}


@pytest.mark.parametrize(
    ("line", "code", "known"),
    [
        (b"{", -32700, None),
        (b"\xff", -32700, None),
        (b"nonsense", -32700, None),
        (b"[" * 20_000, -32700, None),
        (b"[]", -32600, None),
        (b'"x"', -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"x"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":7.5,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":3,"method":"x","params":{"text":"\\ud800"}}', -32600, 3),
    ],
)
async def test_what_is_no_message_is_answered(peer: Peer, line: bytes, code: int, known: object) -> None:
    """With the id where it can be told, so that a client does not wait for ever; the next message is read."""
    peer.say(line, request(1))
    assert (await peer.next()).message.id == 1
    refused = peer.hear()
    assert (refused["error"]["code"], refused["id"]) == (code, known)


async def test_a_message_that_is_too_long_is_answered(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept, and the next one is read."""
    monkeypatch.setattr(peer.transport._lines, "_longest", 1_000)
    peer.say(request("x" * 2_000), request(1))
    assert (await peer.next()).message.id == 1
    assert peer.hear()["error"] == {"code": -32600, "message": f"a message has at most {LONGEST_LINE} bytes"}


async def test_no_more_is_read_than_can_be_answered(peer: Peer, nursery: trio.Nursery) -> None:
    """Beyond so many open requests the client has to wait for an answer or a cancel; subscriptions do not count."""
    peer.say(request("s", "subscriptions/listen"))
    peer.say(*(request(7) for _ in range(MOST_AT_ONCE + 2)))
    messages = [await peer.next() for _ in range(MOST_AT_ONCE + 1)]
    further: list[Any] = []

    async def read_on() -> None:
        further.append(await peer.next())

    for settled in range(2):
        nursery.start_soon(read_on)
        await trio.testing.wait_all_tasks_blocked()
        assert len(further) == settled
        if settled:
            metadata = messages[-1].metadata
            assert isinstance(metadata, ServerMessageMetadata)
            assert metadata.on_request_unanswered is not None
            await metadata.on_request_unanswered()
        else:
            error = JSONRPCError.model_validate({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": ""}})
            await peer.transport.send(SessionMessage(error))
        await trio.testing.wait_all_tasks_blocked()
        assert len(further) == settled + 1


async def test_the_end_waits_for_the_last_answers(peer: Peer, nursery: trio.Nursery) -> None:
    """A client that asks and closes its side gets its answer."""
    peer.say(request(1))
    os.close(peer.outgoing)
    peer.outgoing = -1
    await peer.next()
    ended = trio.Event()

    async def read_on() -> None:
        with pytest.raises(anyio.EndOfStream):
            await peer.transport.reading.receive()
        ended.set()

    nursery.start_soon(read_on)
    await trio.testing.wait_all_tasks_blocked()
    assert not ended.is_set()
    await peer.answer(1)
    assert peer.hear()["id"] == 1
    await ended.wait()
    assert peer.broken == []


async def test_the_end_does_not_wait_for_ever(peer: Peer, autojump_clock: trio.testing.MockClock) -> None:
    """What cannot be answered in time is given up, and with it the client."""
    peer.say(request(1))
    os.close(peer.outgoing)
    peer.outgoing = -1
    began = trio.current_time()
    assert [message async for message in peer.transport.reading] != []
    assert trio.current_time() - began == LAST_ANSWERS_SECONDS
    assert peer.broken == [True]


async def test_a_client_that_is_gone_is_told_once(peer: Peer) -> None:
    """Its requests are settled, and nothing is written any more."""
    peer.say(request(1), request(2))
    await peer.next()
    await peer.next()
    peer.hang_up()
    for number in (1, 2):
        with pytest.raises(anyio.BrokenResourceError):
            await peer.answer(number)
    assert peer.broken == [True]
    with pytest.raises(anyio.EndOfStream):
        await peer.transport.reading.receive()


async def test_a_transport_that_is_closed_has_no_more_messages() -> None:
    """Whoever reads on finds the end."""
    async with connected() as peer:
        transport = peer.transport
    assert await transport.receive() is None


async def test_a_client_that_does_not_read_holds_only_its_own_answers(peer: Peer, nursery: trio.Nursery) -> None:
    """A cancel of the request leaves no half line behind; giving the client up ends the wait."""
    long = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={"x": "x" * 1_000_000}))
    outcome: list[str] = []

    async def write(scope: trio.CancelScope) -> None:
        with scope:
            try:
                await peer.transport.send(long)
            except anyio.BrokenResourceError:
                outcome.append("broken")

    scopes = [trio.CancelScope(), trio.CancelScope()]
    for scope in scopes:
        nursery.start_soon(write, scope)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
    assert [scope.cancelled_caught for scope in scopes] == [False, True]
    peer.transport.give_up()
    await trio.testing.wait_all_tasks_blocked()
    assert outcome == ["broken"]


async def test_a_half_read_line_is_not_lost_by_a_cancel(peer: Peer) -> None:
    """Whoever reads next gets the whole line."""
    os.write(peer.outgoing, b'{"jsonrpc":"2.0","id":1,')
    with trio.move_on_after(0):
        await peer.next()
    with trio.CancelScope() as scope:
        scope.cancel()
        await peer.next()
    os.write(peer.outgoing, b'"method":"x"}\n')
    assert (await peer.next()).message.id == 1
