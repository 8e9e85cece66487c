"""Tasks between what the store keeps and what decisions are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.errors import StoreDamaged, StoreError, UnknownTask
from whenidle_actors.session import Beside
from whenidle_actors.stores.task_rows import Receipt, TaskRow, TaskWrite
from whenidle_clock import to_millis
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.task_admission import receipt_text
from whenidle_protocol.task_codec import decode_task, encode_task
from whenidle_protocol.task_listing import DamagedTask

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Store
    from whenidle_protocol.task_admission import Admission
    from whenidle_protocol.task_delivery import Due, Skipped
    from whenidle_protocol.task_record import Task


def to_row(task: Task) -> TaskRow:
    """Return `task` as the store keeps it."""
    task_id, updated_millis, next_millis, session_id, creator = _columns(task)
    return TaskRow(task_id, encode_task(task), updated_millis, next_millis, session_id, creator)


def from_row(row: TaskRow) -> Task:
    """Return the task that `row` holds.

    Raises:
        StoreDamaged: it is not what was written.
    """
    if row.damage is not None:
        raise StoreDamaged(f"task {row.id!r} is damaged: {row.damage}")
    try:
        task = decode_task(row.data)
    except CorruptLog as error:
        raise StoreDamaged(f"task {row.id!r}: {error}") from error
    if (row.id, row.updated_millis, row.next_millis, row.session_id, row.creator) != _columns(task):
        # Nothing could be decided of it that a commit would then accept.
        raise StoreDamaged(f"task {row.id!r}: its columns do not agree with its data")
    return task


def entry_of(row: TaskRow) -> Task | DamagedTask:
    """Return the task that `row` holds, or why it cannot be read."""
    try:
        return from_row(row)
    except StoreDamaged as error:
        return DamagedTask(row.id, str(error))


def _columns(task: Task) -> tuple[str, int, int | None, str | None, str]:
    next_millis = to_millis(task.scheduled_at) if task.active else None
    return task.id, to_millis(task.updated_at), next_millis, task.target.session_id, task.creator


def change(before: Task | None, after: Task) -> TaskWrite:
    """Return the write that makes `before`, as it was read, into `after`; None is no task yet."""
    return TaskWrite(after.id, None if before is None else to_millis(before.updated_at), to_row(after))


def records_of(admission: Admission) -> Beside:
    """Return what an admission leaves behind on its tasks."""
    decided: tuple[Due | Skipped, ...] = (*admission.delivered, *admission.skipped)
    return Beside(
        tuple(change(each.task, each.after) for each in decided),
        tuple(
            Receipt(due.task.id, to_millis(due.occurrence), to_millis(due.decided_at), receipt_text(due))
            for due in admission.delivered
        ),
    )


async def is_written(store: Store, write: TaskWrite) -> bool:
    """Return whether a commit of unknown outcome, which held `write`, certainly happened (SPEC 3.2)."""
    try:
        return await store.task(write.task_id) == write.row
    except UnknownTask:
        return write.row is None
    except StoreError:
        return False
