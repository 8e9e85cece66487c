"""When something is planned to come due: the lab's own reckoning, slow and plain.

Nothing here is shared with `whenidle_protocol.rules`, which finds occurrences by calculation. A rule in local time
is tried at each minute of a day in UTC: what do clocks in the zone show then, and is that a local time of the
rule? So a time that clocks skip is never found, and one that they show twice is found twice, the second time
with `fold`. Days are remembered over all runs, because all runs have the same few days.

Rules that this reckoning does not cover have no plan (`plan_of` returns None): local times that shift out of a
gap, and RRULEs of another form than FREQ=MINUTELY, HOURLY, DAILY or WEEKLY with INTERVAL, COUNT, UNTIL, WKST, plain
BYDAY, BYHOUR and BYMINUTE. What lies further away than `FARTHEST` days is not looked for, either (`TooFar`).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from zoneinfo import ZoneInfo

import attrs

from whenidle_lab.invariants.frames import millis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FARTHEST: Final = 400
"""Days."""

_DAY: Final = 86_400_000
_MINUTES: Final = 1_440
_LAST: Final = 253_402_300_799_999
"""The end of the year 9999, in milliseconds."""
_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local times are naive
_START = re.compile(r"DTSTART(?:;TZID=(?P<zone>[^:]+))?:(?P<local>\d{8}T\d{6})Z?")


class TooFar(Exception):
    """The answer lies further away than is worth looking for."""


@attrs.frozen
class Once:
    """At one instant."""

    at: int

    def next(self, after: int) -> int | None:
        """Return the first occurrence later than `after`; all instants are in milliseconds since the epoch."""
        return self.at if self.at > after else None

    def run(self, first: int, until: int) -> list[int] | range:
        """Return the occurrences from `first`, which is one, up to `until`."""
        return [first] if first <= until else []


@attrs.frozen
class Steady:
    """At an instant, and every `period` after it."""

    anchor: int
    period: int

    def next(self, after: int) -> int | None:
        """See `Once.next`."""
        found = self.anchor + max(0, (after - self.anchor) // self.period + 1) * self.period
        return found if found <= _LAST else None

    def run(self, first: int, until: int) -> list[int] | range:
        """See `Once.run`."""
        return range(first, min(until, _LAST) + 1, self.period)


@attrs.frozen
class Days:
    """Which days are among those of a rule; empty sets are all."""

    months: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Monday."""
    either: bool = False
    """Whether one of the two last is enough, as in a crontab that restricts both."""

    def has(self, day: date) -> bool:
        """Return whether a day is among them."""
        if self.months and day.month not in self.months:
            return False
        by_month = not self.month_days or day.day in self.month_days
        by_week = not self.weekdays or day.weekday() in self.weekdays
        return (by_month or by_week) if self.either else (by_month and by_week)


@attrs.frozen
class Clock:
    """A rule of local times, by the minute."""

    zone: str
    hours: frozenset[int]
    minutes: frozenset[int]
    days: Days
    second: int = 0
    unit: int = 1
    """Minutes of what `interval` counts."""
    interval: int = 1
    anchor: int = 0
    """A local minute of the first of them."""
    shift: int = 0
    """Minutes by which they begin before 1970 did: weeks begin on Thursday otherwise."""
    begin: int = -(1 << 62)
    """The first local minute, since 1970."""
    both: bool = False
    """Whether a local time that clocks show twice counts twice."""

    def has(self, local: datetime) -> bool:
        """Return whether what clocks show, at one of its hours and minutes, is a time of the rule."""
        if local.fold and not self.both:
            return False
        minute = (local.replace(tzinfo=None, fold=0, second=0) - _NAIVE) // timedelta(minutes=1)
        count = (minute + self.shift) // self.unit - (self.anchor + self.shift) // self.unit
        return minute >= self.begin and count % self.interval == 0 and self.days.has(local.date())


@lru_cache(maxsize=64)
def _shown(zone: str, day: int) -> tuple[datetime, ...]:
    """Return what clocks in a zone show at each minute of a day in UTC, counted since 1970."""
    found, begin = ZoneInfo(zone), day * _MINUTES
    return tuple(datetime.fromtimestamp(minute * 60, found) for minute in range(begin, begin + _MINUTES))


@lru_cache(maxsize=16_384)
def _of_day(clock: Clock, day: int) -> tuple[int, ...]:
    """Return the instants of such a day at which clocks show a time of the rule."""
    return tuple(
        ((day * _MINUTES + number) * 60 + clock.second) * 1000
        for number, local in enumerate(_shown(clock.zone, day))
        if local.minute in clock.minutes and local.hour in clock.hours and clock.has(local)
    )


@attrs.frozen
class Local:
    """At local times of a zone, in a range of instants."""

    clock: Clock
    since: int = 0
    until: int = _LAST
    count: int | None = None
    """How many there are at all; counted from `since`."""

    def next(self, after: int) -> int | None:
        """See `Once.next`.

        Raises:
            TooFar: there may be one further away than `FARTHEST` days.
        """
        if self.count is not None:
            return next((each for each in _counted(self) if each > after), None)
        return next(_walk(self, max(after + 1, self.since)), None)

    def run(self, first: int, until: int) -> list[int] | range:
        """See `Once.run`.

        Raises:
            TooFar: that is more than `FARTHEST` days.
        """
        if self.count is not None:
            return [each for each in _counted(self) if first <= each <= until]
        if until - first > FARTHEST * _DAY:
            raise TooFar
        found: list[int] = []
        for each in _walk(self, first):
            if each > until:
                break
            found.append(each)
        return found


def _walk(plan: Local, start: int) -> Iterator[int]:
    """Iterate over the occurrences at or after `start`, however many there may be."""
    day = start // _DAY
    for number in range(day, day + FARTHEST):
        if number * _DAY > plan.until:
            return
        for each in _of_day(plan.clock, number):
            if each > plan.until:
                return
            if each >= start:
                yield each
    raise TooFar


@lru_cache(maxsize=1_024)
def _counted(plan: Local) -> tuple[int, ...]:
    return tuple(islice(_walk(plan, plan.since), plan.count))


Plan: TypeAlias = Once | Steady | Local


def plan_of(rule: Mapping[str, Any], gap: str, overlap: str | None) -> Plan | None:
    """Return when a stored rule comes due; None if this reckoning does not cover it.

    Args:
        rule: as it is stored.
        gap: what it does with local times that clocks skip: `skip` or `shift`.
        overlap: what it does with those that they show twice: `first` or `both`; None for what its kind does.
    """
    kind = rule["kind"]
    if kind in {"after", "at"}:
        return Once(millis(rule["scheduledAt"]))
    if kind == "every":
        return Steady(millis(rule["anchor"]), rule["everySeconds"] * 1000)
    if gap != "skip" and rule["timeZone"] != "UTC":
        return None
    if kind == "rrule":
        return _of_rrule(rule["rrule"], overlap)
    if kind == "cron":
        return Local(_cron(rule["expression"], rule["timeZone"], overlap))
    return _of_time(rule, overlap)


def _of_time(rule: Mapping[str, Any], overlap: str | None) -> Local:
    hour, minute, *second = map(int, rule["time"].split(":"))
    since = millis(rule["start"]) if "start" in rule else 0
    clock = Clock(
        rule["timeZone"],
        frozenset({hour}),
        frozenset({minute}),
        Days(weekdays=frozenset(each - 1 for each in rule.get("weekdays", ()))),
        second[0] if second else 0,
        both=overlap == "both",
    )
    if since:
        local = (_UNIX + timedelta(milliseconds=since)).astimezone(ZoneInfo(rule["timeZone"]))
        clock = attrs.evolve(clock, begin=_minute(local.replace(tzinfo=None)))
    return Local(clock, since)


def _minute(local: datetime) -> int:
    return (local - _NAIVE) // timedelta(minutes=1)


# cron -----------------------------------------------------------------------------------------


def _cron(expression: str, zone: str, overlap: str | None) -> Clock:
    texts = expression.split()
    minute, hour, month_day, month, weekday = (
        _numbers(text, low, high)
        for text, (low, high) in zip(texts, ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6)), strict=True)
    )
    always = texts[0].startswith("*") or texts[1].startswith("*")
    days = Days(
        month,
        month_day,
        frozenset((each - 1) % 7 for each in weekday),
        either=not (texts[2].startswith("*") or texts[4].startswith("*")),
    )
    both = always if overlap is None else overlap == "both"
    return Clock(zone, hour, minute, days, both=both)


def _numbers(text: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            found.update(range(low, high + 1, int(step or 1)))
        else:
            found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(found)


# RRULE ----------------------------------------------------------------------------------------

_UNITS: Final = {"MINUTELY": 1, "HOURLY": 60, "DAILY": _MINUTES, "WEEKLY": 7 * _MINUTES}
_KNOWN: Final = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYHOUR", "BYMINUTE"}
_THURSDAY: Final = 3
"""The weekday of 1970-01-01."""


def _of_rrule(text: str, overlap: str | None) -> Local | None:
    start_text, rule_text = text.split("\n")
    parts = dict(part.split("=") for part in rule_text.removeprefix("RRULE:").split(";"))
    start = _START.fullmatch(start_text)
    days = parts["BYDAY"].split(",") if "BYDAY" in parts else []
    frequency = parts["FREQ"]
    if start is None or not parts.keys() <= _KNOWN or frequency not in _UNITS or not set(days) <= set(_WEEKDAYS):
        return None
    begin = datetime.strptime(start["local"], "%Y%m%dT%H%M%S")  # noqa: DTZ007 - local times are naive
    zone, minute = start["zone"] or "UTC", _minute(begin)
    unit, weekday = _UNITS[frequency], days or ([_WEEKDAYS[begin.weekday()]] if frequency == "WEEKLY" else [])
    within_a_day = frequency in {"MINUTELY", "HOURLY"}
    clock = Clock(
        zone,
        _values(parts, "BYHOUR", range(24) if within_a_day else [begin.hour]),
        _values(parts, "BYMINUTE", range(60) if frequency == "MINUTELY" else [begin.minute]),
        Days(weekdays=frozenset(_WEEKDAYS.index(each) for each in weekday)),
        begin.second,
        unit,
        int(parts.get("INTERVAL", 1)),
        minute,
        (_THURSDAY - _WEEKDAYS.index(parts.get("WKST", "MO"))) % 7 * _MINUTES if frequency == "WEEKLY" else 0,
        begin=minute,
        both=within_a_day if overlap is None else overlap == "both",
    )
    since = (begin.replace(tzinfo=ZoneInfo(zone)) - _UNIX) // timedelta(milliseconds=1)
    until = _LAST if "UNTIL" not in parts else _until(parts["UNTIL"])
    return Local(clock, since, until, int(parts["COUNT"]) if "COUNT" in parts else None)


def _values(parts: Mapping[str, str], name: str, otherwise: Iterable[int]) -> frozenset[int]:
    return frozenset(map(int, parts[name].split(",")) if name in parts else otherwise)


def _until(text: str) -> int:
    return (datetime.strptime(text, "%Y%m%dT%H%M%S%z") - _UNIX) // timedelta(milliseconds=1)
