"""The arguments of the four task tools, read strictly (SPEC 6.1 to 6.5).

The closed set of codes has none for a call that is not formed as the schema says: an unknown argument, no
id, a limit of 0. Such a call is answered `internal_error`, as SPEC 6.9 has it for failures without a
declared code, with a message that says what to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from whenidle_clock.instants import parse_instant
from whenidle_protocol.errors import TaskCode, ToolError
from whenidle_protocol.json_text import printable_string
from whenidle_protocol.json_values import json_object, safe_integer
from whenidle_protocol.task_answers import internal_error, not_found, subagent_session
from whenidle_protocol.task_ids import is_task_id
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MAX_TITLE,
    CreateTask,
    DeleteTask,
    ListTasks,
    UpdateTask,
    ViewTask,
)
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.tools import MAX_PROMPT_BYTES
from whenidle_protocol.white_space import trim

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from whenidle_protocol.rules.rrule import RRuleRule
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import Caller

_PATCH: Final = ("title", "prompt", "rrule", "target", "active")
_SHOWN_OF_A_NAME: Final = 40


def check_caller(caller: Caller | None) -> Caller:
    """Return the calling agent, if it may call task tools at all; this comes before any other check (SPEC 6.1).

    Raises:
        ToolError: `internal_error`, no agent is calling; `subagent_session`, a delegated one is.
    """
    if caller is None:
        raise internal_error()
    if caller.delegation_depth > 0:
        raise subagent_session()
    return caller


def check_visible(task: Task | None, task_id: str, *, allowed: bool = True) -> Task:
    """Return the task that a call is about, if it exists and the host lets the caller have it (SPEC 6.1).

    Args:
        task: the task as read; None if there is none.
        task_id: what the call named it.
        allowed: what the host's authorisation hook said. What it hides is not told from what does not exist.

    Raises:
        ToolError: `schedule_not_found`.
    """
    if task is None or not allowed:
        raise not_found(task_id)
    return task


def read_create(arguments: Any, *, max_prompt_bytes: int = MAX_PROMPT_BYTES) -> CreateTask:
    """Return the arguments of `schedule_create` as a request; whether the rule goes on is known when it is made.

    Raises:
        ToolError: `invalid_title`, `invalid_prompt`, `invalid_target`, or what is wrong with the rule:
            `invalid_rule`, `invalid_time_zone`, `time_out_of_range`, `frequency_too_high`; `internal_error`,
            the call is malformed.
    """
    given = _object(arguments, "title", "prompt", "rrule", "target")
    return CreateTask(
        check_title(given.get("title")),
        check_prompt(given.get("prompt"), max_prompt_bytes),
        check_rrule(given.get("rrule")),
        check_target(given.get("target")),
    )


def read_list(arguments: Any) -> ListTasks:
    """Return the arguments of `schedule_list` as a request.

    Raises:
        ToolError: `internal_error`, the call is malformed.
    """
    given = _object(arguments, "active", "limit", "offset")
    limit = safe_integer(given.get("limit", DEFAULT_LIMIT))
    if limit is None or not 1 <= limit <= MAX_LIMIT:
        raise _malformed(f"limit must be a whole number from 1 to {MAX_LIMIT}.")
    offset = safe_integer(given.get("offset", 0))
    if offset is None or offset < 0:
        raise _malformed("offset must be a whole number from 0 on.")
    return ListTasks(_flag(given), limit, offset)


def read_view(arguments: Any) -> ViewTask:
    """Return the arguments of `schedule_view` as a request.

    Raises:
        ToolError: `schedule_not_found`, the id can be none; `internal_error`, the call is malformed.
    """
    return ViewTask(_id(_object(arguments, "id")))


def read_edit(arguments: Any, *, max_prompt_bytes: int = MAX_PROMPT_BYTES) -> UpdateTask | DeleteTask:
    """Return the arguments of `schedule_edit` as a request.

    Raises:
        ToolError: as `read_create` and `read_view`; `internal_error`, the call is malformed: an update
            without a field to change, a delete with one.
    """
    given = _object(arguments, "id", "action", *_PATCH, "expectedUpdatedAt")
    action = given.get("action")
    patch = [name for name in _PATCH if name in given]
    if action == "delete":
        if patch:
            raise _malformed(f"action delete takes no {_names(_PATCH, 'or')}; {_names(patch, 'and')} given.")
        return DeleteTask(_id(given), _version(given))
    if action != "update":
        raise _malformed("action must be update or delete.")
    if not patch:
        raise _malformed(f"action update needs at least one of {_names(_PATCH, 'and')}.")
    return UpdateTask(
        _id(given),
        title=check_title(given["title"]) if "title" in given else None,
        prompt=check_prompt(given["prompt"], max_prompt_bytes) if "prompt" in given else None,
        rule=check_rrule(given["rrule"]) if "rrule" in given else None,
        target=check_target(given["target"]) if "target" in given else None,
        active=_flag(given),
        expected_updated_at=_version(given),
    )


def check_title(value: Any) -> str:
    """Return a title without the white space around it.

    Raises:
        ToolError: `invalid_title`.
    """
    title = trim(value) if type(value) is str else ""
    if not title:
        raise ToolError(TaskCode.INVALID_TITLE, "title must be a string that is not blank.")
    if len(title) > MAX_TITLE:
        raise ToolError(
            TaskCode.INVALID_TITLE, f"title is too long; it may have at most {MAX_TITLE} characters. Shorten it."
        )
    return title


def check_prompt(value: Any, max_bytes: int = MAX_PROMPT_BYTES) -> str:
    """Return a prompt without the white space around it.

    Raises:
        ToolError: `invalid_prompt`.
    """
    prompt = trim(value) if type(value) is str else ""
    if not prompt:
        raise ToolError(TaskCode.INVALID_PROMPT, "prompt must be a string that is not blank.")
    if len(prompt) > max_bytes or len(prompt.encode("utf-8", "surrogatepass")) > max_bytes:
        raise ToolError(
            TaskCode.INVALID_PROMPT,
            f"prompt is too long; it may have at most {max_bytes} bytes of UTF-8. Save a shorter one.",
        )
    return prompt


def check_rrule(value: Any) -> RRuleRule:
    """Return the rule that a text says (SPEC 6.6).

    Raises:
        ToolError: `invalid_rule`, `invalid_time_zone`, `time_out_of_range` or `frequency_too_high`.
    """
    if type(value) is not str:
        raise ToolError(
            TaskCode.INVALID_RULE,
            'rrule must be a string of two lines like "DTSTART;TZID=Europe/Paris:20300131T090000" and '
            '"RRULE:FREQ=DAILY".',
        )
    return read_rrule(value)


def check_target(value: Any) -> TargetKind:
    """Return a target.

    Raises:
        ToolError: `invalid_target`.
    """
    for kind in TargetKind:
        if type(value) is str and value == kind.value:
            return kind
    raise ToolError(TaskCode.INVALID_TARGET, f"target must be {_names(TargetKind, 'or')}.")


def _id(given: dict[str, Any]) -> str:
    value = given.get("id")
    if type(value) is not str:
        raise _malformed("id must be the string that schedule_create or schedule_list gave.")
    if not is_task_id(value):
        raise not_found(value)
    return value


def _version(given: dict[str, Any]) -> datetime | None:
    if "expectedUpdatedAt" not in given:
        return None
    value = given["expectedUpdatedAt"]
    try:
        return parse_instant(value if type(value) is str else "")
    except ValueError:
        raise _malformed(
            'expectedUpdatedAt must be the updatedAt of the task as you read it, like "2030-01-31T09:00:00.000Z".'
        ) from None


def _flag(given: dict[str, Any]) -> bool | None:
    value = given.get("active")
    if "active" in given and type(value) is not bool:
        raise _malformed("active must be true or false.")
    return value


def _object(arguments: Any, *allowed: str) -> dict[str, Any]:
    takes = f"{'the arguments are' if len(allowed) > 1 else 'the argument is'} {_names(allowed, 'and')}"
    given = json_object(arguments)
    if given is None:
        raise _malformed(f"Give the arguments as an object; {takes}.")
    for name in given:
        if name not in allowed:
            shown = printable_string(str(name)[:_SHOWN_OF_A_NAME])
            raise _malformed(f"There is no argument {shown}; {takes}.")
    return given


def _malformed(message: str) -> ToolError:
    return ToolError(TaskCode.INTERNAL_ERROR, message)


def _names(names: Iterable[str], conjunction: str) -> str:
    *most, last = names
    return f"{', '.join(most)} {conjunction} {last}" if most else last
