"""What daily and weekly rules share: a time of day in a zone, from some instant on."""

from __future__ import annotations

import datetime as dt
import re
from abc import abstractmethod
from typing import TYPE_CHECKING

import attrs

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.recurrence.failures import invalid, quoted
from whenidle_protocol.recurrence.matches import Matches
from whenidle_protocol.recurrence.seconds import LOWEST, second_of, utc_second
from whenidle_protocol.recurrence.timeline import Limits, Timeline

from .once import to_instant_or_none
from .shape import LocalRule, zone_name, zone_of

if TYPE_CHECKING:
    from whenidle_protocol.recurrence.calendars import Calendar

_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
_EXAMPLE = 'write hours, minutes and, if need be, seconds, like "09:00" or "09:00:30"'


def to_time(value: dt.time | str) -> dt.time:
    """Return a time of day in whole seconds, given as one or as text like `09:00` or `09:00:30`.

    Raises:
        RuleError: `invalid_rule`.
    """
    if isinstance(value, dt.time):
        if value.tzinfo is not None or value.microsecond:
            raise invalid(f"time {value.isoformat()} has a zone or a fraction of a second; leave them out.")
        return value.replace(fold=0)
    found = _TIME.fullmatch(value)
    if found is None:
        raise invalid(f"time {quoted(value)} is not a time of day; {_EXAMPLE}.")
    try:
        hour, minute, second = (int(digits or 0) for digits in found.groups())
        return dt.time(hour, minute, second)
    except ValueError:
        raise invalid(f"time {quoted(value)} does not exist; hours go to 23, minutes and seconds to 59.") from None


@attrs.frozen
class TimeOfDayRule(LocalRule):
    """At a time of day in a zone, on days that subclasses choose.

    Nothing comes due before `start`, an instant; None is no limit. (The time of a rule that began as an
    RRULE is its DTSTART's, and it must not run before it.)
    """

    time: dt.time = attrs.field(converter=to_time)
    time_zone: str = attrs.field(converter=zone_name)
    start: dt.datetime | None = attrs.field(default=None, converter=to_instant_or_none, kw_only=True)

    @property
    def default_overlap(self) -> Overlap:
        """The first of two equal local times."""
        return Overlap.FIRST

    @property
    def seconds(self) -> tuple[int, ...]:
        """The time as a second of the day."""
        return (self.time.hour * 3600 + self.time.minute * 60 + self.time.second,)

    @abstractmethod
    def make_calendar(self) -> Calendar:
        """Return the local matches of the rule."""

    def make_timeline(self, gap: Gap, overlap: Overlap) -> Timeline:
        """Return the occurrences under these policies."""
        zone = zone_of(self.time_zone)
        if self.start is None:
            return Timeline(Matches(self.make_calendar()), zone, gap, overlap)
        since = utc_second(self.start) + (self.start.microsecond > 0)
        begin = max(second_of(self.start.astimezone(zone)), LOWEST)
        return Timeline(Matches(self.make_calendar(), begin), zone, gap, overlap, Limits(since))
