"""Which days a rule takes, and at which times of such a day."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import attrs

from .periods import EveryDay, Ring
from .seconds import LAST_YEAR, year_of_day
from .years import WEEK, bits_of, month_bounds, year_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .periods import Periods
    from .years import Year

K = TypeVar("K")
T = TypeVar("T")

_WEEKS_OF_YEAR: Final = 54
"""So many weeks can have a day in a year."""

CYCLE: Final = 400
"""So many years are a whole number of minutes, hours, days, weeks and months, and the next ones are like them."""

_CYCLE_START: Final = 2000

_KEPT: Final = 1024
"""How many years or days a calendar remembers, so that a walk through millennia keeps its memory flat."""

_KEPT_CHOICES: Final = 64
"""The same for kinds of years of which each chosen day is remembered with its times; of all years there are 28."""


class Calendar(Protocol):
    """The local matches of a rule, regardless of where it begins and ends."""

    @property
    @abstractmethod
    def most_a_day(self) -> int:
        """No day has more matches."""

    @abstractmethod
    def days(self, year: int) -> int:
        """Return the days of the year that have a match, as bits from 1 January on."""

    @abstractmethod
    def count(self, year: int, days: int) -> int:
        """Return how many matches there are on some of those days."""

    @abstractmethod
    def most_a_year(self) -> int:
        """Return a number of matches that no year exceeds; takes as long as reckoning each kind of year once."""

    @abstractmethod
    def impossible(self) -> bool:
        """Whether no year at all has what the parts ask for, whatever the interval."""

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
        return not self.most()

    def most(self) -> int:
        """Return the most days that any year has, among all the kinds of years there are."""
        for year in range(_CYCLE_START, _CYCLE_START + CYCLE):
            self.days(year)
        return max(days.bit_count() for days in self._known.values())


class PlainCalendar(Calendar):
    """The same times on each day that passes a filter and lies in a period that counts."""

    def __init__(self, allowed: DayFilter, periods: Periods, times: Sequence[int]) -> None:
        self._allowed, self._periods, self._times = allowed, periods, times
        self._known: dict[int, int] = {}

    @property
    def most_a_day(self) -> int:
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

    def allowed(self, year: int) -> int:
        """Return the days of the year that pass the filter, in whatever period."""
        return self._allowed.days(year)

    def count(self, year: int, days: int) -> int:  # noqa: ARG002 - all years are alike
        """Return how many matches there are on some days."""
        return days.bit_count() * len(self._times)

    def most_a_year(self) -> int:
        """Return what the year has in which most days pass the filter."""
        return self._allowed.most() * self.most_a_day

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

    `units_of` tells the seconds of the day at a place; `size` is how many places there are, and `numbers` how many
    matches each of those has that have any.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - two calendars in one
        self,
        allowed: DayFilter,
        periods: Periods,
        size: int,
        origin: int,
        units_of: Callable[[int], Sequence[int]],
        numbers: Mapping[int, int],
    ) -> None:
        super().__init__(allowed, periods, units_of(0) if size == 1 else ())
        self._size, self._origin, self._units_of, self._numbers = size, origin, units_of, numbers
        self._days: dict[int, Sequence[int]] = {}
        self._steps: list[tuple[int, Periods]] | None = None
        """By how much more than the days before the days of a set have, the first of the sets being all days."""

    @property
    def most_a_day(self) -> int:
        """How many times the fullest day has."""
        return max(self._numbers.values(), default=0)

    def count(self, year: int, days: int) -> int:
        """Return how many matches there are on some days."""
        if self._size == 1:
            return super().count(year, days)
        if self._steps is None:
            self._steps = self._count_steps()
        return sum(step * (days & places.days(year)).bit_count() for step, places in self._steps)

    def _count_steps(self) -> list[tuple[int, Periods]]:
        steps: list[tuple[int, Periods]] = []
        reached = 0
        for number in sorted(set(self._numbers.values())):
            places = [place for place, each in self._numbers.items() if each >= number]
            steps.append((number - reached, EveryDay() if not reached else Ring(self._size, places, self._origin)))
            reached = number
        return steps

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


@attrs.frozen
class _Choice:
    """What is chosen from the periods that begin in a year. Days are counted from its 1 January."""

    times: dict[int, list[int]]
    """The times of each chosen day."""
    bits: int
    """Those days."""
    inside: int
    """How many matches lie in the year itself."""
    beyond: int
    """How many lie in the year after."""


_NOTHING: Final = _Choice({}, 0, 0, 0)


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
        self._years: dict[int, _Choice] = {}
        self._choices: dict[tuple[int, int, int], _Choice] = {}
        """By what a choice depends on: the days to choose from, and how the year is cut."""
        self._picked: dict[int, dict[int, list[int]]] = {}

    @property
    def most_a_day(self) -> int:
        """How many times a day has to choose from, or else how many are chosen."""
        return min(len(self._all_times), len(self._positions))

    def days(self, year: int) -> int:
        """Return the days of the year that have a match."""
        if not self._whole.days(year):
            return 0
        about = year_at(year)
        return self._chosen(year - 1).bits >> about.length_before | self._chosen(year).bits & about.full

    def count(self, year: int, days: int) -> int:
        """Return how many matches there are on some days."""
        if days == self.days(year):
            return self._chosen(year - 1).beyond + self._chosen(year).inside
        start = year_at(year).start
        return sum(len(self.times(start + place)) for place in bits_of(days))

    def most_a_year(self) -> int:
        """Return what a year has to choose from, or else what is chosen from its weeks."""
        return min(self._whole.most_a_year(), _WEEKS_OF_YEAR * len(self._positions))

    def impossible(self) -> bool:
        """Whether no period has a match at one of the positions.

        An interval takes or leaves whole periods, so all of them are looked at.
        """
        years = range(_CYCLE_START, _CYCLE_START + CYCLE)
        return not any(self._choice(year, self._whole.allowed).bits for year in years)

    def skip(self, year: int) -> int:
        """Return the first year from `year` on with a period to choose from."""
        return self._whole.skip(year)

    def times(self, day: int) -> Sequence[int]:
        """Return the times of that day."""
        year = year_of_day(day)
        place, about = day - year_at(year).start, year_at(year)
        return self._chosen(year).times.get(place) or self._chosen(year - 1).times[place + about.length_before]

    def _chosen(self, year: int) -> _Choice:
        """Return what is chosen from the periods that begin in the year."""
        found = self._years.get(year)
        if found is None:
            found = self._choice(year, self._whole.days) if year > 0 else _NOTHING
            keep(self._years, year, found)
        return found

    def _choice(self, year: int, days_of: Callable[[int], int]) -> _Choice:
        """Return what is chosen from the days that `days_of` gives for a year and the one after it."""
        about = year_at(year)
        days = days_of(year)
        if year < LAST_YEAR:
            days |= days_of(year + 1) << about.length
        if not days:
            return _NOTHING
        key = days, about.weekday, about.length
        found = self._choices.get(key)
        if found is None:
            found = self._choose(about, days)
            keep(self._choices, key, found, _KEPT_CHOICES)
        return found

    def _choose(self, about: Year, days: int) -> _Choice:
        chosen, bits, inside, beyond = dict[int, list[int]](), 0, 0, 0
        for first, end in self._sets(about):
            period = days >> first & (1 << (end - first)) - 1
            for place, times in self._pick(period).items() if period else ():
                day = first + place
                chosen[day] = times
                bits |= 1 << day
                if day < about.length:
                    inside += len(times)
                else:
                    beyond += len(times)
        return _Choice(chosen, bits, inside, beyond)

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


def keep(known: dict[K, T], key: K, value: T, most: int = _KEPT) -> None:
    """Remember a value, and forget all others if there are too many."""
    if len(known) >= most:
        known.clear()
    known[key] = value
