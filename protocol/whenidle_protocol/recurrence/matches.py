"""First, last and number of a rule's local matches in a range of local seconds.

Years are searched by their sets of days and days by their times, so the cost does not depend on how
long a rule has been going, nor on how many matches lie between two moments.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from .seconds import DAY, HIGHEST, LOWEST, year_of_day
from .years import span, year_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .calendars import Calendar


class Matches:
    """The local matches of a calendar from the local second `begin` on."""

    def __init__(self, calendar: Calendar, begin: int = LOWEST) -> None:
        self._calendar = calendar
        self.begin: int = begin
        self._known = (0, 0, 0)
        self._empty = (0, 0)
        self._most_a_year: int | None = None

    def impossible(self) -> bool:
        """Whether no year has what the parts ask for, so that a search need not begin."""
        return self._calendar.impossible()

    @property
    def most_a_day(self) -> int:
        """No day has more matches; at least 1."""
        return max(1, self._calendar.most_a_day)

    @property
    def most_a_year(self) -> int:
        """No year has more matches; at least 1."""
        if self._most_a_year is None:
            self._most_a_year = max(1, self._calendar.most_a_year())
        return self._most_a_year

    def first(self, start: int, end: int = HIGHEST + 1) -> int | None:
        """Return the first match from `start` up to and without `end`."""
        start = max(start, self.begin)
        if self._empty[0] <= start < self._empty[1]:
            start = self._empty[1]
        if start >= end or start > HIGHEST:
            return None
        day, time = divmod(start, DAY)
        first_day, next_year, days = self._days_around(day)
        days >>= day - first_day
        if days & 1:
            times = self._calendar.times(day)
            place = bisect.bisect_left(times, time)
            if place < len(times):
                found = day * DAY + times[place]
                return found if found < end else None
            days ^= 1
        day = day + (days & -days).bit_length() - 1 if days else self._first_day(next_year, end, start)
        if not day:
            return None
        found = day * DAY + self._calendar.times(day)[0]
        return found if found < end else None

    def last(self, start: int, end: int) -> int | None:
        """Return the last match from `start` up to and without `end`."""
        start, end = max(start, self.begin), min(end, HIGHEST + 1)
        if start >= end:
            return None
        day, time = divmod(end - 1, DAY)
        first_day, _, days = self._days_around(day)
        days &= (2 << (day - first_day)) - 1
        if days >> (day - first_day):
            times = self._calendar.times(day)
            place = bisect.bisect_right(times, time)
            if place:
                found = day * DAY + times[place - 1]
                return found if found >= start else None
            days ^= 1 << (day - first_day)
        while not days:
            if first_day * DAY <= start:
                return None
            first_day, _, days = self._days_around(first_day - 1)
        day = first_day + days.bit_length() - 1
        found = day * DAY + self._calendar.times(day)[-1]
        return found if found >= start else None

    def count(self, start: int, end: int) -> int:
        """Return the number of matches from `start` up to and without `end`."""
        start, end = max(start, self.begin), min(end, HIGHEST + 1)
        if start >= end:
            return 0
        (first, since), (last, until) = divmod(start, DAY), divmod(end - 1, DAY)
        head = self._times(first)
        skipped = bisect.bisect_left(head, since)
        if first == last:
            return bisect.bisect_right(head, until) - skipped
        partial = len(head) - skipped + bisect.bisect_right(self._times(last), until)
        return partial + self._count_days(first + 1, last)

    def _days_around(self, day: int) -> tuple[int, int, int]:
        """Return the year of a day: its first day, that of the next year, and the days of the calendar in it."""
        known = self._known
        if not known[0] <= day < known[1]:
            year = year_of_day(day)
            about = year_at(year)
            known = self._known = (about.start, about.start + about.length, self._calendar.days(year))
        return known

    def _times(self, day: int) -> Sequence[int]:
        first_day, _, days = self._days_around(day)
        return self._calendar.times(day) if days >> (day - first_day) & 1 else ()

    def _count_days(self, day: int, end: int) -> int:
        """Return the number of matches on whole days."""
        total = 0
        while day < end:
            first_day, next_year, days = self._days_around(day)
            close = min(end, next_year)
            if close - day < next_year - first_day:
                days &= span(day - first_day, close - first_day)
            if days:
                total += self._calendar.count(year_of_day(day), days)
            day = close
        return total

    def _first_day(self, day: int, end: int, since: int) -> int:
        """Return the first day of the calendar from the begin of a year on, 0 if there is none before `end`.

        What was found empty is remembered: a rule that matches once in centuries is searched once.
        """
        year = year_of_day(day - 1) + 1
        last_year = year_of_day((min(end, HIGHEST + 1) - 1) // DAY)
        while year <= last_year and (year := self._calendar.skip(year)) <= last_year:
            days = self._calendar.days(year)
            if days:
                day = year_at(year).start + (days & -days).bit_length() - 1
                self._empty = since, day * DAY
                return day
            year += 1
        return 0
