"""What rules cost, in calls rather than in time; what is counted at once is what comes one by one (SPEC 6.6)."""

from __future__ import annotations

import contextlib
import itertools
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.errors import ToolError
from whenidle_protocol.recurrence import years, zone_years
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.recurrence.seconds import utc_second
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.simple import simplify
from whenidle_protocol.task_settings import TaskSettings
from whenidle_protocol.task_timing import check_spacing

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MOST_CALLS = 250_000
"""That takes no more than 50 ms, which any input may: a machine makes five to ten million in a second."""


def numbers(low: int, high: int) -> str:
    """Return a list as parts have it, without 0."""
    return ",".join(map(str, (*range(low, 0), *range(1, high + 1))))


MINUTES = "0," + numbers(1, 59)
HOURS = "0," + numbers(1, 23)
POSITIONS = numbers(-366, 366)
MONTH_DAYS = numbers(-31, 31)
YEAR_DAYS = numbers(-366, 366)
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NUMBERED = ",".join(f"{nth}{day}" for nth in (*range(-53, 0), "", *range(1, 54)) for day in WEEKDAYS)
BEGINS = ("00010102T000000", "18000101T000000", "20161231T235959")
NASTY = (
    "FREQ=DAILY;COUNT=999999999",
    "FREQ=DAILY;COUNT=700000;BYHOUR=3",
    "FREQ=MINUTELY;COUNT=999999999",
    "FREQ=MINUTELY;INTERVAL=29;COUNT=99999;BYYEARDAY=-57",
    "FREQ=HOURLY;INTERVAL=5;COUNT=3000000",
    "FREQ=WEEKLY;INTERVAL=1440;COUNT=99999;WKST=WE",
    "FREQ=WEEKLY;INTERVAL=997;COUNT=999999999;BYMONTH=12",
    "FREQ=WEEKLY;INTERVAL=52;COUNT=1;BYDAY=MO,TU,SA,FR,SU;BYSETPOS=-350,343",
    f"FREQ=WEEKLY;INTERVAL=53;BYDAY={','.join(WEEKDAYS)};BYMONTH=2;BYSETPOS=7,-7",
    "FREQ=MONTHLY;COUNT=999999999;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1",
    "FREQ=MONTHLY;COUNT=40000;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1",
    f"FREQ=MONTHLY;INTERVAL=11;BYMONTH=12;BYDAY={NUMBERED}",
    f"FREQ=MONTHLY;BYMONTHDAY=31;BYDAY={NUMBERED};BYSETPOS=2",
    f"FREQ=MONTHLY;COUNT=99999;BYMONTHDAY={MONTH_DAYS};BYHOUR={HOURS};BYMINUTE={MINUTES};BYSETPOS=151",
    f"FREQ=MONTHLY;INTERVAL=1439;BYMONTHDAY={MONTH_DAYS};BYDAY={NUMBERED};BYSETPOS={POSITIONS}",
    "FREQ=YEARLY;COUNT=99999;BYWEEKNO=23,-19;BYHOUR=5",
    f"FREQ=YEARLY;BYYEARDAY=-354;BYDAY={NUMBERED}",
    f"FREQ=YEARLY;INTERVAL=400;BYYEARDAY={YEAR_DAYS};BYHOUR={HOURS};BYMINUTE={MINUTES};BYSETPOS={POSITIONS}",
    f"FREQ=YEARLY;BYMONTH=6;BYYEARDAY={YEAR_DAYS};BYWEEKNO={numbers(-53, 53)}",
    "FREQ=DAILY;INTERVAL=366;COUNT=10;BYMONTH=5;BYMONTHDAY=28;BYDAY=TU,SA",
    f"FREQ=DAILY;INTERVAL=55797;COUNT=99999;BYMONTHDAY=30;BYHOUR={HOURS};BYMINUTE={MINUTES};BYSETPOS={POSITIONS}",
    f"FREQ=HOURLY;INTERVAL=999983;COUNT=10;BYYEARDAY=-191,135;BYMONTHDAY={MONTH_DAYS};BYMINUTE={MINUTES}",
    f"FREQ=MINUTELY;INTERVAL=999999;COUNT=99999;BYYEARDAY=29,-59;BYMONTHDAY={MONTH_DAYS}",
    f"FREQ=MINUTELY;INTERVAL=1441;COUNT=1000;BYHOUR={HOURS};BYMINUTE=46",
)


@pytest.mark.parametrize("parts", NASTY, ids=lambda parts: parts[:60])
@pytest.mark.parametrize("zone", ["UTC", "Antarctica/Troll"])
def test_whatever_is_written_is_answered_at_once(zone: str, parts: str) -> None:
    """With all that a new task is asked, the first time in its zone, wherever it begins."""
    for begin in BEGINS:
        text = f"DTSTART;TZID={zone}:{begin}\nRRULE:{parts}"
        assert len(text) <= 10_000
        assert calls_of(partial(accept, text)) < MOST_CALLS, begin


def accept(text: str) -> None:
    """Ask of a rule what is asked before a task of it is made."""
    with contextlib.suppress(ToolError):  # nor do refusals take longer
        rule = simplify(RRuleRule.parse(text))
        first = rule.first(NOW, gap=Gap.SHIFT)
        if first is not None:
            check_spacing(rule, first, {"gap": Gap.SHIFT, "overlap": None}, TaskSettings(spacing_seconds=61))


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions are called by `work`, when nothing is known yet."""
    for each in (zone_years.stretches_of, years.year_at):
        each.cache_clear()
    calls = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


COUNTED = (
    "FREQ=MINUTELY;INTERVAL=217;BYHOUR=0,1,2,3,4,23",
    "FREQ=HOURLY;INTERVAL=7;BYMINUTE=10,50",
    "FREQ=HOURLY;INTERVAL=25;BYHOUR=1,2,3;BYDAY=SU,MO",
    "FREQ=HOURLY;BYHOUR=1,2;BYMINUTE=0,45;BYMONTH=1,3,4,10,11",
    "FREQ=DAILY;INTERVAL=3;BYHOUR=0,2;BYMINUTE=15,30",
    "FREQ=DAILY;INTERVAL=400;BYHOUR=2",
    "FREQ=WEEKLY;BYDAY=SA,SU,MO;BYHOUR=2,23;BYSETPOS=2,3,-1",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU,MO,TU;WKST=TU;BYSETPOS=1,-1",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR,-1SU;BYHOUR=1,2;BYSETPOS=1,3,-2,-1",
    "FREQ=YEARLY;BYWEEKNO=1,13,44,53;BYDAY=SU,MO;BYHOUR=2",
    "FREQ=YEARLY;BYDAY=-1SU,10MO;BYHOUR=1,2,3;BYSETPOS=2,-2",
)
DIVERSE = ("UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")


@settings(max_examples=150, deadline=None)
@given(
    parts=st.sampled_from(COUNTED),
    zone=st.sampled_from(DIVERSE),
    gap=st.sampled_from(Gap),
    overlap=st.sampled_from(Overlap),
    begin=st.datetimes(datetime(2009, 12, 20), datetime(2014, 1, 5)),  # noqa: DTZ001 - local time
    data=st.data(),
)
def test_what_is_counted_is_what_comes(  # noqa: PLR0917 - drawn
    parts: str, zone: str, gap: Gap, overlap: Overlap, begin: datetime, data: st.DataObject
) -> None:
    """Occurrences one by one are as many as are counted between any two moments, and COUNT ends with its last."""
    text = f"DTSTART;TZID={zone}:{begin:%Y%m%dT%H%M%S}\nRRULE:{parts}"
    try:
        rule = RRuleRule.parse(text)
    except RuleError as error:
        assert "does not exist" in error.message  # noqa: PT017 - DTSTART is skipped
        return
    after = begin.replace(tzinfo=UTC) - timedelta(days=2)
    seconds = [
        utc_second(each.utc) for each in itertools.islice(rule.occurrences(after, gap=gap, overlap=overlap), 500)
    ]
    low, high = sorted(data.draw(st.integers(0, len(seconds) - 1)) for _ in range(2))
    timeline = rule.timeline(gap, overlap)
    assert timeline.count(seconds[low], seconds[high]) == high - low
    assert timeline.count(seconds[low] + 1, seconds[high] + 1) == high - low
    ends = RRuleRule.parse(f"{text};COUNT={high + 1}").timeline(gap, overlap)
    if data.draw(st.booleans()):
        assert ends.first(seconds[high]) == seconds[high]
    assert ends.first(seconds[high] + 1) is None
    assert ends.last(seconds[-1]) == seconds[high]


@pytest.mark.parametrize("parts", COUNTED)
def test_a_count_that_lasts_for_centuries_ends_with_its_last(parts: str) -> None:
    """It is reached in steps of many years, and its place in the last step is found."""
    text = f"DTSTART;TZID=America/New_York:17000105T013000\nRRULE:{parts}"
    endless = RRuleRule.parse(text).timeline()
    for until in (utc_second(datetime(year, 7, 1, tzinfo=UTC)) for year in (1701, 1765, 1890, 2026)):
        number = endless.count(endless.begin, until)
        if number:
            ends = RRuleRule.parse(f"{text};COUNT={number}").timeline()
            assert ends.last(until + 1) == endless.last(until - 1)
            assert ends.first(until) is None
