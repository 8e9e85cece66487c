from __future__ import annotations

import datetime as dt
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle_clock.zones import Gap
from whenidle_protocol.recurrence.text import Start
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.simple import SimpleRule, read_rrule, simplify, to_rrule
from whenidle_protocol.rules.weekly import WeeklyRule

from .clocks import CHANGES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PARIS = "Europe/Paris"
WINTER = datetime(2026, 3, 1, 8, 0, 30, tzinfo=UTC)  # a Sunday, 09:00:30 in Paris
NOON = datetime(2026, 3, 1, 9, tzinfo=UTC)
NINE = dt.time(9, 0, 30)


@pytest.mark.parametrize(
    ("parts", "simple"),
    [
        ("FREQ=MONTHLY;BYDAY=1MO;COUNT=1", AtRule(datetime(2026, 3, 2, 8, 0, 30, tzinfo=UTC))),
        ("FREQ=DAILY", DailyRule(NINE, PARIS, start=WINTER)),
        ("FREQ=DAILY;INTERVAL=1;WKST=SU;BYHOUR=9", DailyRule(NINE, PARIS, start=WINTER)),
        ("FREQ=DAILY;BYHOUR=17;BYMINUTE=5;BYSECOND=0", DailyRule("17:05", PARIS, start=WINTER)),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU", DailyRule(NINE, PARIS, start=WINTER)),
        ("FREQ=WEEKLY", WeeklyRule(NINE, PARIS, [7], start=WINTER)),
        ("FREQ=DAILY;INTERVAL=7", WeeklyRule(NINE, PARIS, [7], start=WINTER)),
        ("FREQ=WEEKLY;BYDAY=TU,MO;WKST=SU", WeeklyRule(NINE, PARIS, [1, 2], start=WINTER)),
        ("FREQ=DAILY;BYDAY=TU,MO;BYHOUR=17", WeeklyRule("17:00:30", PARIS, [1, 2], start=WINTER)),
    ],
)
def test_rules_that_mean_a_simpler_kind(parts: str, simple: SimpleRule) -> None:
    """SPEC 6.3: COUNT=1 is at, a plain daily or weekly rule is daily or weekly, from DTSTART on."""
    rule = read_rrule(f"DTSTART;TZID={PARIS}:20260301T090030\nRRULE:{parts}", now=NOW)
    assert rule == simple


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ("FREQ=MINUTELY", 60),
        ("FREQ=MINUTELY;INTERVAL=7;BYSECOND=0", 420),
        ("FREQ=HOURLY;INTERVAL=2;BYMINUTE=0", 7200),
        ("FREQ=DAILY;INTERVAL=2;BYHOUR=9", 172_800),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;WKST=SU", 1_209_600),
    ],
)
def test_a_plain_interval_in_utc_is_every(parts: str, seconds: int) -> None:
    """From DTSTART on, which is its anchor."""
    rule = read_rrule(f"DTSTART:20260301T090000Z\nRRULE:{parts}", now=NOW)
    assert rule == EveryRule(seconds, NOON)


@pytest.mark.parametrize(
    ("zone", "parts"),
    [
        (PARIS, "FREQ=HOURLY"),  # an hour of local time is not always 3600 seconds
        (PARIS, "FREQ=DAILY;INTERVAL=2"),
        (PARIS, "FREQ=DAILY;COUNT=2"),
        ("UTC", "FREQ=HOURLY;UNTIL=20300101T000000Z"),
        ("UTC", "FREQ=HOURLY;BYHOUR=9"),
        ("UTC", "FREQ=MINUTELY;BYMINUTE=0"),
        ("UTC", "FREQ=DAILY;BYHOUR=9,17"),
        ("UTC", "FREQ=DAILY;BYMONTH=3"),
        ("UTC", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU"),
        ("UTC", "FREQ=DAILY;INTERVAL=7;BYDAY=SU"),
        ("UTC", "FREQ=MONTHLY"),
        ("UTC", "FREQ=YEARLY;INTERVAL=2"),
    ],
)
def test_rules_that_stay_what_they_are(zone: str, parts: str) -> None:
    """What no simpler kind can say."""
    text = f"DTSTART;TZID={zone}:20260301T090000\nRRULE:{parts}"
    assert read_rrule(text, now=NOW) == RRuleRule.parse(text)


def test_the_policies_settle_the_instant_of_a_count_of_one() -> None:
    """A first match in a gap is skipped for the next, or shifted."""
    text = "DTSTART;TZID=America/New_York:20260307T120000\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30;COUNT=1"
    assert read_rrule(text, now=NOW) == AtRule(datetime(2026, 3, 9, 6, 30, tzinfo=UTC))
    assert read_rrule(text, now=NOW, gap=Gap.SHIFT) == AtRule(datetime(2026, 3, 8, 7, 30, tzinfo=UTC))


@settings(max_examples=120, deadline=None)
@given(
    zone=st.sampled_from(["UTC", *CHANGES]),
    start=st.datetimes(datetime(2015, 1, 1), datetime(2025, 1, 1)),  # noqa: DTZ001 - local times
    parts=st.sampled_from(
        [
            "FREQ=DAILY",
            "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
            "FREQ=DAILY;INTERVAL=7",
            "FREQ=WEEKLY;BYDAY=SU,SA,MO",
            "FREQ=WEEKLY;BYHOUR=1",
            "FREQ=HOURLY;INTERVAL=5",
            "FREQ=MINUTELY;INTERVAL=45",
            "FREQ=DAILY;INTERVAL=3",
            "FREQ=WEEKLY;INTERVAL=2",
            "FREQ=YEARLY;COUNT=1",
        ]
    ),
    gap=st.sampled_from(Gap),
)
def test_the_simple_kind_has_the_same_occurrences_and_leads_back(
    zone: str, start: datetime, parts: str, gap: Gap
) -> None:
    """Before, at and after DTSTART; and the text of the simple kind has them too."""
    text = f"DTSTART;TZID={zone}:{start:%Y%m%dT%H%M}00\nRRULE:{parts}"
    try:
        rule = RRuleRule.parse(text)
    except ValueError:
        return  # DTSTART lies in a gap
    simple = simplify(rule, gap=gap)
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    expected = [each.utc for each in rule.preview(long_ago, 250, gap=gap)]
    assert [each.utc for each in simple.preview(long_ago, 250, gap=gap)] == expected
    again = to_rrule(simple, after=long_ago)
    assert again is not None
    assert [each.utc for each in again.preview(long_ago, 250)] == [each.utc for each in simple.preview(long_ago, 250)]
    assert RRuleRule.parse(again.rrule) == again


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (AtRule(NOON), "DTSTART:20260301T090000Z\nRRULE:FREQ=DAILY;COUNT=1"),
        (EveryRule(7200, NOON), "DTSTART:20260301T090000Z\nRRULE:FREQ=HOURLY;INTERVAL=2"),
        (EveryRule(90 * 60, NOON), "DTSTART:20260301T090000Z\nRRULE:FREQ=MINUTELY;INTERVAL=90"),
        (EveryRule(3600), "DTSTART:20260301T100000Z\nRRULE:FREQ=HOURLY"),
        (DailyRule("09:00", PARIS), f"DTSTART;TZID={PARIS}:20260302T090000\nRRULE:FREQ=DAILY"),
        (WeeklyRule("09:00", PARIS, [2, 7]), f"DTSTART;TZID={PARIS}:20260303T090000\nRRULE:FREQ=WEEKLY;BYDAY=TU,SU"),
        (DailyRule("09:00", PARIS, start=NOW), f"DTSTART;TZID={PARIS}:20260101T090000\nRRULE:FREQ=DAILY"),
    ],
)
def test_simple_kinds_as_text(rule: SimpleRule, text: str) -> None:
    """A rule that does not say when it begins, begins with its first occurrence later than the moment given."""
    again = to_rrule(rule, after=NOON)
    assert again is not None
    assert again.rrule == text


@pytest.mark.parametrize(
    "rule",
    [
        AtRule(NOON + timedelta(milliseconds=1)),
        EveryRule(90, NOON),
        EveryRule(3600, NOON + timedelta(milliseconds=1)),
        EveryRule(3600 * 10**9 * 2, NOON),
        EveryRule(3600 * 10**9),
        DailyRule("09:00", "UTC", start=datetime(9999, 12, 31, 23, tzinfo=UTC)),
    ],
)
def test_what_no_rule_of_the_standard_says(rule: SimpleRule) -> None:
    """Fractions of seconds, intervals that are no minutes or too long for a number, and a rule that has ended."""
    assert to_rrule(rule, after=NOON) is None


def test_a_zone_that_was_loaded_again_is_the_same_zone() -> None:
    """Rules are compared by the name of their zone, not by which object it was loaded into."""
    local = datetime(2026, 1, 1, 9, tzinfo=UTC).replace(tzinfo=None)
    start, again = Start(local, ZoneInfo("Europe/Paris")), Start(local, ZoneInfo.no_cache("Europe/Paris"))
    assert (start, hash(start)) == (again, hash(again))
