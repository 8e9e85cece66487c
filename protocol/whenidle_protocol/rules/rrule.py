"""RFC 5545 recurrence rules, two lines of text (SPEC 6.6)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.recurrence.expansion import calendar_of, cycle_years
from whenidle_protocol.recurrence.failures import invalid
from whenidle_protocol.recurrence.matches import Matches
from whenidle_protocol.recurrence.seconds import DAY, HIGHEST, LAST_YEAR, second_of
from whenidle_protocol.recurrence.text import Start, read_rule
from whenidle_protocol.recurrence.timeline import Limits, Timeline
from whenidle_protocol.recurrence.years import year_at

from .shape import LocalRule

if TYPE_CHECKING:
    from whenidle_protocol.recurrence.recur import Recur


_SOON: Final = 20
"""So many years are searched before it is asked whether there can be a match at all."""


@attrs.frozen(cache_hash=True)
class RRuleRule(LocalRule):
    """A rule of RFC 5545; `RRuleRule.parse` makes it from text.

    Recurrence is reckoned in the local time of DTSTART; then each local match becomes instants under the
    policies. Of two equal local times both count for the frequencies HOURLY and MINUTELY, so that "every hour"
    has no hole when clocks go back, and the first for the others.
    """

    kind: ClassVar[str] = "rrule"
    start: Start
    recur: Recur

    @classmethod
    def parse(cls, text: str) -> RRuleRule:
        """Return the rule of two lines, DTSTART and RRULE.

        Raises:
            RuleError: `invalid_rule`, the text is not such a rule, or it never comes due;
                `invalid_time_zone`; `time_out_of_range`, DTSTART is; `frequency_too_high`.
        """
        rule = cls(*read_rule(text))
        rule.check_satisfiable()
        return rule

    @property
    def rrule(self) -> str:
        """The canonical text, on two lines."""
        return f"{self.start}\nRRULE:{self.recur}"

    @property
    def time_zone(self) -> str:
        """The zone of DTSTART as IANA writes it; an alias stays an alias."""
        return self.start.zone.key

    @property
    def default_overlap(self) -> Overlap:
        """Both of two equal local times for HOURLY and MINUTELY, otherwise the first."""
        return Overlap.BOTH if self.recur.frequency.within_a_day else Overlap.FIRST

    def make_timeline(self, gap: Gap, overlap: Overlap) -> Timeline:
        """Return the occurrences under these policies."""
        until, count = self.recur.until, self.recur.count
        limits = Limits(until=HIGHEST if until is None else second_of(until), count=count)
        return Timeline(self._matches, self.start.zone, gap, overlap, limits)

    @functools.cached_property
    def _matches(self) -> Matches:
        """The local matches, the same under all policies: what a search has found is kept for the next."""
        return Matches(calendar_of(self.recur, self.start.local), second_of(self.start.local))

    def check_satisfiable(self) -> None:
        """Refuse a rule without an occurrence.

        What happened in a cycle of the calendar and the interval happens again, so the search ends there if not
        at the year 9999; and it ends if clocks skip whatever it finds.

        Raises:
            RuleError: `invalid_rule`.
        """
        matches, begin = self._matches, second_of(self.start.local)
        soon, late = (self._begin_of_year_in(years) for years in (_SOON, cycle_years(self.recur) + 1))
        if matches.first(begin, soon) is None and (matches.impossible() or matches.first(begin, late) is None):
            raise invalid(
                "The rule never comes due: no date has all that its BY parts ask for, at its INTERVAL from DTSTART; "
                "leave out one of them.",
            )
        timeline = self.timeline()
        if timeline.first(timeline.begin) is not None:
            return
        if self.recur.until is not None:
            raise invalid("The rule never comes due: UNTIL lies before its first occurrence; choose a later one.")
        raise invalid(
            f"The rule never comes due: clocks in {self.time_zone} skip each of its local times; choose another time.",
        )

    def _begin_of_year_in(self, years: int) -> int:
        year = self.start.local.year + years
        return HIGHEST + 1 if year > LAST_YEAR else year_at(year).start * DAY
