"""The days of a year as the bits of one integer: bit 0 is the 1st of January.

Sets of days are then joined, met and searched by single operations, which is what makes a rule's next
match cheap however rare it is. A year looks like one of a few: what a set of days is depends on the
weekday of 1 January and on which of three neighbouring years are leap years.
"""

from __future__ import annotations

import calendar
import functools
import itertools
from datetime import date
from typing import TYPE_CHECKING, Final

import attrs

from .seconds import LAST_YEAR

if TYPE_CHECKING:
    from collections.abc import Iterable

WEEK: Final = 7
_MIN_DAYS_OF_WEEK_1 = 4  # ISO 8601: the first week has at least four days of its year
_EVERY_WEEK = sum(1 << day for day in range(0, 371, WEEK))


@attrs.frozen
class Year:
    """What sets of days need to know of a year."""

    start: int
    """The ordinal of 1 January."""
    weekday: int
    """The weekday of 1 January, Monday 0."""
    leap: bool
    length: int
    """How many days it has."""
    full: int
    """All its days."""
    length_before: int
    """How many days the year before has."""
    length_after: int
    """How many days the year after has."""
    kind: tuple[int, int, int, int]
    """What two years have in common if every set of days is the same in both."""


@functools.lru_cache(maxsize=LAST_YEAR)
def year_at(year: int) -> Year:
    """Return the year 1 to 9999."""
    start = date(year, 1, 1).toordinal()
    weekday = (start - 1) % WEEK
    leap = calendar.isleap(year)
    before, length, after = 365 + calendar.isleap(year - 1), 365 + leap, 365 + calendar.isleap(year + 1)
    kind = (weekday, before, length, after)
    return Year(start, weekday, leap, length, (1 << length) - 1, before, after, kind)


def bits_of(days: int) -> list[int]:
    """Return the positions of the bits of a set of days, increasing."""
    found: list[int] = []
    while days:
        low = days & -days
        found.append(low.bit_length() - 1)
        days ^= low
    return found


@functools.lru_cache(maxsize=2)
def month_bounds(leap: bool) -> tuple[int, ...]:  # noqa: FBT001 - a property of the year, not a switch
    """Return the index of the first day of each month, and the length of the year as a thirteenth."""
    bounds = [0]
    for month in range(1, 13):
        bounds.append(bounds[-1] + calendar.monthrange(2000 if leap else 2001, month)[1])
    return tuple(bounds)


def span(start: int, end: int) -> int:
    """Return the days from index `start` up to and without `end`."""
    return ((1 << (end - start)) - 1) << start if end > start else 0


def months(year: Year, wanted: Iterable[int]) -> int:
    """Return the days of the months 1 to 12."""
    bounds = month_bounds(year.leap)
    return sum(span(bounds[month - 1], bounds[month]) for month in set(wanted))


def month_days(year: Year, wanted: Iterable[int]) -> int:
    """Return the days of each month numbered from its begin (1) or its end (-1)."""
    bounds, days = month_bounds(year.leap), 0
    for first, end in itertools.pairwise(bounds):
        for number in wanted:
            day = first + number - 1 if number > 0 else end + number
            if first <= day < end:
                days |= 1 << day
    return days


def year_days(year: Year, wanted: Iterable[int]) -> int:
    """Return the days numbered from the year's begin (1) or its end (-1)."""
    days = 0
    for number in wanted:
        day = number - 1 if number > 0 else year.length + number
        if 0 <= day < year.length:
            days |= 1 << day
    return days


def weekdays(year: Year, wanted: Iterable[int]) -> int:
    """Return the days on these weekdays, Monday 0."""
    days = 0
    for weekday in wanted:
        days |= _EVERY_WEEK << (weekday - year.weekday) % WEEK
    return days & year.full


def nth_weeks(nth: int, bounds: Iterable[int]) -> int:
    """Return the nth seven days, from the begin (1) or the end (-1), of each part that the bounds cut a year into.

    Each weekday comes once in seven days, and there it is the nth of its part.
    """
    days = 0
    for first, end in itertools.pairwise(bounds):
        if nth > 0:
            days |= span(first + WEEK * (nth - 1), min(first + WEEK * nth, end))
        else:
            days |= span(max(first, end + WEEK * nth), end + WEEK * (nth + 1))
    return days


def weeks(year: Year, wanted: Iterable[int], week_start: int) -> int:
    """Return the days in weeks numbered from the year's first (1) or last (-1) (ISO 8601, RFC 5545 BYWEEKNO).

    Days of January can lie in the last week of the year before, days of December in the first of the
    year after; they are taken when that week is wanted under its number in its own year.
    """
    numbers = set(wanted)
    before = _first_week(year.weekday - year.length_before, week_start) - year.length_before
    first = _first_week(year.weekday, week_start)
    after = _first_week(year.weekday + year.length, week_start) + year.length
    end = year.length + year.length_after
    last = _first_week(year.weekday + end, week_start) + end
    days = 0
    for begin, close in ((before, first), (first, after), (after, last)):
        count = (close - begin) // WEEK
        for number in numbers:
            week = number - 1 if number > 0 else count + number
            if 0 <= week < count:
                monday = begin + WEEK * week
                days |= span(max(monday, 0), min(monday + WEEK, year.length))
    return days


def _first_week(weekday: int, week_start: int) -> int:
    """Return where week 1 begins, relative to a 1 January on that weekday."""
    passed = (weekday - week_start) % WEEK
    return -passed if WEEK - passed >= _MIN_DAYS_OF_WEEK_1 else WEEK - passed
