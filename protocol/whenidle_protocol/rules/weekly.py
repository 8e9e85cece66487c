"""On some days of every week at a time of day in a zone."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from whenidle_protocol.recurrence import years
from whenidle_protocol.recurrence.calendars import DayFilter, PlainCalendar
from whenidle_protocol.recurrence.failures import invalid
from whenidle_protocol.recurrence.periods import EveryDay

from .time_of_day import TimeOfDayRule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whenidle_protocol.recurrence.calendars import Calendar

_ISO_WEEKDAYS = range(1, 8)


def _weekdays(value: Iterable[int]) -> tuple[int, ...]:
    given = tuple(value)
    if not given or any(type(each) is not int or each not in _ISO_WEEKDAYS for each in given):
        raise invalid("weekdays is a list of one or more numbers from 1 (Monday) to 7 (Sunday), for example [1, 5].")
    return tuple(sorted(set(given)))


@attrs.frozen(cache_hash=True)
class WeeklyRule(TimeOfDayRule):
    """On each of `weekdays`, ISO numbers 1 (Monday) to 7 (Sunday), at `time` in `time_zone`.

    Nothing comes due before the instant `start`, if there is one.

    Raises:
        RuleError: `invalid_rule`, not a time of day, or not weekdays; `invalid_time_zone`.
    """

    kind: ClassVar[str] = "weekly"
    weekdays: tuple[int, ...] = attrs.field(converter=_weekdays)

    def make_calendar(self) -> Calendar:
        """Return those weekdays with the time."""
        wanted = [each - 1 for each in self.weekdays]
        return PlainCalendar(DayFilter(lambda year: years.weekdays(year, wanted)), EveryDay(), self.seconds)
