from __future__ import annotations

import itertools
import zoneinfo
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle_clock.zones import Gap, Overlap, load_zone, occurrences_of
from whenidle_protocol.preview import preview
from whenidle_protocol.recurrence.occurrences import Change
from whenidle_protocol.recurrence.seconds import utc_at, utc_second
from whenidle_protocol.recurrence.zone_years import stretches_of
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.shape import CatchUp

from .clocks import CASES, MINUTE, shown
from .oracle import expand

POLICIES = list(itertools.product(["skip", "shift"], ["first", "both"]))
PARTS = [
    "FREQ=MINUTELY",
    "FREQ=MINUTELY;INTERVAL=7",
    "FREQ=MINUTELY;INTERVAL=45;BYHOUR=0,1,2,3,23",
    "FREQ=HOURLY",
    "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,15,44",
    "FREQ=DAILY;BYHOUR=0,1,2,3,4,23;BYMINUTE=0,29,30,31,45",
    "FREQ=WEEKLY;BYDAY=SA,SU,FR;BYHOUR=2,3;BYMINUTE=15,45",
    "FREQ=MONTHLY;BYDAY=-1SU,FR,SA;BYHOUR=0,2,23;BYMINUTE=5,55",
    "FREQ=WEEKLY;BYDAY=SU,SA,FR;BYHOUR=0,1,2,23;BYMINUTE=0,20,40;BYSETPOS=1,2,4,6,9,17,22,-1,-2,-5,-8",
]


@pytest.mark.parametrize(("zone", "day"), CASES)
@pytest.mark.parametrize("parts", PARTS)
def test_rules_come_due_when_a_wall_clock_says_so(zone: str, day: str, parts: str) -> None:
    """CASES 1, 2, 6: around the changes of awkward zones, under all policies, as a walk by the minute finds."""
    clock = shown(zone, day)
    first = clock.minutes[0][1].replace(hour=0, minute=0) - timedelta(days=3)
    if "BYSETPOS" in parts:  # in a week that DTSTART cuts python-dateutil counts from DTSTART
        first -= timedelta(days=first.weekday())
    end = clock.minutes[-1][1] + timedelta(days=1)
    plain = f"DTSTART:{first:%Y%m%dT%H%M%S}\nRRULE:{parts}"
    # python-dateutil takes plain and numbered days to exclude each other.
    texts = [plain.replace("-1SU,FR,SA", days) for days in ("-1SU", "FR,SA")] if "-1SU" in parts else [plain]
    local = {each for text in texts for each in itertools.takewhile(lambda each: each <= end, expand(text))}
    made = RRuleRule.parse(f"DTSTART;TZID={zone}:{first:%Y%m%dT%H%M%S}\nRRULE:{parts}")
    for gap, overlap in POLICIES:
        expected = clock.due(local.__contains__, gap, overlap)
        following, found = made.next(clock.start, gap=Gap(gap), overlap=Overlap(overlap)), []
        while following is not None and following <= clock.end:
            found.append(following)
            following = made.next(following, gap=Gap(gap), overlap=Overlap(overlap))
        assert found == expected
        assert all(before < after for before, after in itertools.pairwise(found))


@pytest.mark.parametrize(("zone", "day"), CASES)
def test_latest_counts_what_a_wall_clock_showed(zone: str, day: str) -> None:
    """The number of occurrences a delivery stands for is right across a change, under all policies."""
    clock = shown(zone, day)
    rule = CronRule("*/15 * * * *", zone)
    for gap, overlap in POLICIES:
        due = clock.due(lambda local: local.minute % 15 == 0, gap, overlap)
        for now in (due[-1] + timedelta(seconds=59), *due[::5]):
            caught = rule.latest(due[0], now, gap=Gap(gap), overlap=Overlap(overlap))
            expected = [each for each in due if each <= now]
            assert (caught.occurrence_at, caught.missed) == (expected[-1], len(expected) - 1)


def test_daily_in_a_gap_is_skipped_or_shifted() -> None:
    """CASES 1: 02:30 in New York over 2026-03-08."""
    rule, after = DailyRule("02:30", "America/New_York"), datetime(2026, 3, 7, 12, tzinfo=UTC)
    (skipped,) = rule.preview(after, 1)
    assert skipped.utc == datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
    assert skipped.skipped == (datetime(2026, 3, 8, 2, 30),)  # noqa: DTZ001 - clocks never showed it
    shifted, following = rule.preview(after, 2, gap=Gap.SHIFT)
    assert (shifted.utc, shifted.change) == (datetime(2026, 3, 8, 7, 30, tzinfo=UTC), Change.SHIFTED)
    assert f"{shifted.local:%H:%M %z}" == "03:30 -0400"
    assert (following.utc, following.change) == (skipped.utc, None)
    assert following.skipped == ()


def test_the_latest_occurrence_within_a_change() -> None:
    """A shifted one is the latest as soon as it is due; within the hour that is shown again it is one before."""
    rule = DailyRule("02:30", "America/New_York")
    target, shifted = datetime(2026, 3, 7, 7, 30, tzinfo=UTC), datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    following = datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
    assert rule.latest(target, shifted, gap=Gap.SHIFT) == CatchUp(shifted, following, 1)
    assert rule.latest(target, shifted) == CatchUp(target, following, 0)
    rule = DailyRule("01:15", "America/New_York")
    first, again = datetime(2026, 11, 1, 5, 15, tzinfo=UTC), datetime(2026, 11, 1, 6, 15, tzinfo=UTC)
    following = datetime(2026, 11, 2, 6, 15, tzinfo=UTC)
    assert rule.latest(first, again) == CatchUp(first, following, 0)
    assert rule.latest(first, again, overlap=Overlap.BOTH) == CatchUp(again, following, 1)


def test_hourly_over_the_end_of_saving_time_has_no_hole() -> None:
    """CASES 2: all distances are an hour exactly, and the preview marks the hour that is shown twice."""
    found = preview(
        "DTSTART;TZID=America/New_York:20261031T000000\nRRULE:FREQ=HOURLY",
        after=datetime(2026, 11, 1, 3, 30, tzinfo=UTC),
        count=5,
    )
    assert {after.utc - before.utc for before, after in itertools.pairwise(found)} == {timedelta(hours=1)}
    assert [each.change for each in found] == [None, Change.FIRST_OF_TWO, Change.SECOND_OF_TWO, None, None]
    assert [each.local.fold for each in found] == [0, 0, 1, 0, 0]


def test_a_shifted_time_that_meets_another_is_one_occurrence() -> None:
    """02:30 shifted is 03:30, which the rule has already; it counts once and was not changed."""
    rule = "DTSTART;TZID=America/New_York:20260301T003000\nRRULE:FREQ=DAILY;BYHOUR=2,3"
    after = datetime(2026, 3, 8, tzinfo=UTC)
    found = preview(rule, after=after, count=2, gap="shift")
    assert [each.utc for each in found] == [
        datetime(2026, 3, 8, 7, 30, tzinfo=UTC),
        datetime(2026, 3, 9, 6, 30, tzinfo=UTC),
    ]
    assert found[0].change is None


def test_count_counts_instants() -> None:
    """A match that clocks skip does not use up the COUNT; one they show twice does so twice."""
    skipping = "DTSTART;TZID=America/New_York:20260307T023000\nRRULE:FREQ=DAILY;COUNT=3"
    found = preview(skipping, after=datetime(2026, 1, 1, tzinfo=UTC), count=9)
    assert [each.local.day for each in found] == [7, 9, 10]
    found = preview(skipping, after=datetime(2026, 1, 1, tzinfo=UTC), count=9, gap="shift")
    assert [each.local.day for each in found] == [7, 8, 9]
    repeating = "DTSTART;TZID=America/New_York:20261101T003000\nRRULE:FREQ=HOURLY;COUNT=4"
    found = preview(repeating, after=datetime(2026, 1, 1, tzinfo=UTC), count=9)
    assert [f"{each.local:%H:%M %z}" for each in found] == ["00:30 -0400", "01:30 -0400", "01:30 -0500", "02:30 -0500"]


def test_a_count_is_used_up_over_the_years() -> None:
    """Each question counts no further than it must, in whatever order they are asked."""
    rule = RRuleRule.parse("DTSTART:20200115T090000Z\nRRULE:FREQ=MONTHLY;COUNT=40")
    first, last = datetime(2020, 1, 15, 9, tzinfo=UTC), datetime(2023, 4, 15, 9, tzinfo=UTC)
    assert rule.latest(first, first + timedelta(days=70)) == CatchUp(
        datetime(2020, 3, 15, 9, tzinfo=UTC), datetime(2020, 4, 15, 9, tzinfo=UTC), 2
    )
    assert rule.next(last - timedelta(days=1)) == last
    assert rule.next(last) is None
    assert rule.next(first) == datetime(2020, 2, 15, 9, tzinfo=UTC)
    assert rule.latest(first, last + timedelta(days=9999)) == CatchUp(last, None, 39)


def test_a_dtstart_shown_twice_is_the_first_of_the_two() -> None:
    """SPEC 1.6: in an overlap the earlier instant is taken."""
    rule = RRuleRule.parse("DTSTART;TZID=America/New_York:20261101T013000\nRRULE:FREQ=DAILY;COUNT=2")
    assert rule.start.instant == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    found = rule.preview(datetime(2026, 1, 1, tzinfo=UTC), 9)
    assert [(each.utc, each.change) for each in found] == [
        (datetime(2026, 11, 1, 5, 30, tzinfo=UTC), Change.FIRST_OF_TWO),
        (datetime(2026, 11, 2, 6, 30, tzinfo=UTC), None),
    ]


@pytest.mark.parametrize(("zone", "day"), CASES[::3])
def test_each_second_between_two_occurrences_has_the_same_next_one(zone: str, day: str) -> None:
    """No second is special, not even one within a change."""
    rule = RRuleRule.parse(f"DTSTART;TZID={zone}:19900101T001500\nRRULE:FREQ=HOURLY;INTERVAL=1")
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    first, second = (each.utc for each in rule.preview(start, 2, gap=Gap.SHIFT))
    steps = int((second - first).total_seconds())
    found = {rule.next(first + timedelta(seconds=step), gap=Gap.SHIFT) for step in range(steps)}
    assert found == {second}
    assert rule.next(second - timedelta(milliseconds=1), gap=Gap.SHIFT) == second


def test_seconds_of_a_day_without_clock_change() -> None:
    """The same for a daily rule, all 86,400 of them."""
    rule = DailyRule("09:00", "Europe/Berlin")
    first, second = (each.utc for each in rule.preview(datetime(2026, 6, 1, tzinfo=UTC), 2))
    assert {rule.next(first + timedelta(seconds=step)) for step in range(86_400)} == {second}


ZONES = sorted(name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/"))


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(ZONES),
    year=st.integers(1840, 2040) | st.sampled_from([1, 1799, 1800, 2100, 2101, 2128, 2129, 2400, 9998, 9999]),
    data=st.data(),
)
def test_a_year_of_any_zone_falls_into_stretches_of_one_offset(name: str, year: int, data: st.DataObject) -> None:
    """They leave out no second, and each has the offset that zoneinfo tells at any instant in it."""
    zone = load_zone(name)
    stretches = stretches_of(zone, year)
    assert utc_at(stretches[0].start) == datetime(year, 1, 1, tzinfo=UTC)
    assert utc_at(stretches[-1].end - 1) == datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    for before, after in itertools.pairwise(stretches):
        assert before.end == after.start == after.turn
        assert before.offset == after.before != after.offset
    if year in {1, 9999}:
        return  # the zone's local time may lie in a year that cannot be written
    for each in stretches:
        inside = data.draw(st.integers(each.start, each.end - 1))
        for at in (each.start, inside, each.end - 1):
            assert utc_at(at).astimezone(zone).utcoffset() == timedelta(seconds=each.offset)


def test_a_change_at_the_turn_of_the_year_begins_the_first_stretch() -> None:
    """Casey took up clocks eight hours ahead at 1969-01-01T00:00Z; the change is remembered into the year after too."""
    (only,) = stretches_of(load_zone("Antarctica/Casey"), 1969)
    assert utc_at(only.start) == datetime(1969, 1, 1, tzinfo=UTC)
    assert (only.turn, only.before, only.offset) == (only.start, 0, 8 * 3600)
    apia = stretches_of(load_zone("Pacific/Apia"), 2012)[0]
    assert utc_at(apia.turn) == datetime(2011, 12, 30, 10, tzinfo=UTC)
    assert apia.offset - apia.before == 24 * 3600


@settings(max_examples=150, deadline=None)
@given(case=st.sampled_from(CASES), minute=st.integers(0, 3 * 24 * 60 - 1), policies=st.sampled_from(POLICIES))
def test_local_times_become_the_instants_that_the_clock_floor_gives(
    case: tuple[str, str], minute: int, policies: tuple[str, str]
) -> None:
    """A single local time stands for the same instants here as in `occurrences_of`."""
    local = shown(*case).minutes[0][1] + minute * MINUTE
    gap, overlap = Gap(policies[0]), Overlap(policies[1])
    zone = load_zone(case[0])
    rule = CronRule(f"{local.minute} {local.hour} {local.day} {local.month} *", case[0])
    expected = occurrences_of(local, zone, gap, overlap)
    found = rule.preview(local.replace(tzinfo=UTC) - timedelta(days=3), 2, gap=gap, overlap=overlap)
    near = [each.utc for each in found if abs(each.utc - local.replace(tzinfo=UTC)) < timedelta(days=3)]
    assert tuple(near) == expected
    assert utc_second(local.replace(tzinfo=ZoneInfo("UTC"))) == utc_second(local.replace(tzinfo=UTC))
