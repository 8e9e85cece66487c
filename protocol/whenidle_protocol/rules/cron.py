"""Five-field cron expressions in the local time of a zone, as Vixie cron reads them (SPEC 6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.recurrence import years
from whenidle_protocol.recurrence.calendars import DayFilter, PlainCalendar
from whenidle_protocol.recurrence.failures import invalid, quoted
from whenidle_protocol.recurrence.matches import Matches
from whenidle_protocol.recurrence.periods import EveryDay
from whenidle_protocol.recurrence.seconds import LOWEST
from whenidle_protocol.recurrence.timeline import Timeline

from .cron_fields import read_fields
from .shape import LocalRule, zone_name, zone_of

if TYPE_CHECKING:
    from whenidle_protocol.recurrence.years import Year

    from .cron_fields import Numbers


def _canonical(expression: str) -> str:
    fields = read_fields(expression)
    text = " ".join(field.text for field in fields)
    if Matches(_calendar(fields)).first(LOWEST, years.year_at(_CYCLE_END).start * 86_400) is None:
        raise invalid(f"The cron expression {quoted(text)} names a day that no month has; it never comes due.")
    return text


_CYCLE_END = 9
"""Among the years 1 to 8 are all kinds of February, which is all that days of months depend on."""


def _calendar(fields: tuple[Numbers, ...]) -> PlainCalendar:
    minute, hour, month_day, month, weekday = fields

    def reckon(year: Year) -> int:
        by_month_day = years.month_days(year, month_day.values)
        by_weekday = years.weekdays(year, [(number - 1) % years.WEEK for number in weekday.values])
        both = by_month_day & by_weekday if month_day.star or weekday.star else by_month_day | by_weekday
        return years.months(year, month.values) & both

    times = [hours * 3600 + minutes * 60 for hours in hour.values for minutes in minute.values]
    return PlainCalendar(DayFilter(reckon), EveryDay(), times)


@attrs.frozen(cache_hash=True)
class CronRule(LocalRule):
    """At each minute in `time_zone` that the five fields of `expression` allow; kept in canonical form.

    A minute must be allowed by minute, hour and month, and by the day of the month and the day of the week; if
    the text of neither day field begins with `*`, one of them is enough. Names (`JAN`, `SUN`) may stand for
    numbers, Sunday is 0 or 7. Shorthands like `@daily` are refused.

    Of two equal local times both count if the text of the minute or the hour begins with `*`, which means
    "all the time"; otherwise the first does. That is what Vixie cron does when clocks go back.

    Raises:
        RuleError: `invalid_rule`, no such expression, or it never comes due; `invalid_time_zone`.
    """

    kind: ClassVar[str] = "cron"
    expression: str = attrs.field(converter=_canonical)
    time_zone: str = attrs.field(converter=zone_name)

    @property
    def default_overlap(self) -> Overlap:
        """Both of two equal local times for an expression that is for all the time, otherwise the first."""
        minute, hour, _ = self.expression.split(" ", 2)
        return Overlap.BOTH if minute.startswith("*") or hour.startswith("*") else Overlap.FIRST

    def make_timeline(self, gap: Gap, overlap: Overlap) -> Timeline:
        """Return the occurrences under these policies."""
        return Timeline(Matches(_calendar(read_fields(self.expression))), zone_of(self.time_zone), gap, overlap)
