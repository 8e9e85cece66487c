"""The three reminder tools: arguments read strictly, answers built (SPEC 5.4 to 5.7).

Reading needs neither state nor clock, so it comes before the agent's serial queue (SPEC 5.6):
a malformed call is refused whatever else goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.json_text import printable_string
from whenidle_protocol.json_values import json_object
from whenidle_protocol.rules import after, at, every
from whenidle_protocol.schedule_change import AfterReminder, AtReminder, EveryReminder, encode_record
from whenidle_protocol.white_space import trim

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from whenidle_protocol.schedule_change import Reminder

MAX_PROMPT_BYTES: Final = 64 * 1024
"""The longest prompt, in bytes of UTF-8, unless the host says otherwise (SPEC 5.2)."""

NOT_FOUND: Final = "schedule_not_found"

_SHOWN_OF_A_NAME: Final = 40


@attrs.frozen
class After:
    """Due once, this many seconds after creation."""

    seconds: int


@attrs.frozen
class At:
    """Due once, at this UTC instant."""

    target: datetime


@attrs.frozen
class Every:
    """Due at this interval of seconds, aligned to creation."""

    seconds: int


@attrs.frozen
class CreateRequest:
    """A well-formed `schedule_create`; whether its target can be reached is known when it is created."""

    prompt: str
    rule: After | At | Every


@attrs.frozen
class ListRequest:
    """A well-formed `schedule_list`."""


@attrs.frozen
class DeleteRequest:
    """A well-formed `schedule_delete`."""

    id: str


Request: TypeAlias = CreateRequest | ListRequest | DeleteRequest


def read_create(arguments: Any, *, fixed_rate: bool = True, max_prompt_bytes: int = MAX_PROMPT_BYTES) -> CreateRequest:
    """Return the arguments of `schedule_create` as a request.

    A key counts as given whatever its value: null is not a way to leave a selector out.

    Raises:
        ToolError: `invalid_selector`, an unknown key, or not exactly one selector; `invalid_prompt`; and
            what is wrong with the selector's value: `invalid_rule`, `invalid_time_zone`,
            `frequency_too_high`, `time_out_of_range`.
    """
    selectors = ("after_seconds", "at", "every_seconds") if fixed_rate else ("after_seconds", "at")
    given = _object(arguments, "prompt", *selectors)
    prompt = _prompt(given.get("prompt"), max_prompt_bytes)
    chosen = [name for name in selectors if name in given]
    if len(chosen) != 1:
        raise ToolError(
            ReminderCode.INVALID_SELECTOR,
            f"Give exactly one of {_names(selectors, 'or')}; {_names(chosen, 'and') or 'none'} "
            f"{'is' if not chosen else 'are'} given.",
        )
    return CreateRequest(prompt, _rule(chosen[0], given[chosen[0]]))


def read_list(arguments: Any) -> ListRequest:
    """Return the arguments of `schedule_list` as a request.

    Raises:
        ToolError: `invalid_selector`, there are any.
    """
    _object(arguments)
    return ListRequest()


def read_delete(arguments: Any) -> DeleteRequest:
    """Return the arguments of `schedule_delete` as a request. Any string may be an id.

    Raises:
        ToolError: `invalid_selector`, an unknown key, or no id that is a string.
    """
    reminder_id = _object(arguments, "id").get("id")
    if type(reminder_id) is not str:
        raise ToolError(
            ReminderCode.INVALID_SELECTOR,
            'id must be the string that schedule_create or schedule_list gave, for example "schedule-1".',
        )
    return DeleteRequest(reminder_id)


def make_reminder(request: CreateRequest, reminder_id: str, now: datetime) -> Reminder:
    """Return the reminder that `request` makes when it is created at `now`.

    Raises:
        ToolError: `not_future` or `time_out_of_range`.
    """
    rule = request.rule
    if isinstance(rule, After):
        return AfterReminder(reminder_id, request.prompt, rule.seconds, after.first(rule.seconds, now))
    if isinstance(rule, At):
        return AtReminder(reminder_id, request.prompt, at.first(rule.target, now))
    return EveryReminder(reminder_id, request.prompt, rule.seconds, every.first(rule.seconds, now))


def reminder_answer(record: Reminder, now: datetime, encoded: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return `record` as `schedule_create` answers it, and as an item of a list (SPEC 5.5).

    `encoded` is what `encode_record` makes of it, where that is at hand.
    """
    return {
        **(encoded or encode_record(record)),
        "state": "scheduled" if record.scheduled_at > now else "overdue",
        "deliveryMode": "session-local",
    }


def list_answer(records: Iterable[Reminder], now: datetime) -> list[dict[str, Any]]:
    """Return the answer of `schedule_list`: each record, in the order given."""
    return [reminder_answer(record, now) for record in records]


def delete_answer(reminder_id: str, *, deleted: bool) -> dict[str, Any]:
    """Return the answer of `schedule_delete`."""
    return {"id": reminder_id, "deleted": True} if deleted else {"id": reminder_id, "deleted": False, "code": NOT_FOUND}


def persistence_uncertain(operation: str, reminder_id: str | None = None) -> ToolError:
    """Return the error of a call whose durability cannot be confirmed (SPEC 5.6).

    Args:
        operation: what was asked: `create`, `list` or `delete`.
        reminder_id: the reminder it was about, where there is one.
    """
    details = {"operation": operation} if reminder_id is None else {"operation": operation, "id": reminder_id}
    return ToolError(
        ReminderCode.PERSISTENCE_UNCERTAIN,
        "It could not be confirmed that the reminders are saved. List them before you try again: "
        "the change may have been made.",
        **details,
    )


def internal_error() -> ToolError:
    """Return the error of a call that failed for no fault of the caller; the cause goes to the log."""
    return ToolError(
        ReminderCode.INTERNAL_ERROR,
        "The reminder tool failed unexpectedly. List the reminders to see whether anything changed.",
    )


def _object(arguments: Any, *allowed: str) -> dict[str, Any]:
    given = json_object(arguments)
    if given is None:
        raise ToolError(ReminderCode.INVALID_SELECTOR, f"Give the arguments as an object; {_takes(allowed)}.")
    for name in given:
        if name not in allowed:
            shown = printable_string(str(name)[:_SHOWN_OF_A_NAME])
            raise ToolError(ReminderCode.INVALID_SELECTOR, f"There is no argument {shown}; {_takes(allowed)}.")
    return given


def _takes(allowed: tuple[str, ...]) -> str:
    return f"the arguments are {_names(allowed, 'and')}" if allowed else "there are no arguments"


def _prompt(value: Any, max_bytes: int) -> str:
    prompt = trim(value) if type(value) is str else ""
    if not prompt:
        raise ToolError(ReminderCode.INVALID_PROMPT, "prompt must be a string that is not blank.")
    if len(prompt) > max_bytes or len(prompt.encode("utf-8", "surrogatepass")) > max_bytes:
        raise ToolError(
            ReminderCode.INVALID_PROMPT,
            f"prompt is too long; it may have at most {max_bytes} bytes of UTF-8. Save a shorter one.",
        )
    return prompt


def _rule(selector: str, value: Any) -> After | At | Every:
    if selector == "after_seconds":
        return After(after.read_seconds(value))
    if selector == "at":
        return At(at.read_instant(value))
    return Every(every.read_seconds(value))


def _names(names: Iterable[str], conjunction: str) -> str:
    *most, last = list(names) or [""]
    return f"{', '.join(most)} {conjunction} {last}" if most else last
