"""What is read of tasks: each page from the index that has its order, however many tasks there are.

`INDEXED BY` makes a statement fail rather than sort or look at every row; a test looks at the plans too.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from whenidle_actors.errors import StoreDamaged, UnknownTask
from whenidle_actors.stores.task_rows import DueTask, Receipt, ReceiptPage, TaskPage, TaskRow

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Sequence

_ROW = "id, data, updated_millis, next_millis, session_id, creator"
_BEFORE_ALL = (-(2**63), "")


def read_task(connection: sqlite3.Connection, task_id: str) -> TaskRow:
    """Return one task.

    Raises:
        UnknownTask: there is none of that id.
        StoreDamaged: it is not what was written; all functions here raise it.
    """
    row = connection.execute(f"SELECT {_ROW} FROM tasks WHERE id = ?", (_storable(task_id),)).fetchone()  # noqa: S608 - the columns are ours
    if row is None:
        raise UnknownTask(task_id)
    return _task(row)


def read_page(connection: sqlite3.Connection, active: bool | None, limit: int, offset: int) -> TaskPage:  # noqa: FBT001 - a filter with three values
    """Return up to `limit` tasks from `offset` on, the active ones before the others, or one kind only."""
    with _snapshot(connection):
        active_total, others_total = _totals(connection)
        first = active_total if active is not False else 0
        total = first + (others_total if active is not True else 0)
        rows: list[Any] = []
        if offset < first:
            rows += connection.execute(_ACTIVE, (limit, offset))
        if len(rows) < limit and max(offset, first) < total:
            rows += connection.execute(_OTHERS, (limit - len(rows), max(0, offset - first)))
    return TaskPage(tuple(map(_listed, rows)), total)


_ACTIVE = (
    f"SELECT {_ROW} FROM tasks INDEXED BY due_tasks WHERE next_millis IS NOT NULL "  # noqa: S608 - the columns are ours
    "ORDER BY next_millis, id LIMIT ? OFFSET ?"
)
_OTHERS = (
    f"SELECT {_ROW} FROM tasks INDEXED BY other_tasks WHERE next_millis IS NULL "  # noqa: S608 - the columns are ours
    "ORDER BY updated_millis DESC, id LIMIT ? OFFSET ?"
)


def read_active_count(connection: sqlite3.Connection, creator: str | None) -> int:
    """Return how many tasks are active, of one creator if it is given."""
    if creator is None:
        return _totals(connection)[0]
    row = connection.execute("SELECT active FROM active_by_creator WHERE creator = ?", (creator,)).fetchone()
    return 0 if row is None else row[0]


def read_due(
    connection: sqlite3.Connection, until_millis: int, session_id: str | None, after: tuple[int, str] | None, limit: int
) -> tuple[TaskRow, ...]:
    """Return up to `limit` tasks due at or before `until_millis`, behind `after`, the earliest first."""
    millis, task_id = _BEFORE_ALL if after is None else after
    if session_id is None:
        rows = connection.execute(_DUE, (millis, task_id, until_millis, limit))
    else:
        rows = connection.execute(_DUE_OF_SESSION, (session_id, millis, task_id, until_millis, limit))
    return tuple(map(_task, rows))


def read_due_destinations(
    connection: sqlite3.Connection, until_millis: int, after: tuple[int, str] | None, limit: int
) -> tuple[DueTask, ...]:
    """Return what `read_due` does for all sessions, without the tasks' texts."""
    rows = connection.execute(_DUE_DESTINATIONS, (*(_BEFORE_ALL if after is None else after), until_millis, limit))
    return tuple(map(_due_task, rows))


def read_due_of(
    connection: sqlite3.Connection, session_ids: Sequence[str], until_millis: int, limit: int
) -> list[tuple[TaskRow, ...]]:
    """Return what `read_due` gives for each of some sessions."""
    return [read_due(connection, until_millis, session_id, None, limit) for session_id in session_ids]


_DUE = (
    f"SELECT {_ROW} FROM tasks INDEXED BY due_tasks "  # noqa: S608 - the columns are ours
    "WHERE (next_millis, id) > (?, ?) AND next_millis <= ? ORDER BY next_millis, id LIMIT ?"
)
_DUE_DESTINATIONS = (
    "SELECT id, next_millis, session_id FROM tasks INDEXED BY due_tasks "
    "WHERE (next_millis, id) > (?, ?) AND next_millis <= ? ORDER BY next_millis, id LIMIT ?"
)
_DUE_OF_SESSION = (
    f"SELECT {_ROW} FROM tasks INDEXED BY due_tasks_by_session "  # noqa: S608 - the columns are ours
    "WHERE session_id = ? AND (next_millis, id) > (?, ?) AND next_millis <= ? ORDER BY next_millis, id LIMIT ?"
)


def read_next_due(connection: sqlite3.Connection, after_millis: int | None) -> int | None:
    """Return the earliest next occurrence, above `after_millis` if it is given."""
    row = connection.execute(
        "SELECT next_millis FROM tasks INDEXED BY due_tasks WHERE next_millis > ? ORDER BY next_millis LIMIT 1",
        (_BEFORE_ALL[0] if after_millis is None else after_millis,),
    ).fetchone()
    return None if row is None else row[0]


def read_receipts(connection: sqlite3.Connection, task_id: str, before: int | None, limit: int) -> ReceiptPage:
    """Return up to `limit` receipts of a task numbered below `before`, the newest first.

    Raises:
        UnknownTask: there is none of that id.
    """
    with _snapshot(connection):
        task = connection.execute("SELECT task FROM tasks WHERE id = ?", (_storable(task_id),)).fetchone()
        if task is None:
            raise UnknownTask(task_id)
        rows = connection.execute(
            "SELECT number, scheduled_millis, delivered_millis, data FROM receipts "
            "WHERE task = ? AND number < ? ORDER BY number DESC LIMIT ?",
            (*task, 2**63 - 1 if before is None else before, limit + 1),
        ).fetchall()
    page = rows[:limit]
    return ReceiptPage(tuple(_receipt(task_id, *row) for row in page), page[-1][0] if len(rows) > limit else None)


def _totals(connection: sqlite3.Connection) -> tuple[int, int]:
    row = connection.execute("SELECT active, others FROM task_totals").fetchone()
    if row is None:
        raise StoreDamaged("the totals of tasks are missing")
    active, others = row
    return active, others


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Let several statements see the store as it is at the first of them."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _storable(task_id: str) -> str:
    try:
        task_id.encode()
    except UnicodeEncodeError:
        raise UnknownTask(task_id) from None
    return task_id


def _task(row: tuple[Any, ...]) -> TaskRow:
    """Return a task, damaged or not.

    Raises:
        StoreDamaged: it is damaged in such a way that it cannot be told when it comes due, or be deleted.
    """
    task = _listed(row)
    if task.damage is not None and (type(row[2]) is not int or type(row[3]) not in {int, type(None)}):
        raise StoreDamaged(f"task {task.id!r} is damaged: {task.damage}")
    return task


def _listed(row: tuple[Any, ...]) -> TaskRow:
    """Return a task of a page, damaged or not: it must not hide its neighbours."""
    task_id, data, updated, following, session_id, creator = row
    if (
        type(data) is str
        and type(updated) is int
        and type(following) in {int, type(None)}
        and type(session_id) in {str, type(None)}
        and type(creator) is str
        and type(task_id) is str
    ):
        return TaskRow(*row)
    return TaskRow(
        task_id if type(task_id) is str else repr(task_id),
        data if type(data) is str else "",
        updated if type(updated) is int else 0,
        following if type(following) is int else None,
        session_id if type(session_id) is str else None,
        creator if type(creator) is str else "",
        damage="its row is not what was written",
    )


def _due_task(row: tuple[Any, ...]) -> DueTask:
    task_id, next_millis, session_id = row
    sound = type(next_millis) is int and type(session_id) in {str, type(None)}
    return DueTask(task_id, next_millis, session_id if sound else None)


def _receipt(task_id: str, number: int, scheduled: Any, delivered: Any, data: Any) -> Receipt:
    if type(scheduled) is not int or type(delivered) is not int or type(data) is not str:
        raise StoreDamaged(f"task {task_id!r} is damaged: receipt {number} is not what was written")
    return Receipt(task_id, scheduled, delivered, data)
