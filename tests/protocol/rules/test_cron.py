from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.errors import ReminderCode
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.rules.cron import CronRule

from .clocks import CASES, shown

if TYPE_CHECKING:
    from collections.abc import Callable

RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
FORM = 'write five fields (minute, hour, day of month, month, day of week), like "30 9 * * 1-5"'


def allowed(field: str, low: int, high: int) -> set[int]:
    """Return the numbers of a field, read in the plainest way."""
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        start, end = (low, high) if first == "*" else (int(first), int(last or first))
        found |= set(range(start, end + 1, int(step or 1)))
    return found


def reader(expression: str) -> Callable[[datetime], bool]:
    """Return whether a minute is allowed, field by field, as crontab(5) says."""
    minute, hour, day, month, weekday = (
        allowed(field, *limits) for field, limits in zip(expression.split(), RANGES, strict=True)
    )
    _, _, day_text, _, weekday_text = expression.split()
    both = "*" in {day_text[0], weekday_text[0]}

    def wants(local: datetime) -> bool:
        on_day, on_weekday = local.day in day, bool({local.isoweekday() % 7, local.isoweekday()} & weekday)
        right_day = on_day and on_weekday if both else on_day or on_weekday
        return local.minute in minute and local.hour in hour and local.month in month and right_day

    return wants


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> str:
    """Any field: lists of stars, numbers, ranges and steps."""
    items: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        first, last = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
        step = draw(st.integers(1, min(high - low + 1, 7)))
        items.append(draw(st.sampled_from(["*", f"*/{step}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}"])))
    return ",".join(items)


expressions = st.tuples(*(st.just("*") | fields(low, high) for low, high in RANGES)).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(expression=expressions, case=st.sampled_from(CASES), gap=st.sampled_from(Gap), overlap=st.sampled_from(Overlap))
def test_expressions_come_due_at_each_minute_they_allow(
    expression: str, case: tuple[str, str], gap: Gap, overlap: Overlap
) -> None:
    """By brute force over the minutes of four days around a change of clocks."""
    clock = shown(*case)
    try:
        rule = CronRule(expression, case[0])
    except RuleError:
        assert not clock.due(reader(expression), "shift", "both")
        return
    expected = clock.due(reader(expression), gap.value, overlap.value)[:100]
    found = rule.preview(clock.start, len(expected), gap=gap, overlap=overlap)
    assert [each.utc for each in found] == expected


@settings(max_examples=200, deadline=None)
@given(expression=expressions)
def test_the_canonical_form_means_the_same(expression: str) -> None:
    """It is its own canonical form, and comes due at the same minutes of two years' first days of months."""
    try:
        rule = CronRule(expression, "UTC")
    except RuleError:
        return
    assert CronRule(rule.expression, "UTC") == rule
    wants, wants_canonical = reader(expression), reader(rule.expression)
    months = itertools.product((2023, 2024), range(1, 13))
    for year, month in months:
        for day, hour, minute in ((1, 0, 0), (7, 13, 37), (28, 23, 59)):
            local = datetime(year, month, day, hour, minute, tzinfo=UTC)
            assert wants(local) == wants_canonical(local)
            assert wants(local) == (rule.next(local - timedelta(seconds=1)) == local)


@pytest.mark.parametrize(
    ("expression", "canonical"),
    [
        ("*/15  9-17 * JAN-mar Mon-fri", "*/15 9-17 * 1-3 1-5"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * SUN,SAT", "0 0 * * 0,6"),
        ("0,1,2,3,59 00 01 * 0-6", "0-3,59 0 1 * 0-6"),
        ("*/1 * * * */1", "* * * * *"),
        ("*/30,45,0 * * * *", "*/30,45 * * * *"),
        ("*,5 0-23 * * *", "* 0-23 * * *"),
        ("3-59/20 0 13 * 5", "3,23,43 0 13 * 5"),
        ("\t0 12 */2 * */3\n", "0 12 */2 * */3"),
    ],
)
def test_canonical_forms(expression: str, canonical: str) -> None:
    """One blank between fields, numbers for names, Sunday 0, sorted lists; a star stays where it decides."""
    assert CronRule(expression, "UTC").expression == canonical


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 9 13 * 5", [2, 9, 13, 16, 23, 30]),  # neither begins with a star: the 13th, and Fridays
        ("0 9 13 * *", [13]),
        ("0 9 * * 5", [2, 9, 16, 23, 30]),
        ("0 9 */2 * 5", [9, 23]),  # a step begins with a star: odd days that are Fridays
        ("0 9 13 * */5", []),  # Sundays and Fridays that are a 13th, of which October 2026 has none
        ("0 9 1-31 * 5", list(range(1, 32))),  # all days, though not by a star
    ],
)
def test_the_day_rule(expression: str, days: list[int]) -> None:
    """A field whose text begins with `*` ands the two day fields, otherwise they are ored."""
    found = CronRule(expression, "UTC").preview(datetime(2026, 9, 30, 12, tzinfo=UTC), 40)
    assert [each.utc.day for each in found if (each.utc.year, each.utc.month) == (2026, 10)] == days


def test_an_expression_for_all_the_time_has_no_hole() -> None:
    """With a star for the minute or the hour both of two equal times count, otherwise the first does."""
    after = datetime(2026, 11, 1, 4, 59, tzinfo=UTC)
    zone = "America/New_York"
    assert [each.utc.hour for each in CronRule("30 * * * *", zone).preview(after, 3)] == [5, 6, 7]
    assert [each.utc.hour for each in CronRule("*/30 1 * * *", zone).preview(after, 4)] == [5, 5, 6, 6]
    assert [each.utc.day for each in CronRule("30 1 * * *", zone).preview(after, 2)] == [1, 2]
    assert [each.utc.hour for each in CronRule("30 0-2 * * *", zone).preview(after, 2)] == [5, 7]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", f"The cron expression '' does not have five fields; {FORM}."),
        ("0 0 9 * * *", f"The cron expression '0 0 9 * * *' does not have five fields; {FORM}."),
        ("\u0660 9 * * *", f"The cron expression '\\u0660 9 * * *' does not have five fields; {FORM}."),
        ("@daily", "The cron expression '@daily' is a shorthand, which is not taken; write \"0 0 * * *\"."),
        ("@reboot", f"The cron expression '@reboot' is a shorthand, which is not taken; {FORM}."),
        ("60 * * * *", "The cron field minute has the value '60'; its values are from 0 to 59."),
        ("0 0 0 * *", "The cron field day of month has the value '0'; its values are from 1 to 31."),
        (
            "0 0 * FOO *",
            "The cron field month has the value 'FOO'; its values are from 1 to 12 or JAN and so on.",
        ),
        (
            "0 0 * * 8",
            "The cron field day of week has the value '8'; its values are from 0 to 7 or SUN and so on.",
        ),
        (
            "0 0 L * *",
            "The cron field day of month has the item 'L'; items look like *, */5, 3, 3-8 or 3-8/2.",
        ),
        ("0 0 1, * *", "The cron field day of month has the item ''; items look like *, */5, 3, 3-8 or 3-8/2."),
        (
            "5/15 * * * *",
            "The cron field minute has the item '5/15', a step without a range; write 5-59/15.",
        ),
        (
            "0 22-6 * * *",
            "The cron field hour has the range '22-6', which runs backwards; write it as two ranges.",
        ),
        (
            "*/90 * * * *",
            (
                "The cron field minute has the item '*/90'; its steps are from 1 to 60, "
                "and start anew with each hour, day, month or year."
            ),
        ),
        (
            "*/0 * * * *",
            (
                "The cron field minute has the item '*/0'; its steps are from 1 to 60, "
                "and start anew with each hour, day, month or year."
            ),
        ),
        (
            "0 0 30 2 *",
            "The cron expression '0 0 30 2 *' names a day that no month has; it never comes due.",
        ),
        ("1," * 501, "The cron expression has more than 1000 characters; shorten its lists."),
    ],
)
def test_refused_expressions(expression: str, message: str) -> None:
    """The message names the field and the item, and says what to write."""
    with pytest.raises(RuleError) as error:
        CronRule(expression, "UTC")
    assert (error.value.code, error.value.message) == (ReminderCode.INVALID_RULE, message)


def test_the_twenty_ninth_of_february_comes_due() -> None:
    """A day that only leap years have is enough."""
    found = CronRule("0 0 29 2 *", "UTC").preview(datetime(2096, 3, 1, tzinfo=UTC), 1)
    assert found[0].utc == datetime(2104, 2, 29, tzinfo=UTC)
