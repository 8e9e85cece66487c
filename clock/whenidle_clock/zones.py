"""Local time: which zone names are taken, and which instants a local time stands for (SPEC 1.6).

Nothing here reads the process's own time zone. Zone data is found the way `zoneinfo` finds it: the
system's files (or `PYTHONTZPATH`) first, the `tzdata` package for what they lack.
"""

import enum
import functools
import re
import zoneinfo
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from whenidle_clock.instants import InstantOutOfRange

_AREA_LOCATION = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)+")
_LONGEST_NAME = 64  # the longest IANA name today has 32 characters
_CACHED_ZONES = 1024  # more than there are names, so that the cache is bounded and never evicts


class Gap(enum.Enum):
    """What a recurring rule does with a local time that clocks skip."""

    SKIP = "skip"
    """No instant (RFC 5545 3.3.10)."""

    SHIFT = "shift"
    """The instant as far after the gap's begin as the local time is: 02:30 becomes 03:30."""


class Overlap(enum.Enum):
    """What a recurring rule does with a local time that clocks show twice."""

    FIRST = "first"
    """The earlier instant alone."""

    BOTH = "both"
    """Both instants."""


class UnknownZone(ValueError):
    """The name is not `UTC` and not an IANA Area/Location name (SPEC 1.6)."""


class LocalTimeInGap(ValueError):
    """Clocks in that zone skip this local time (SPEC 1.6)."""


def load_zone(name: str) -> ZoneInfo:
    """Load `UTC` or an IANA Area/Location zone, aliases such as `Asia/Calcutta` included.

    Letter case does not matter in an Area/Location name (RFC 6557 2, and what the reference
    implementation does); the zone's `key` is the name as IANA writes it. Loaded zones are kept.

    Raises:
        UnknownZone: an abbreviation, an offset, a path, or a name that the zone data does not have.
    """
    if name == "UTC":
        return _load("UTC")
    if len(name) > _LONGEST_NAME or _AREA_LOCATION.fullmatch(name) is None:
        raise UnknownZone(
            f"not a time zone name: {name[: _LONGEST_NAME + 1]!r}; write UTC or an IANA Area/Location name "
            "such as Europe/Berlin (no abbreviation, no offset)",
        )
    key = _area_location_names().get(name.lower())
    if key is None:
        raise UnknownZone(f"no such time zone: {name!r}; write UTC or an IANA name such as Europe/Berlin")
    return _load(key)


def resolve_once(local: datetime, zone: ZoneInfo) -> datetime:
    """Give the UTC instant at which clocks in `zone` show `local`, the earlier one in an overlap.

    Args:
        local: a naive local time; its `fold` is ignored, a part finer than milliseconds is dropped.
        zone: a zone from `load_zone`.

    Raises:
        ValueError: `local` is aware.
        LocalTimeInGap: clocks skip it.
        InstantOutOfRange: the instant lies outside years 0001-9999 UTC.
    """
    shown, shifted = _resolve(local, zone)
    if not shown:
        elsewhere = shifted.astimezone(zone).replace(tzinfo=None)
        raise LocalTimeInGap(
            f"{local.isoformat()} does not exist in {zone.key}: clocks skip it; "
            f"choose another time, such as {elsewhere.isoformat()}",
        )
    return shown[0]


def occurrences_of(local: datetime, zone: ZoneInfo, gap: Gap, overlap: Overlap) -> tuple[datetime, ...]:
    """Give the UTC instants that `local` stands for in `zone` under the policies, increasing.

    None in a gap that is skipped, two in an overlap where both are wanted, otherwise one. Shifted
    local times may fall on an instant that another local time has too: whoever walks a rule keeps
    its instants strictly increasing.

    Args:
        local: a naive local time; its `fold` is ignored, a part finer than milliseconds is dropped.
        zone: a zone from `load_zone`.
        gap: what to do with a local time that clocks skip.
        overlap: what to do with a local time that clocks show twice.

    Raises:
        ValueError: `local` is aware.
        InstantOutOfRange: an instant lies outside years 0001-9999 UTC.
    """
    shown, shifted = _resolve(local, zone)
    if not shown:
        return () if gap is Gap.SKIP else (shifted,)
    return shown[:1] if overlap is Overlap.FIRST else shown


def _resolve(local: datetime, zone: ZoneInfo) -> tuple[tuple[datetime, ...], datetime]:
    """Give the instants at which clocks show `local`, increasing, and the one to shift to if none does."""
    if local.tzinfo is not None:
        raise ValueError(f"a local time has no zone of its own: {local.isoformat()} is aware; drop its tzinfo")
    local = local.replace(microsecond=local.microsecond // 1000 * 1000)
    try:
        # PEP 495: `fold` tells the offsets before and after a change apart.
        earlier, later = sorted(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError as error:
        raise InstantOutOfRange(
            f"{local.isoformat()} in {zone.key} is outside years 0001-9999 UTC; choose another time",
        ) from error
    if earlier == later:
        return (earlier,), earlier
    # Only what leads back to the local time is shown: in an overlap both do, in a gap neither. And where a
    # zone gave up saving time without changing its clocks (Nuuk in 2023), zoneinfo claims an overlap that
    # is none: one does.
    shown = tuple(moment for moment in (earlier, later) if moment.astimezone(zone).replace(tzinfo=None) == local)
    return shown, later  # in a gap, `later` is reckoned with the offset before it


@functools.lru_cache(maxsize=_CACHED_ZONES)
def _load(key: str) -> ZoneInfo:
    return ZoneInfo(key)


@functools.cache
def _area_location_names() -> dict[str, str]:
    """Map each available name in lower case to the name as IANA writes it."""
    return {name.lower(): name for name in zoneinfo.available_timezones() if "/" in name}
