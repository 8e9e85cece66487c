"""Again and again at a fixed interval, aligned to creation (SPEC 5.4, 5.8).

The past is never enumerated: whatever number of intervals went by, the latest due occurrence
and the next one are one division away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from whenidle_clock.instants import MAX_MILLIS, from_millis, to_millis
from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.json_values import safe_integer
from whenidle_protocol.schedule_change import MIN_EVERY_SECONDS

if TYPE_CHECKING:
    from datetime import datetime


@attrs.frozen
class Step:
    """What a moment of decision makes of an overdue fixed interval."""

    occurrence_at: datetime
    """The latest occurrence that is due."""
    next_at: datetime | None
    """The first occurrence after the decision; None when there is none before the year 10000."""
    missed: int
    """How many earlier occurrences the delivered one stands for; 0 when it was the only one due."""


def read_seconds(value: Any) -> int:
    """Return the argument `every_seconds` as a number of seconds.

    Raises:
        ToolError: `invalid_rule`, it is not a safe integer; `frequency_too_high`, it is below 300.
    """
    seconds = safe_integer(value)
    if seconds is None:
        raise ToolError(
            ReminderCode.INVALID_RULE,
            f"every_seconds must be a whole number of seconds from {MIN_EVERY_SECONDS} on, for example 3600.",
        )
    if seconds < MIN_EVERY_SECONDS:
        raise ToolError(
            ReminderCode.FREQUENCY_TOO_HIGH,
            f"every_seconds must be at least {MIN_EVERY_SECONDS} (five minutes).",
        )
    return seconds


def first(seconds: int, now: datetime) -> datetime:
    """Return the first target of a reminder created at `now`.

    Raises:
        ToolError: `time_out_of_range`, the target lies beyond the year 9999.
    """
    target = _at(to_millis(now) + seconds * 1000)
    if target is None:
        raise ToolError(
            ReminderCode.TIME_OUT_OF_RANGE,
            "The first occurrence would be after the year 9999; use a shorter interval.",
        )
    return target


def step(scheduled_at: datetime, seconds: int, accepted_at: datetime) -> Step:
    """Return what is due at `accepted_at` of an interval whose next target is `scheduled_at`.

    Raises:
        ValueError: nothing is due, `accepted_at` lies before `scheduled_at`.
    """
    target, interval = to_millis(scheduled_at), seconds * 1000
    missed = (to_millis(accepted_at) - target) // interval
    if missed < 0:
        raise ValueError("accepted before the occurrence was due")
    latest = target + missed * interval
    return Step(from_millis(latest), _at(latest + interval), missed)


def preview(scheduled_at: datetime, seconds: int, count: int) -> tuple[datetime, ...]:
    """Return the next `count` targets from `scheduled_at` on, fewer where the year 9999 ends them."""
    start, interval = to_millis(scheduled_at), seconds * 1000
    fitting = min(count, (MAX_MILLIS - start) // interval + 1)
    return tuple(from_millis(start + n * interval) for n in range(fitting))


def _at(millis: int) -> datetime | None:
    return from_millis(millis) if millis <= MAX_MILLIS else None
