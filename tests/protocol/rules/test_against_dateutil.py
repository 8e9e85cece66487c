from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle_protocol.rules.rrule import RRuleRule

from .oracle import Made, expand, parsed, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 60


def ours(text: str, horizon: datetime) -> list[datetime]:
    """Return our occurrences up to the horizon; a rule that never comes due has none."""
    rule, refusal = parsed(text)
    if rule is None:
        assert refusal.startswith("invalid_rule: The rule never comes due")
        return []
    found = (each.utc for each in rule.occurrences(datetime(1900, 1, 1, tzinfo=UTC)))
    return list(itertools.islice(itertools.takewhile(lambda utc: utc <= horizon, found), SHOWN))


@settings(max_examples=250, deadline=None)
@given(made=rules())
def test_all_parts_expand_as_in_python_dateutil(made: Made) -> None:
    """FREQ, INTERVAL, COUNT, WKST, BYSETPOS and all BY parts, in any combination the standard allows."""
    assert ours(made.text, made.horizon) == made.oracle()[:SHOWN]


@settings(max_examples=60, deadline=None)
@given(made=rules(), until=st.timedeltas(timedelta(0), timedelta(days=3000)))
def test_until_ends_a_rule_at_that_instant(made: Made, until: timedelta) -> None:
    """An occurrence at UNTIL itself is the last."""
    end = (made.start + until).replace(microsecond=0, tzinfo=UTC)
    text = Made(made.start, made.parts, None).lines(f";UNTIL={end:%Y%m%dT%H%M%S}Z")
    assert (
        ours(text, made.horizon)
        == [each for each in Made(made.start, made.parts, None).oracle() if each <= end][:SHOWN]
    )


@settings(max_examples=60, deadline=None)
@given(made=rules(), step=st.timedeltas(timedelta(seconds=1), timedelta(days=800)))
def test_next_latest_and_missed_agree_with_a_list_of_all_occurrences(made: Made, step: timedelta) -> None:
    """From any target to any later moment: the latest, how many it stands for, and the one after."""
    known = ours(made.text, made.horizon)
    if len(known) < 2:
        return
    rule = RRuleRule.parse(made.text)
    for index in (0, len(known) // 2):
        target, now = known[index], min(known[index] + step, known[-1])
        due = [each for each in known[index:] if each <= now]
        caught = rule.latest(target, now)
        assert (caught.occurrence_at, caught.missed) == (due[-1], len(due) - 1)
        assert caught.next_at == rule.next(now)
        later = [each for each in known if each > now]
        assert later[:1] == [] or caught.next_at == later[0]


def _union(start: str, frequency: str, parts: Sequence[str], until: str) -> list[datetime]:
    lines = [f"DTSTART:{start}\nRRULE:FREQ={frequency};BYDAY={part};UNTIL={until}" for part in parts]
    return sorted(set(itertools.chain.from_iterable(expand(text) for text in lines)))


@pytest.mark.parametrize("frequency", ["MONTHLY", "YEARLY", "YEARLY;BYMONTH=2,11"])
@pytest.mark.parametrize("days", ["-1SU,FR", "SU,2SA", "1MO,-1MO,WE,TH", "FR,5FR"])
def test_plain_and_numbered_days_mix(frequency: str, days: str) -> None:
    """CASES 39: each Friday and the last Sunday, where python-dateutil alone finds nothing."""
    expected = _union("20260101T090000Z", frequency, days.split(","), "20350101T000000Z")
    text = f"DTSTART:20260101T090000Z\nRRULE:FREQ={frequency};BYDAY={days}"
    assert ours(text, datetime(2035, 1, 1, tzinfo=UTC)) == expected[:SHOWN]


def test_a_set_position_counts_from_the_begin_of_the_week_that_dtstart_cuts() -> None:
    """The first weekday of a week is its Monday, also in the week whose Wednesday is DTSTART."""
    text = "DTSTART:20260107T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1"
    assert ours(text, datetime(2026, 1, 20, tzinfo=UTC)) == [
        datetime(2026, 1, 12, 9, tzinfo=UTC),
        datetime(2026, 1, 19, 9, tzinfo=UTC),
    ]


def test_a_week_number_alone_keeps_the_weekday_of_dtstart() -> None:
    """CASES 40: week 53, only in years that have one, on the day of the week that DTSTART has (RFC 5545 3.3.10)."""
    text = "DTSTART:20260107T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=53;COUNT=5"
    found = ours(text, datetime(2100, 1, 1, tzinfo=UTC))
    assert [f"{each:%G-W%V-%u}" for each in found] == [
        "2026-W53-3",
        "2032-W53-3",
        "2037-W53-3",
        "2043-W53-3",
        "2048-W53-3",
    ]


@pytest.mark.parametrize("number", [*range(-53, -46), *range(-4, 0), *range(1, 5), *range(50, 54)])
def test_week_numbers_are_those_of_iso_8601(number: int) -> None:
    """Each day in the week, in its own year of weeks, of forty years; days in another calendar year included."""
    expected: list[datetime] = []
    for day in range(366 * 40):
        moment = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=day)
        year, week, _ = moment.isocalendar()
        last = datetime(year, 12, 28, tzinfo=UTC).isocalendar().week
        if number in {week, week - last - 1}:
            expected.append(moment)
    text = f"DTSTART:20000101T000000Z\nRRULE:FREQ=YEARLY;BYWEEKNO={number};BYDAY=MO,TU,WE,TH,FR,SA,SU"
    found = RRuleRule.parse(text).preview(datetime(1999, 1, 1, tzinfo=UTC), len(expected))
    assert [each.utc for each in found] == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("-53", ["2026-01-01", "2032-01-01", "2037-01-01"]),
        ("-52", ["2026-01-08", "2027-01-07", "2028-01-06"]),
    ],
)
def test_weeks_count_from_the_end_of_their_own_year(number: str, expected: list[str]) -> None:
    """-53 is week 1 of a year of 53 weeks; -52 its week 2, or week 1 of a year of 52."""
    text = f"DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO={number};BYDAY=TH"
    assert [f"{each:%Y-%m-%d}" for each in ours(text, datetime(2045, 1, 1, tzinfo=UTC))][: len(expected)] == expected
    found = ours(text, datetime(2045, 1, 1, tzinfo=UTC))
    for each in found:
        year, week, _ = each.isocalendar()
        last = datetime(year, 12, 28, tzinfo=UTC).isocalendar().week
        assert week - last - 1 == int(number)
