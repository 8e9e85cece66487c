"""How a trace tells of what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from whenidle_actors.stores.base import Batch

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Append, Receipt, TaskWrite


def described(batch: Batch) -> dict[str, Any]:
    """Return what a batch holds, as JSON values; see `What.COMMIT_DURABLE`."""
    return {
        "created": [header.id for header in batch.created],
        "seeds": {header.id: header.seed_length for header in batch.created if header.forked_from is not None},
        "appends": [_append(append) for append in batch.appends],
        "tasks": [_task(write) for write in batch.tasks],
        "receipts": [_receipt(receipt) for receipt in batch.receipts],
    }


def first_part(batch: Batch) -> Batch:
    """Return what a disk that tears keeps of a batch: about half of it, from the front."""
    appends = batch.appends
    if len(appends) == 1 and len(appends[0].records) > 1:
        half = appends[0].records[: len(appends[0].records) // 2]
        return Batch((attrs.evolve(appends[0], records=half),), batch.created)
    if batch.tasks or batch.receipts:
        return Batch(appends, batch.created)
    return Batch(appends[: len(appends) // 2], batch.created)


def _append(append: Append) -> dict[str, Any]:
    return {
        "session": append.session_id,
        "expected": append.expected,
        "due": append.index.due_millis,
        "runnable": append.index.runnable,
        "records": [{"type": record.type, "at": record.at_millis, "data": record.data} for record in append.records],
    }


def _task(write: TaskWrite) -> dict[str, Any]:
    row = write.row
    return {
        "id": write.task_id,
        "expected": write.expected,
        "task": None if row is None else row.data,
        "version": None if row is None else row.updated_millis,
        "next": None if row is None else row.next_millis,
        "session": None if row is None else row.session_id,
    }


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        "task": receipt.task_id,
        "scheduled": receipt.scheduled_millis,
        "delivered": receipt.delivered_millis,
        "data": receipt.data,
    }
