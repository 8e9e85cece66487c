"""An independent reader of compiled zone data (RFC 9636), and the slowest way to resolve local time.

It shares nothing with `zoneinfo` or with `whenidle_clock.zones`: offsets come from the 64-bit block of
the file and, after its last transition, from the POSIX rule in its footer; a local time is resolved
by trying every offset the zone ever has.
"""

import bisect
import functools
import re
import struct
from dataclasses import dataclass
from datetime import date, timedelta

YEAR_SECONDS = {year: (date(year, 1, 1) - date(1970, 1, 1)).days * 86400 for year in range(1900, 2101)}

_HEADER = struct.Struct(">4sc15x6l")
_RULE = re.compile(
    r"(?:<[^>]+>|[A-Za-z]+)(?P<std>[-+]?[\d:]+)"
    r"(?:(?:<[^>]+>|[A-Za-z]+)(?P<dst>[-+]?[\d:]+)?,(?P<start>[^,]+),(?P<end>[^,]+))?",
)


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    hours, minutes, seconds = (*map(int, text.lstrip("+-").split(":")), 0, 0)[:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)


def _day_of(rule: str, year: int) -> date:
    first = date(year, 1, 1)
    leap = (date(year + 1, 1, 1) - first).days == 366
    if rule.startswith("M"):
        month, week, weekday = map(int, rule[1:].split("."))
        day = date(year, month, 1)
        day += timedelta(days=(weekday - day.isoweekday()) % 7 + 7 * (week - 1))
        while day.month != month:
            day -= timedelta(days=7)
        return day
    if rule.startswith("J"):
        number = int(rule[1:])
        return first + timedelta(days=number - 1 + (leap and number >= 60))
    return first + timedelta(days=int(rule))


@dataclass(frozen=True)
class Footer:
    """A POSIX TZ rule: what holds after the last transition of the table."""

    text: str

    def changes(self, year: int) -> list[tuple[int, int]]:
        """Give (UTC second, offset from then on) of the year's changes, in order."""
        match = _RULE.fullmatch(self.text)
        assert match, self.text
        std = -_seconds(match["std"])
        if match["start"] is None:
            return [(YEAR_SECONDS[year], std)]
        dst = -_seconds(match["dst"]) if match["dst"] else std + 3600
        found = []
        for rule, before, after in ((match["start"], std, dst), (match["end"], dst, std)):
            day, _, clock = rule.partition("/")
            local = (_day_of(day, year) - date(1970, 1, 1)).days * 86400 + _seconds(clock or "2")
            found.append((local - before, after))
        return sorted(found)


class Zone:
    """The changes of a zone from 1900 to 2100."""

    def __init__(self, data: bytes) -> None:
        first = _HEADER.unpack_from(data)
        assert first[0] == b"TZif"
        assert first[1] >= b"2"
        isutc, isstd, leap, times, types, chars = first[2:]
        start = _HEADER.size + times * 5 + types * 6 + chars + leap * 8 + isstd + isutc
        isutc, isstd, leap, times, types, chars = _HEADER.unpack_from(data, start)[2:]
        at = start + _HEADER.size
        instants: tuple[int, ...] = struct.unpack_from(f">{times}q", data, at)
        kinds: tuple[int, ...] = struct.unpack_from(f">{times}B", data, at + times * 8)
        at += times * 9
        offsets: list[int] = [struct.unpack_from(">lBB", data, at + 6 * kind)[0] for kind in range(types)]
        at += types * 6 + chars + leap * 12 + isstd + isutc
        footer = data[at:].strip(b"\n").decode("ascii")
        self.before: int = offsets[0]
        changes = [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]
        last = changes[-1][0] if changes else -(2**62)
        if footer:
            for year in range(1900, 2101):
                changes += [change for change in Footer(footer).changes(year) if change[0] > last]
        self.instants = [instant for instant, _ in changes]
        self.after: list[int] = [offset for _, offset in changes]
        self.offsets = sorted({self.before, *self.after})

    def offset_at(self, second: int) -> int:
        """Give the offset in force at a UTC second, or from it on."""
        index = bisect.bisect_right(self.instants, second) - 1
        return self.before if index < 0 else self.after[index]

    def resolve(self, local_ms: int) -> list[int]:
        """Give every UTC millisecond at which clocks show that local millisecond."""
        found = (local_ms - offset * 1000 for offset in self.offsets)
        return sorted(ms for ms in found if ms + self.offset_at(ms // 1000) * 1000 == local_ms)

    def shift(self, local_ms: int) -> int:
        """Give the UTC millisecond of a local millisecond in a gap, moved on by the gap's length."""
        for instant in self.instants:
            before, after = self.offset_at(instant - 1), self.offset_at(instant)
            if (instant + before) * 1000 <= local_ms < (instant + after) * 1000:
                return self.resolve(local_ms + (after - before) * 1000)[0]
        raise AssertionError(local_ms)

    def changes(self, first_year: int, last_year: int) -> list[int]:
        """Give the UTC seconds of all changes in those years, of the offset or of its name alone."""
        begin, end = YEAR_SECONDS[first_year], YEAR_SECONDS[last_year + 1]
        return [instant for instant in self.instants if begin <= instant < end]


zone_of = functools.lru_cache(maxsize=1024)(Zone)
