from __future__ import annotations

import json
from typing import Any

import anthropic.types
import mcp.types
import openai.types.chat
import openai.types.responses
import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.json_text import stringify
from whenidle_protocol.task_answers import (
    conflict,
    delete_answer,
    error_answer,
    list_answer,
    not_found,
    persistence_uncertain,
    task_answer,
)
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_record import Task  # noqa: TC001 - hypothesis reads it
from whenidle_protocol.task_requests import ListTasks
from whenidle_protocol.task_schemas import CREATE, DECLARED, EDIT, LIST, VIEW, task_tools
from whenidle_protocol.task_settings import TaskSettings
from whenidle_protocol.task_tools import read_create, read_edit, read_list, read_view
from whenidle_protocol.tool_exports import (
    anthropic_tools,
    mcp_result,
    mcp_tools,
    openai_chat_tools,
    openai_responses_tools,
)
from whenidle_protocol.tool_schemas import reminder_tools

from .strategies import tasks
from .worlds import EVENING, RULES, made

TOOLS = {tool.name: tool for tool in task_tools(TaskSettings())}
REMINDER_TOOLS = reminder_tools(max_prompt_bytes=100)
ALL = (*TOOLS.values(), *REMINDER_TOOLS)


def output(tool: str) -> Draft202012Validator:
    """Return the validator of a tool's answers."""
    return Draft202012Validator(TOOLS[tool].output_schema or {})


def test_there_are_four_tools() -> None:
    """In the order a model reads them."""
    assert list(TOOLS) == ["schedule_create", "schedule_list", "schedule_view", "schedule_edit"]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_the_schemas_are_valid_and_closed(tool: Any) -> None:
    """JSON Schema 2020-12; every object says that it takes nothing else, or is a choice of such objects."""
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert schema["type"] == "object"
        Draft202012Validator.check_schema(schema)
        check_closed(schema)
    assert tool.input_schema["additionalProperties"] is False


def check_closed(schema: Any) -> None:
    """Check that each object of a schema takes nothing else."""
    if isinstance(schema, dict):
        if "properties" in schema:
            assert schema["additionalProperties"] is False
            assert set(schema["required"]) <= set(schema["properties"])
        for value in schema.values():
            check_closed(value)
    elif isinstance(schema, list):
        for value in schema:
            check_closed(value)


@pytest.mark.parametrize(
    "settings", [{}, {"spacing_seconds": 3600, "max_prompt_bytes": 500}], ids=["defaults", "configured"]
)
def test_equal_configuration_gives_equal_bytes(settings: dict[str, Any]) -> None:
    """A prompt cache that holds the tools stays good; what one caller does to a schema is not seen by another."""

    def text() -> str:
        exported = [mcp_tools, openai_chat_tools, openai_responses_tools, anthropic_tools]
        return stringify([export(task_tools(TaskSettings(**settings))) for export in exported])

    before = text()
    task_tools(TaskSettings(**settings))[0].input_schema.clear()
    assert text() == before


def test_the_schemas_say_what_the_host_decided() -> None:
    """A spacing above one minute, and the longest prompt."""
    plain, spaced = (
        task_tools(TaskSettings(spacing_seconds=seconds, max_prompt_bytes=size))[0].input_schema["properties"]
        for seconds, size in ((60, 65_536), (3600, 500))
    )
    assert plain["target"]["description"] == (
        "Where the prompt goes: this_session, the session that calls; new_once, one new session for all occurrences; "
        "new, a new session for each occurrence."
    )
    assert spaced["target"]["description"] == (
        plain["target"]["description"] + " With new, occurrences must be at least 3600 seconds apart."
    )
    assert "at most 500 bytes of UTF-8" in spaced["prompt"]["description"]


def test_only_what_the_host_tells_differs() -> None:
    """Policies and caps are not told, and do not disturb caches."""
    settings = TaskSettings(catch_up_seconds=5, max_active=3, max_active_per_session=2)
    assert task_tools(settings) == task_tools(TaskSettings())


GOOD: list[tuple[str, Any, dict[str, Any]]] = [
    (CREATE, read_create, {"title": "T", "prompt": "P", "rrule": EVENING, "target": "new"}),
    (LIST, read_list, {}),
    (LIST, read_list, {"active": True, "limit": 500, "offset": 3}),
    (VIEW, read_view, {"id": "task-1"}),
    (
        EDIT,
        read_edit,
        {"id": "task-1", "action": "update", "title": "T", "expectedUpdatedAt": "2026-01-01T00:00:00.000Z"},
    ),
    (EDIT, read_edit, {"id": "task-1", "action": "update", "rrule": EVENING, "target": "new_once", "active": False}),
    (EDIT, read_edit, {"id": "task-1", "action": "delete"}),
]


@pytest.mark.parametrize(("tool", "read", "arguments"), GOOD)
def test_what_the_schema_takes_is_read(tool: str, read: Any, arguments: dict[str, Any]) -> None:
    """And one key more is refused by both."""
    Draft202012Validator(TOOLS[tool].input_schema).validate(arguments)
    read(arguments)
    more = {**arguments, "more": 1}
    assert not Draft202012Validator(TOOLS[tool].input_schema).is_valid(more)
    with pytest.raises(ToolError):
        read(more)


BAD: list[tuple[str, Any, Any]] = [
    (CREATE, read_create, {"title": "T", "prompt": "P", "rrule": EVENING}),
    (CREATE, read_create, {"title": 5, "prompt": "P", "rrule": EVENING, "target": "new"}),
    (CREATE, read_create, {"title": "T", "prompt": "P", "rrule": EVENING, "target": "old"}),
    (LIST, read_list, {"limit": 0}),
    (LIST, read_list, {"limit": 501}),
    (LIST, read_list, {"offset": -1}),
    (LIST, read_list, {"active": None}),
    (VIEW, read_view, {}),
    (VIEW, read_view, {"id": "x" * 65}),
    (EDIT, read_edit, {"id": "task-1"}),
    (EDIT, read_edit, {"id": "task-1", "action": "undo"}),
]


@pytest.mark.parametrize(("tool", "read", "arguments"), BAD)
def test_what_the_schema_refuses_is_refused(tool: str, read: Any, arguments: Any) -> None:
    """A client that checks first and one that does not see the same."""
    assert not Draft202012Validator(TOOLS[tool].input_schema).is_valid(arguments)
    with pytest.raises(ToolError):
        read(arguments)


@given(tasks)
def test_any_task_fits_the_answers_declared(task: Task) -> None:
    """Alone, and in a page; as JSON text too."""
    answer = json.loads(stringify(task_answer(task)))
    for tool in (CREATE, VIEW, EDIT):
        output(tool).validate(answer)
    output(LIST).validate(list_answer([task, DamagedTask("task-2", "x"), task], 3, ListTasks()))


@pytest.mark.parametrize("kind", list(RULES))
def test_a_task_with_fields_of_another_kind_does_not_fit(kind: str) -> None:
    """The schema of the answers is exact."""
    answer = task_answer(made(RULES[kind]))
    output(VIEW).validate(answer)
    for more in ({"everySeconds": 60, "expression": "x"}, {"extra": 1}, {"kind": "never"}, {"updatedAt": "now"}):
        assert not output(VIEW).is_valid({**answer, **more})


@pytest.mark.parametrize("tool", list(TOOLS))
def test_every_refusal_that_is_declared_fits(tool: str) -> None:
    """Each code in its shape, and no code that is not declared."""
    for code in DECLARED[tool]:
        refusal = {
            "schedule_not_found": not_found("x"),
            "schedule_conflict": conflict("x"),
            "persistence_uncertain": persistence_uncertain("list"),
        }.get(code.value, ToolError(code, "No."))
        output(tool).validate(error_answer(refusal, tool))
    output(tool).validate(persistence_uncertain("view", "x").answer())
    output(tool).validate(error_answer(ToolError(ReminderCode.INVALID_SELECTOR, "No."), tool))
    assert not output(tool).is_valid({"code": "invalid_selector", "message": "No."})
    assert not output(tool).is_valid({"id": "x", "code": "internal_error"})


def test_a_deletion_fits() -> None:
    """It is an answer of `schedule_edit` alone."""
    output(EDIT).validate(delete_answer("task-1"))
    assert not output(VIEW).is_valid(delete_answer("task-1"))


# Exports, by the clients' own types ---------------------------------------------------------


def test_mcp_takes_the_tools() -> None:
    """By the types of its package, which give the same JSON back; reminder tools do not say what they answer."""
    exported = mcp_tools(ALL)
    listed = mcp.types.ListToolsResult.model_validate({"tools": exported})
    assert [tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in listed.tools] == exported
    assert [tool.output_schema is None for tool in listed.tools] == [False] * 4 + [True] * 3


def test_mcp_takes_the_answers() -> None:
    """One text block of canonical JSON, and the same as structured content; a code is an error."""
    for answer in (task_answer(made()), not_found("x").answer()):
        result = mcp.types.CallToolResult.model_validate(mcp_result(answer))
        (block,) = result.content
        assert isinstance(block, mcp.types.TextContent)
        assert json.loads(block.text) == result.structured_content == answer
        assert list(json.loads(block.text)) == sorted(answer)
        assert result.is_error is ("code" in answer)


def strict(kind: Any, value: Any) -> None:
    """Check that a value has the shape of a TypedDict, and no key that the type does not know."""
    assert set(value) <= set(kind.__annotations__)
    TypeAdapter(kind).validate_python(value, strict=True)


def test_openai_takes_the_tools() -> None:
    """For chat completions and for responses, by the types of its package."""
    for tool in openai_chat_tools(ALL):
        strict(openai.types.chat.ChatCompletionFunctionToolParam, tool)
        strict(openai.types.shared_params.FunctionDefinition, tool["function"])
    for tool in openai_responses_tools(ALL):
        strict(openai.types.responses.FunctionToolParam, tool)
        openai.types.responses.FunctionTool.model_validate(tool, strict=True)


def test_anthropic_takes_the_tools() -> None:
    """By the types of its package."""
    for tool in anthropic_tools(ALL):
        strict(anthropic.types.ToolParam, tool)


def test_an_export_is_the_callers_own() -> None:
    """What is done to it does not change the tools."""
    for export in (mcp_tools, openai_chat_tools, openai_responses_tools, anthropic_tools):
        before = stringify(export(ALL))
        for tool in export(ALL):
            schema = tool.get("inputSchema") or tool.get("input_schema") or tool.get("parameters")
            (schema or tool["function"]["parameters"]).clear()
        assert stringify(export(ALL)) == before
