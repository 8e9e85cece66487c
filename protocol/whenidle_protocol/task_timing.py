"""When a task comes due: its rule, under the policies of the task or else of the host (SPEC 1.6, 6.6)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypedDict

import attrs

from whenidle_clock.zones import load_zone
from whenidle_protocol.errors import TaskCode, ToolError
from whenidle_protocol.recurrence.seconds import utc_second
from whenidle_protocol.recurrence.zone_years import stretch_at
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.task_settings import MIN_SPACING_SECONDS

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_clock.zones import Gap, Overlap
    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import TaskSettings

_ONE_SHOTS: Final = frozenset({AfterRule.kind, AtRule.kind})

_LOOKED_AT: Final = 256
"""How many occurrences are looked at for the spacing: rules that come closer do so in their first few days."""

_LOOKED_AHEAD: Final = timedelta(days=20 * 366)
"""How far ahead these may lie, beyond the first few: walking through millennia would take long."""

_FIRST_FEW: Final = 16


class Policies(TypedDict):
    """The arguments of a rule's methods that say what a change of clocks does."""

    gap: Gap
    overlap: Overlap | None


def policies(gap: Gap | None, overlap: Overlap | None, settings: TaskSettings) -> Policies:
    """Return a task's own choices, completed by those of the host."""
    return {"gap": gap or settings.gap, "overlap": overlap or settings.overlap}


def policies_of(task: Task, settings: TaskSettings) -> Policies:
    """Return the policies that hold for `task`."""
    return policies(task.gap, task.overlap, settings)


def is_one_shot(rule: Rule) -> bool:
    """Return whether `rule` comes due once, and so is never skipped (SPEC 6.7)."""
    return rule.kind in _ONE_SHOTS


def begin(rule: Rule, now: datetime, chosen: Policies) -> tuple[Rule, datetime]:
    """Return `rule` as made at `now`, and its first occurrence.

    `after` and `every` count from the moment they are made, unless they say from when.

    Raises:
        ToolError: `not_future`, it has no occurrence after `now`; `time_out_of_range`.
    """
    first = rule.first(now, **chosen)
    if first is None:
        raise _no_first(rule)
    if isinstance(rule, AfterRule):
        return attrs.evolve(rule, scheduled_at=first), first
    if isinstance(rule, EveryRule):
        return attrs.evolve(rule, anchor=rule.anchor or first), first
    return rule, first


def check_spacing(rule: Rule, first: datetime, chosen: Policies, settings: TaskSettings) -> None:
    """Check that a task with the target `new` does not make sessions faster than the host allows (SPEC 6.6).

    No rule comes due more than once a minute, so that a spacing of one minute needs no look. A day on which clocks are
    set forward is a day: whether a daily rule is taken must not depend on the season.

    Raises:
        ToolError: `frequency_too_high`.
    """
    if settings.spacing_seconds <= MIN_SPACING_SECONDS:
        return
    occurrence = first
    for number in range(_LOOKED_AT):
        following = rule.next(occurrence, **chosen)
        if following is None or (number >= _FIRST_FEW and following - first > _LOOKED_AHEAD):
            return
        apart = (following - occurrence).total_seconds()
        if apart < settings.spacing_seconds > apart + _set_forward(rule, occurrence, following):
            raise ToolError(
                TaskCode.FREQUENCY_TOO_HIGH,
                f"A task with the target new may come due at most every {settings.spacing_seconds} seconds; "
                "use a rule that comes due less often, or the target this_session or new_once.",
            )
        occurrence = following


def _set_forward(rule: Rule, start: datetime, end: datetime) -> int:
    """Return the seconds that clocks in the rule's zone were set forward between two instants."""
    zone = load_zone(rule.time_zone)
    before, after = (stretch_at(zone, utc_second(each)).offset for each in (start, end))
    return max(0, after - before)


def _no_first(rule: Rule) -> ToolError:
    if is_one_shot(rule):
        return ToolError(TaskCode.NOT_FUTURE, "The time of the task is not in the future; choose a later one.")
    return ToolError(
        TaskCode.NOT_FUTURE,
        "The rule has no occurrence in the future; give a later UNTIL, a higher COUNT or a later DTSTART.",
    )
