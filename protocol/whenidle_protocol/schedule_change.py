"""`schedule/change` version 1: the records of reminders and the three changes to them (SPEC 5.2).

The field names on the wire are given once, here. Reading is exact: no other key, no other type,
no other version.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - `wire` resolves the fields' types
from typing import Any, ClassVar, TypeAlias

import attrs
from attrs import field

from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.json_values import MAX_SAFE_INTEGER, json_object, safe_integer
from whenidle_protocol.white_space import trim
from whenidle_protocol.wire import structure, unstructure

VERSION = 1
MIN_EVERY_SECONDS = 300
"""The shortest interval of an `every` reminder (SPEC 5.4)."""
MAX_EVERY_SECONDS = MAX_SAFE_INTEGER // 1000
"""The longest: in milliseconds it is still a safe integer. Existing logs were held to this."""


def _trimmed(_: Any, attribute: attrs.Attribute[str], value: str) -> None:
    if not value or trim(value) != value:
        raise ValueError(f"{attribute.name} is empty or has white space around it")


def _between(low: int, high: int) -> Any:
    def check(_: Any, attribute: attrs.Attribute[int], value: int) -> None:
        if not low <= value <= high:
            raise ValueError(f"{attribute.name} is {value}, not between {low} and {high}")

    return check


@attrs.frozen
class AfterReminder:
    """Due once, `after_seconds` after it was created."""

    kind: ClassVar[str] = "after"
    id: str = field(validator=_trimmed)
    prompt: str = field(validator=_trimmed)
    after_seconds: int = field(validator=_between(1, MAX_SAFE_INTEGER))
    scheduled_at: datetime
    """The target: UTC, whole milliseconds."""


@attrs.frozen
class AtReminder:
    """Due once, at an instant. How it was written, and in which zone, is not kept (SPEC 5.4)."""

    kind: ClassVar[str] = "at"
    id: str = field(validator=_trimmed)
    prompt: str = field(validator=_trimmed)
    scheduled_at: datetime
    """The target: UTC, whole milliseconds."""


@attrs.frozen
class EveryReminder:
    """Due every `every_seconds`, aligned to its creation."""

    kind: ClassVar[str] = "every"
    id: str = field(validator=_trimmed)
    prompt: str = field(validator=_trimmed)
    every_seconds: int = field(validator=_between(MIN_EVERY_SECONDS, MAX_EVERY_SECONDS))
    scheduled_at: datetime
    """The next target not yet delivered: UTC, whole milliseconds."""


Reminder: TypeAlias = AfterReminder | AtReminder | EveryReminder


@attrs.frozen
class Create:
    """A reminder was created."""

    schedule: Reminder


@attrs.frozen
class Delete:
    """A reminder was deleted before it was due, or between two occurrences."""

    id: str = field(validator=_trimmed)


@attrs.frozen
class Dispatch:
    """What was due of a reminder has entered the inbox.

    `accepted_at` is the instant of that decision, and is given exactly for an `every` reminder.
    """

    id: str = field(validator=_trimmed)
    accepted_at: datetime | None = None


Change: TypeAlias = Create | Delete | Dispatch

_KINDS: dict[str, type[Any]] = {shape.kind: shape for shape in (AfterReminder, AtReminder, EveryReminder)}
_OPERATIONS: dict[str, type[Any]] = {"create": Create, "delete": Delete, "dispatch": Dispatch}
_OPERATION_OF = {shape: name for name, shape in _OPERATIONS.items()}


def encode_record(record: Reminder) -> dict[str, Any]:
    """Return `record` as the JSON object of SPEC 5.2: id, kind, prompt, the kind's own field, scheduledAt."""
    fields = unstructure(record)
    return {"id": fields.pop("id"), "kind": record.kind, **fields}


def decode_record(payload: Any) -> Reminder:
    """Return the reminder that a JSON value stands for.

    Raises:
        CorruptLog: it is not exactly one of the three shapes of SPEC 5.2.
    """
    fields = json_object(payload) or {}
    kind = fields.get("kind")
    shape = _KINDS.get(kind) if type(kind) is str else None
    if shape is None:
        raise CorruptLog("is not an object whose kind is after, at or every @ $.schedule")
    reminder: Reminder = structure({key: value for key, value in fields.items() if key != "kind"}, shape)
    return reminder


def encode_change(change: Change) -> dict[str, Any]:
    """Return `change` as the payload of a `schedule/change` event."""
    payload: dict[str, Any] = {"version": VERSION, "operation": _OPERATION_OF[type(change)]}
    if isinstance(change, Create):
        payload["schedule"] = encode_record(change.schedule)
    else:
        payload.update(unstructure(change))
    return payload


def decode_change(payload: Any) -> Change:
    """Return the change that the payload of a `schedule/change` event stands for.

    Raises:
        CorruptLog: another version, operation, field or type; `why` says which.
    """
    fields = json_object(payload)
    if fields is None:
        raise CorruptLog("schedule/change: is not an object @ $")
    if safe_integer(fields.get("version")) != VERSION:
        raise CorruptLog(f"schedule/change: version is not {VERSION} @ $.version")
    operation = fields.get("operation")
    shape = _OPERATIONS.get(operation) if type(operation) is str else None
    if shape is None:
        raise CorruptLog("schedule/change: operation is not create, delete or dispatch @ $.operation")
    rest = {key: value for key, value in fields.items() if key not in {"version", "operation"}}
    try:
        if shape is Create:
            return Create(_only_schedule(rest))
        change: Change = structure(rest, shape)
    except CorruptLog as error:
        raise CorruptLog(f"schedule/change: {error.why}") from error
    return change


def _only_schedule(rest: dict[str, Any]) -> Reminder:
    if rest.keys() != {"schedule"}:
        raise CorruptLog("a create has the keys version, operation and schedule, and no other @ $")
    return decode_record(rest["schedule"])
