from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle_clock import (
    EPOCH,
    MAX_INSTANT,
    MAX_MILLIS,
    MIN_INSTANT,
    MIN_MILLIS,
    InstantOutOfRange,
    format_instant,
    from_millis,
    parse_instant,
    to_millis,
)

millis = st.integers(MIN_MILLIS, MAX_MILLIS)


def test_bounds_are_the_first_and_last_millisecond_of_years_0001_to_9999() -> None:
    """The bounds of instants are those of four-digit years, in both notations."""
    assert (MIN_MILLIS, MAX_MILLIS) == (-62_135_596_800_000, 253_402_300_799_999)
    assert format_instant(MIN_INSTANT) == "0001-01-01T00:00:00.000Z"
    assert format_instant(MAX_INSTANT) == "9999-12-31T23:59:59.999Z"
    assert to_millis(EPOCH) == 0


@given(millis)
def test_milliseconds_survive_every_round_trip(value: int) -> None:
    """Milliseconds, datetime and text name the same instant, exactly, over all years."""
    instant = from_millis(value)
    assert instant.tzinfo is UTC
    assert to_millis(instant) == value
    assert parse_instant(format_instant(instant)) == instant


@given(st.datetimes(timezones=st.timezones()))
def test_any_aware_datetime_is_floored_to_its_millisecond(instant: datetime) -> None:
    """The millisecond of an aware datetime is the one it lies in, also before 1970."""
    try:
        value = to_millis(instant)
    except InstantOutOfRange:
        assert not timedelta(days=2) < instant.replace(tzinfo=None) - datetime.min < timedelta(days=3652056)  # noqa: DTZ901 - the bound of naive arithmetic
        return
    assert timedelta(0) <= instant - EPOCH - timedelta(milliseconds=value) < timedelta(milliseconds=1)
    assert format_instant(instant) == format_instant(from_millis(value))


def test_an_instant_before_1970_is_floored_not_truncated() -> None:
    """A microsecond before the epoch lies in millisecond -1."""
    assert to_millis(EPOCH - timedelta(microseconds=1)) == -1
    assert format_instant(EPOCH - timedelta(microseconds=1)) == "1969-12-31T23:59:59.999Z"


@pytest.mark.parametrize("convert", [to_millis, format_instant])
def test_a_naive_datetime_is_not_an_instant(convert: type) -> None:
    """A datetime without a zone is refused with what to write instead."""
    with pytest.raises(ValueError, match=r"2026-01-01T00:00:00\+00:00"):
        convert(datetime(2026, 1, 1))  # noqa: DTZ001 - naive is the point


@pytest.mark.parametrize("value", [MIN_MILLIS - 1, MAX_MILLIS + 1, 10**30, -(10**30)])
def test_milliseconds_outside_the_years_are_refused(value: int) -> None:
    """There is no datetime for milliseconds outside years 0001-9999."""
    with pytest.raises(InstantOutOfRange, match=r"0001-01-01T00:00:00\.000Z to 9999-12-31T23:59:59\.999Z"):
        from_millis(value)


@pytest.mark.parametrize("convert", [to_millis, format_instant])
@pytest.mark.parametrize(
    "instant",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(-timedelta(hours=1))),
    ],
)
def test_an_offset_can_carry_a_datetime_out_of_range(convert: type, instant: datetime) -> None:
    """A datetime of year 1 or 9999 whose UTC instant is outside is refused, not an OverflowError."""
    with pytest.raises(InstantOutOfRange):
        convert(instant)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.0Z",
        "2026-01-01T00:00:00.0000Z",
        "2026-01-01T00:00:00.000",
        "2026-01-01T00:00:00.000z",
        "2026-01-01t00:00:00.000Z",
        "2026-01-01 00:00:00.000Z",
        "2026-01-01T00:00:00,000Z",
        "2026-01-01T00:00:00.000+00:00",
        "2026-01-01T24:00:00.000Z",
        "2026-01-01T00:60:00.000Z",
        "2026-01-01T00:00:60.000Z",
        "2026-02-29T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "0000-01-01T00:00:00.000Z",
        "02026-01-01T00:00:00.000Z",
        "٢٠٢٦-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.000Z\n",
        " 2026-01-01T00:00:00.000Z",
    ],
)
def test_only_the_wire_form_is_read(text: str) -> None:
    """Anything but the one wire form, or a day or time that does not exist, is refused."""
    with pytest.raises(ValueError, match="not an instant"):
        parse_instant(text)
