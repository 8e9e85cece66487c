"""The answers of the task tools as JSON Schema 2020-12 (SPEC 6.3, 6.9, 6.12).

The root says `type: object`, as MCP asks of an output schema, and lists what an answer can be; each of
those is closed. A task is told apart by its `kind`, and has the timing fields of that kind alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from whenidle_protocol.errors import TaskCode
from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.task_record import TargetKind, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER}
_INSTANT: Final = {
    "type": "string",
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
}
_SECONDS: Final = {"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER}
_TIME: Final = {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"}
_WEEKDAYS: Final = {
    "type": "array",
    "items": {"type": "integer", "minimum": 1, "maximum": 7},
    "minItems": 1,
    "uniqueItems": True,
}
_TIMING: Final[dict[str, dict[str, Any]]] = {
    "after": {"afterSeconds": _SECONDS},
    "at": {},
    "every": {"everySeconds": _SECONDS},
    "daily": {"time": _TIME, "timeZone": _TEXT},
    "weekly": {"time": _TIME, "timeZone": _TEXT, "weekdays": _WEEKDAYS},
    "cron": {"expression": _TEXT, "timeZone": _TEXT},
    "rrule": {"rrule": _TEXT, "timeZone": _TEXT},
}
_BY_ID: Final = (TaskCode.SCHEDULE_NOT_FOUND, TaskCode.SCHEDULE_CONFLICT)
"""Answered as `{id, code}`."""


def answer_schema(codes: Sequence[TaskCode], *results: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's answers: its results, and refusals with these codes."""
    by_id = [code.value for code in codes if code in _BY_ID]
    plain = [code.value for code in codes if code not in {*_BY_ID, TaskCode.PERSISTENCE_UNCERTAIN}]
    answers = [
        *results,
        *([_closed({"id": _TEXT, "code": {"enum": by_id}})] if by_id else []),
        _closed({"code": {"enum": plain}, "message": _TEXT}),
        _closed(
            {
                "code": {"const": TaskCode.PERSISTENCE_UNCERTAIN.value},
                "message": _TEXT,
                "operation": _TEXT,
                "id": _TEXT,
            },
            optional=("id",),
        ),
    ]
    return {"$schema": DIALECT, "type": "object", "anyOf": answers, "$defs": {"task": _task()}}


def task() -> dict[str, Any]:
    """Return the schema of a task."""
    return {"$ref": "#/$defs/task"}


def page() -> dict[str, Any]:
    """Return the schema of a page of tasks."""
    return _closed(
        {
            "items": {"type": "array", "items": {"anyOf": [task(), _damaged()]}},
            "shown": _COUNT,
            "total": _COUNT,
            "limit": _COUNT,
            "offset": _COUNT,
        }
    )


def _damaged() -> dict[str, Any]:
    """Return the schema of a task on a page that cannot be read."""
    return _closed({"id": _TEXT, "code": {"const": TaskCode.INTERNAL_ERROR.value}, "message": _TEXT})


def deletion() -> dict[str, Any]:
    """Return the schema of a deletion's answer."""
    return _closed({"id": _TEXT, "deleted": {"const": True}})


def _task() -> dict[str, Any]:
    return {"oneOf": [_task_of(kind, timing) for kind, timing in _TIMING.items()]}


def _task_of(kind: str, timing: dict[str, Any]) -> dict[str, Any]:
    return _closed(
        {
            "id": _TEXT,
            "title": _TEXT,
            "prompt": _TEXT,
            "kind": {"const": kind},
            **timing,
            "scheduledAt": _INSTANT,
            "scheduledAtLocal": _TEXT,
            "target": {"enum": [each.value for each in TargetKind]},
            "targetSessionId": _TEXT,
            "status": {"enum": [each.value for each in TaskStatus]},
            "updatedAt": _INSTANT,
            "lastDelivery": _closed({"scheduledAt": _INSTANT, "deliveredAt": _INSTANT, "targetSessionId": _TEXT}),
            "lastFailure": _closed(
                {"scheduledAt": _INSTANT, "failedAt": _INSTANT, "targetSessionId": _TEXT, "reason": _TEXT}
            ),
        },
        optional=("targetSessionId", "lastDelivery", "lastFailure"),
    )


def _closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }
