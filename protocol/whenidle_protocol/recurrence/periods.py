"""Every INTERVAL-th period, as days of a year.

Days, weeks, and the days on which every n-th hour or minute falls repeat in a ring of whole days;
months and years do not.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Final, Protocol

from .seconds import LAST_DAY, LAST_YEAR, year_of_day
from .years import WEEK, month_bounds, span, year_at

if TYPE_CHECKING:
    from collections.abc import Iterable

_YEAR = 366
_WIDEST_TABLE: Final = 1 << 16
"""Up to this many days a ring is kept as a table of 8 kB; a longer one holds few days of any one year."""


class Periods(Protocol):
    """Which days lie in a period that counts."""

    def days(self, year: int) -> int:
        """Return those days of the year."""
        ...

    def skip(self, year: int) -> int:
        """Return the first year from `year` on that may have such a day; it may lie beyond the year 9999."""
        ...


class EveryDay:
    """All days."""

    def days(self, year: int) -> int:
        """Return all days of the year."""
        return year_at(year).full

    def skip(self, year: int) -> int:
        """Return the year itself."""
        return year


class NoDay:
    """No days: the rule asks for a match that no period has."""

    def days(self, year: int) -> int:  # noqa: ARG002 - all years are alike
        """Return no days."""
        return 0

    def skip(self, year: int) -> int:
        """Return a year that never comes."""
        return max(year, LAST_YEAR + 1)


class EveryYear:
    """Each `interval`-th year from `first` on."""

    def __init__(self, first: int, interval: int) -> None:
        self._first, self._interval = first, interval

    def days(self, year: int) -> int:
        """Return all days of the year, or none."""
        return 0 if (year - self._first) % self._interval else year_at(year).full

    def skip(self, year: int) -> int:
        """Return the next such year."""
        return year + (self._first - year) % self._interval


class EveryMonth:
    """Each `interval`-th month from month `month` (1 to 12) of `year` on."""

    def __init__(self, year: int, month: int, interval: int) -> None:
        self._first, self._interval = year * 12 + month - 1, interval

    def days(self, year: int) -> int:
        """Return the days of those months of the year."""
        bounds = month_bounds(year_at(year).leap)
        first = (self._first - year * 12) % self._interval
        return sum(span(bounds[month], bounds[month + 1]) for month in range(first, 12, self._interval))

    def skip(self, year: int) -> int:
        """Return the year of the next such month."""
        return year + (self._first - year * 12) % self._interval // 12


class Ring:
    """Days that repeat after `size` days: `places` in that ring, counted from the day `origin`."""

    def __init__(self, size: int, places: Iterable[int], origin: int) -> None:
        self._size, self._origin = size, origin
        self._places = sorted(places)
        self._table = self._spread() if size <= _WIDEST_TABLE else b""

    def days(self, year: int) -> int:
        """Return those days of the year."""
        about = year_at(year)
        place = (about.start - self._origin) % self._size
        if self._table:
            piece = self._table[place >> 3 : (place + _YEAR >> 3) + 1]
            return int.from_bytes(piece, "little") >> (place & 7) & about.full
        days = self._between(place, place + about.length, place)
        return days | self._between(0, place + about.length - self._size, place - self._size)

    def skip(self, year: int) -> int:
        """Return the year of the next such day."""
        if self._size < _YEAR:
            return year
        start = year_at(year).start
        place = (start - self._origin) % self._size
        following = bisect.bisect_left(self._places, place)
        distance = (
            self._places[following] - place if following < len(self._places) else self._places[0] + self._size - place
        )
        return LAST_YEAR + 1 if start + distance > LAST_DAY else year_of_day(start + distance)

    def _spread(self) -> bytes:
        """Return the ring as bits, continued by the length of a year beyond its end."""
        table = bytearray((self._size + _YEAR >> 3) + 1)
        for first in self._places:
            for place in range(first, self._size + _YEAR, self._size):
                table[place >> 3] |= 1 << (place & 7)
        return bytes(table)

    def _between(self, start: int, end: int, zero: int) -> int:
        first, last = (bisect.bisect_left(self._places, place) for place in (start, end))
        return sum(1 << (place - zero) for place in self._places[first:last])


def every_days(first: int, interval: int) -> Periods:
    """Return each `interval`-th day from the ordinal `first` on."""
    return EveryDay() if interval == 1 else Ring(interval, [0], first)


def every_weeks(first: int, interval: int, week_start: int) -> Periods:
    """Return each `interval`-th week from the one that holds the ordinal `first` on."""
    if interval == 1:
        return EveryDay()
    begin = first - (first - 1 - week_start) % WEEK
    return Ring(interval * WEEK, range(WEEK), begin)
