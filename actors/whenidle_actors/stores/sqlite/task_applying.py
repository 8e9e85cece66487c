"""The tasks and receipts of one batch as SQL, inside the transaction of `applying`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from whenidle_actors.errors import TaskConflict, UnknownTask
from whenidle_actors.stores.task_rows import MAX_DROPPED

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from whenidle_actors.stores.task_rows import Receipt, Retention, TaskRow, TaskWrite


def write_tasks(connection: sqlite3.Connection, writes: Iterable[TaskWrite]) -> None:
    """Write tasks in order, and bring the counters up to date with all of them at once.

    Raises:
        TaskConflict: the caller must undo what was written.
        sqlite3.Error, UnicodeError, OverflowError: the same.
    """
    counts = Counts()
    for write in writes:
        _write(connection, write, counts)
    counts.add_to(connection)


def add_receipt(connection: sqlite3.Connection, receipt: Receipt, retention: Retention) -> None:
    """Add a receipt behind the others of its task, and drop those of them that `retention` does not keep.

    Raises:
        UnknownTask: the caller must undo what was written.
        sqlite3.Error, UnicodeError, OverflowError: the same.
    """
    row = connection.execute(_ENDS_OF_RECEIPTS, (receipt.task_id,)).fetchone()
    if row is None:
        raise UnknownTask(receipt.task_id)
    task, newest, first, first_delivered = row
    number = 1 if newest is None else newest + 1
    connection.execute(
        "INSERT INTO receipts (task, number, scheduled_millis, delivered_millis, data) VALUES (?, ?, ?, ?, ?)",
        (task, number, receipt.scheduled_millis, receipt.delivered_millis, receipt.data),
    )
    if newest is not None and retention.surplus(number - first + 1, [first_delivered], receipt.delivered_millis):
        drop_surplus(connection, retention, task, first, number, receipt.delivered_millis)


def drop_surplus(  # noqa: PLR0913, PLR0917 - what is known of the receipts of one task
    connection: sqlite3.Connection, retention: Retention, task: int, first: int, newest: int, delivered_millis: int
) -> None:
    """Drop the receipts of a task that `retention` does not keep; its last one was just added.

    Args:
        connection: in a transaction.
        retention: what is kept.
        task: the number of the task.
        first: the number of its first receipt.
        newest: that of its last.
        delivered_millis: when the last was delivered.

    Raises:
        sqlite3.Error: the caller must undo what was written.
    """
    oldest = connection.execute(
        "SELECT number, delivered_millis FROM receipts WHERE task = ? ORDER BY number LIMIT ?", (task, MAX_DROPPED)
    ).fetchall()
    dropped = retention.surplus(newest - first + 1, [millis for _, millis in oldest], delivered_millis)
    if dropped:
        connection.execute("DELETE FROM receipts WHERE task = ? AND number < ?", (task, first + dropped))


_ENDS_OF_RECEIPTS = (
    "SELECT tasks.task, (SELECT max(number) FROM receipts WHERE receipts.task = tasks.task), first.number, "
    "first.delivered_millis FROM tasks LEFT JOIN receipts AS first ON first.task = tasks.task AND first.number = "
    "(SELECT min(number) FROM receipts WHERE receipts.task = tasks.task) WHERE tasks.id = ?"
)


def _write(connection: sqlite3.Connection, write: TaskWrite, counts: Counts) -> None:
    if _moves_on(connection, write):
        return
    before = connection.execute(
        "SELECT updated_millis, next_millis IS NOT NULL, creator FROM tasks WHERE id = ?", (write.task_id,)
    ).fetchone()
    actual = None if before is None else before[0]
    if actual != write.expected:
        raise TaskConflict(write.task_id, write.expected, actual)
    if before is not None:
        counts.add(-1, before[2], active=bool(before[1]))
    if write.row is None:
        _delete(connection, write.task_id)
        return
    counts.add(1, write.row.creator, active=write.row.active)
    (_insert if before is None else _update)(connection, write.row)


def _moves_on(connection: sqlite3.Connection, write: TaskWrite) -> bool:
    """Write a task that was active and still is, as after a delivery, in one statement; return whether it was one."""
    row = write.row
    if row is None or write.expected is None or not row.active:
        return False
    changed = connection.execute(
        "UPDATE tasks SET updated_millis = ?, next_millis = ?, session_id = ?, data = ? "
        "WHERE id = ? AND updated_millis = ? AND creator = ? AND next_millis IS NOT NULL",
        (row.updated_millis, row.next_millis, row.session_id, row.data, row.id, write.expected, row.creator),
    ).rowcount
    return changed == 1


def _insert(connection: sqlite3.Connection, row: TaskRow) -> None:
    connection.execute(
        "INSERT INTO tasks (updated_millis, next_millis, session_id, creator, data, id) VALUES (?, ?, ?, ?, ?, ?)",
        (row.updated_millis, row.next_millis, row.session_id, row.creator, row.data, row.id),
    )


def _update(connection: sqlite3.Connection, row: TaskRow) -> None:
    connection.execute(
        "UPDATE tasks SET updated_millis = ?, next_millis = ?, session_id = ?, creator = ?, data = ? WHERE id = ?",
        (row.updated_millis, row.next_millis, row.session_id, row.creator, row.data, row.id),
    )


def _delete(connection: sqlite3.Connection, task_id: str) -> None:
    connection.execute("DELETE FROM receipts WHERE task = (SELECT task FROM tasks WHERE id = ?)", (task_id,))
    connection.execute("DELETE FROM tasks WHERE id = ?", (task_id,))


class Counts:
    """What a batch adds to the counters: nothing at all if it only moves occurrences, as deliveries do."""

    def __init__(self) -> None:
        self._active = 0
        self._others = 0
        self._by_creator: Counter[str] = Counter()

    def add(self, change: int, creator: str, *, active: bool) -> None:
        """Count one task more (1) or less (-1)."""
        if active:
            self._active += change
            self._by_creator[creator] += change
        else:
            self._others += change

    def add_to(self, connection: sqlite3.Connection) -> None:
        """Write the sums."""
        if self._active or self._others:
            connection.execute(
                "UPDATE task_totals SET active = active + ?, others = others + ?", (self._active, self._others)
            )
        for creator, change in self._by_creator.items():
            if change:
                _count_creator(connection, creator, change)


def _count_creator(connection: sqlite3.Connection, creator: str, change: int) -> None:
    connection.execute(
        "INSERT INTO active_by_creator (creator, active) VALUES (?, ?) "
        "ON CONFLICT (creator) DO UPDATE SET active = active + excluded.active",
        (creator, change),
    )
    if change < 0:
        connection.execute("DELETE FROM active_by_creator WHERE creator = ? AND active = 0", (creator,))
