"""Whole seconds since the day before 0001-01-01: one number line for local time and for UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

DAY: Final = 86_400
"""Seconds of a day."""

LOWEST: Final = DAY
"""0001-01-01T00:00:00."""

HIGHEST: Final = date.max.toordinal() * DAY + DAY - 1
"""9999-12-31T23:59:59."""

LAST_YEAR: Final = 9999

LAST_DAY: Final = date.max.toordinal()
"""9999-12-31."""

_NAIVE_BASE = datetime(1, 1, 1)  # noqa: DTZ001 - local time is naive
_UTC_BASE = datetime(1, 1, 1, tzinfo=UTC)


def second_of(moment: datetime) -> int:
    """Return the second of a naive local time, or of a UTC instant; a finer part is floored."""
    return moment.toordinal() * DAY + moment.hour * 3600 + moment.minute * 60 + moment.second


def utc_second(instant: datetime) -> int:
    """Return the second of an aware instant.

    Raises:
        ValueError: `instant` is naive.
    """
    if instant.tzinfo is UTC:
        return second_of(instant)
    offset = instant.utcoffset()
    if offset is None:
        raise ValueError(
            f"an instant needs a time zone: {instant.isoformat()} has none; set tzinfo=datetime.UTC if it is UTC",
        )
    return second_of(instant) - (offset.days * DAY + offset.seconds)


def local_at(second: int) -> datetime:
    """Return the naive local time of a second."""
    return _NAIVE_BASE + timedelta(second // DAY - 1, second % DAY)


def utc_at(second: int) -> datetime:
    """Return the UTC instant of a second."""
    return _UTC_BASE + timedelta(second // DAY - 1, second % DAY)


def year_of_day(day: int) -> int:
    """Return the year of a day's ordinal."""
    return date.fromordinal(day).year
