"""Once, a number of seconds after creation (SPEC 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_clock.instants import InstantOutOfRange, from_millis, to_millis
from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.json_values import MAX_SAFE_INTEGER, safe_integer

if TYPE_CHECKING:
    from datetime import datetime


def read_seconds(value: Any) -> int:
    """Return the argument `after_seconds` as a number of seconds.

    Raises:
        ToolError: `invalid_rule`, it is not a positive safe integer.
    """
    seconds = safe_integer(value)
    if seconds is None or seconds < 1:
        raise ToolError(
            ReminderCode.INVALID_RULE,
            f"after_seconds must be a whole number of seconds from 1 to {MAX_SAFE_INTEGER}, for example 90.",
        )
    return seconds


def first(seconds: int, now: datetime) -> datetime:
    """Return the target of a reminder created at `now`.

    Raises:
        ToolError: `time_out_of_range`, the target lies beyond the year 9999.
    """
    try:
        return from_millis(to_millis(now) + seconds * 1000)
    except InstantOutOfRange:
        raise ToolError(
            ReminderCode.TIME_OUT_OF_RANGE,
            "The reminder would be due after the year 9999; use fewer seconds.",
        ) from None
