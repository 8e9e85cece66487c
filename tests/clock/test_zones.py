import itertools
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle_clock import (
    Gap,
    InstantOutOfRange,
    LocalTimeInGap,
    Overlap,
    UnknownZone,
    format_instant,
    load_zone,
    occurrences_of,
    resolve_once,
)


def local(text: str) -> datetime:
    """Read a local time."""
    return datetime.fromisoformat(text)


def instants(text: str, zone: str, gap: Gap = Gap.SKIP, overlap: Overlap = Overlap.FIRST) -> list[str]:
    """Write the instants of a local time."""
    return [format_instant(instant) for instant in occurrences_of(local(text), load_zone(zone), gap, overlap)]


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "US/Pacific"])
def test_utc_and_area_location_names_are_zones(name: str) -> None:
    """`UTC` and every IANA name with an area is taken, and keeps its name."""
    assert load_zone(name).key == name


def test_letter_case_of_a_name_does_not_matter() -> None:
    """A name in another letter case is the same zone object, under the name as IANA writes it."""
    assert load_zone("america/NEW_york") is load_zone("America/New_York")
    assert load_zone("america/new_york").key == "America/New_York"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "utc",
        "GMT",
        "EST",
        "EST5EDT",
        "Japan",
        "localtime",
        "Factory",
        "+05:30",
        "UTC+1",
        "America/Nowhere",
        "America/",
        "/America/New_York",
        "America//New_York",
        " Europe/London",
        "Europe/London ",
        "Europe/London\n",
        "Europe/London\x00",
        "../etc/passwd",
        "America/../Europe/London",
        "/etc/localtime",
        "posix/Europe/London",
        "right/Europe/London",
        "Europe\\London",
        "Éurope/London",
        "Europe/" + "L" * 100_000,
    ],
)
def test_abbreviations_offsets_and_paths_are_not_zones(name: str) -> None:
    """What is not `UTC` or an IANA Area/Location name is refused with what to write instead."""
    with pytest.raises(UnknownZone, match="write UTC or an IANA") as refusal:
        load_zone(name)
    assert len(str(refusal.value)) < 300


def test_an_alias_has_the_instants_of_its_canonical_zone() -> None:
    """A zone by its old name resolves to the same instants (CASES 28)."""
    assert instants("2026-03-08T09:00", "Asia/Calcutta") == ["2026-03-08T03:30:00.000Z"]
    assert instants("2026-03-08T09:00", "Asia/Kolkata") == ["2026-03-08T03:30:00.000Z"]


def test_a_time_inside_a_gap_is_skipped_or_shifted_by_its_length() -> None:
    """02:30 in New York on 2026-03-08 is no instant, or 07:30Z, which clocks show as 03:30 (CASES 1)."""
    assert instants("2026-03-08T02:30", "America/New_York", Gap.SKIP) == []
    assert instants("2026-03-08T02:30", "America/New_York", Gap.SHIFT) == ["2026-03-08T07:30:00.000Z"]


def test_a_one_shot_inside_a_gap_is_refused_with_a_time_that_exists() -> None:
    """A one-shot is never moved out of a gap by itself; the refusal names where it would go."""
    with pytest.raises(LocalTimeInGap, match=r"2026-03-08T02:30:00 does not exist in America/New_York.*T03:30:00"):
        resolve_once(local("2026-03-08T02:30"), load_zone("America/New_York"))


def test_a_time_inside_an_overlap_is_the_first_or_both() -> None:
    """01:30 in New York on 2026-11-01 is 05:30Z, and 06:30Z as well where both are wanted."""
    both = ["2026-11-01T05:30:00.000Z", "2026-11-01T06:30:00.000Z"]
    assert instants("2026-11-01T01:30", "America/New_York", overlap=Overlap.BOTH) == both
    assert instants("2026-11-01T01:30", "America/New_York", overlap=Overlap.FIRST) == both[:1]
    assert format_instant(resolve_once(local("2026-11-01T01:30"), load_zone("America/New_York"))) == both[0]


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("overlap", Overlap)
def test_the_edges_of_gaps_and_overlaps_belong_to_exactly_one_side(gap: Gap, overlap: Overlap) -> None:
    """The last millisecond before a change and the first after it are ordinary times."""
    new_york = "America/New_York"
    assert instants("2026-03-08T01:59:59.999", new_york, gap, overlap) == ["2026-03-08T06:59:59.999Z"]
    assert instants("2026-03-08T03:00:00.000", new_york, gap, overlap) == ["2026-03-08T07:00:00.000Z"]
    assert instants("2026-11-01T00:59:59.999", new_york, gap, overlap) == ["2026-11-01T04:59:59.999Z"]
    assert instants("2026-11-01T02:00:00.000", new_york, gap, overlap) == ["2026-11-01T07:00:00.000Z"]


@pytest.mark.parametrize(
    ("zone", "day", "shifted"),
    [
        ("Pacific/Apia", "2011-12-30T10:00", "2011-12-30T20:00:00.000Z"),
        ("Pacific/Kwajalein", "1993-08-21T10:00", "1993-08-21T22:00:00.000Z"),
    ],
)
def test_a_day_lost_at_the_date_line_is_a_gap(zone: str, day: str, shifted: str) -> None:
    """Where a whole day was skipped, its times are in a gap of 24 hours."""
    assert instants(day, zone) == []
    assert instants(day, zone, Gap.SHIFT) == [shifted]


def test_offsets_of_minutes_and_seconds_are_exact() -> None:
    """Lord Howe's half-hour change and an offset with seconds (Monrovia before 1972) come out exact."""
    assert instants("2025-10-05T02:15", "Australia/Lord_Howe", Gap.SHIFT) == ["2025-10-04T15:45:00.000Z"]
    assert instants("1971-06-01T00:00", "Africa/Monrovia") == ["1971-06-01T00:44:30.000Z"]


@pytest.mark.parametrize("zone", ["Europe/Dublin", "Africa/Casablanca"])
def test_instants_increase_over_negative_saving_time(zone: str) -> None:
    """Where winter time is the exception, increasing local times have increasing instants (CASES 6)."""
    half_hours = [local("2026-01-01T00:00") + timedelta(minutes=30) * step for step in range(48 * 365)]
    found = [i for time_ in half_hours for i in occurrences_of(time_, load_zone(zone), Gap.SKIP, Overlap.FIRST)]
    assert found == sorted(set(found))
    for gap, overlap in itertools.product(Gap, Overlap):
        daily = [i for time_ in half_hours[5::48] for i in occurrences_of(time_, load_zone(zone), gap, overlap)]
        assert daily == sorted(set(daily))


@given(st.datetimes(), st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia"]))
def test_every_instant_shows_its_local_time(moment: datetime, name: str) -> None:
    """Whatever the policy, unshifted instants lead back to the local time, floored to milliseconds."""
    zone = load_zone(name)
    wanted = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    try:
        found = occurrences_of(moment, zone, Gap.SKIP, Overlap.BOTH)
    except InstantOutOfRange:
        assert moment.year in {1, 9999}
        return
    assert list(found) == sorted(set(found))
    assert all(instant.tzinfo is UTC for instant in found)
    assert all(instant.astimezone(zone).replace(tzinfo=None) == wanted for instant in found)


def test_the_fold_of_a_local_time_says_nothing() -> None:
    """Only the policy chooses in an overlap, not the `fold` a datetime happens to carry."""
    folded = local("2026-11-01T01:30").replace(fold=1)
    assert format_instant(resolve_once(folded, load_zone("America/New_York"))) == "2026-11-01T05:30:00.000Z"


def test_an_aware_datetime_is_not_a_local_time() -> None:
    """A datetime that has a zone already is refused."""
    with pytest.raises(ValueError, match="drop its tzinfo"):
        resolve_once(datetime(2026, 1, 1, tzinfo=UTC), load_zone("UTC"))


@pytest.mark.parametrize(
    ("text", "zone"),
    [("0001-01-01T00:00", "Asia/Tokyo"), ("9999-12-31T23:59:59.999", "America/New_York")],
)
@pytest.mark.parametrize(
    "resolve",
    [resolve_once, lambda time_, zone: occurrences_of(time_, zone, Gap.SHIFT, Overlap.BOTH)],
)
def test_a_local_time_whose_instant_is_outside_the_years_is_out_of_range(
    text: str,
    zone: str,
    resolve: Callable[..., object],
) -> None:
    """At the edge of years 0001-9999 the error is the typed one."""
    with pytest.raises(InstantOutOfRange, match=f"{zone} is outside years 0001-9999"):
        resolve(local(text), load_zone(zone))


def test_the_process_time_zone_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting TZ has no influence on a resolution."""
    before = instants("2026-07-01T12:00", "Europe/Berlin")
    monkeypatch.setitem(os.environ, "TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        assert instants("2026-07-01T12:00", "Europe/Berlin") == before == ["2026-07-01T10:00:00.000Z"]
    finally:
        monkeypatch.undo()
        time.tzset()
