"""Which days a rule takes, and at which times of such a day."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from .seconds import LAST_YEAR, year_of_day
from .years import WEEK, bits_of, month_bounds, year_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .periods import Periods
    from .years import Year

T = TypeVar("T")

CYCLE: Final = 400
"""So many years are a whole number of minutes, hours, days, weeks and months, and the next ones are like them."""

_CYCLE_START: Final = 2000

_KEPT: Final = 1024
"""How many years or days a calendar remembers, so that a walk through millennia keeps its memory flat."""

_KEPT_CHOICES: Final = 32
"""The same for years of which each chosen day is remembered with its times."""


class Calendar(Protocol):
    """The local matches of a rule, regardless of where it begins and ends."""

    @property
    @abstractmethod
    def even(self) -> int:
        """How many times each day of the calendar has; 0 if that depends on the day."""

    @abstractmethod
    def days(self, year: int) -> int:
        """Return the days of the year that have a match, as bits from 1 January on."""

    @abstractmethod
    def impossible(self) -> bool:
        """Whether no year at all has a day that the parts about days allow."""

    @abstractmethod
    def skip(self, year: int) -> int:
        """Return the first year from `year` on that may have a match; it may lie beyond the year 9999."""

    @abstractmethod
    def times(self, day: int) -> Sequence[int]:
        """Return the seconds of a day of the calendar, increasing, at which it has matches."""


class DayFilter:
    """A set of days for each year, reckoned once for all years that look alike."""

    def __init__(self, reckon: Callable[[Year], int]) -> None:
        self._reckon = reckon
        self._known: dict[tuple[int, int, int, int], int] = {}

    def days(self, year: int) -> int:
        """Return the days of the year."""
        about = year_at(year)
        found = self._known.get(about.kind)
        if found is None:
            found = self._known[about.kind] = self._reckon(about)
        return found

    def impossible(self) -> bool:
        """Whether no year has a day, among all the kinds of years there are."""
        return not any(self.days(year) for year in range(_CYCLE_START, _CYCLE_START + CYCLE))


class PlainCalendar(Calendar):
    """The same times on each day that passes a filter and lies in a period that counts."""

    def __init__(self, allowed: DayFilter, periods: Periods, times: Sequence[int]) -> None:
        self._allowed, self._periods, self._times = allowed, periods, times
        self._known: dict[int, int] = {}

    @property
    def even(self) -> int:
        """How many times each day has."""
        return len(self._times)

    def days(self, year: int) -> int:
        """Return the days of the year that have a match."""
        found = self._known.get(year)
        if found is None:
            found = self._allowed.days(year)
            if found:
                found &= self._periods.days(year)
            keep(self._known, year, found)
        return found

    def impossible(self) -> bool:
        """Whether no year has a day that passes the filter."""
        return self._allowed.impossible()

    def skip(self, year: int) -> int:
        """Return the first year from `year` on with a day in a period that counts."""
        return self._periods.skip(year)

    def times(self, day: int) -> Sequence[int]:  # noqa: ARG002 - all days are alike
        """Return the times of any day."""
        return self._times


class UnitCalendar(PlainCalendar):
    """Hours or minutes that repeat across days: the times depend on the day's place in a ring of days.

    `units_of` tells the seconds of the day at a place; `size` is how many places there are.
    """

    def __init__(
        self, allowed: DayFilter, periods: Periods, size: int, origin: int, units_of: Callable[[int], Sequence[int]]
    ) -> None:
        super().__init__(allowed, periods, units_of(0) if size == 1 else ())
        self._size, self._origin, self._units_of = size, origin, units_of
        self._days: dict[int, Sequence[int]] = {}

    def times(self, day: int) -> Sequence[int]:
        """Return the times of that day."""
        if self._size == 1:
            return self._times
        place = (day - self._origin) % self._size
        found = self._days.get(place)
        if found is None:
            found = self._units_of(place)
            keep(self._days, place, found)
        return found


class ChosenCalendar(Calendar):
    """BYSETPOS: of the matches of each period, those at some positions, counted from its begin (1) or end (-1).

    `sets` cuts a year into periods, as indices of their first day and the day after their last. A week
    belongs to the year in which it begins, so a period may reach into the next year.
    """

    def __init__(
        self, whole: PlainCalendar, positions: Sequence[int], sets: Callable[[Year], Iterable[tuple[int, int]]]
    ) -> None:
        self._whole, self._positions, self._sets = whole, positions, sets
        self._all_times = whole.times(0)
        self._years: dict[int, dict[int, list[int]]] = {}
        self._picked: dict[int, dict[int, list[int]]] = {}

    @property
    def even(self) -> int:
        """Not the same for all days."""
        return 0

    def days(self, year: int) -> int:
        """Return the days of the year that have a match."""
        if not self._whole.days(year):
            return 0
        start, end = year_at(year).start, year_at(year).length
        found = 0
        for day in (*self._chosen(year - 1), *self._chosen(year)):
            if 0 <= day - start < end:
                found |= 1 << (day - start)
        return found

    def impossible(self) -> bool:
        """Whether there is nothing to choose from."""
        return self._whole.impossible()

    def skip(self, year: int) -> int:
        """Return the first year from `year` on with a period to choose from."""
        return self._whole.skip(year)

    def times(self, day: int) -> Sequence[int]:
        """Return the times of that day."""
        year = year_of_day(day)
        return self._chosen(year).get(day) or self._chosen(year - 1)[day]

    def _chosen(self, year: int) -> dict[int, list[int]]:
        """Return the times of each day chosen from the periods that begin in the year."""
        found = self._years.get(year)
        if found is None:
            found = self._choose(year) if year > 0 else {}
            keep(self._years, year, found, _KEPT_CHOICES)
        return found

    def _choose(self, year: int) -> dict[int, list[int]]:
        about, chosen = year_at(year), dict[int, list[int]]()
        days = self._whole.days(year)
        if year < LAST_YEAR:
            days |= self._whole.days(year + 1) << about.length
        for first, end in self._sets(about) if days else ():
            bits = days >> first & (1 << (end - first)) - 1
            if bits:
                for day, times in self._pick(bits).items():
                    chosen[about.start + first + day] = times
        return chosen

    def _pick(self, bits: int) -> dict[int, list[int]]:
        """Return what the positions take of a period with these days."""
        picked = self._picked.get(bits)
        if picked is None:
            picked = dict[int, list[int]]()
            days, times = bits_of(bits), self._all_times
            size = len(days) * len(times)
            places = {place - 1 if place > 0 else size + place for place in self._positions}
            for place in sorted(each for each in places if 0 <= each < size):
                picked.setdefault(days[place // len(times)], []).append(times[place % len(times)])
            keep(self._picked, bits, picked)
        return picked


def whole_year(year: Year) -> Iterable[tuple[int, int]]:
    """Cut a year into itself."""
    return [(0, year.length)]


def months_of(year: Year) -> Iterable[tuple[int, int]]:
    """Cut a year into months."""
    bounds = month_bounds(year.leap)
    return itertools.pairwise(bounds)


def weeks_of(week_start: int) -> Callable[[Year], Iterable[tuple[int, int]]]:
    """Cut a year into the weeks that begin in it."""

    def cut(year: Year) -> Iterable[tuple[int, int]]:
        first = (week_start - year.weekday) % WEEK
        return ((day, day + WEEK) for day in range(first, year.length, WEEK))

    return cut


def keep(known: dict[int, T], key: int, value: T, most: int = _KEPT) -> None:
    """Remember a value, and forget all others if there are too many."""
    if len(known) >= most:
        known.clear()
    known[key] = value
