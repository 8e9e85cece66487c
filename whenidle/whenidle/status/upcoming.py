"""What comes due next, as the store knows it."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from whenidle.status.view import Coming
from whenidle_actors.errors import StoreDamaged
from whenidle_actors.task_rows import from_row
from whenidle_clock import from_millis
from whenidle_protocol.task_record import TargetKind

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Store, TaskRow

_MOST_LOOKED_AT = 1_000
"""Sessions looked at for their next reminder: those that run are told of first, and may have none."""


async def upcoming(store: Store, limit: int) -> tuple[tuple[Coming, ...], int]:
    """Return up to `limit` things that come due, the earliest first, and the number of active tasks.

    Raises:
        StoreError: the store cannot be read now.
    """
    coming: list[Coming] = []
    looked_at = 0
    async for each in store.attention():
        looked_at += 1
        if each.index.due_millis is not None:
            coming.append(Coming(from_millis(each.index.due_millis), "reminder", each.session_id))
        if len(coming) == limit or looked_at == _MOST_LOOKED_AT:
            break
    page = await store.tasks(active=True, limit=limit)
    coming += map(_of_task, page.rows)
    return tuple(sorted(coming, key=attrgetter("due"))[:limit]), page.total


def _of_task(row: TaskRow) -> Coming:
    due = from_millis(row.next_millis or 0)
    try:
        task = from_row(row)
    except StoreDamaged:
        return Coming(due, row.id, "(damaged)")
    if task.target.kind is TargetKind.THIS_SESSION:
        return Coming(due, task.title, task.target.session_id or "")
    return Coming(due, task.title, "a new session")
