"""Texts of strangers through the MCP server: exact for the client, and nothing of them in the log."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents

from tests.front.hostility import EVIL, EVIL_TITLE, LINES, WHOLE, check_shown, strings
from whenidle import Caller, MemoryStore, TaskSettings, open_manager
from whenidle.mcp.changes import ChangeFeed
from whenidle.mcp.post import Post, Stand
from whenidle.mcp.server import TaskServer
from whenidle.mcp.transport import Transport

from .worlds import NEW_TASK, Told, pipes, place, posted, served

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_client_gets_the_very_texts_and_the_log_gets_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the answers of tools, in their structured results and in resources; refusals repeat little, and safely."""
    caplog.set_level(logging.INFO)
    async with posted(tmp_path / "a.db") as post, served(post) as client:
        for prompt in (f"x{WHOLE}", f"x{LINES}y"):
            title = f"x{EVIL_TITLE}".replace("\ud800", "").replace("\udfff", "")
            made = await client.call_tool("schedule_create", {**NEW_TASK, "title": title, "prompt": prompt})
            assert isinstance(made.content[0], TextContent)
            task = json.loads(made.content[0].text)
            assert (task["title"], task["prompt"]) == (title, prompt)
            assert made.structured_content == task
            listed = await client.call_tool("schedule_list", {})
            assert prompt in set(strings(listed.structured_content))
            found = await client.read_resource(f"whenidle://tasks/{task['id']}")
            assert isinstance(found.contents[0], TextResourceContents)
            assert prompt in set(strings(json.loads(found.contents[0].text)))
        bad: list[dict[str, Any]] = [{**NEW_TASK, WHOLE: WHOLE}, {**NEW_TASK, "rrule": WHOLE}, {"target": WHOLE}]
        for arguments in bad:
            refused = await client.call_tool("schedule_create", arguments)
            assert isinstance(refused.content[0], TextContent)
            check_shown(refused.content[0].text)
        with pytest.raises(MCPError):
            await client.call_tool(f"x{WHOLE}", {})
        with pytest.raises(MCPError):
            await client.read_resource("whenidle://tasks/owned%0Aforged")
    for record in caplog.records:
        assert "owned" not in logging.Formatter().format(record), record
        check_shown(record.getMessage())


async def test_what_is_no_message_is_not_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Lines that are not JSON, or not JSON-RPC, or no method of it: answered in our own words, as one line each."""
    caplog.set_level(logging.INFO)
    said = [
        EVIL.replace("\n", " ").encode("utf-8", "surrogatepass"),
        json.dumps({"jsonrpc": "2.0", "id": EVIL, "method": EVIL, "params": {EVIL: EVIL}}).encode(),
        json.dumps({"id": 1, "owned": EVIL}).encode(),
        json.dumps({"jsonrpc": "2.0", "method": f"notifications/{EVIL}", "params": {"owned": EVIL}}).encode(),
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": EVIL}}).encode(),
        json.dumps({"jsonrpc": "2.0", "id": "last", "method": "ping"}).encode(),
    ]
    ours, theirs = pipes()
    heard = b""
    async with open_manager(MemoryStore()) as manager:
        post = Post(place(tmp_path), Told().tell, lambda _: None)
        post._stand = Stand(manager.tasks, manager.store, 0)
        await manager.ensure_session("mcp")
        async with Transport(ours, lambda: None) as transport, trio.open_nursery() as nursery:
            nursery.start_soon(TaskServer(post, ChangeFeed(post), Caller("mcp"), TaskSettings()).serve, transport)
            writing, reading = trio.lowlevel.FdStream(theirs.outgoing), trio.lowlevel.FdStream(theirs.incoming)
            async with writing, reading:
                await writing.send_all(b"\n".join([*said, b""]))
                with trio.fail_after(60):
                    while b'"last"' not in heard:
                        heard += await reading.receive_some()
            nursery.cancel_scope.cancel()
    for line in heard.splitlines():
        answer = json.loads(line)
        assert answer["jsonrpc"] == "2.0"
        assert "owned" not in json.dumps(answer.get("error", {}))
    for record in caplog.records:
        assert "owned" not in logging.Formatter().format(record), record
        check_shown(record.getMessage())
