"""The value of an RRULE: the parts of RFC 5545 3.3.10, checked and in one canonical form."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Frequency(enum.Enum):
    """How long the periods are of which a rule takes every INTERVAL-th."""

    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"
    HOURLY = "HOURLY"
    MINUTELY = "MINUTELY"

    @property
    def within_a_day(self) -> bool:
        """Whether periods are shorter than a day."""
        return self in {Frequency.HOURLY, Frequency.MINUTELY}


@attrs.frozen
class Weekday:
    """A value of BYDAY."""

    day: int
    """Monday 0 to Sunday 6."""
    nth: int = 0
    """Which one of the month or year, counted from its end if negative; 0 for each."""

    def __str__(self) -> str:
        return f"{self.nth or ''}{WEEKDAYS[self.day]}"


@attrs.frozen
class Recur:
    """A recurrence rule whose parts are known to go together; lists are sorted and free of doubles."""

    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    """The last instant that may be an occurrence, in UTC."""
    by_month: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[Weekday, ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_pos: tuple[int, ...] = ()
    week_start: int = 0
    """WKST, Monday 0."""

    def __str__(self) -> str:
        """Return the canonical text: parts in one order, defaults left out."""
        parts = [f"FREQ={self.frequency.value}"]
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        if self.count is not None:
            parts.append(f"COUNT={self.count}")
        if self.until is not None:
            parts.append(f"UNTIL={self.until.replace(tzinfo=None).isoformat().translate(_BASIC)}Z")
        lists = {
            "BYMONTH": self.by_month,
            "BYWEEKNO": self.by_week_no,
            "BYYEARDAY": self.by_year_day,
            "BYMONTHDAY": self.by_month_day,
            "BYDAY": self.by_day,
            "BYHOUR": self.by_hour,
            "BYMINUTE": self.by_minute,
            "BYSECOND": self.by_second,
            "BYSETPOS": self.by_set_pos,
        }
        parts += [f"{name}={_joined(values)}" for name, values in lists.items() if values]
        if self.week_start:
            parts.append(f"WKST={WEEKDAYS[self.week_start]}")
        return ";".join(parts)


_BASIC = str.maketrans("", "", "-:")


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values))
