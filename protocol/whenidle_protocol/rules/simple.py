"""RRULE and the simpler kinds: the kind that a rule means, and the text that a kind means (SPEC 6.3)."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, TypeAlias

import attrs

from whenidle_protocol.errors import ReminderCode
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.recurrence.parts import MAX_NUMBER
from whenidle_protocol.recurrence.recur import Frequency, Recur, Weekday
from whenidle_protocol.recurrence.seconds import utc_at, utc_second
from whenidle_protocol.recurrence.text import Start

from .daily import DailyRule
from .interval import EveryRule
from .once import AtRule
from .rrule import RRuleRule
from .shape import zone_of
from .weekly import WeeklyRule

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_clock.zones import Gap, Overlap

SimpleRule: TypeAlias = AtRule | EveryRule | DailyRule | WeeklyRule
"""The kinds that a rule of RFC 5545 may come down to."""

_EVERY_DAY = tuple(range(1, 8))
_SECONDS = {Frequency.WEEKLY: 604_800, Frequency.DAILY: 86_400, Frequency.HOURLY: 3_600, Frequency.MINUTELY: 60}


def read_rrule(
    text: str, *, now: datetime, gap: Gap | None = None, overlap: Overlap | None = None
) -> SimpleRule | RRuleRule:
    """Return the rule that two lines of text mean, in its simplest kind, for a task made at `now` (SPEC 6.6).

    Raises:
        RuleError: as `RRuleRule.parse`, and `not_future` if nothing comes due later than `now`.
    """
    rule = simplify(RRuleRule.parse(text), gap=gap, overlap=overlap)
    if rule.first(now, gap=gap, overlap=overlap) is None:
        raise RuleError(
            ReminderCode.NOT_FUTURE,
            "The rule has no occurrence later than now; choose a later DTSTART, UNTIL or COUNT.",
        )
    return rule


def simplify(rule: RRuleRule, *, gap: Gap | None = None, overlap: Overlap | None = None) -> SimpleRule | RRuleRule:
    """Return the simplest kind with the same occurrences, or the rule itself.

    `COUNT=1` is `at`; a plain daily or weekly rule is `daily` or `weekly`, from DTSTART on; a plain interval
    in UTC is `every`. The policies matter to `COUNT=1` alone, whose instant is settled here.
    """
    if rule.recur.count == 1:
        timeline = rule.timeline(gap, overlap)
        only = timeline.first(timeline.begin)
        return rule if only is None else AtRule(utc_at(only))
    start, recur = rule.start, _without_repeats(rule)
    weekdays = _weekdays(start.local, recur)
    time = _time(start.local, recur)
    if weekdays and time:
        if weekdays == _EVERY_DAY:
            return DailyRule(time, rule.time_zone, start=start.instant)
        return WeeklyRule(time, rule.time_zone, weekdays, start=start.instant)
    plain = recur == Recur(recur.frequency, recur.interval, week_start=recur.week_start)
    if plain and rule.time_zone == "UTC" and recur.frequency in _SECONDS:
        return EveryRule(_SECONDS[recur.frequency] * recur.interval, start.instant)
    return rule


def to_rrule(rule: SimpleRule | RRuleRule, *, after: datetime) -> RRuleRule | None:
    """Return a rule of RFC 5545 with the same occurrences.

    A rule that says itself when it begins keeps all its occurrences; another begins with its first one later
    than `after`. None if it has no occurrence then, or if no rule of RFC 5545 has its occurrences: one
    with a fraction of a second, or an interval that is not in whole minutes.
    """
    match rule:
        case RRuleRule():
            return rule
        case AtRule():
            return _in_utc(rule.scheduled_at, Recur(Frequency.DAILY, count=1))
        case EveryRule():
            first = rule.anchor or rule.first(after)
            hours, rest = divmod(rule.every_seconds, _SECONDS[Frequency.HOURLY])
            minutes, fraction = divmod(rule.every_seconds, _SECONDS[Frequency.MINUTELY])
            recur = Recur(Frequency.MINUTELY, minutes) if rest else Recur(Frequency.HOURLY, hours)
            return None if first is None or fraction or recur.interval > MAX_NUMBER else _in_utc(first, recur)
        case DailyRule():
            return _in_zone(rule, Recur(Frequency.DAILY), after)
        case _:
            days = tuple(Weekday(each - 1) for each in rule.weekdays)
            return _in_zone(rule, Recur(Frequency.WEEKLY, by_day=days), after)


def _without_repeats(rule: RRuleRule) -> Recur:
    """Return the rule without those parts that say what DTSTART says already."""
    start, recur = rule.start.local, rule.recur
    return attrs.evolve(
        recur,
        by_second=() if recur.by_second == (start.second,) else recur.by_second,
        by_minute=()
        if recur.by_minute == (start.minute,) and recur.frequency is not Frequency.MINUTELY
        else recur.by_minute,
        by_hour=() if recur.by_hour == (start.hour,) and not recur.frequency.within_a_day else recur.by_hour,
        by_day=()
        if recur.by_day == (Weekday(start.weekday()),) and recur.frequency is Frequency.WEEKLY
        else recur.by_day,
    )


def _weekdays(start: datetime, recur: Recur) -> tuple[int, ...]:
    """Return the ISO weekdays of a rule that takes each of them every week; none if it is not like that."""
    known = attrs.evolve(recur, by_day=(), by_hour=(), by_minute=(), by_second=(), week_start=0)
    named = tuple(sorted(each.day + 1 for each in recur.by_day))
    if known == Recur(Frequency.DAILY):
        return named or _EVERY_DAY
    if known == Recur(Frequency.WEEKLY) or (known == Recur(Frequency.DAILY, 7) and not named):
        return named or (start.isoweekday(),)
    return ()


def _time(start: datetime, recur: Recur) -> dt.time | None:
    """Return the one time of day of a rule; None if it has several."""
    chosen = [recur.by_hour or (start.hour,), recur.by_minute or (start.minute,), recur.by_second or (start.second,)]
    if any(len(values) > 1 for values in chosen):
        return None
    hour, minute, second = (values[0] for values in chosen)
    return dt.time(hour, minute, second)


def _in_utc(first: datetime, recur: Recur) -> RRuleRule | None:
    if first.microsecond:
        return None
    return RRuleRule(Start(first.replace(tzinfo=None), zone_of("UTC")), recur)


def _in_zone(rule: DailyRule | WeeklyRule, recur: Recur, after: datetime) -> RRuleRule | None:
    timeline = rule.timeline()
    first = timeline.first(utc_second(after) + 1 if rule.start is None else timeline.begin)
    if first is None:
        return None
    zone = zone_of(rule.time_zone)
    return RRuleRule(Start(utc_at(first).astimezone(zone).replace(tzinfo=None, fold=0), zone), recur)
