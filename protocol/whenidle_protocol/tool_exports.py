"""Tool schemas in the shapes that model and tool clients take (SPEC 6.12).

Plain JSON objects: none of the clients' packages is needed to make them. Equal schemas give equal objects
with their keys in the same order, so that their text is the same byte for byte.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from whenidle_protocol.task_json import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whenidle_protocol.tool_schemas import ToolSchema


def mcp_tools(tools: Iterable[ToolSchema]) -> list[dict[str, Any]]:
    """Return `tools` as the tools of an MCP `tools/list` result."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": copy.deepcopy(tool.input_schema),
            **({} if tool.output_schema is None else {"outputSchema": copy.deepcopy(tool.output_schema)}),
        }
        for tool in tools
    ]


def mcp_result(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's answer as an MCP `tools/call` result: one text block, and the same as structured content.

    An answer with a code is marked as an error, so that a model takes notice.
    """
    return {
        "content": [{"type": "text", "text": canonical_json(answer)}],
        "structuredContent": answer,
        "isError": "code" in answer,
    }


def openai_chat_tools(tools: Iterable[ToolSchema]) -> list[dict[str, Any]]:
    """Return `tools` as the `tools` of an OpenAI chat completion."""
    return [{"type": "function", "function": _openai_function(tool)} for tool in tools]


def openai_responses_tools(tools: Iterable[ToolSchema]) -> list[dict[str, Any]]:
    """Return `tools` as the `tools` of an OpenAI response."""
    return [{"type": "function", **_openai_function(tool)} for tool in tools]


def anthropic_tools(tools: Iterable[ToolSchema]) -> list[dict[str, Any]]:
    """Return `tools` as the `tools` of an Anthropic message."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": copy.deepcopy(tool.input_schema)}
        for tool in tools
    ]


def _openai_function(tool: ToolSchema) -> dict[str, Any]:
    # Strict mode has no optional argument, and the tools have some.
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": copy.deepcopy(tool.input_schema),
        "strict": False,
    }
