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

from .seconds import DAY

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MAX_OFFSET: Final = 16 * 3600
"""No zone's local time was ever further from UTC (Asia/Manila until 1844: 15:56:08)."""

_SAMPLE = 3 * DAY
"""Zones keep an offset for longer: the shortest time ever between two changes is 6.96 days (Brazil in 2000)."""

_MEMORY = 2 * DAY
"""A change goes on to matter for as long as it repeats or skips: a day at most (Kwajalein, Apia)."""

_FIRST_CHANGE = 1800
"""No zone has a change before; what clocks showed then, if anything, was the sun's time."""

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
    """Return the stretch that holds the UTC second, which lies in years 1 to 9999."""
    stretches = stretches_of(zone, date.fromordinal(second // DAY).year)
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
        offset = _offset(zone, _begin(_FIRST_CHANGE))
        return (Stretch(start, end, offset, start, offset),)
    changes = _changes(zone, start - _MEMORY, end)
    found: list[Stretch] = []
    turn, before, offset = start, _offset(zone, start), _offset(zone, start)
    for at, old, new in changes:
        if at > start:
            found.append(Stretch(start, at, offset, turn, before))
            start = at
        turn, before, offset = at, old, new
    found.append(Stretch(start, end, offset, turn, before))
    return tuple(found)


def _alike(zone: ZoneInfo, year: int) -> tuple[Stretch, ...]:
    """Return the stretches of a year by moving there those of an earlier year that looks like it."""
    begin, leap = date(year, 1, 1), calendar.isleap(year)
    twin = next(
        each
        for each in range(_BY_RULE, _BY_RULE + _ALL_KINDS)
        if calendar.isleap(each) == leap and date(each, 1, 1).weekday() == begin.weekday()
    )
    move = (begin - date(twin, 1, 1)).days * DAY
    return tuple(
        Stretch(each.start + move, each.end + move, each.offset, each.turn + move, each.before)
        for each in stretches_of(zone, twin)
    )


def _changes(zone: ZoneInfo, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return (second, offset until then, offset from then on) of the changes after `start` and before `end`."""
    found: list[tuple[int, int, int]] = []
    known, offset = start, _offset(zone, start)
    while known < end - 1:
        sample = min(known + _SAMPLE, end - 1)
        new = _offset(zone, sample)
        if new != offset:
            low, high = known, sample
            while high - low > 1:
                middle = (low + high) // 2
                if _offset(zone, middle) == offset:
                    low = middle
                else:
                    high = middle
            found.append((high, offset, new))
            offset = new
        known = sample
    return found


def _begin(year: int) -> int:
    return date(year, 1, 1).toordinal() * DAY


def _offset(zone: ZoneInfo, second: int) -> int:
    offset = datetime.fromtimestamp(second - _UNIX, zone).utcoffset()
    assert offset is not None  # noqa: S101 - a ZoneInfo always has one
    return offset.days * DAY + offset.seconds
