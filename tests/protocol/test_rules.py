from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from whenidle_clock.instants import MAX_INSTANT, MAX_MILLIS, format_instant, parse_instant, to_millis
from whenidle_protocol.errors import ReminderCode, TaskCode, ToolError
from whenidle_protocol.rules import after, at, every
from whenidle_protocol.rules.every import Step

from .strategies import instants

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def code_of(error: pytest.ExceptionInfo[ToolError]) -> ReminderCode | TaskCode:
    """Return the code of a refusal, whose message is a sentence."""
    assert error.value.message.endswith(".")
    return error.value.code


@pytest.mark.parametrize("value", [1, 1.0, 300, 2**53 - 1])
def test_after_takes_positive_safe_integers(value: float) -> None:
    """Any whole number of seconds from one on."""
    assert after.read_seconds(value) == value


@pytest.mark.parametrize("value", [0, -1, 1.5, 2**53, True, "5", None, [5], float("nan")])
def test_after_refuses_the_rest(value: Any) -> None:
    """Zero, fractions, booleans and text are no delay."""
    with pytest.raises(ToolError) as error:
        after.read_seconds(value)
    assert code_of(error) is ReminderCode.INVALID_RULE


def test_a_delay_is_exact_to_the_millisecond_and_ends_with_9999() -> None:
    """The target is now, floored to the millisecond, plus the seconds; beyond year 9999 there is none."""
    assert after.first(90, NOW + timedelta(microseconds=1999)) == NOW + 90 * SECOND + timedelta(milliseconds=1)
    assert after.first(1, MAX_INSTANT - SECOND) == MAX_INSTANT
    with pytest.raises(ToolError) as error:
        after.first(2, MAX_INSTANT - SECOND)
    assert code_of(error) is ReminderCode.TIME_OUT_OF_RANGE
    with pytest.raises(ToolError) as error:
        after.first(2**53 - 1, NOW)
    assert code_of(error) is ReminderCode.TIME_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (299, ReminderCode.FREQUENCY_TOO_HIGH),
        (0, ReminderCode.FREQUENCY_TOO_HIGH),
        (-5, ReminderCode.FREQUENCY_TOO_HIGH),
        (300.5, ReminderCode.INVALID_RULE),
        ("300", ReminderCode.INVALID_RULE),
        (True, ReminderCode.INVALID_RULE),
        (2**53, ReminderCode.INVALID_RULE),
    ],
)
def test_every_takes_five_minutes_or_more(value: Any, code: ReminderCode) -> None:
    """A whole number that is too small is too frequent, anything else is no interval."""
    with pytest.raises(ToolError) as error:
        every.read_seconds(value)
    assert code_of(error) is code
    assert every.read_seconds(300.0) == 300


def test_the_first_interval_is_aligned_to_creation() -> None:
    """It comes due one interval after creation, or is out of range."""
    assert every.first(300, NOW) == NOW + 300 * SECOND
    with pytest.raises(ToolError) as error:
        every.first(2**53 - 1, NOW)
    assert code_of(error) is ReminderCode.TIME_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("late", "occurrence", "following", "missed"),
    [(0, 0, 300, 0), (299, 0, 300, 0), (300, 300, 600, 1), (901, 900, 1200, 3)],
)
def test_a_late_interval_moves_to_its_latest_occurrence(
    late: int, occurrence: int, following: int, missed: int
) -> None:
    """The latest due occurrence is delivered, the next is the first after the decision."""
    step = every.step(NOW, 300, NOW + late * SECOND)
    assert step == Step(NOW + occurrence * SECOND, NOW + following * SECOND, missed)


def test_an_interval_that_is_not_due_makes_no_step() -> None:
    """One millisecond early is early."""
    with pytest.raises(ValueError, match="before the occurrence was due"):
        every.step(NOW, 300, NOW - timedelta(milliseconds=1))


def test_an_interval_ends_cleanly_with_9999() -> None:
    """The last occurrence has no next one, and a preview stops there."""
    before_last = MAX_INSTANT - 300 * SECOND
    assert every.first(300, before_last) == MAX_INSTANT
    assert every.step(before_last, 300, before_last) == Step(before_last, MAX_INSTANT, 0)
    assert every.step(MAX_INSTANT, 300, MAX_INSTANT) == Step(MAX_INSTANT, None, 0)
    assert every.preview(before_last, 300, 5) == (before_last, MAX_INSTANT)


@given(instants, st.integers(300, 10**11), instants)
def test_a_step_is_what_enumeration_would_give(target: datetime, seconds: int, accepted: datetime) -> None:
    """The latest due occurrence and the first future one, both on the grid of the target."""
    assume(accepted >= target)
    step = every.step(target, seconds, accepted)
    grid = to_millis(step.occurrence_at) - to_millis(target)
    assert divmod(grid, seconds * 1000) == (step.missed, 0)
    assert step.occurrence_at <= accepted
    following = to_millis(step.occurrence_at) + seconds * 1000
    if step.next_at is None:
        assert following > MAX_MILLIS
    else:
        assert to_millis(step.next_at) == following > to_millis(accepted)


def test_a_preview_lists_targets_without_enumerating_the_past() -> None:
    """The next n targets, from the next one on."""
    assert every.preview(NOW, 300, 3) == (NOW, NOW + 300 * SECOND, NOW + 600 * SECOND)
    assert every.preview(NOW, 300, 0) == ()


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2030-01-31T09:00:00Z", "2030-01-31T09:00:00.000Z"),
        ("2030-01-31T09:00:00.5Z", "2030-01-31T09:00:00.500Z"),
        ("2030-01-31T09:00:00.05+01:00", "2030-01-31T08:00:00.050Z"),
        ("2030-01-31T09:00:00.005-23:59", "2030-02-01T08:59:00.005Z"),
        ("2030-01-31T09:00:00+00:00", "2030-01-31T09:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ({"date": "2026-07-01", "time": "12:00:00", "time_zone": "Europe/Paris"}, "2026-07-01T10:00:00.000Z"),
        (
            {"date": "2026-11-01", "time": "01:30:00.25", "time_zone": "America/New_York"},
            "2026-11-01T05:30:00.250Z",
        ),
        ({"date": "2026-01-01", "time": "00:00:00", "time_zone": "UTC"}, "2026-01-01T00:00:00.000Z"),
    ],
)
def test_at_is_an_instant_or_a_local_time_with_its_zone(value: Any, instant: str) -> None:
    """Both forms end as one UTC instant; in an overlap the earlier one."""
    assert format_instant(at.read_instant(value)) == instant


INVALID, ZONE, RANGE = (
    ReminderCode.INVALID_RULE,
    ReminderCode.INVALID_TIME_ZONE,
    ReminderCode.TIME_OUT_OF_RANGE,
)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("2030-01-31T09:00:00", INVALID),
        ("2030-01-31T09:00:00-00:00", INVALID),
        ("2030-01-31T09:00:00+24:00", INVALID),
        ("2030-01-31T09:00:00+01:60", INVALID),
        ("2030-01-31t09:00:00z", INVALID),
        ("2030-01-31T09:00:00.1234Z", INVALID),
        ("2030-02-30T09:00:00Z", INVALID),
        ("2030-01-31T24:00:00Z", INVALID),
        ("2030-01-31T09:00:60Z", INVALID),
        ("0000-01-01T00:00:00Z", INVALID),
        ("2030-01-31T09:00:00Z\n", INVALID),
        ("٢٠٣٠-01-31T09:00:00Z", INVALID),
        ("9999-12-31T23:59:59-00:01", RANGE),
        ("0001-01-01T00:00:00+00:01", RANGE),
        (5, INVALID),
        (None, INVALID),
        ([], INVALID),
        ({}, INVALID),
        ({"date": "2026-01-01", "time": "00:00:00", "time_zone": "UTC", "x": 1}, INVALID),
        ({"date": 20260101, "time": "00:00:00", "time_zone": "UTC"}, INVALID),
        ({"date": "2026-01-01", "time": None, "time_zone": "UTC"}, INVALID),
        ({"date": "2026-02-29", "time": "00:00:00", "time_zone": "UTC"}, INVALID),
        ({"date": "2026-03-08", "time": "02:30:00", "time_zone": "America/New_York"}, INVALID),
        ({"date": "2026-01-01", "time": "00:00:00", "time_zone": "CET"}, ZONE),
        ({"date": "2026-01-01", "time": "00:00:00", "time_zone": "+01:00"}, ZONE),
        ({"date": "2026-01-01", "time": "00:00:00", "time_zone": 5}, ZONE),
        ({"date": "9999-12-31", "time": "23:59:59", "time_zone": "America/New_York"}, RANGE),
    ],
)
def test_at_refuses_the_rest_by_code(value: Any, code: ReminderCode) -> None:
    """A form or date that does not exist, a local time in a gap, a zone that is none, a year out of range."""
    with pytest.raises(ToolError) as error:
        at.read_instant(value)
    assert code_of(error) is code


def test_a_target_is_strictly_in_the_future() -> None:
    """Now is not the future; what counts is whole milliseconds."""
    assert at.first(NOW + timedelta(milliseconds=1), NOW) == NOW + timedelta(milliseconds=1)
    for moment in (NOW, NOW + timedelta(microseconds=999), NOW + SECOND):
        with pytest.raises(ToolError) as error:
            at.first(NOW, moment)
        assert code_of(error) is ReminderCode.NOT_FUTURE


@given(instants)
def test_the_wire_form_of_an_instant_is_a_form_of_at(instant: datetime) -> None:
    """What an answer shows can be given back."""
    assert at.read_instant(format_instant(instant)) == instant == parse_instant(format_instant(instant))
