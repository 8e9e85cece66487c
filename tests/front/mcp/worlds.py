"""An MCP client and the server, in one loop over two pipes, or with the server in a process of its own."""

from __future__ import annotations

import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs
import trio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from whenidle import SystemClock, TaskSettings
from whenidle.mcp.changes import ChangeFeed
from whenidle.mcp.post import Place, Post
from whenidle.mcp.server import TaskServer
from whenidle.mcp.stdio import Wire
from whenidle.mcp.transport import Transport
from whenidle_protocol.task_settings import Caller

from ..command_line import program  # noqa: TID252 - a neighbour
from ..processes import eventually_async  # noqa: TID252 - a neighbour

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from mcp.client.client import ConnectMode
    from mcp_types import CallToolResult
    from trio.testing import MockClock

    from whenidle import HostEvent, Turn

MODES: tuple[ConnectMode, ...] = ("auto", "legacy")
"""The client's first message decides the protocol: 2026-07-28, or a handshake of the versions before."""

YEARLY = "DTSTART:20990101T090000Z\nRRULE:FREQ=YEARLY"
NEW_TASK = {"title": "Rent", "prompt": "Pay the rent.", "rrule": YEARLY, "target": "this_session"}


def pipes() -> tuple[Wire, Wire]:
    """Return the two ends of a connection."""
    to_server, to_client = os.pipe(), os.pipe()
    return Wire(to_server[0], to_client[1]), Wire(to_client[0], to_server[1])


async def idle(_: Turn) -> None:
    """Run a turn that does nothing."""


@attrs.define
class Told:
    """What a post has told."""

    news: list[tuple[str, dict[str, object]]] = attrs.Factory(list[tuple[str, dict[str, object]]])
    events: list[HostEvent] = attrs.Factory(list["HostEvent"])

    def tell(self, kind: str, **detail: object) -> None:
        """Take note of it."""
        self.news.append((kind, detail))

    @property
    def kinds(self) -> list[str]:
        """What was told, in order."""
        return [kind for kind, _ in self.news]


def place(store: Path, **changes: Any) -> Place:
    """Return where a server stands."""
    settings: dict[str, Any] = {
        "store": str(store),
        "turn": idle,
        "session": "mcp",
        "clock": SystemClock(),
        "max_turns": 2,
        "shutdown_timeout": 0.0,
    }
    return Place(**{**settings, **changes})


@asynccontextmanager
async def posted(store: Path, told: Told | None = None, **changes: Any) -> AsyncIterator[Post]:
    """Keep a post while the block runs."""
    told = Told() if told is None else told
    post = Post(place(store, **changes), told.tell, told.events.append)
    async with trio.open_nursery() as nursery:
        await nursery.start(post.keep)
        yield post
        post.stop()


@asynccontextmanager
async def served(post: Post, mode: ConnectMode = "auto", **options: Any) -> AsyncIterator[Client]:
    """Connect a client to a server at `post`, in this process."""
    ours, theirs = pipes()
    feed = ChangeFeed(post)
    server = TaskServer(post, feed, Caller("mcp", cwd="/srv"), TaskSettings())
    async with Transport(ours, lambda: None) as transport, trio.open_nursery() as nursery:
        await nursery.start(feed.watch)
        nursery.start_soon(server.serve, transport)
        async with Client(_streams(theirs), mode=mode, **options) as client:
            yield client
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _streams(wire: Wire) -> AsyncIterator[Any]:
    async with Transport(wire, lambda: None) as transport:
        yield transport.reading, transport.writing


@asynccontextmanager
async def started(
    store: Path, *options: str, agent: str = "cat", mode: ConnectMode = "auto", errors: Any = None, **more: Any
) -> AsyncIterator[Client]:
    """Connect a client to `whenidle mcp` in a process of its own, as a desktop client does."""
    command, *arguments = program("mcp", "--store", str(store), "--agent", agent, *options)
    parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123 - the SDK takes a file
        async with Client(stdio_client(parameters, errlog=errors or nowhere), mode=mode, **more) as client:
            yield client


async def answer(client: Client, tool: str, /, **arguments: Any) -> Any:
    """Call a tool, and return its answer; text and structured content say the same."""
    result = await client.call_tool(tool, arguments)
    return answer_of(result)


def answer_of(result: CallToolResult) -> Any:
    """Return what a tool has answered."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    structured: Mapping[str, Any] | None = result.structured_content
    assert structured is not None
    assert result.is_error is ("code" in structured)
    return structured


async def until(condition: Callable[[], Any], clock: MockClock | None = None) -> Any:
    """Wait until the condition is true, and return its answer; seconds of `clock` pass meanwhile, if it is given."""
    if clock is None:
        return await eventually_async(condition)
    while not (answer := condition()):
        clock.jump(1)
        await trio.to_thread.run_sync(time.sleep, 0.01)
    return answer
