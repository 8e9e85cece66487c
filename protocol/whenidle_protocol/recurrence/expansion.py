"""From the parts of an RRULE to its calendar (the table of RFC 5545 3.3.10).

A part that expands a period and a part that limits it come to the same: the days of a year that all
day parts allow. What a rule leaves open, its DTSTART tells.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from . import years
from .calendars import (
    CYCLE,
    Calendar,
    ChosenCalendar,
    DayFilter,
    PlainCalendar,
    UnitCalendar,
    months_of,
    weeks_of,
    whole_year,
)
from .periods import EveryDay, EveryMonth, EveryYear, NoDay, Periods, Ring, every_days, every_weeks
from .recur import Frequency, Recur, Weekday
from .seconds import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from .years import Year

_HOUR: Final = 3600
_MINUTE: Final = 60

_WEEKS_OF_MONTH: Final = 5
_WEEKS_OF_YEAR: Final = 53
"""No weekday comes more often in one."""

_PERIODS_OF_CYCLE: Final = {
    Frequency.YEARLY: CYCLE,
    Frequency.MONTHLY: CYCLE * 12,
    Frequency.WEEKLY: 20_871,
    Frequency.DAILY: 146_097,
    Frequency.HOURLY: 146_097 * 24,
    Frequency.MINUTELY: 146_097 * 24 * 60,
}


def cycle_years(recur: Recur) -> int:
    """Return after how many years a rule has gone through all it will ever do."""
    return CYCLE * recur.interval // math.gcd(_PERIODS_OF_CYCLE[recur.frequency], recur.interval)


def calendar_of(recur: Recur, start: datetime) -> Calendar:
    """Return the calendar of a rule anchored at the naive local time `start`, its DTSTART."""
    allowed = DayFilter(_days_of(recur, start))
    if recur.frequency.within_a_day:
        return _units(recur, start, allowed)
    hours = recur.by_hour or (start.hour,)
    minutes = recur.by_minute or (start.minute,)
    seconds = recur.by_second or (start.second,)
    times = [hour * _HOUR + minute * _MINUTE + second for hour in hours for minute in minutes for second in seconds]
    if recur.frequency is Frequency.DAILY and recur.by_set_pos:
        times = _positions(times, recur.by_set_pos)
    plain = PlainCalendar(allowed, _periods(recur, start) if times else NoDay(), times)
    if recur.frequency is Frequency.DAILY or not recur.by_set_pos:
        return plain
    return ChosenCalendar(plain, recur.by_set_pos, _sets(recur))


def _days_of(recur: Recur, start: datetime) -> Callable[[Year], int]:
    """Return the reckoning of the days that all parts about days allow."""
    by_month, by_month_day, by_day = recur.by_month, recur.by_month_day, recur.by_day
    open_day = not (recur.by_year_day or by_month_day or by_day)
    if open_day and (recur.frequency is Frequency.WEEKLY or recur.by_week_no):
        by_day = (Weekday(start.weekday()),)
    elif open_day and recur.frequency in {Frequency.MONTHLY, Frequency.YEARLY}:
        by_month_day = (start.day,)
        if recur.frequency is Frequency.YEARLY:
            by_month = by_month or (start.month,)

    weekdays_by_nth = _weekdays_by_nth(by_day, _WEEKS_OF_MONTH if _counts_by_month(recur) else _WEEKS_OF_YEAR)

    def reckon(year: Year) -> int:
        days = year.full
        if by_month:
            days &= years.months(year, by_month)
        if by_month_day:
            days &= years.month_days(year, by_month_day)
        if recur.by_year_day:
            days &= years.year_days(year, recur.by_year_day)
        if recur.by_week_no:
            days &= years.weeks(year, recur.by_week_no, recur.week_start)
        if by_day:
            days &= _weekdays(year, weekdays_by_nth, _bounds_for_nth(year, recur))
        return days

    return reckon


def _weekdays_by_nth(wanted: Iterable[Weekday], last: int) -> Mapping[int, Iterable[int]]:
    """Return the weekdays by their number, without those whose number is beyond the last."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for each in wanted:
        if abs(each.nth) <= last:
            found[each.nth].add(each.day)
    return found


def _bounds_for_nth(year: Year, recur: Recur) -> Sequence[int]:
    """Return what "the nth weekday" is the nth of: each month, or the year."""
    return years.month_bounds(year.leap) if _counts_by_month(recur) else (0, year.length)


def _counts_by_month(recur: Recur) -> bool:
    return recur.frequency is Frequency.MONTHLY or bool(recur.by_month)


def _weekdays(year: Year, wanted: Mapping[int, Iterable[int]], bounds: Sequence[int]) -> int:
    """Return the days on weekdays that are wanted under their number, or under 0 for each of them."""
    days = 0
    for nth, weekdays in wanted.items():
        among = years.nth_weeks(nth, bounds) if nth else year.full
        days |= years.weekdays(year, weekdays) & among if among else 0
    return days


def _periods(recur: Recur, start: datetime) -> Periods:
    match recur.frequency:
        case Frequency.YEARLY:
            return EveryYear(start.year, recur.interval)
        case Frequency.MONTHLY:
            return EveryMonth(start.year, start.month, recur.interval)
        case Frequency.WEEKLY:
            return every_weeks(start.toordinal(), recur.interval, recur.week_start)
        case _:
            return every_days(start.toordinal(), recur.interval)


def _sets(recur: Recur) -> Callable[[Year], Iterable[tuple[int, int]]]:
    match recur.frequency:
        case Frequency.YEARLY:
            return whole_year
        case Frequency.MONTHLY:
            return months_of
        case _:
            return weeks_of(recur.week_start)


def _units(recur: Recur, start: datetime, allowed: DayFilter) -> Calendar:
    """Return the calendar of every n-th hour or minute.

    Of `units` a day, unit w of day x after DTSTART's counts if x * units + w is the anchor's unit, modulo
    the interval: a linear congruence, whose solutions repeat after a ring of whole days.
    """
    hours = recur.by_hour or range(24)
    minutes, seconds = recur.by_minute, recur.by_second or (start.second,)
    if recur.frequency is Frequency.HOURLY:
        length, wanted, anchor = _HOUR, list(hours), start.hour
        offsets = [minute * _MINUTE + second for minute in minutes or (start.minute,) for second in seconds]
    else:
        length, anchor = _MINUTE, start.hour * 60 + start.minute
        wanted = [hour * 60 + minute for hour in hours for minute in minutes or range(60)]
        offsets = list(seconds)
    if recur.by_set_pos:
        offsets = _positions(offsets, recur.by_set_pos)
    units, interval = DAY // length, recur.interval
    common = math.gcd(units, interval)
    size = interval // common
    inverse = pow(units // common, -1, size)
    numbers = Counter(
        (anchor - unit) // common * inverse % size for unit in wanted if offsets and (anchor - unit) % common == 0
    )
    origin = start.toordinal()

    chosen = frozenset(wanted)

    def units_of(place: int) -> Sequence[int]:
        first = (anchor - place * units) % interval
        return [
            unit * length + offset for unit in range(first, units, interval) if unit in chosen for offset in offsets
        ]

    periods: Periods = NoDay()
    if numbers:
        periods = EveryDay() if len(numbers) == size else Ring(size, numbers, origin)
    matches = {place: number * len(offsets) for place, number in numbers.items()}
    return UnitCalendar(allowed, periods, size, origin, units_of, matches)


def _positions(values: Sequence[int], positions: Iterable[int]) -> list[int]:
    """Return the values at some positions, counted from the begin (1) or the end (-1)."""
    places = {place - 1 if place > 0 else len(values) + place for place in positions}
    return [values[place] for place in sorted(places) if 0 <= place < len(values)]
