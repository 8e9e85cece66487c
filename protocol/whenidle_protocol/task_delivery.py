"""What of a task is to be delivered at a given moment, and what becomes of the task then (SPEC 6.7, 6.8).

Nothing here enumerates the past: however long a task was not looked at, the latest occurrence, their
number and the next target are each found in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from whenidle_clock.instants import from_millis, to_millis
from whenidle_protocol.task_ids import occurrence_session_id, run_session_id
from whenidle_protocol.task_record import LastDelivery, LastFailure, TargetKind, TaskStatus, moved_on, stamp
from whenidle_protocol.task_timing import is_one_shot, policies_of

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_protocol.task_record import Target, Task
    from whenidle_protocol.task_settings import TaskSettings
    from whenidle_protocol.task_timing import Policies

_DAY_MILLIS: Final = 86_400_000


@attrs.frozen
class NotDue:
    """Nothing of the task is due: it is paused or ended, or its next occurrence lies in the future."""


@attrs.frozen
class Skipped:
    """All that is due lies beyond the catch-up window: `after` is to be written, and no message."""

    task: Task
    """As it was."""
    skipped: int
    """How many occurrences."""
    after: Task


@attrs.frozen
class Due:
    """One occurrence is to be delivered: message, receipt and `after` belong in one commit."""

    task: Task
    """As it was."""
    occurrence: datetime
    missed: int
    """How many earlier occurrences it stands for."""
    skipped: int
    """How many before those were too late for the catch-up window."""
    decided_at: datetime
    session_id: str
    """Where it goes."""
    creates: bool
    """Whether that session is to be created if it does not exist. If it neither exists nor is to be
    created, the delivery has failed: see `fail`."""
    after: Task

    @property
    def late_millis(self) -> int:
        """How late it is, in milliseconds."""
        late = self.decided_at - self.occurrence
        return late.days * _DAY_MILLIS + late.seconds * 1000 + late.microseconds // 1000


Decision: TypeAlias = Due | Skipped | NotDue


def deliver(task: Task, now: datetime, settings: TaskSettings) -> Decision:
    """Return what of `task` is to be delivered at the wall instant `now`.

    The committed next occurrence counts as it was committed, and the one after it is strictly later than
    `now`. A wall clock that was set back makes this `NotDue`.
    """
    if task.next_at is None or task.next_at > now:
        return NotDue()
    chosen = policies_of(task, settings)
    found = task.rule.latest(task.scheduled_at, now, **chosen)
    in_time = _in_time(task, now, found.missed + 1, settings, chosen)
    skipped = found.missed + 1 - in_time
    session_id = task.target.session_id or occurrence_session_id(task.id, found.occurrence_at)
    delivered = LastDelivery(found.occurrence_at, now, session_id) if in_time else None
    after = moved_on(
        task,
        {
            "target": _delivered_to(task.target) if delivered else task.target,
            "status": task.status if found.next_at else TaskStatus.ENDED,
            "scheduled_at": found.next_at or found.occurrence_at,
            "updated_at": stamp(task.updated_at, now),
            "deliveries": task.deliveries + (delivered is not None),
            "missed": task.missed + max(in_time - 1, 0),
            "skipped": task.skipped + skipped,
            "covered_at": found.occurrence_at,
            "last_delivery": delivered or task.last_delivery,
        },
    )
    if not delivered:
        return Skipped(task, skipped, after)
    return Due(task, found.occurrence_at, in_time - 1, skipped, now, session_id, _creates(task), after)


def run_now(task: Task, now: datetime) -> Due:
    """Return a delivery of `task` by hand at `now`, whatever its status; its next occurrence stays."""
    session_id = task.target.session_id or run_session_id(task.id, now)
    after = attrs.evolve(
        task,
        target=_delivered_to(task.target),
        updated_at=stamp(task.updated_at, now),
        deliveries=task.deliveries + 1,
        last_delivery=LastDelivery(now, now, session_id),
    )
    return Due(task, now, 0, 0, now, session_id, _creates(task), after)


def fail(due: Due, reason: str) -> Task:
    """Return the task after a delivery that could not be made because its session is gone (SPEC 6.8).

    The failure shows on the task. A recurring one goes on with its next occurrence, a one-shot has ended;
    after a run by hand neither changes.

    Args:
        due: the delivery.
        reason: one sentence for people.
    """
    return attrs.evolve(
        due.after,
        target=due.task.target,
        deliveries=due.task.deliveries,
        failures=due.task.failures + 1,
        last_delivery=due.task.last_delivery,
        last_failure=LastFailure(due.occurrence, due.decided_at, due.session_id, reason),
    )


def _in_time(task: Task, now: datetime, due: int, settings: TaskSettings, chosen: Policies) -> int:
    """Return how many of the `due` occurrences are no older than the catch-up window."""
    seconds = settings.catch_up_seconds if task.catch_up_seconds is None else task.catch_up_seconds
    if seconds is None or is_one_shot(task.rule):
        return due
    oldest = to_millis(now) - seconds * 1000
    if to_millis(task.scheduled_at) >= oldest:
        return due
    first = task.rule.next(from_millis(oldest - 1), **chosen)
    if first is None or first > now:
        return 0
    return task.rule.latest(first, now, **chosen).missed + 1


def _creates(task: Task) -> bool:
    target = task.target
    return target.kind is TargetKind.NEW or (target.kind is TargetKind.NEW_ONCE and not target.created)


def _delivered_to(target: Target) -> Target:
    """Return a target after a delivery to it."""
    created = target.kind is TargetKind.NEW_ONCE
    return target if target.created == created else attrs.evolve(target, created=created)
