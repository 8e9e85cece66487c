from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from dateutil.rrule import rrulestr

from whenidle_clock.zones import Gap, Overlap
from whenidle_lab.invariants.plans import FARTHEST, Local, TooFar, plan_of
from whenidle_protocol.preview import preview
from whenidle_protocol.task_rules import decode_rule, encode_rule, read_rrule, simplified
from whenidle_protocol.task_settings import TaskSettings
from whenidle_protocol.task_timing import policies

from .task_tales import DAY, after, at, every

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def millis(instant: datetime) -> int:
    """Return milliseconds since the epoch."""
    return (instant - EPOCH) // timedelta(milliseconds=1)


def planned(rule: dict[str, Any], since: int, count: int, overlap: str | None = None) -> list[int]:
    """Return the next occurrences by the lab's own reckoning."""
    plan = plan_of(rule, "skip", overlap)
    assert plan is not None
    found: list[int] = []
    following = plan.next(since)
    while following is not None and len(found) < count:
        found.append(following)
        following = plan.next(following)
    if len(found) > 1 and found[-1] - found[0] <= FARTHEST * DAY:
        assert list(plan.run(found[0], found[-1])) == found
    return found


ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca")
WEEKS = ("2026-03-07", "2026-03-28", "2026-04-04", "2026-10-24", "2026-10-31")
"""Weeks in which clocks of one zone or another change."""


def rules() -> Iterator[dict[str, Any]]:
    """Iterate over stored rules of local times."""
    for zone in ZONES:
        for hour in ("01:30", "02:00", "02:30", "23:59:30"):
            yield {"kind": "daily", "time": hour, "timeZone": zone}
            yield {"kind": "weekly", "time": hour, "timeZone": zone, "weekdays": [6, 7]}
        for expression in ("*/20 * * * *", "30 1-3 * * *", "15 */2 * * 0", "5 2 1,15 * 0", "0 0 28-31 * *"):
            yield {"kind": "cron", "expression": expression, "timeZone": zone}


@pytest.mark.parametrize("week", WEEKS)
def test_times_of_day_and_crontabs_come_due_as_the_runtime_says(week: str) -> None:
    """Two reckonings that share nothing find the same occurrences, around every change of clocks."""
    since = millis(datetime.fromisoformat(week).replace(tzinfo=UTC))
    for stored in rules():
        for overlap in (None, Overlap.FIRST, Overlap.BOTH):
            rule = decode_rule(stored)
            expected = preview(rule, after=EPOCH + timedelta(milliseconds=since), count=4, overlap=overlap)
            found = planned(stored, since, 4, None if overlap is None else overlap.value)
            assert found == [millis(each.utc) for each in expected], (stored, overlap)


RECURRENCES = (
    "FREQ=DAILY",
    "FREQ=DAILY;INTERVAL=3;COUNT=5",
    "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=15,45",
    "FREQ=DAILY;BYDAY=SA,SU;BYHOUR=2",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU,MO;WKST=SU",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU,MO",
    "FREQ=WEEKLY",
    "FREQ=HOURLY;INTERVAL=5",
    "FREQ=HOURLY;BYHOUR=1,2,3;BYMINUTE=0,30",
    "FREQ=MINUTELY;INTERVAL=50",
    "FREQ=MINUTELY;INTERVAL=7;BYHOUR=2;COUNT=30",
    "FREQ=DAILY;UNTIL=20261101T120000Z",
)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", RECURRENCES)
def test_recurrences_come_due_as_the_runtime_says(zone: str, text: str) -> None:
    """A rule of RFC 5545 has the same occurrences in both reckonings, whichever kind it is stored as."""
    start = "DTSTART:20261023T013000Z" if zone == "UTC" else f"DTSTART;TZID={zone}:20261023T013000"
    rule = simplified(read_rrule(f"{start}\nRRULE:{text}"), policies(None, None, TaskSettings()))
    for day in ("2026-10-20", "2026-10-24", "2026-10-31", "2026-11-02"):
        since = datetime.fromisoformat(day).replace(tzinfo=UTC)
        expected = [millis(each.utc) for each in preview(rule, after=since, count=40)]
        assert planned(encode_rule(rule), millis(since), 40) == expected, (zone, text, day)


@pytest.mark.parametrize("text", RECURRENCES[:9])
def test_recurrences_in_utc_come_due_as_a_third_engine_says(text: str) -> None:
    """In UTC, where there is no policy, an engine that knows neither agrees."""
    start = "DTSTART:20261023T013000Z"
    engine = rrulestr(f"{start}\nRRULE:{text}")
    expected = [millis(each) for each in engine.xafter(datetime(2026, 10, 25, tzinfo=UTC), count=30)]
    stored = {"kind": "rrule", "rrule": f"{start}\nRRULE:{text}", "timeZone": "UTC"}
    assert planned(stored, millis(datetime(2026, 10, 25, tzinfo=UTC)), 30) == expected


def test_rules_without_local_time_are_arithmetic() -> None:
    """One instant, or an anchor and what follows it, up to the end of the year 9999."""
    assert planned(at(5_000), 0, 3) == planned(after(5, 0), 0, 3) == [5_000]
    assert planned(at(5_000), 5_000, 3) == []
    assert planned(every(60, 90_000), 0, 3) == [90_000, 150_000, 210_000]
    assert planned(every(60, 90_000), 90_000, 2) == [150_000, 210_000]
    last = 253_402_300_799_999
    assert planned(every(60, last - 1), last - 2, 3) == [last - 1]


def test_daily_rules_do_not_run_before_their_start() -> None:
    """A rule that began as an RRULE has nothing before its DTSTART."""
    start = {"kind": "daily", "time": "09:00", "timeZone": "Europe/Paris", "start": "2026-03-10T08:00:00.000Z"}
    assert planned(start, 0, 1) == [millis(datetime(2026, 3, 10, 8, tzinfo=UTC))]


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=MONTHLY",
        "FREQ=DAILY;BYMONTH=3",
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=DAILY;BYSETPOS=1;BYHOUR=1,2",
        "FREQ=YEARLY",
    ],
)
def test_other_recurrences_have_no_plan(text: str) -> None:
    """What the reckoning does not cover it does not guess."""
    stored = {"kind": "rrule", "rrule": f"DTSTART:20260310T090000Z\nRRULE:{text}", "timeZone": "UTC"}
    assert plan_of(stored, "skip", None) is None


def test_local_times_that_shift_have_no_plan() -> None:
    """With the policy `shift` a zone that changes its clocks is not covered; UTC is."""
    stored = {"kind": "daily", "time": "02:30", "timeZone": "Europe/Paris"}
    assert plan_of(stored, Gap.SHIFT.value, None) is None
    assert plan_of(stored | {"timeZone": "UTC"}, Gap.SHIFT.value, None) is not None


def test_what_is_too_far_away_is_not_looked_for() -> None:
    """A rule that seldom comes due, or a run over years, says so instead of taking its time."""
    leap = plan_of({"kind": "cron", "expression": "0 0 29 2 *", "timeZone": "UTC"}, "skip", None)
    assert isinstance(leap, Local)
    with pytest.raises(TooFar):
        leap.next(millis(datetime(2025, 3, 1, tzinfo=UTC)))
    with pytest.raises(TooFar):
        leap.run(0, (FARTHEST + 1) * DAY)
