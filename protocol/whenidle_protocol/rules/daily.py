"""Every day at a time of day in a zone."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from whenidle_protocol.recurrence.calendars import DayFilter, PlainCalendar
from whenidle_protocol.recurrence.periods import EveryDay

from .time_of_day import TimeOfDayRule

if TYPE_CHECKING:
    from whenidle_protocol.recurrence.calendars import Calendar


@attrs.frozen(cache_hash=True)
class DailyRule(TimeOfDayRule):
    """Every day at `time`, a time of day in whole seconds or text like `09:00`, in `time_zone`.

    Nothing comes due before the instant `start`, if there is one.

    Raises:
        RuleError: `invalid_rule`, not a time of day; `invalid_time_zone`.
    """

    kind: ClassVar[str] = "daily"

    def make_calendar(self) -> Calendar:
        """Return every day with the time."""
        return PlainCalendar(DayFilter(lambda year: year.full), EveryDay(), self.seconds)
