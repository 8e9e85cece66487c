"""Wall clocks of awkward zones, walked minute by minute: the slowest way to say when something comes due."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE: Final = timedelta(minutes=1)

CHANGES: Final = {
    "Australia/Lord_Howe": ("2021-04-03", "2021-10-02"),  # half an hour
    "Europe/Dublin": ("2019-03-31", "2019-10-27"),  # winter is the exception
    "Africa/Casablanca": ("2019-05-05", "2019-06-09", "2018-06-17"),  # Ramadan
    "Antarctica/Troll": ("2021-03-28", "2021-10-31"),  # two hours
    "Pacific/Apia": ("2011-12-30", "2011-09-24", "2012-04-01"),  # a whole day skipped
    "America/Havana": ("2021-03-14", "2021-11-07"),  # at midnight
    "Asia/Gaza": ("2021-03-27", "2021-10-29"),
    "America/Santiago": ("2019-04-07", "2019-09-08"),  # 24:00
    "Pacific/Chatham": ("2021-04-03", "2021-09-25"),  # 12:45 from UTC, at 03:45
    "America/St_Johns": ("2010-03-14", "2010-11-07", "2021-11-07"),  # at 00:01 until 2011
    "Asia/Beirut": ("2021-03-28", "2021-10-31"),
    "America/Asuncion": ("2019-03-24", "2019-10-06"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Pacific/Kwajalein": ("1993-08-21",),  # a day skipped, westwards
    "Asia/Pyongyang": ("2015-08-14", "2018-05-04"),  # half an hour, for good
    "America/Caracas": ("2007-12-09", "2016-05-01"),
}
"""Days of change, in UTC, of zones whose changes are unlike others."""

CASES: Final = [(zone, day) for zone, days in CHANGES.items() for day in days]


@attrs.frozen
class Shown:
    """What clocks show at each minute of some days around a change, and what they skip."""

    minutes: tuple[tuple[datetime, datetime, bool], ...]
    """UTC, local time, and whether clocks showed the same local time before."""
    skipped: tuple[tuple[datetime, datetime], ...]
    """Local times that clocks skip, and the instants as much after the change as the local times are."""

    @property
    def start(self) -> datetime:
        """The minute before the first one, in UTC."""
        return self.minutes[0][0] - MINUTE

    @property
    def end(self) -> datetime:
        """The last minute, in UTC."""
        return self.minutes[-1][0]

    def due(self, wanted: Callable[[datetime], bool], gap: str, overlap: str) -> list[datetime]:
        """Return the instants at which something at the wanted local times comes due."""
        found = {utc for utc, local, again in self.minutes if wanted(local) and not (again and overlap == "first")}
        if gap == "shift":
            found |= {instant for local, instant in self.skipped if wanted(local)}
        return sorted(found)


@functools.cache
def shown(name: str, day: str) -> Shown:
    """Walk from a day and a half before the change to a day and a half after it."""
    zone, utc = ZoneInfo(name), datetime.fromisoformat(day).replace(tzinfo=UTC) - 36 * 60 * MINUTE
    minutes: list[tuple[datetime, datetime, bool]] = []
    skipped: list[tuple[datetime, datetime]] = []
    seen: set[datetime] = set()
    for _ in range(3 * 24 * 60):
        local = utc.astimezone(zone).replace(tzinfo=None, fold=0)
        if minutes:
            expected = minutes[-1][1] + MINUTE
            missing = (local - expected) // MINUTE
            skipped += [(expected + step * MINUTE, utc + step * MINUTE) for step in range(missing)]
        minutes.append((utc, local, local in seen))
        seen.add(local)
        utc += MINUTE
    assert skipped or any(again for _, _, again in minutes), f"no change in {name} on {day}"
    return Shown(tuple(minutes), tuple(skipped))
