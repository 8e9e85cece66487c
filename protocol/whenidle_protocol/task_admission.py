"""What enters one session's inbox in one claim of its agent (SPEC 6.7, 6.8).

As with reminders, one-shots come first and each alone, since a turn takes one message; then everything
recurring that is due comes as one message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from msgspec import Struct

from whenidle_clock.instants import format_instant
from whenidle_protocol.task_delivery import Due, Skipped, deliver
from whenidle_protocol.task_framing import frame
from whenidle_protocol.task_json import struct_text
from whenidle_protocol.task_timing import is_one_shot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import TaskSettings


@attrs.frozen
class Admission:
    """What is to be committed together: one message, and the tasks after it.

    Nothing is due any more when both are empty.
    """

    delivered: tuple[Due, ...] = ()
    """In the order of the message."""
    skipped: tuple[Skipped, ...] = ()

    @property
    def text(self) -> str | None:
        """The message; None if nothing is delivered."""
        return frame(self.delivered) if self.delivered else None


def admit(tasks: Iterable[Task], now: datetime, settings: TaskSettings) -> Admission:
    """Return what of `tasks`, all for one session, is to enter its inbox at `now`, in one message.

    There may be more: ask again, in another claim, until nothing is delivered. Tasks go by their next
    occurrence, then in the order they were made.

    Tasks with the target `new` have a session for each occurrence: give each of them alone.
    """
    ordered = sorted(tasks, key=delivery_order)
    dues: list[Due] = []
    skipped: list[Skipped] = []
    one_shot: Due | None = None
    for task in ordered:
        once = is_one_shot(task.rule)
        if once and one_shot is not None:
            continue  # for another claim, which decides about it then
        decided = deliver(task, now, settings)
        if isinstance(decided, Skipped):
            skipped.append(decided)
        elif isinstance(decided, Due):
            dues.append(decided)
            one_shot = decided if once else one_shot
    return Admission(tuple(dues) if one_shot is None else (one_shot,), tuple(skipped))


def delivery_order(task: Task) -> tuple[datetime, datetime, str]:
    """Return what tasks for one session are sorted by: next occurrence, then the order they were made in."""
    return task.scheduled_at, task.created_at, task.id


class _Receipt(Struct, rename="camel", gc=False):
    # In the order of canonical JSON.
    delivered_at: str
    late_millis: int
    missed: int
    scheduled_at: str
    skipped: int
    target_session_id: str
    task_id: str


def receipt_text(due: Due) -> str:
    """Return what is kept of a delivery, as canonical JSON (SPEC 6.8)."""
    return struct_text(
        _Receipt(
            format_instant(due.decided_at),
            due.late_millis,
            due.missed,
            format_instant(due.occurrence),
            due.skipped,
            due.session_id,
            due.task.id,
        )
    )
