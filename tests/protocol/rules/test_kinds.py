from __future__ import annotations

import datetime as dt
import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from whenidle_clock.instants import MAX_INSTANT
from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.preview import preview
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.recurrence.occurrences import Occurrence
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.shape import CatchUp
from whenidle_protocol.rules.weekly import WeeklyRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_protocol.rules.kinds import Rule

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
PARIS = "Europe/Paris"

ALL: list[Rule] = [
    AfterRule(90),
    AtRule(NOW + HOUR),
    EveryRule(3600, NOW),
    DailyRule("09:00", PARIS),
    WeeklyRule("09:00", PARIS, [1, 5]),
    CronRule("0 9 * * *", PARIS),
    RRuleRule.parse(f"DTSTART;TZID={PARIS}:20260101T090000\nRRULE:FREQ=DAILY"),
]


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.kind)
def test_the_seven_kinds_answer_the_same_questions(rule: Rule) -> None:
    """First, next, latest and preview agree with one another."""
    found = preview(rule, after=NOW, count=3)
    assert found == rule.preview(NOW, 3)
    first = rule.first(NOW)
    assert first is not None
    assert found[0].utc == first
    assert found[0].local.tzname() == ("UTC" if rule.time_zone == "UTC" else "CEST")
    assert all(each.local == each.utc for each in found)
    assert [rule.next(each.utc - SECOND) for each in found] == [each.utc for each in found] or rule.kind == "after"
    caught = rule.latest(first, first)
    assert (caught.occurrence_at, caught.missed) == (first, 0)
    assert preview(rule, after=NOW, count=0) == ()
    with pytest.raises(ValueError, match="nothing is due"):
        rule.latest(first, first - SECOND)


@pytest.mark.parametrize("rule", [each for each in ALL if each.kind not in {"after", "at"}], ids=lambda rule: rule.kind)
def test_latest_stands_for_all_missed_ones(rule: Rule) -> None:
    """SPEC 6.7: the latest due one, how many it stands for, the first one after."""
    known = [each.utc for each in rule.preview(NOW, 40)]
    for missed, offset in itertools.product((0, 1, 7, 30), (timedelta(0), SECOND)):
        assert rule.latest(known[3], known[3 + missed] + offset) == CatchUp(
            known[3 + missed], known[4 + missed], missed
        )


def test_a_target_is_due_though_the_rule_has_changed() -> None:
    """SPEC 1.6: a settled target is delivered, whatever zone data or policies say now; it counts as one."""
    rule = DailyRule("09:00", PARIS)
    settled = datetime(2026, 6, 1, 7, 30, tzinfo=UTC)  # where the rule now has 07:00
    assert rule.latest(settled, settled + HOUR) == CatchUp(settled, datetime(2026, 6, 2, 7, tzinfo=UTC), 0)
    later = datetime(2026, 6, 3, 8, tzinfo=UTC)
    assert rule.latest(settled, later) == CatchUp(later.replace(hour=7), later.replace(day=4, hour=7), 2)
    ended = RRuleRule.parse("DTSTART:20260601T090000Z\nRRULE:FREQ=DAILY;COUNT=2")
    before = datetime(2026, 5, 1, tzinfo=UTC)
    assert ended.latest(before, before) == CatchUp(before, datetime(2026, 6, 1, 9, tzinfo=UTC), 0)


def test_a_wall_clock_that_jumps_to_2200_costs_nothing() -> None:
    """CASES 8: a rule of each minute, 174 years late, and the exact number of minutes."""
    rule = RRuleRule.parse("DTSTART;TZID=America/New_York:20260101T090000\nRRULE:FREQ=MINUTELY")
    later = datetime(2200, 1, 1, tzinfo=UTC)
    assert rule.latest(NOW, later) == CatchUp(
        later, later + timedelta(minutes=1), (later - NOW) // timedelta(minutes=1)
    )


def test_after_is_once_and_counts_from_when_it_was_made() -> None:
    """Before it was made from the time asked about, later from its settled target."""
    rule = AfterRule(90)
    assert rule.first(NOW) == NOW + 90 * SECOND
    made = AfterRule(90, NOW + 90 * SECOND)
    assert made.next(NOW + HOUR) is None
    assert made.next(NOW) == NOW + 90 * SECOND
    assert made.latest(NOW + 90 * SECOND, NOW + DAY) == CatchUp(NOW + 90 * SECOND, None, 0)
    with pytest.raises(ToolError) as error:
        rule.first(MAX_INSTANT)
    assert error.value.code is ReminderCode.TIME_OUT_OF_RANGE


def test_at_is_once() -> None:
    """Its instant until then, nothing after; kept in UTC and whole milliseconds."""
    rule = AtRule(datetime(2026, 6, 1, 15, 0, 0, 1999, tzinfo=dt.timezone(2 * HOUR)))
    assert rule.scheduled_at == NOW.replace(hour=13, microsecond=1000)
    assert rule.scheduled_at.tzinfo is UTC
    assert rule.next(NOW) == rule.scheduled_at
    assert rule.next(rule.scheduled_at) is None
    assert rule.preview(rule.scheduled_at, 5) == ()
    assert rule.preview(NOW, 5) == (Occurrence(rule.scheduled_at, rule.scheduled_at),)


def test_every_keeps_its_phase_and_ends_with_9999() -> None:
    """At the anchor, then interval by interval; without an anchor one interval from when it is made."""
    assert EveryRule(3600).first(NOW) == NOW + HOUR
    rule = EveryRule(3600, NOW)
    assert rule.next(NOW - DAY) == NOW
    assert rule.next(NOW) == NOW + HOUR
    assert rule.next(NOW + 1000 * DAY + SECOND) == NOW + 1000 * DAY + HOUR
    assert rule.next(NOW + timedelta(microseconds=3_599_999_000)) == NOW + HOUR
    assert EveryRule(60, NOW).next(MAX_INSTANT) is None
    assert EveryRule(60, NOW).preview(MAX_INSTANT - SECOND, 5) == ()


@pytest.mark.parametrize("seconds", [0, -1, 1.5, True, "90", None, 2**53])
def test_seconds_are_positive_safe_integers(seconds: int) -> None:
    """For after and every alike."""
    with pytest.raises(RuleError) as error:
        AfterRule(seconds)
    assert error.value.message == "after_seconds is a whole number of seconds, at least 1, for example 90."
    with pytest.raises(RuleError) as error:
        EveryRule(seconds)
    assert error.value.message == "every_seconds is a whole number of seconds, at least 60, for example 3600."


def test_every_is_at_most_once_a_minute() -> None:
    """Fewer than 60 seconds are too frequent."""
    with pytest.raises(RuleError) as error:
        EveryRule(59)
    assert (error.value.code, error.value.message) == (
        ReminderCode.FREQUENCY_TOO_HIGH,
        "every_seconds is at least 60: nothing comes due more often than once a minute.",
    )


def test_nothing_comes_due_before_the_start() -> None:
    """A daily or weekly rule may begin at an instant; one due at that instant is the first."""
    start = datetime(2026, 7, 3, 7, tzinfo=UTC)
    assert DailyRule("09:00", PARIS, start=start).next(NOW) == start
    late = start + timedelta(milliseconds=1)
    assert DailyRule("09:00", PARIS, start=late).next(NOW) == start + DAY
    assert WeeklyRule("09:00", PARIS, [5], start=late).next(NOW) == start + 7 * DAY
    assert WeeklyRule("09:00", PARIS, [5], start=start).latest(start, start + 8 * DAY) == CatchUp(
        start + 7 * DAY, start + 14 * DAY, 1
    )
    again = datetime(2026, 11, 1, 6, 15, tzinfo=UTC)  # 01:15 in New York, the second time
    rule = DailyRule("01:30", "America/New_York", start=again)
    assert rule.next(NOW) == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)
    assert rule.next(NOW, overlap=Overlap.BOTH) == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)


def test_weekly_has_iso_weekdays() -> None:
    """Monday 1 to Sunday 7, sorted and without doubles."""
    rule = WeeklyRule(dt.time(9), "UTC", [7, 1, 7])
    assert rule.weekdays == (1, 7)
    assert [each.utc.isoweekday() for each in rule.preview(NOW, 4)] == [7, 1, 7, 1]


@pytest.mark.parametrize("weekdays", [[], [0], [8], ["1"], [True], [1.0]])
def test_refused_weekdays(weekdays: list[int]) -> None:
    """Only numbers from 1 to 7, and at least one."""
    with pytest.raises(RuleError) as error:
        WeeklyRule("09:00", "UTC", weekdays)
    assert error.value.message == (
        "weekdays is a list of one or more numbers from 1 (Monday) to 7 (Sunday), for example [1, 5]."
    )


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("9:00", "time '9:00' is not a time of day; write hours, minutes and, if need be, seconds, like"),
        ("24:00", "time '24:00' does not exist; hours go to 23, minutes and seconds to 59."),
        (dt.time(9, microsecond=1), "time 09:00:00.000001 has a zone or a fraction of a second; leave them out."),
        (dt.time(9, tzinfo=UTC), "time 09:00:00+00:00 has a zone or a fraction of a second; leave them out."),
    ],
)
def test_refused_times(time: dt.time | str, message: str) -> None:
    """Whole seconds, no zone of their own, and within a day."""
    with pytest.raises(RuleError) as error:
        DailyRule(time, "UTC")
    assert error.value.message.startswith(message)
    assert DailyRule("09:00:30", "UTC").time == dt.time(9, 0, 30)


@pytest.mark.parametrize(
    "make",
    [
        lambda zone: DailyRule("09:00", zone),
        lambda zone: WeeklyRule("09:00", zone, [1]),
        lambda zone: CronRule("* * * * *", zone),
    ],
)
def test_zones_are_known_by_name(make: Callable[[str], Rule]) -> None:
    """Names in any case, written as IANA does; no abbreviation."""
    assert make("europe/paris").time_zone == PARIS
    with pytest.raises(RuleError) as error:
        make("CET")
    assert (error.value.code, error.value.message) == (
        ReminderCode.INVALID_TIME_ZONE,
        (
            '\'CET\' is not a time zone; write "UTC" or an IANA zone like "Europe/Paris": '
            "abbreviations and offsets are not zones."
        ),
    )


def test_rules_end_with_the_year_9999() -> None:
    """CASES 4: weekly on Saturdays and Sundays to 9999-12-31, in any zone, and then nothing."""
    after = datetime(9999, 12, 25, tzinfo=UTC)
    for zone, days in (("UTC", [25, 26]), ("Pacific/Apia", [25, 26]), ("Pacific/Honolulu", [25, 26])):
        rule = RRuleRule.parse(f"DTSTART;TZID={zone}:99991201T120000\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU")
        found = rule.preview(after - DAY / 2, 9)
        assert [each.local.day for each in found] == days
        assert rule.next(found[-1].utc) is None
        assert rule.latest(found[0].utc, MAX_INSTANT) == CatchUp(found[1].utc, None, 1)
    last = RRuleRule.parse("DTSTART:99980101T120000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1")
    assert last.latest(after, MAX_INSTANT).occurrence_at == datetime(9999, 12, 31, 12, tzinfo=UTC)
    assert DailyRule("23:59:59", "UTC").next(MAX_INSTANT - SECOND) == MAX_INSTANT.replace(microsecond=0)
    last = RRuleRule.parse("DTSTART:99980101T120000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1")
    assert last.latest(after, MAX_INSTANT).occurrence_at == datetime(9999, 12, 31, 12, tzinfo=UTC)
    assert DailyRule("23:59:59", "UTC").next(MAX_INSTANT) is None
    assert DailyRule("20:00", "America/New_York").next(datetime(9999, 12, 31, 1, tzinfo=UTC)) is None


def test_rules_begin_with_the_year_1() -> None:
    """The first instants there are come due like any others."""
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert DailyRule("00:00:01", "UTC").next(first) == first + SECOND
    assert DailyRule("12:00", "Asia/Tokyo").next(first).isoformat() == "0001-01-01T02:41:01+00:00"  # type: ignore[union-attr]  # there is one
    rule = DailyRule("12:00", "UTC", start=first)
    assert rule.latest(first + 1 * DAY / 2, first + 1 * DAY) == CatchUp(first + DAY / 2, first + DAY * 1.5, 0)
    assert rule.timeline().last(86_400) is None


def test_preview_refuses_what_makes_no_sense() -> None:
    """A negative count, a naive instant, an unknown policy."""
    with pytest.raises(ValueError, match="count is how many occurrences to show, 0 or more; it is -1"):
        preview(ALL[3], after=NOW, count=-1)
    with pytest.raises(ValueError, match="an instant needs a time zone"):
        preview(ALL[3], after=NOW.replace(tzinfo=None), count=1)
    with pytest.raises(ValueError, match="never"):
        preview(ALL[3], after=NOW, count=1, gap="never")
    elsewhere = NOW.astimezone(dt.timezone(-5 * HOUR))
    assert preview(ALL[3], after=elsewhere, count=1, gap="skip", overlap="first") == ALL[3].preview(
        NOW, 1, gap=Gap.SKIP, overlap=Overlap.FIRST
    )


def test_rules_are_values() -> None:
    """Equal when made of equal parts, whatever was asked of them before, and usable as keys."""
    one, two = DailyRule("09:00", PARIS), DailyRule(dt.time(9), "europe/paris")
    one.next(NOW)
    assert one == two
    assert len({one, two}) == 1
    assert "timeline" not in repr(one)


def test_a_rule_that_rarely_matches_is_searched_once() -> None:
    """Leap days on a Monday at a multiple of 1441 minutes: the same answer from any moment before it."""
    parts = "FREQ=MINUTELY;INTERVAL=1441;BYMONTH=2;BYMONTHDAY=29;BYHOUR=3,4,5,6"
    rule = RRuleRule.parse(f"DTSTART:20260101T030000Z\nRRULE:{parts}")
    first = rule.next(NOW)
    assert first is not None
    assert (first.month, first.day) == (2, 29)
    assert {rule.next(NOW + each * DAY) for each in range(300)} == {first}
    assert rule.next(first - SECOND) == first
    assert rule.latest(first, first + 10 * DAY) == CatchUp(first, rule.next(first), 0)
    assert rule.timeline().last(first.toordinal() * 86_400 - 86_400) is None
