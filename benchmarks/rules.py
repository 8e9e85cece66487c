"""Recurrence rules: the next occurrence, the latest one, and the longest refusal (SPEC 6.6).

The peer is python-dateutil's `after` and `before`, the usual way to ask in Python. It goes through all
occurrences from DTSTART on. A refusal has no peer, as dateutil goes on to the year 9999; it is held
against the 50 ms that any input may take.
"""

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import dateutil.rrule
from dateutil import tz

from benchmarks.harness.rows import Row, cost_row
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.shape import Rule
from whenidle_protocol.rules.weekly import WeeklyRule

_NOW = datetime(2026, 6, 1, 12, 34, 56, tzinfo=UTC)
_ZONE = "America/New_York"
_LATE = timedelta(days=3)
_ROUNDS = 5_000
_OLD_START = datetime(2006, 1, 1, 9)  # noqa: DTZ001 - local time
_NEW_START = datetime(2026, 1, 1, 9)  # noqa: DTZ001 - local time
_OLD = {
    "daily": "FREQ=DAILY",
    "last weekday of the month": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "every third week": "FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,WE",
    "hourly on Mondays": "FREQ=HOURLY;BYDAY=MO",
    "daily, a count of 10,000": "FREQ=DAILY;COUNT=10000",
}
_IMPOSSIBLE = [
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3",
    "FREQ=WEEKLY;INTERVAL=999999999;BYDAY=MO;BYMONTH=1;BYSETPOS=2",
    "FREQ=MINUTELY;INTERVAL=10081;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;INTERVAL=999;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=YEARLY;BYMONTH=3;BYDAY=2SU;BYHOUR=2;BYMINUTE=30",
    "FREQ=DAILY;BYDAY=" + "MO," * 3000 + "XX",
]


_SIMPLE: list[tuple[Rule, str]] = [
    (DailyRule("09:00", _ZONE), "FREQ=DAILY"),
    (WeeklyRule("09:00", _ZONE, [1, 5]), "FREQ=WEEKLY;BYDAY=MO,FR"),
    (
        CronRule("*/15 9-17 * * 1-5", _ZONE),
        "FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16,17;BYMINUTE=0,15,30,45",
    ),
    (EveryRule(3600, datetime(2026, 1, 1, 9, tzinfo=UTC)), "FREQ=HOURLY"),
]


def run(scale: float = 1.0) -> list[Row]:
    """Measure microseconds a question, with `scale` times 5,000 questions; a refusal in milliseconds."""
    rounds = max(10, int(_ROUNDS * scale))
    rows = [row for name, parts in _OLD.items() for row in _old_rule(name, parts, rounds)]
    for rule, parts in _SIMPLE:
        theirs = _dateutil(parts, _NEW_START)
        ours, peer = _per_call(rule.next, rounds), _once(theirs.after)
        rows.append(cost_row(f"rules: next, {rule.kind}", ours, peer, "us", "dateutil, DTSTART 5 months ago"))
        ours, peer = _per_call(_latest(rule), rounds), _once(theirs.before)
        rows.append(cost_row(f"rules: latest, {rule.kind}", ours, peer, "us", "dateutil, DTSTART 5 months ago"))
    slowest = max(_refusal(parts) for parts in _IMPOSSIBLE)
    rows.append(cost_row("rules: slowest refusal", slowest * 1e3, 50.0, "ms", "most it may take"))
    return rows


def _old_rule(name: str, parts: str, rounds: int) -> list[Row]:
    """Compare a rule whose DTSTART lies twenty years back."""
    ours = RRuleRule.parse(f"DTSTART;TZID={_ZONE}:{_OLD_START:%Y%m%dT%H%M%S}\nRRULE:{parts}")
    theirs = _dateutil(parts, _OLD_START)
    peer_name = "dateutil, DTSTART 20 years ago"
    return [
        cost_row(f"rules: next, rrule {name}", _per_call(ours.next, rounds), _once(theirs.after), "us", peer_name),
        cost_row(
            f"rules: latest, rrule {name}", _per_call(_latest(ours), rounds), _once(theirs.before), "us", peer_name
        ),
    ]


def _dateutil(parts: str, start: datetime) -> Any:
    return dateutil.rrule.rrulestr(f"RRULE:{parts}", dtstart=start.replace(tzinfo=tz.gettz(_ZONE)))


def _latest(rule: Rule) -> Callable[[datetime], object]:
    return lambda now: rule.latest(now - _LATE, now)


def _per_call(ask: Callable[[datetime], object], rounds: int) -> float:
    """Return microseconds a call, each at another moment, the first ones included."""
    moments = [_NOW + timedelta(minutes=977 * step) for step in range(rounds)]
    began = time.perf_counter()
    for moment in moments:
        ask(moment)
    return (time.perf_counter() - began) / rounds * 1e6


def _once(ask: Callable[[datetime], object]) -> float:
    began = time.perf_counter()
    ask(_NOW)
    return (time.perf_counter() - began) * 1e6


def _refusal(parts: str) -> float:
    began = time.perf_counter()
    with contextlib.suppress(RuleError):
        RRuleRule.parse(f"DTSTART;TZID={_ZONE}:20260601T090000\nRRULE:{parts}")
    return time.perf_counter() - began
