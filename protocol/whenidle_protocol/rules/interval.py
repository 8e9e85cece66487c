"""Again and again at a fixed interval of elapsed time, whatever clocks show."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from whenidle_clock.instants import MAX_MILLIS, from_millis, to_millis
from whenidle_protocol.errors import ReminderCode
from whenidle_protocol.json_values import safe_integer
from whenidle_protocol.recurrence.failures import RuleError, invalid
from whenidle_protocol.recurrence.occurrences import Occurrence

from . import every
from .once import to_instant_or_none
from .shape import CatchUp, check_due

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_clock.zones import Gap, Overlap

SHORTEST: Final = 60
"""The shortest interval of a task, in seconds (SPEC 6.6)."""


def _seconds(value: int) -> int:
    seconds = safe_integer(value)
    if seconds is None or seconds < 1:
        raise invalid(f"every_seconds is a whole number of seconds, at least {SHORTEST}, for example 3600.")
    if seconds < SHORTEST:
        raise RuleError(
            ReminderCode.FREQUENCY_TOO_HIGH,
            f"every_seconds is at least {SHORTEST}: nothing comes due more often than once a minute.",
        )
    return seconds


@attrs.frozen(cache_hash=True)
class EveryRule:
    """At `anchor` and every so many seconds after it.

    Any settled occurrence may serve as the anchor. Without one the time asked about counts as the time at
    which the rule is made, and the first occurrence is one interval later.

    Raises:
        RuleError: `invalid_rule`, the seconds are not a positive safe integer; `frequency_too_high`, they
            are fewer than 60.
    """

    kind: ClassVar[str] = "every"
    every_seconds: int = attrs.field(converter=_seconds)
    anchor: datetime | None = attrs.field(default=None, converter=to_instant_or_none)

    @property
    def time_zone(self) -> str:
        """See `Rule.time_zone`: instants are in UTC."""
        return "UTC"

    def first(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the first occurrence later than `after`."""
        return self.next(after, gap=gap, overlap=overlap)

    def next(
        self,
        after: datetime,
        *,
        gap: Gap | None = None,  # noqa: ARG002 - no local time, no policy
        overlap: Overlap | None = None,  # noqa: ARG002 - the same
    ) -> datetime | None:
        """Return the first occurrence later than `after`, to the millisecond."""
        at, interval = to_millis(after), self.every_seconds * 1000
        anchor = at + interval if self.anchor is None else to_millis(self.anchor)
        found = anchor if at < anchor else at + interval - (at - anchor) % interval
        return from_millis(found) if found <= MAX_MILLIS else None

    def latest(
        self,
        target: datetime,
        now: datetime,
        *,
        gap: Gap | None = None,  # noqa: ARG002 - no local time, no policy
        overlap: Overlap | None = None,  # noqa: ARG002 - the same
    ) -> CatchUp:
        """Return the latest of `target` and the intervals after it up to `now`, by one division."""
        check_due(target, now)
        step = every.step(target, self.every_seconds, now)
        return CatchUp(step.occurrence_at, step.next_at, step.missed)

    def preview(
        self, after: datetime, count: int, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> tuple[Occurrence, ...]:
        """Return the first `count` occurrences later than `after`."""
        first = self.next(after, gap=gap, overlap=overlap)
        instants = () if first is None else every.preview(first, self.every_seconds, count)
        return tuple(Occurrence(instant, instant) for instant in instants)
