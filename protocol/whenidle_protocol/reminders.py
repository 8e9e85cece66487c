"""What is to be delivered of a session's reminders at a given moment (SPEC 5.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import attrs

from whenidle_clock.instants import from_millis, to_millis
from whenidle_protocol.rules import every
from whenidle_protocol.schedule_change import Dispatch, EveryReminder, Reminder

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_protocol.reminder_state import ReminderState


@attrs.frozen
class Nothing:
    """No reminder is active, or the log is corrupt."""


@attrs.frozen
class Wait:
    """Nothing is due before `target`."""

    target: datetime


@attrs.frozen
class OneShot:
    """This one-shot is to be delivered, alone."""

    record: Reminder


@attrs.frozen
class BatchItem:
    """One reminder of a batch, and the latest of its occurrences that is due."""

    record: EveryReminder
    occurrence_at: datetime


@attrs.frozen
class Batch:
    """These `every` reminders are to be delivered together, as decided at `accepted_at`."""

    items: tuple[BatchItem, ...]
    accepted_at: datetime


Decision: TypeAlias = Nothing | Wait | OneShot | Batch


def decide(state: ReminderState, now: datetime) -> Decision:
    """Return what is to be delivered at the wall instant `now`, or how long to wait (SPEC 5.8)."""
    now_millis = to_millis(now)
    earliest = state.earliest_millis()
    if earliest is None:
        return Nothing()
    if earliest > now_millis:
        return Wait(from_millis(earliest))
    one_shot = state.one_shot_due(now_millis)
    if one_shot is not None:
        return OneShot(one_shot)
    return _batch(state, now_millis)


def dispatches(decision: OneShot | Batch) -> tuple[Dispatch, ...]:
    """Return the changes that record the delivery of `decision`, in its order."""
    if isinstance(decision, OneShot):
        return (Dispatch(decision.record.id),)
    return tuple(Dispatch(item.record.id, decision.accepted_at) for item in decision.items)


def _batch(state: ReminderState, now_millis: int) -> Batch:
    accepted_at = from_millis(now_millis)
    items: list[BatchItem] = []
    for record in state.recurring_due(now_millis):
        step = every.step(record.scheduled_at, record.every_seconds, accepted_at)
        items.append(BatchItem(record, step.occurrence_at))
    return Batch(tuple(items), accepted_at)
