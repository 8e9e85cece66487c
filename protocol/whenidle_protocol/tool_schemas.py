"""What a model is told of the three reminder tools: JSON Schema 2020-12 (SPEC 5.4, 5.5, 6.12).

Equal configuration gives byte-identical text, because prompt caches depend on it. That exactly one
selector is given is said in words and checked when the call is read: several model APIs refuse
`oneOf` at the top of a schema.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.schedule_change import MIN_EVERY_SECONDS

CREATE: Final = "schedule_create"
LIST: Final = "schedule_list"
DELETE: Final = "schedule_delete"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


@attrs.frozen
class ToolSchema:
    """One tool as a model sees it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    """JSON Schema of the arguments; a new object for each caller."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of every answer, refusals included; None where the tool does not say."""


def reminder_tools(*, fixed_rate: bool = True, max_prompt_bytes: int) -> tuple[ToolSchema, ...]:
    """Return the schemas of the reminder tools.

    Args:
        fixed_rate: False leaves out `every_seconds`: the one-shot protocol alone (SPEC 5.4).
        max_prompt_bytes: the longest prompt the host takes, in bytes of UTF-8.
    """
    return (
        ToolSchema(
            CREATE,
            _create_text(fixed_rate=fixed_rate),
            _create_schema(fixed_rate=fixed_rate, max_prompt_bytes=max_prompt_bytes),
        ),
        ToolSchema(
            LIST,
            "List the active reminders of this session in the order they were made. Each has its id, "
            "kind, prompt, scheduledAt (UTC) and state: scheduled, or overdue when it is due and waits for "
            "the agent to be idle.",
            _object({}),
        ),
        ToolSchema(
            DELETE,
            "Delete a reminder of this session so that it does not come due (again). Answers deleted: "
            "true, or deleted: false with code schedule_not_found if no active reminder has that id.",
            _object(
                {
                    "id": {
                        "type": "string",
                        "description": "The id that schedule_create or schedule_list gave.",
                    }
                }
            ),
        ),
    )


def _create_text(*, fixed_rate: bool) -> str:
    selectors = "after_seconds, at or every_seconds" if fixed_rate else "after_seconds or at"
    return (
        "Save a prompt to be shown in this session later, once the time has come and the agent is idle. "
        f"Give the prompt and exactly one of {selectors}. Answers the reminder with its id and scheduledAt "
        "(UTC), or an object with code and message."
    )


def _create_schema(*, fixed_rate: bool, max_prompt_bytes: int) -> dict[str, Any]:
    properties = {
        "prompt": {
            "type": "string",
            "description": "What to remind of: not blank, at most "
            f"{max_prompt_bytes} bytes of UTF-8. White space around it is removed.",
        },
        "after_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_SAFE_INTEGER,
            "description": "Once, this many seconds from now.",
        },
        "at": {
            "description": "Once, at this time, which must be in the future.",
            "anyOf": [_instant_schema(), _local_schema()],
        },
    }
    if fixed_rate:
        properties["every_seconds"] = {
            "type": "integer",
            "minimum": MIN_EVERY_SECONDS,
            "maximum": MAX_SAFE_INTEGER,
            "description": "Again and again at this interval, the first time one interval from now.",
        }
    return _object(properties, required=["prompt"])


def _instant_schema() -> dict[str, Any]:
    return {
        "type": "string",
        "pattern": rf"^{_DATE}T{_TIME}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
        "description": "An instant with its offset, for example 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+01:00.",
    }


def _local_schema() -> dict[str, Any]:
    properties = {
        "date": {"type": "string", "pattern": f"^{_DATE}$", "description": "YYYY-MM-DD"},
        "time": {
            "type": "string",
            "pattern": f"^{_TIME}$",
            "description": "HH:mm:ss, optionally with milliseconds",
        },
        "time_zone": {"type": "string", "description": "UTC or an IANA zone, for example Europe/Paris."},
    }
    schema = _object(properties)
    del schema["$schema"]
    return {**schema, "description": "A local date and time with its zone."}


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "$schema": _DIALECT,
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
