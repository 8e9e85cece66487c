"""Once, at an instant written in full or as a local date, time and zone (SPEC 5.4)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from whenidle_clock.instants import InstantOutOfRange, from_millis, to_millis
from whenidle_clock.zones import LocalTimeInGap, UnknownZone, load_zone, resolve_once
from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.json_values import json_object

_DATE = r"(\d{4})-(\d{2})-(\d{2})"
_TIME = r"(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,3}))?"
_LOCAL_DATE = re.compile(_DATE, re.ASCII)
_LOCAL_TIME = re.compile(_TIME, re.ASCII)
_INSTANT = re.compile(rf"{_DATE}T{_TIME}(?:Z|([+-])(\d{{2}}):(\d{{2}}))", re.ASCII)

_MAX_HOUR, _MAX_MINUTE = 23, 59
_LOCAL_KEYS = {"date", "time", "time_zone"}
_SHAPES = (
    'at must be a string like "2030-01-31T09:00:00Z" or "2030-01-31T09:00:00+01:00", or an object with '
    'exactly date ("2030-01-31"), time ("09:00:00") and time_zone ("Europe/Paris").'
)
_NO_ZONE = 'time_zone must be "UTC" or an IANA zone like "Europe/Paris"; abbreviations and offsets are not zones.'
_IN_GAP = "at names a local time that does not exist: the clocks go forward over it. Choose another time."
_NO_SUCH = "at names a date or time that does not exist; hours go to 23, minutes and seconds to 59."


def read_instant(value: Any) -> datetime:
    """Return the argument `at` as a UTC instant, which may lie in the past.

    Raises:
        ToolError: `invalid_rule`, neither of the two forms, or no such date or time, or a local time that a
            change of clocks skips; `invalid_time_zone`; `time_out_of_range`, outside the years 0001 to 9999.
    """
    if type(value) is str:
        return _from_text(value)
    fields = json_object(value)
    if fields is None:
        raise _refusal(_SHAPES)
    return _from_local(fields)


def first(target: datetime, now: datetime) -> datetime:
    """Return `target`, the one occurrence of a reminder created at `now`.

    Raises:
        ToolError: `not_future`, it is not later than `now`.
    """
    if to_millis(target) <= to_millis(now):
        raise ToolError(
            ReminderCode.NOT_FUTURE,
            "at must lie in the future; give a later instant, or use after_seconds.",
        )
    return target


def _from_text(text: str) -> datetime:
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise _refusal(_SHAPES)
    *local, sign, hours, minutes = found.groups()
    offset = _offset(sign, hours, minutes)
    try:
        return from_millis(to_millis(_local(local).replace(tzinfo=UTC)) - offset)
    except InstantOutOfRange:
        raise _out_of_range() from None


def _offset(sign: str | None, hours: str | None, minutes: str | None) -> int:
    """Return the offset in milliseconds east of UTC."""
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > _MAX_HOUR or int(minutes) > _MAX_MINUTE:
        raise _refusal("at has an offset that does not exist; offsets go from -23:59 to +23:59.")
    size = (int(hours) * 60 + int(minutes)) * 60_000
    if sign == "-" and size == 0:
        raise _refusal("at has the offset -00:00, which says that the offset is unknown; write Z for UTC.")
    return -size if sign == "-" else size


def _from_local(value: dict[str, Any]) -> datetime:
    if value.keys() != _LOCAL_KEYS:
        raise _refusal(_SHAPES)
    date, time, name = value["date"], value["time"], value["time_zone"]
    day = _LOCAL_DATE.fullmatch(date) if type(date) is str else None
    clock = _LOCAL_TIME.fullmatch(time) if type(time) is str else None
    if day is None or clock is None:
        raise _refusal(_SHAPES)
    local = _local([*day.groups(), *clock.groups()])
    try:
        return resolve_once(local, load_zone(name if type(name) is str else ""))
    except UnknownZone:
        raise ToolError(ReminderCode.INVALID_TIME_ZONE, _NO_ZONE) from None
    except LocalTimeInGap:
        raise _refusal(_IN_GAP) from None
    except InstantOutOfRange:
        raise _out_of_range() from None


def _local(fields: list[str | None]) -> datetime:
    year, month, day, hour, minute, second = (int(each or 0) for each in fields[:6])
    fraction = (fields[6] or "0").ljust(3, "0")
    try:
        moment = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - local time is naive
    except ValueError:
        raise _refusal(_NO_SUCH) from None
    return moment + timedelta(milliseconds=int(fraction))


def _refusal(message: str) -> ToolError:
    return ToolError(ReminderCode.INVALID_RULE, message)


def _out_of_range() -> ToolError:
    return ToolError(
        ReminderCode.TIME_OUT_OF_RANGE,
        "at lies outside the years 0001 to 9999 in UTC; choose an instant within them.",
    )
