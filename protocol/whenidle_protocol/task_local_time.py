"""An instant as people in a zone read it (SPEC 6.3, 6.10)."""

from __future__ import annotations

import functools
from datetime import UTC
from typing import TYPE_CHECKING, Final

from whenidle_clock.zones import load_zone

if TYPE_CHECKING:
    from datetime import datetime


_KEPT_TEXTS: Final = 1024
"""Many tasks come due at the same local time."""


@functools.lru_cache(maxsize=_KEPT_TEXTS)
def format_local(instant: datetime, zone_name: str) -> str:
    """Return `instant` in a zone, with offset and zone name: `2026-03-08T09:00:00.000-04:00[America/New_York]`.

    That is RFC 9557. Offsets that are not whole minutes, as zones had long ago, keep their seconds. Where
    the zone's calendar would leave the years 0001 to 9999, the zone is `UTC`.
    """
    try:
        local = instant.astimezone(load_zone(zone_name))
    except OverflowError:
        local, zone_name = instant.astimezone(UTC), "UTC"
    return f"{local.isoformat(timespec='milliseconds')}[{zone_name}]"
