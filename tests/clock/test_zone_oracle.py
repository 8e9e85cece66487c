"""Every zone and every change from 1970 to 2037, against the reader in `tzif`."""

import functools
import zoneinfo
from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from tests.clock.tzif import YEAR_SECONDS, Zone, zone_of
from whenidle_clock import Gap, LocalTimeInGap, Overlap, load_zone, occurrences_of, resolve_once, to_millis, zones

LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local time is naive
NAMES = sorted(name for name in resources.files("tzdata").joinpath("zones").read_text().split() if "/" in name)
AREAS = sorted({name.partition("/")[0] for name in NAMES})


def forget_zones() -> None:
    """Empty the caches of zones, ours and the library's."""
    zoneinfo.ZoneInfo.clear_cache()
    zones._load.cache_clear()
    zones._area_location_names.cache_clear()


@pytest.fixture
def zone_path() -> Iterator[None]:
    """Let a test set the path of zone data, starting from none: the tzdata package alone."""
    kept = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=())
    forget_zones()
    yield
    zoneinfo.reset_tzpath(to=kept)
    forget_zones()


def compiled(name: str) -> bytes:
    """Read a zone's file in the tzdata package."""
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def probes(zone: Zone) -> Iterator[int]:
    """Give local milliseconds at, next to and between the two sides of each change."""
    for change in zone.changes(1970, 2037):
        sides = [(change + zone.offset_at(change - 1)) * 1000, (change + zone.offset_at(change)) * 1000]
        for side in sides:
            yield from (side + delta for delta in (-1000, -1, 0, 1, 1000))
        yield sum(sides) // 2
    for year in (1970, 1999, 2037):
        yield YEAR_SECONDS[year] * 1000 + 15_638_400_123


@functools.lru_cache(maxsize=1024)
def expected(data: bytes) -> list[tuple[datetime, list[int], list[int]]]:
    """Give each probe with its instants where all are wanted, and where gaps are skipped, as milliseconds."""
    zone = zone_of(data)
    answers = []
    for local_ms in sorted(set(probes(zone))):
        found = zone.resolve(local_ms)
        local = LOCAL_EPOCH + timedelta(milliseconds=local_ms)
        answers.append((local, found or [zone.shift(local_ms)], found[:1]))
    return answers


@pytest.mark.usefixtures("zone_path")
@pytest.mark.parametrize("area", AREAS)
def test_every_change_of_every_zone_resolves_as_the_independent_reader_says(area: str) -> None:
    """Around each change the instants are those that trying all offsets finds, under either policy."""
    for name in (name for name in NAMES if name.startswith(f"{area}/")):
        zone = load_zone(name)
        for local, everything, strict in expected(compiled(name)):
            shifted = occurrences_of(local, zone, Gap.SHIFT, Overlap.BOTH)
            assert [to_millis(instant) for instant in shifted] == everything, (name, local)
            skipped = occurrences_of(local, zone, Gap.SKIP, Overlap.FIRST)
            assert [to_millis(instant) for instant in skipped] == strict, (name, local)


@pytest.mark.usefixtures("zone_path")
def test_every_gap_refuses_a_one_shot() -> None:
    """In each zone's gaps, and only there, a one-shot is refused."""
    for name in NAMES:
        zone = load_zone(name)
        for local, _everything, strict in expected(compiled(name))[-40:]:
            if strict:
                assert to_millis(resolve_once(local, zone)) == strict[0], (name, local)
            else:
                with pytest.raises(LocalTimeInGap):
                    resolve_once(local, zone)


def test_the_reader_itself_knows_a_gap_an_overlap_and_the_footer() -> None:
    """The oracle is right about New York in 2007, in its table, and in 2037, in its footer."""
    zone = Zone(compiled("America/New_York"))
    half_past_two = (datetime(2007, 3, 11, 2, 30) - LOCAL_EPOCH) // timedelta(milliseconds=1)  # noqa: DTZ001 - a local time
    assert zone.resolve(half_past_two) == []
    assert zone.shift(half_past_two) == half_past_two + 5 * 3600_000
    half_past_one = (datetime(2037, 11, 1, 1, 30) - LOCAL_EPOCH) // timedelta(milliseconds=1)  # noqa: DTZ001 - a local time
    assert zone.resolve(half_past_one) == [half_past_one + 4 * 3600_000, half_past_one + 5 * 3600_000]
    assert len(zone.changes(1970, 2037)) == 2 * 68


@pytest.mark.usefixtures("zone_path")
def test_the_tzdata_package_stands_in_for_a_system_without_zone_data() -> None:
    """Without any zone data on the system each IANA name is still a zone."""
    assert [load_zone(name).key for name in NAMES] == NAMES
    assert load_zone("UTC").key == "UTC"


@pytest.mark.usefixtures("zone_path")
def test_zone_data_of_the_system_goes_first(tmp_path: Path) -> None:
    """A zone the system has data for is the system's; the package fills in the others."""
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes(compiled("Asia/Tokyo"))
    zoneinfo.reset_tzpath(to=(tmp_path,))
    noon = datetime(2026, 7, 1, 12)  # noqa: DTZ001 - local time is naive
    assert load_zone("Europe/Berlin").utcoffset(noon) == timedelta(hours=9)
    assert load_zone("Europe/Paris").utcoffset(noon) == timedelta(hours=2)
