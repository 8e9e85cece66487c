"""The task tools for an MCP client: the SDK's own, over a pipe, in both forms of the protocol."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, TextContent

from whenidle import (
    AfterRule,
    Caller,
    CreateTask,
    ListTasks,
    TargetKind,
    TaskSettings,
    mcp_tools,
    open_manager,
    prompt_section,
)
from whenidle.mcp import tool_calls
from whenidle.mcp.post import Post, Stand
from whenidle.mcp.server import instructions
from whenidle.mcp.tool_calls import ToolCalls
from whenidle_actors.stores.base import Batch
from whenidle_actors.stores.task_rows import TaskRow, TaskWrite
from whenidle_protocol.task_answers import entry_answer, list_answer
from whenidle_protocol.task_json import canonical_json
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_schemas import task_tools

from .worlds import MODES, NEW_TASK, YEARLY, Told, answer, answer_of, place, posted, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.client.client import Client, ConnectMode


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, post: Post) -> AsyncIterator[Client]:
    """Return a client of each kind."""
    async with served(post, request.param) as client:
        yield client


@pytest.fixture
async def post(store: Path) -> AsyncIterator[Post]:
    """Return a place at the test's store."""
    async with posted(store) as post:
        yield post


async def test_the_tools_are_those_of_an_agent(client: Client) -> None:
    """Names, descriptions, input and output schemas, byte for byte; and hints of what they do."""
    listed = (await client.list_tools()).tools
    shown = [tool.model_dump(by_alias=True, exclude_unset=True, exclude={"annotations"}) for tool in listed]
    assert shown == mcp_tools(task_tools(TaskSettings()))
    assert [tool.annotations and tool.annotations.read_only_hint for tool in listed] == [None, True, True, None]


async def test_the_instructions_have_the_prompt_section(client: Client) -> None:
    """And say who will do what is scheduled."""
    assert client.instructions is not None
    assert client.instructions.startswith(prompt_section({"schedule_create"}))
    assert 'the session "mcp"' in client.instructions
    assert "another process" not in client.instructions


async def test_beside_a_host_the_instructions_say_so(store: Path, post: Post) -> None:
    """The model can tell the user who delivers."""
    async with posted(store) as manager, served(manager) as client:
        assert client.instructions is not None
        assert "another process (" in client.instructions
    manager.stand.host_pid = 0
    assert "another process delivers" in instructions(manager, "mcp")


async def test_a_task_s_whole_life(client: Client) -> None:
    """Made, listed, viewed, changed, deleted; each answer is structured and fits the schema of its tool."""
    schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

    async def call(tool: str, **arguments: Any) -> Any:
        answered = await answer(client, tool, **arguments)
        schema = schemas[tool]
        assert schema is not None
        jsonschema.validate(answered, schema)
        return answered

    task = await call("schedule_create", **NEW_TASK)
    assert (task["targetSessionId"], task["status"]) == ("mcp", "active")
    assert await call("schedule_view", id=task["id"]) == task
    assert await call("schedule_list") == {"items": [task], "shown": 1, "total": 1, "limit": 100, "offset": 0}
    paused = await call("schedule_edit", id=task["id"], action="update", active=False, title='é "quoted" \\ \n line')
    assert (await call("schedule_list", active=False, limit=5))["items"] == [paused]
    assert (await call("schedule_list", active=True))["items"] == []
    assert await call("schedule_edit", id=task["id"], action="delete") == {"id": task["id"], "deleted": True}
    assert await call("schedule_view", id=task["id"]) == {"id": task["id"], "code": "schedule_not_found"}


async def test_new_sessions_work_where_the_client_does(client: Client, post: Post) -> None:
    """A target that makes sessions has the working directory of the server, which is its client's."""
    task = await answer(client, "schedule_create", **{**NEW_TASK, "target": "new"})
    kept = await post.stand.desk.view(task["id"])
    assert (kept.target.cwd, kept.creator) == ("/srv", "mcp")


HUGE = "x" * 300_000


WRONG: list[tuple[str, Any, str]] = [
    ("schedule_create", {}, "invalid_title"),
    ("schedule_create", {**NEW_TASK, "title": 5}, "invalid_title"),
    ("schedule_create", {**NEW_TASK, "title": HUGE}, "invalid_title"),
    ("schedule_create", {**NEW_TASK, "prompt": HUGE}, "invalid_prompt"),
    ("schedule_create", {**NEW_TASK, "prompt": ["x"]}, "invalid_prompt"),
    ("schedule_create", {**NEW_TASK, "rrule": HUGE}, "invalid_rule"),
    ("schedule_create", {**NEW_TASK, "rrule": f"{YEARLY};BYSETPOS=1"}, "invalid_rule"),
    ("schedule_create", {**NEW_TASK, "target": {"x": 1}}, "invalid_target"),
    ("schedule_create", {**NEW_TASK, "target": None}, "invalid_target"),
    ("schedule_create", {**NEW_TASK, HUGE: 1}, "internal_error"),
    ("schedule_create", {**NEW_TASK, "__proto__": {}}, "internal_error"),
    ("schedule_list", {"limit": 10**400}, "internal_error"),
    ("schedule_list", {"limit": 501}, "internal_error"),
    ("schedule_list", {"offset": -1}, "internal_error"),
    ("schedule_list", {"active": "yes"}, "internal_error"),
    ("schedule_view", {"id": 5}, "internal_error"),
    ("schedule_view", {"id": HUGE}, "schedule_not_found"),
    ("schedule_view", {"id": "../../etc/passwd\0"}, "schedule_not_found"),
    ("schedule_edit", {"id": "task-1", "action": "drop table"}, "internal_error"),
    ("schedule_edit", {"id": "task-1", "action": "delete", "title": "x"}, "internal_error"),
    ("schedule_edit", {"id": "task-1", "action": "update", "active": False}, "schedule_not_found"),
]


async def test_what_a_model_gets_wrong_is_an_answer(client: Client) -> None:
    """With a code of the closed set; the server goes on, and nothing was made."""
    for tool, arguments, code in WRONG:
        result = await client.session.call_tool(tool, arguments)
        assert answer_of(result)["code"] == code, (tool, str(arguments)[:100])
    assert (await answer(client, "schedule_list"))["total"] == 0


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("tool", "arguments"), [("schedule_delete", {}), ("", {}), ("schedule_list", [1])])
async def test_a_call_that_the_protocol_does_not_know_is_an_error_of_the_protocol(
    client: Client, tool: str, arguments: Any
) -> None:
    """Another tool, or arguments that are no object; the server goes on."""
    with pytest.raises(MCPError) as refused:
        await client.session.send_request(_raw(tool, arguments), dict)  # type: ignore[type-var]
    assert refused.value.error.code == INVALID_PARAMS
    assert (await answer(client, "schedule_list"))["total"] == 0


def _raw(tool: str, arguments: Any) -> Any:
    from mcp_types import CallToolRequest, CallToolRequestParams  # noqa: PLC0415 - here alone

    parameters = CallToolRequestParams.model_construct(name=tool, arguments=arguments)
    return CallToolRequest.model_construct(method="tools/call", params=parameters)


async def test_a_list_of_tools_has_one_page(client: Client) -> None:
    """A cursor is none that this server gave."""
    with pytest.raises(MCPError, match="one page"):
        await client.list_tools(cursor="1")


async def test_the_text_of_a_list_is_that_of_the_desk(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is put together, and whether the texts of the tasks are kept or not."""
    calls = ToolCalls(post, Caller("mcp"), TaskSettings())
    for number in range(3):
        await calls.answer("schedule_create", {**NEW_TASK, "title": f'"{number}" [] \\'})
    for limit in (tool_calls.MOST_CHARACTERS, 10):
        monkeypatch.setattr(tool_calls, "MOST_CHARACTERS", limit)
        for arguments in ({}, {}, {"offset": 1, "limit": 1}, {"active": False}):
            text = (await calls.answer("schedule_list", arguments)).text
            request = ListTasks(**arguments)
            expected = canonical_json(list_answer(*await post.stand.desk.page(request), request))
            assert text.plain == expected
            assert json.loads(f'"{text.quoted}"') == expected
        last = json.loads((await calls.answer("schedule_list", {})).text.plain)["items"][0]
        await calls.answer("schedule_edit", {"id": last["id"], "action": "update", "title": f"changed {limit}"})


async def test_a_store_that_fails_is_told_in_the_codes_of_the_tools(store: Path) -> None:
    """What is wrong with it goes to the log, not to the model."""
    async with open_manager(store) as manager:
        task = await manager.create_task(CreateTask("Tea", "Make tea.", AfterRule(600), TargetKind.NEW), Caller(""))
        post = Post(place(store), Told().tell, lambda _: None)
        post._stand = Stand(manager.tasks, manager.store, None)
    calls = ToolCalls(post, Caller("mcp"), TaskSettings())
    answers = [
        json.loads((await calls.answer(tool, arguments)).text.plain)
        for tool, arguments in (
            ("schedule_list", {}),
            ("schedule_view", {"id": task.id}),
            ("schedule_create", NEW_TASK),
            ("schedule_edit", {"id": task.id, "action": "delete"}),
        )
    ]
    assert {each["code"] for each in answers} == {"persistence_uncertain"}
    assert [each["operation"] for each in answers] == ["list", "view", "create", "delete"]


async def test_a_damaged_task_has_its_place_in_a_list(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    """The others are listed. What is wrong is told once in the log, and nothing of it to the model."""
    calls = ToolCalls(post, Caller("mcp"), TaskSettings())
    await calls.answer("schedule_create", NEW_TASK)
    row = TaskRow("task-1", '{"secret": 1}', 1, 1)
    await post.stand.store.commit(Batch(tasks=(TaskWrite("task-1", None, row),)))
    for _ in range(2):
        answered = await calls.answer("schedule_list", {})
        told = json.loads(answered.text.plain)
        assert not answered.refused
        assert (told["shown"], told["total"]) == (2, 2)
        assert told["items"][0] == entry_answer(DamagedTask("task-1", ""))
        assert told["items"][1]["title"] == NEW_TASK["title"]
        assert "secret" not in answered.text.plain
    assert [record.getMessage() for record in caplog.records] == ["task task-1 is listed and cannot be read"]
    answered = await calls.answer("schedule_view", {"id": "task-1"})
    assert json.loads(answered.text.plain)["code"] == "internal_error"


async def test_results_are_one_text_block_of_canonical_json(client: Client) -> None:
    """The same bytes for the same answer, whichever way it is asked for (SPEC 6.12)."""
    await answer(client, "schedule_create", **NEW_TASK)
    listed = await client.call_tool("schedule_list", {})
    (block,) = listed.content
    assert isinstance(block, TextContent)
    assert block.text == canonical_json(listed.structured_content)


@pytest.mark.parametrize("mode", MODES)
async def test_calls_are_answered_side_by_side(post: Post, mode: ConnectMode) -> None:
    """Twenty at once, each with its own answer."""
    import trio  # noqa: PLC0415 - here alone

    made: list[str] = []
    async with served(post, mode) as client:

        async def make(number: int) -> None:
            made.append((await answer(client, "schedule_create", **{**NEW_TASK, "title": f"t{number}"}))["title"])

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(make, number)
        assert (await answer(client, "schedule_list"))["total"] == 20
    assert sorted(made) == sorted(f"t{number}" for number in range(20))
