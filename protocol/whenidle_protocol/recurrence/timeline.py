"""The instants of a rule: its local matches in a zone, under the policies for gaps and overlaps (SPEC 1.6, 6.6).

Where a zone keeps its offset, instants are local matches moved by it, in the same order. So a timeline is
worked through stretch by stretch, and instants increase strictly whatever a change of clocks does:

- local times that clocks skip belong to no stretch; with `Gap.SHIFT` those just before a stretch are taken
  with the offset before it, and one that meets a match of its own is one occurrence, not two;
- local times that clocks repeat belong to two stretches; with `Overlap.FIRST` the second leaves them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from whenidle_clock.zones import Gap, Overlap

from .seconds import DAY, HIGHEST, LOWEST, year_of_day
from .years import year_at
from .zone_years import MAX_OFFSET, Stretch, stretch_at

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from .matches import Matches

_PATIENCE: Final = 400
"""How many stretches with a local match but no instant are passed before a search ends: a rule whose every
match is skipped by clocks has found none in so many years of one match each."""

_MOST_YEARS: Final = 64
"""So many years are counted at a time, unless no fewer can reach a COUNT: few enough to find its place in them."""

_LONGEST_YEAR: Final = 366
_SHORTEST_YEAR: Final = 365 * DAY


@attrs.frozen
class Limits:
    """Where a rule begins and ends, beside the begin of its local matches."""

    since: int = LOWEST
    """The first second of UTC that may be an occurrence."""
    until: int = HIGHEST
    """The last second of UTC that may be one."""
    count: int | None = None
    """How many occurrences there are."""


class Timeline:
    """The occurrences of a rule as seconds of UTC, from its first to its last."""

    def __init__(
        self,
        matches: Matches,
        zone: ZoneInfo,
        gap: Gap,
        overlap: Overlap,
        limits: Limits | None = None,
    ) -> None:
        limits = limits or Limits()
        self.matches: Matches = matches
        self.zone: ZoneInfo = zone
        self.gap: Gap = gap
        self.overlap: Overlap = overlap
        self.begin: int = max(matches.begin - MAX_OFFSET, limits.since)
        self.end: int = limits.until
        """The last second that may be an occurrence; a COUNT moves it here once it is reached."""
        self._left = limits.count
        self._stretch = stretch_at(zone, self.begin)
        self._counted_to = self.begin
        self._safe_to = self.begin - 1
        """Up to here COUNT is not passed."""

    def stretch(self, at: int) -> Stretch:
        """Return the stretch of the zone that holds the instant, at once if it held the one asked for before."""
        stretch = self._stretch
        if not stretch.start <= at < stretch.end:
            stretch = self._stretch = stretch_at(self.zone, at)
        return stretch

    def first(self, start: int) -> int | None:
        """Return the first occurrence at or after `start`."""
        found = self._first(max(start, self.begin))
        if found is not None and self._left is not None:
            self._use_up(found)
        return found if found is not None and found <= self.end else None

    def last(self, at: int) -> int | None:
        """Return the last occurrence at or before `at`."""
        at = min(at, self.end)
        if self._left is not None:
            self._use_up(at)
            at = min(at, self.end)
        return self._last(at) if at >= self.begin else None

    def count(self, start: int, end: int) -> int:
        """Return the number of occurrences from `start` up to and without `end`."""
        if self._left is not None:
            self._use_up(end)
        start, end = max(start, self.begin), min(end, self.end + 1)
        return self._count(start, end) if start < end else 0

    def skipped(self, start: int, end: int) -> list[int]:
        """Return the local matches that were skipped by clocks set forward from `start` up to `end`."""
        found: list[int] = []
        start = max(start, self.begin)
        while start < end and self.gap is Gap.SKIP:
            stretch = self.stretch(start)
            if start <= stretch.turn < end and stretch.before < stretch.offset:
                found += self._listed(stretch.turn + stretch.before, stretch.turn + stretch.offset)
            start = stretch.end
        return found

    def shows(self, at: int, stretch: Stretch) -> bool:
        """Whether the clocks of the stretch show a local match at the instant."""
        local = at + stretch.offset
        return self.matches.first(local, local + 1) is not None

    def _listed(self, start: int, end: int) -> list[int]:
        found: list[int] = []
        match = self.matches.first(start, end)
        while match is not None:
            found.append(match)
            match = self.matches.first(match + 1, end)
        return found

    def _shown(self, stretch: Stretch, start: int, end: int) -> tuple[int, int]:
        """Return the range of local times that instants of the stretch from `start` to `end` are matches at."""
        low, high = start + stretch.offset, end + stretch.offset
        if self.overlap is Overlap.FIRST and stretch.before > stretch.offset:
            low = max(low, stretch.turn + stretch.before)
        return low, high

    def _shifted(self, stretch: Stretch, start: int, end: int) -> tuple[int, int]:
        """Return the range of local times skipped before the stretch that shift to `start` to `end`."""
        if self.gap is Gap.SKIP or stretch.before >= stretch.offset:
            return 0, 0
        return (
            max(start, stretch.turn) + stretch.before,
            min(end + stretch.before, stretch.turn + stretch.offset),
        )

    def _first(self, start: int) -> int | None:
        for _ in range(_PATIENCE):
            if start > self.end:
                return None
            stretch = self.stretch(start)
            found = self._first_in(stretch, start)
            if found is not None:
                return found
            match = self.matches.first(stretch.end - MAX_OFFSET)
            if match is None:
                return None
            start = max(stretch.end, match - MAX_OFFSET)
        return None

    def _first_in(self, stretch: Stretch, start: int) -> int | None:
        shown = self.matches.first(*self._shown(stretch, start, stretch.end))
        low, high = self._shifted(stretch, start, stretch.end)
        shifted = self.matches.first(low, high) if low < high else None
        found = None if shown is None else shown - stretch.offset
        if shifted is None or (found is not None and found <= shifted - stretch.before):
            return found
        return shifted - stretch.before

    def _last(self, at: int) -> int | None:
        while True:
            stretch = self.stretch(at)
            start = max(stretch.start, self.begin)
            found = self._last_in(stretch, start, at + 1)
            if found is not None:
                return found
            match = self.matches.last(LOWEST, stretch.start + MAX_OFFSET)
            if match is None or stretch.start <= self.begin:
                return None
            at = min(stretch.start - 1, match + MAX_OFFSET)

    def _last_in(self, stretch: Stretch, start: int, end: int) -> int | None:
        shown = self.matches.last(*self._shown(stretch, start, end))
        low, high = self._shifted(stretch, start, end)
        shifted = self.matches.last(low, high) if low < high else None
        found = None if shown is None else shown - stretch.offset
        if shifted is None or (found is not None and found >= shifted - stretch.before):
            return found
        return shifted - stretch.before

    def _count(self, start: int, end: int) -> int:
        total = 0
        while start < end:
            stretch = self.stretch(start)
            close = min(end, stretch.end)
            total += self.matches.count(*self._shown(stretch, start, close))
            low, high = self._shifted(stretch, start, close)
            if low < high:
                total += sum(not self.shows(match - stretch.before, stretch) for match in self._listed(low, high))
            start = close
            if start < end:  # pass over stretches without a match
                match = self.matches.first(start - MAX_OFFSET)
                start = end if match is None else max(start, match - MAX_OFFSET)
        return total

    def _use_up(self, upto: int) -> None:
        """Count occurrences, each once and some years at a time, until COUNT is reached or `upto` is passed."""
        years = 1
        while self._left is not None and self._safe_to < upto and self._safe_to < self.end:
            self._safe_to = self._out_of_reach()
            if self._safe_to >= min(upto, self.end):
                return
            first, last = (year_of_day(at // DAY) for at in (self._counted_to, min(upto, self.end)))
            ahead = max(years, self._left // (self.matches.most_a_day * _LONGEST_YEAR))
            year = year_at(min(first + ahead - 1, last))
            close = (year.start + year.length) * DAY
            number = self._count(self._counted_to, close)
            if number >= self._left:
                self.end = min(self.end, self._nth(self._left, self._counted_to, close))
                self._left = None
            else:
                self._left -= number
                self._counted_to, self._safe_to = close, close - 1
                years = min(years * 2, _MOST_YEARS)

    def _out_of_reach(self) -> int:
        """Return a second up to which there are no more than COUNT allows, if each day or year had all that any has."""
        assert self._left is not None  # noqa: S101 - or nothing is counted
        needed = self._left // (1 + (self.overlap is Overlap.BOTH))
        days, years = needed // self.matches.most_a_day, needed // self.matches.most_a_year
        # The first and the last may be entered in the middle, and local time lies beside that of UTC.
        return self._counted_to - 1 + max(0, (days - 2) * DAY - 2 * MAX_OFFSET, (years - 2) * _SHORTEST_YEAR)

    def _nth(self, number: int, start: int, end: int) -> int:
        """Return the occurrence with that number, counted from `start` on; there are so many before `end`."""
        low, high = start, end
        while high - low > 1:
            middle = (low + high) // 2
            passed = self._count(low, middle)
            if passed >= number:
                high = middle
            else:
                low, number = middle, number - passed
        return low
