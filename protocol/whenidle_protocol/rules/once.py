"""The two kinds that come due once: a while after they are made, and at an instant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import attrs

from whenidle_clock.instants import from_millis, to_millis
from whenidle_protocol.json_values import safe_integer
from whenidle_protocol.recurrence.failures import invalid
from whenidle_protocol.recurrence.occurrences import Occurrence

from . import after as after_reminder
from .shape import CatchUp, check_due

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_clock.zones import Gap, Overlap


def to_instant(value: datetime) -> datetime:
    """Return an aware instant in UTC, in whole milliseconds."""
    return from_millis(to_millis(value))


def to_instant_or_none(value: datetime | None) -> datetime | None:
    """Return an aware instant in UTC, or None."""
    return None if value is None else to_instant(value)


def _seconds(value: int) -> int:
    seconds = safe_integer(value)
    if seconds is None or seconds < 1:
        raise invalid("after_seconds is a whole number of seconds, at least 1, for example 90.")
    return seconds


class _Once(ABC):
    """Comes due once; subclasses tell when."""

    __slots__ = ()

    @property
    def time_zone(self) -> str:
        """See `Rule.time_zone`: instants are in UTC."""
        return "UTC"

    @abstractmethod
    def first(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the occurrence of a rule that is made at `after`."""

    def next(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the occurrence if it is later than `after`."""
        return self.first(after, gap=gap, overlap=overlap)

    def latest(
        self,
        target: datetime,
        now: datetime,
        *,
        gap: Gap | None = None,  # noqa: ARG002 - no local time, no policy
        overlap: Overlap | None = None,  # noqa: ARG002 - the same
    ) -> CatchUp:
        """Return the target: there is no other occurrence to miss."""
        check_due(target, now)
        return CatchUp(target, None, 0)

    def preview(
        self, after: datetime, count: int, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> tuple[Occurrence, ...]:
        """Return the occurrence if it is later than `after`."""
        found = self.next(after, gap=gap, overlap=overlap)
        return () if found is None or count < 1 else (Occurrence(found, found),)


@attrs.frozen
class AfterRule(_Once):
    """Once, so many seconds after it was made.

    A rule that was made carries its target as `scheduled_at`; before, the time asked about counts as the
    time of making.

    Raises:
        RuleError: `invalid_rule`, the seconds are not a positive safe integer.
    """

    kind: ClassVar[str] = "after"
    after_seconds: int = attrs.field(converter=_seconds)
    scheduled_at: datetime | None = attrs.field(default=None, converter=to_instant_or_none)

    def first(
        self,
        after: datetime,
        *,
        gap: Gap | None = None,  # noqa: ARG002 - no local time, no policy
        overlap: Overlap | None = None,  # noqa: ARG002 - the same
    ) -> datetime | None:
        """Return `scheduled_at` if it is later than `after`; if none is settled, what a rule made then has.

        Raises:
            ToolError: `time_out_of_range`, that is beyond the year 9999.
        """
        if self.scheduled_at is None:
            return after_reminder.first(self.after_seconds, after)
        return self.scheduled_at if self.scheduled_at > after else None


@attrs.frozen
class AtRule(_Once):
    """Once, at an instant. Its zone, if it was given in local time, is not kept (SPEC 5.4)."""

    kind: ClassVar[str] = "at"
    scheduled_at: datetime = attrs.field(converter=to_instant)

    def first(
        self,
        after: datetime,
        *,
        gap: Gap | None = None,  # noqa: ARG002 - no local time, no policy
        overlap: Overlap | None = None,  # noqa: ARG002 - the same
    ) -> datetime | None:
        """Return the instant if it is later than `after`."""
        return self.scheduled_at if self.scheduled_at > after else None
