"""Many batches as few statements, inside a transaction that the caller began and will end.

For what is written most: appends to sessions, and tasks that were active and whose delivery is recorded. Whatever
is unusual about one of them shows in the number of rows that change; then all of it is undone and
written batch by batch, which says whose fault it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from whenidle_actors.stores.sqlite.many_rows import change_each, change_many, select_many
from whenidle_actors.stores.sqlite.task_applying import Counts, drop_surplus

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from whenidle_actors.stores.base import Append, Batch, Receipt, Retention, TaskWrite


def may_apply_together(batch: Batch) -> bool:
    """Return whether a batch does nothing but append to sessions and move on tasks that exist."""
    return (
        not batch.created
        and all(append.records for append in batch.appends)
        and all(write.expected is not None and write.row is not None for write in batch.tasks)
    )


def apply_together(connection: sqlite3.Connection, batches: Sequence[Batch], retention: Retention) -> bool:
    """Write `batches`, all of which `may_apply_together`, in a few statements.

    Returns False if one of them cannot be written like this: it would be refused, or changes what another one
    changes, or a task that was not active. Then, and after an exception, the caller must undo what was written.

    Raises:
        sqlite3.Error, UnicodeError, OverflowError: one of them cannot be written.
    """
    # Appends alone are little for SQLite to do: row by row they cost two thirds, and the host has to wait anyhow.
    ways = _TOGETHER if any(batch.tasks for batch in batches) else _EACH
    return (
        _append(connection, [append for batch in batches for append in batch.appends], ways)
        and _move_on(connection, [write for batch in batches for write in batch.tasks])
        and _add_receipts(connection, [receipt for batch in batches for receipt in batch.receipts], retention)
    )


def _append(connection: sqlite3.Connection, appends: Sequence[Append], ways: _Ways) -> bool:
    rows = [
        (seq, record.type, record.at_millis, record.ignorable, record.data, append.session_id, append.expected)
        for append in appends
        for seq, record in enumerate(append.records, append.expected)
    ]
    # A session that is not there, or has another length, gives no row; a second append to one of them neither.
    if ways.change(connection, ways.insert_events, rows) != len(rows):
        return False
    sessions = [
        (
            append.expected + len(append.records),
            append.index.due_millis,
            append.index.runnable,
            append.session_id,
            append.expected,
        )
        for append in appends
    ]
    kept = ways.change(connection, ways.update_length, sessions)
    if kept == len(appends):
        return True
    # Only the sessions whose index changes still have the length that was expected.
    return kept + ways.change(connection, ways.update_session, sessions) == len(appends)


@attrs.frozen
class _Ways:
    """How appends are written: all rows at once, or each by itself."""

    change: Callable[[sqlite3.Connection, str, Sequence[tuple[Any, ...]]], int]
    insert_events: str
    update_length: str
    """Names no indexed column: that rewrites its index even if the value stays."""
    update_session: str


_TOGETHER = _Ways(
    change_many,
    "INSERT INTO events (session, seq, type, at_millis, ignorable, data) "
    "SELECT session, column1, column2, column3, column4, column5 FROM <given> "
    "CROSS JOIN sessions ON id = column6 AND length = column7",
    "UPDATE sessions SET length = column1 FROM <given> "
    "WHERE due_millis IS column2 AND runnable = column3 AND id = column4 AND length = column5",
    "UPDATE sessions SET length = column1, due_millis = column2, runnable = column3 FROM <given> "
    "WHERE id = column4 AND length = column5",
)
_EACH = _Ways(
    change_each,
    "INSERT INTO events (session, seq, type, at_millis, ignorable, data) "
    "SELECT session, ?, ?, ?, ?, ? FROM sessions WHERE id = ? AND length = ?",
    "UPDATE sessions SET length = ? WHERE due_millis IS ? AND runnable = ? AND id = ? AND length = ?",
    "UPDATE sessions SET length = ?, due_millis = ?, runnable = ? WHERE id = ? AND length = ?",
)


def _move_on(connection: sqlite3.Connection, writes: Sequence[TaskWrite]) -> bool:
    """Write tasks that were active, whether they still are or have ended."""
    counts = Counts()
    rows: list[tuple[object, ...]] = []
    for write in writes:
        row = write.row
        assert row is not None  # noqa: S101 - `may_apply_together` has seen to it
        rows.append(
            (row.id, write.expected, row.creator, row.updated_millis, row.next_millis, row.session_id, row.data)
        )
        if not row.active:
            counts.add(-1, row.creator, active=True)
            counts.add(1, row.creator, active=False)
    if change_many(connection, _UPDATE_TASKS, rows) != len(rows):
        return False
    counts.add_to(connection)
    return True


_UPDATE_TASKS = (
    "UPDATE tasks SET updated_millis = column4, next_millis = column5, session_id = column6, data = column7 "
    "FROM <given> WHERE id = column1 AND updated_millis = column2 AND creator = column3 AND next_millis IS NOT NULL"
)


def _add_receipts(connection: sqlite3.Connection, receipts: Sequence[Receipt], retention: Retention) -> bool:
    rows = [(receipt.task_id, receipt.scheduled_millis, receipt.delivered_millis, receipt.data) for receipt in receipts]
    if change_many(connection, _INSERT_RECEIPTS, rows) != len(rows):
        return False
    ends = [(receipt.task_id, receipt.delivered_millis) for receipt in receipts]
    for task, first, newest, delivered in select_many(
        connection, _SURPLUS, ends, retention.records, retention.age_millis
    ):
        drop_surplus(connection, retention, task, first, newest, delivered)
    return True


_INSERT_RECEIPTS = (
    "INSERT INTO receipts (task, number, scheduled_millis, delivered_millis, data) "
    "SELECT task, 1 + coalesce((SELECT max(number) FROM receipts WHERE receipts.task = tasks.task), 0), "
    "column2, column3, column4 FROM <given> CROSS JOIN tasks ON id = column1"
)
_SURPLUS = (
    "SELECT first.task, first.number, (SELECT max(number) FROM receipts WHERE receipts.task = first.task) AS newest, "
    "column2 FROM <given> CROSS JOIN tasks ON id = column1 CROSS JOIN receipts AS first ON first.task = tasks.task "
    "AND first.number = (SELECT min(number) FROM receipts WHERE receipts.task = tasks.task) "
    "WHERE newest - first.number >= ? OR first.delivered_millis < column2 - ?"
)
