"""What a model is told of the four task tools: JSON Schema 2020-12 of calls and answers (SPEC 6.1 to 6.5, 6.12).

Equal configuration gives byte-identical text, because prompt caches depend on it. What goes together in a
`schedule_edit` is said in words and checked when the call is read: several model APIs refuse `oneOf` at
the top of a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from whenidle_protocol.errors import TaskCode
from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.task_ids import MAX_TASK_ID
from whenidle_protocol.task_output_schemas import DIALECT, answer_schema, deletion, page, task
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import DEFAULT_LIMIT, MAX_LIMIT, MAX_TITLE
from whenidle_protocol.task_settings import MIN_SPACING_SECONDS
from whenidle_protocol.tool_schemas import ToolSchema

if TYPE_CHECKING:
    from whenidle_protocol.task_settings import TaskSettings

CREATE: Final = "schedule_create"
LIST: Final = "schedule_list"
VIEW: Final = "schedule_view"
EDIT: Final = "schedule_edit"

_ANY = (TaskCode.SUBAGENT_SESSION, TaskCode.PERSISTENCE_UNCERTAIN, TaskCode.INTERNAL_ERROR)
_RULE = (
    TaskCode.INVALID_TITLE,
    TaskCode.INVALID_PROMPT,
    TaskCode.INVALID_RULE,
    TaskCode.INVALID_TIME_ZONE,
    TaskCode.INVALID_TARGET,
    TaskCode.NOT_FUTURE,
    TaskCode.TIME_OUT_OF_RANGE,
    TaskCode.FREQUENCY_TOO_HIGH,
    TaskCode.LIMIT_REACHED,
)
DECLARED: Final[dict[str, tuple[TaskCode, ...]]] = {
    CREATE: (*_RULE, *_ANY),
    LIST: _ANY,
    VIEW: (TaskCode.SCHEDULE_NOT_FOUND, *_ANY),
    EDIT: (*_RULE, TaskCode.SCHEDULE_NOT_FOUND, TaskCode.SCHEDULE_CONFLICT, *_ANY),
}
"""The codes each tool may answer with; any other becomes `internal_error` (SPEC 6.9)."""

_TASK_TEXT = (
    "kind and its timing fields, scheduledAt (UTC: the next occurrence, or the last of an ended task), "
    "scheduledAtLocal, target, status (active, paused or ended), updatedAt and lastDelivery"
)


def task_tools(settings: TaskSettings) -> tuple[ToolSchema, ...]:
    """Return the schemas of the task tools on a host with these settings."""
    return (
        ToolSchema(
            CREATE,
            "Schedule a task of this host: its prompt will be given to an agent as an instruction at the times of "
            "the rule. Only at the user's explicit request. Answers the task with its id, "
            f"{_TASK_TEXT}; or an object with code and message.",
            _object(_fields(settings), ["title", "prompt", "rrule", "target"]),
            answer_schema(DECLARED[CREATE], task()),
        ),
        ToolSchema(
            LIST,
            "List the scheduled tasks of this host, whichever session made them: the active ones by next "
            "occurrence, then the paused and ended ones, newest first. Answers items, shown, total, limit and "
            "offset.",
            _object(_list_fields(), []),
            answer_schema(DECLARED[LIST], page()),
        ),
        ToolSchema(
            VIEW,
            f"Show one scheduled task: id, title, prompt, {_TASK_TEXT}. Answers code schedule_not_found if there "
            "is none.",
            _object({"id": _id()}, ["id"]),
            answer_schema(DECLARED[VIEW], task()),
        ),
        ToolSchema(
            EDIT,
            "Change or delete a scheduled task, only at the user's explicit request. update changes the fields "
            "that are given, at least one, and answers the task; delete takes none of them and does not take "
            "back what was delivered. Answers code schedule_not_found if there is no such task.",
            _object(_edit_fields(settings), ["id", "action"]),
            answer_schema(DECLARED[EDIT], task(), deletion()),
        ),
    )


def _fields(settings: TaskSettings) -> dict[str, Any]:
    return {
        "title": {
            "type": "string",
            "minLength": 1,
            "description": f"A short name for people: not blank, at most {MAX_TITLE} characters.",
        },
        "prompt": {
            "type": "string",
            "minLength": 1,
            "description": "What the agent is to do each time, written so that it can be understood without this "
            f"conversation: not blank, at most {settings.max_prompt_bytes} bytes of UTF-8.",
        },
        "rrule": {
            "type": "string",
            "description": "When, as two lines of RFC 5545: DTSTART in UTC or with a zone, and RRULE with a FREQ from "
            "MINUTELY to YEARLY. For example "
            '"DTSTART;TZID=Europe/Paris:20300131T090000\\nRRULE:FREQ=WEEKLY;BYDAY=MO,TH", or for once '
            '"DTSTART:20300131T080000Z\\nRRULE:FREQ=DAILY;COUNT=1". COUNT counts from DTSTART; UNTIL is in UTC.',
        },
        "target": {
            "type": "string",
            "enum": [kind.value for kind in TargetKind],
            "description": _target_text(settings),
        },
    }


def _target_text(settings: TaskSettings) -> str:
    text = (
        "Where the prompt goes: this_session, the session that calls; new_once, one new session for all "
        "occurrences; new, a new session for each occurrence."
    )
    if settings.spacing_seconds <= MIN_SPACING_SECONDS:
        return text
    return f"{text} With new, occurrences must be at least {settings.spacing_seconds} seconds apart."


def _edit_fields(settings: TaskSettings) -> dict[str, Any]:
    fields = _fields(settings)
    fields["rrule"]["description"] += " It begins now, and revives a task that has ended."
    fields["target"]["description"] += " Left out, the destination stays as it is."
    return {
        "id": _id(),
        "action": {"type": "string", "enum": ["update", "delete"]},
        **fields,
        "active": {
            "type": "boolean",
            "description": "false pauses the task: nothing comes due and nothing accumulates. true resumes it at its "
            "next occurrence; one that has ended needs a new rrule in the same call.",
        },
        "expectedUpdatedAt": {
            "type": "string",
            "description": "The updatedAt of the task as you read it: if it has changed since, nothing is done and "
            "the answer has code schedule_conflict.",
        },
    }


def _list_fields() -> dict[str, Any]:
    return {
        "active": {"type": "boolean", "description": "true: only active tasks; false: only the others."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "default": DEFAULT_LIMIT,
            "description": "How many to answer at most.",
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_SAFE_INTEGER,
            "default": 0,
            "description": "How many to pass over first.",
        },
    }


def _id() -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_TASK_ID,
        "description": "The id that schedule_create or schedule_list gave.",
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
