"""Whatever a client sends: each call of a tool is answered with a declared code, and the next message is read.

Inputs that once were answered wrongly, or not at all, stay here as examples.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.protocol.strategies import json_values, texts
from whenidle import Caller, MemoryStore, TaskSettings, open_manager
from whenidle.mcp.changes import ChangeFeed
from whenidle.mcp.post import Post, Stand
from whenidle.mcp.server import TaskServer
from whenidle.mcp.tool_calls import ToolCalls
from whenidle.mcp.transport import Transport
from whenidle_protocol.task_schemas import DECLARED, task_tools

from .worlds import NEW_TASK, YEARLY, Told, pipes, place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import FrameType

SCHEMAS = {tool.name: jsonschema.Draft202012Validator(tool.output_schema) for tool in task_tools(TaskSettings())}  # type: ignore[arg-type]
NAMES = ("title", "prompt", "rrule", "target", "id", "action", "active", "limit", "offset", "expectedUpdatedAt")
MOST_CALLS = 100_000
"""Calls of functions that one call of a tool may make, on any machine: some take seven thousand."""
HANG = 100.0
"""Seconds after which what was to come is taken to come never."""

rule_parts = st.lists(
    st.sampled_from(
        [
            *("FREQ=MINUTELY", "FREQ=YEARLY", "FREQ=MONTHLY", "INTERVAL=0", "INTERVAL=99999", "COUNT=1", "COUNT=0"),
            *("UNTIL=20301231T000000Z", "BYDAY=-1SU,FR", "BYDAY=53MO", "BYMONTHDAY=-31", "BYMONTH=2", "BYSETPOS=-366"),
            *("BYWEEKNO=53", "BYYEARDAY=366", "BYHOUR=23,0", "BYMINUTE=59", "BYSECOND=60", "WKST=SU", "X=1", "", "="),
        ]
    ),
    max_size=6,
)
begins = st.sampled_from(
    [
        *("DTSTART:20300101T090000Z", "DTSTART;TZID=Europe/Paris:20300331T023000", "DTSTART:99991231T235959Z"),
        *("DTSTART:00010101T000000Z", "DTSTART;TZID=../etc:20300101T090000", "DTSTART:20300101", "DTSTART"),
    ]
)
line_ends = st.sampled_from(["\n", "\r\n", "\n\n", ""])
rules = st.builds(lambda begin, end, parts: f"{begin}{end}RRULE:{';'.join(parts)}", begins, line_ends, rule_parts)
values = st.one_of(
    json_values,
    texts,
    rules,
    st.sampled_from(["this_session", "new", "new_once", "update", "delete", "task-1", "2030-01-01T00:00:00.000Z"]),
)
arguments = st.one_of(
    st.dictionaries(st.sampled_from(NAMES) | texts, values, max_size=6),
    st.builds(lambda rule: {**NEW_TASK, "rrule": rule}, rules),
    st.builds(lambda name, value: {**NEW_TASK, name: value}, st.sampled_from(NAMES) | texts, values),
)


async def _with_post(use: Callable[[Post], Awaitable[None]]) -> None:
    async with open_manager(MemoryStore()) as manager:
        post = Post(place(Path("nowhere")), Told().tell, lambda _: None)
        post._stand = Stand(manager.tasks, manager.store, 0)
        await manager.ensure_session("mcp")
        await use(post)


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Raise an `AssertionError` in this thread when it calls more functions than so many: work counts, not time."""
    made = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}
        assert made <= calls, f"more than {calls} calls"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


@given(st.sampled_from(list(DECLARED)), arguments)
@example("schedule_create", {**NEW_TASK, "title": "\ud800"})
@example("schedule_create", {**NEW_TASK, "prompt": "\udfff\ud800 \U0001f600\u2028"})
@example("schedule_list", {"limit": True})
@example("schedule_list", {"limit": 1e300, "offset": 5.0})
@example("schedule_view", {"id": "\0"})
@example("schedule_edit", {"id": "task-1", "action": "update", "rrule": f"{YEARLY};BYMONTH=2;BYMONTHDAY=30"})
@settings(max_examples=200)
def test_any_arguments_are_answered_as_the_schema_says(tool: str, given_arguments: dict[str, Any]) -> None:
    """A result or a declared refusal, soon, and as text that is valid UTF-8 on one line."""

    async def call(post: Post) -> None:
        calls = ToolCalls(post, Caller("mcp"), TaskSettings())
        with at_most(MOST_CALLS):
            answer = await calls.answer(tool, given_arguments)
        document = json.loads(answer.text.plain)
        SCHEMAS[tool].validate(document)
        assert answer.refused == ("code" in document)
        assert json.loads(f'"{answer.text.quoted}"') == answer.text.plain
        assert "\n" not in answer.text.plain
        answer.text.plain.encode()

    trio.run(_with_post, call)


requests = st.builds(
    lambda number, method, parameters: {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters},
    st.integers(-3, 3) | st.sampled_from(["a", "", None, 1.5, True]),
    st.sampled_from(
        [
            *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "server/discover"),
            *("resources/subscribe", "subscriptions/listen", "completion/complete", "logging/setLevel", "x"),
        ]
    ),
    st.one_of(
        st.none(),
        json_values,
        st.builds(lambda name, given: {"name": name, "arguments": given}, st.sampled_from([*DECLARED, "x"]), arguments),
        st.builds(lambda value: {"uri": value, "cursor": value, "_meta": value}, values),
    ),
)
notifications = st.builds(
    lambda method, parameters: {"jsonrpc": "2.0", "method": method, "params": parameters},
    st.sampled_from(["notifications/initialized", "notifications/cancelled", "notifications/progress", "x"]),
    st.one_of(json_values, st.builds(lambda number: {"requestId": number}, st.integers(-3, 3))),
)
answers = st.builds(
    lambda number, result: {"jsonrpc": "2.0", "id": number, "result": result}, st.integers(), json_values
)
lines = st.one_of(
    st.binary(max_size=200).map(lambda line: line.replace(b"\n", b" ")),
    st.one_of(requests, notifications, answers, json_values).map(lambda message: json.dumps(message).encode()),
    requests.map(lambda message: json.dumps(message).encode()[:-3]),
)
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
LAST = {"jsonrpc": "2.0", "id": "last", "method": "ping"}


@given(st.booleans(), st.lists(lines, max_size=12))
@example(True, [b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}'])
@example(True, [b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}'])
@example(True, [b"[" * 5_000])
@example(True, [b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["x"]}}'])
@example(False, [b'{"jsonrpc":"2.0","method":"notifications/initialized"}'] * 20)
@settings(max_examples=100)
def test_after_any_messages_the_next_one_is_answered(greets: bool, said: list[bytes]) -> None:
    """Whether the client has said hello or not; what it said is answered line by line, and nothing else is written."""

    async def talk(post: Post) -> None:
        ours, theirs = pipes()
        async with Transport(ours, lambda: None) as transport, trio.open_nursery() as nursery:
            server = TaskServer(post, ChangeFeed(post), Caller("mcp"), TaskSettings())
            nursery.start_soon(server.serve, transport)
            writing, reading = trio.lowlevel.FdStream(theirs.outgoing), trio.lowlevel.FdStream(theirs.incoming)
            async with writing, reading:
                hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO}
                first = [json.dumps(hello).encode()] if greets else []
                nursery.start_soon(writing.send_all, b"\n".join([*first, *said, json.dumps(LAST).encode(), b""]))
                with trio.fail_after(HANG):
                    await _until_answered(reading)
                await writing.aclose()
                nursery.cancel_scope.cancel()

    trio.run(_with_post, talk)


async def _until_answered(reading: trio.lowlevel.FdStream) -> None:
    heard = b""
    while True:
        heard += await reading.receive_some()
        for line in heard.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                continue
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == "last":
                return
