"""Occurrences as people look at them: in UTC, in local time, and what a change of clocks did to them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import attrs

from .seconds import HIGHEST, local_at, utc_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from .timeline import Timeline


class Change(enum.Enum):
    """What a change of clocks did to an occurrence."""

    SHIFTED = "shifted"
    """Its local time does not exist; it comes as much after the change as it was to come (`Gap.SHIFT`)."""
    FIRST_OF_TWO = "first of two"
    """Clocks show its local time twice, and this is the first time."""
    SECOND_OF_TWO = "second of two"
    """Clocks show its local time twice, and this is the second time (`Overlap.BOTH`)."""


@attrs.frozen
class Occurrence:
    """One planned instant of a rule."""

    utc: datetime
    local: datetime
    """The same instant in the rule's zone, which is UTC for a rule without one."""
    change: Change | None = None
    """What a change of clocks did to it, if anything."""
    skipped: tuple[datetime, ...] = ()
    """Naive local times between the occurrence before and this one at which the rule had a match, and which
    clocks never showed (`Gap.SKIP`)."""


def occurrences_after(timeline: Timeline, after: int) -> Iterator[Occurrence]:
    """Yield the occurrences after a second of UTC, one by one."""
    while (at := timeline.first(after + 1)) is not None:
        utc = utc_at(at)
        skipped = tuple(map(local_at, timeline.skipped(after + 1, at + 1)))
        yield Occurrence(utc, utc.astimezone(timeline.zone), _change(timeline, at), skipped)
        after = at


def _change(timeline: Timeline, at: int) -> Change | None:
    stretch = timeline.stretch(at)
    set_forward = stretch.offset - stretch.before
    if 0 <= at - stretch.turn < abs(set_forward):
        if set_forward < 0:
            return Change.SECOND_OF_TWO
        if not timeline.shows(at, stretch):
            return Change.SHIFTED
    if stretch.end <= HIGHEST:
        following = timeline.stretch(stretch.end)
        set_back = following.before - following.offset
        if following.turn == stretch.end and stretch.end - at <= set_back:
            return Change.FIRST_OF_TWO
    return None
