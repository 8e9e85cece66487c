"""The stretches of a year during which a zone keeps its offset.

`zoneinfo` tells the offset at an instant and nothing about changes, so a year is sampled and each
change found by halving. Years are kept, so that a rule pays for a year once.
"""

from __future__ import annotations

import calendar
import functools
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

import attrs

from .seconds import DAY, LOWEST

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MAX_OFFSET: Final = 16 * 3600
"""No zone's local time was ever further from UTC (Asia/Manila until 1844: 15:56:08)."""

_SAMPLE = 3 * DAY
"""Zones keep an offset for longer: the shortest time ever between two changes is 3.99 days (Freetown in 1939)."""

_LATER_SAMPLE = 6 * DAY
"""Since 1970 it is 6.96 days (Brazil in 2000)."""

_LATER = 1970

_QUARTER = 900

_MEMORY = 2 * DAY
"""A change goes on to matter for as long as it repeats or skips: a day at most (Kwajalein, Apia)."""

_FIRST_CHANGE = 1830
"""No zone has a change before (Amsterdam in 1835 is the first); until then clocks showed the sun's time, if any."""

_BY_RULE = 2101
"""From here on zone data are one rule of the calendar, the same in any two years that look alike."""

_ALL_KINDS = 28
"""So many years without a skipped leap year in them show every weekday of 1 January, leap or not."""

_UNIX = date(1970, 1, 1).toordinal() * DAY
_CACHED_YEARS = 4096


@attrs.frozen
class Stretch:
    """Instants from `start` up to `end` at which the zone is `offset` seconds east of UTC.

    `turn` is the instant at which the clocks were set from `before` to `offset` if that is less than two days
    before `start`, or at it; otherwise `before` equals `offset`.
    """

    start: int
    end: int
    offset: int
    turn: int
    before: int


def stretch_at(zone: ZoneInfo, second: int) -> Stretch:
    """Return the stretch that holds the UTC second, which lies in years 1 to 9999.

    It ends with its year, but what is before all changes is one stretch.
    """
    year = date.fromordinal(second // DAY).year
    if year < _FIRST_CHANGE:
        return _before_changes(zone)
    stretches = stretches_of(zone, year)
    for stretch in stretches[:-1]:
        if second < stretch.end:
            return stretch
    return stretches[-1]


@functools.lru_cache(maxsize=_CACHED_YEARS)
def stretches_of(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    """Return the stretches of a UTC year, from its begin to its end."""
    if year >= _BY_RULE + _ALL_KINDS:
        return _alike(zone, year)
    start, end = _begin(year), _begin(year + 1)
    if year < _FIRST_CHANGE:
        return (attrs.evolve(_before_changes(zone), start=start, end=end, turn=start),)
    changes = _changes(zone, start - _MEMORY, end, _LATER_SAMPLE if year > _LATER else _SAMPLE)
    found: list[Stretch] = []
    turn, before, offset = start, _offset(zone, start), _offset(zone, start)
    for at, old, new in changes:
        if at > start:
            found.append(Stretch(start, at, offset, turn, before))
            start = at
        turn, before, offset = at, old, new
    found.append(Stretch(start, end, offset, turn, before))
    return tuple(found)


@functools.lru_cache(maxsize=_CACHED_YEARS)
def _before_changes(zone: ZoneInfo) -> Stretch:
    end = _begin(_FIRST_CHANGE)
    offset = _offset(zone, end)
    return Stretch(LOWEST, end, offset, LOWEST, offset)


def _alike(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    """Return the stretches of a year by moving there those of an earlier year that looks like it."""
    twin = _twins()[date(year, 1, 1).weekday(), calendar.isleap(year)]
    move = _begin(year) - _begin(twin)
    return tuple(
        Stretch(each.start + move, each.end + move, each.offset, each.turn + move, each.before)
        for each in stretches_of(zone, twin)
    )


@functools.lru_cache(maxsize=1)
def _twins() -> dict[tuple[int, bool], int]:
    """Return a year of the one rule for each weekday of 1 January and each length."""
    years = range(_BY_RULE, _BY_RULE + _ALL_KINDS)
    return {(date(each, 1, 1).weekday(), calendar.isleap(each)): each for each in years}


def _changes(zone: ZoneInfo, start: int, end: int, step: int) -> list[tuple[int, int, int]]:
    """Return (second, offset until then, offset from then on) of the changes after `start` and before `end`."""
    found: list[tuple[int, int, int]] = []
    known, offset = start, _offset(zone, start)
    while known < end - 1:
        sample = min(known + step, end - 1)
        new = _offset(zone, sample)
        if new != offset:
            found.append((_turn(zone, known, sample, offset), offset, new))
            offset = new
        known = sample
    return found


def _turn(zone: ZoneInfo, low: int, high: int, offset: int) -> int:
    """Return the second between `low` and `high` from which on the zone does not keep its offset of before.

    Most changes are at a quarter of an hour, so these are looked at first.
    """
    near, far = low // _QUARTER, high // _QUARTER + 1
    while far - near > 1:
        middle = (near + far) // 2
        if _offset(zone, middle * _QUARTER) == offset:
            near = middle
        else:
            far = middle
    low, high = max(low, near * _QUARTER), min(high, far * _QUARTER)
    if _offset(zone, high - 1) == offset:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _begin(year: int) -> int:
    return date(year, 1, 1).toordinal() * DAY


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(second - _UNIX, zone).utcoffset()
    assert offset is not None  # noqa: S101 - a ZoneInfo always has one
    return offset.days * DAY + offset.seconds
