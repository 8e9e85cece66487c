"""One batch as SQL, inside a transaction that the caller began and will end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.errors import SequenceConflict, SessionExists, UnknownSession
from whenidle_actors.stores.header_text import header_to_wire
from whenidle_actors.stores.sqlite.task_applying import add_receipt, write_tasks
from whenidle_protocol.json_text import stringify

if TYPE_CHECKING:
    import sqlite3

    from whenidle_actors.stores.base import Append, Batch, Retention, SessionHeader


def apply_batch(connection: sqlite3.Connection, batch: Batch, *, retention: Retention, tell_host: bool) -> None:
    """Write `batch`; with `tell_host` also note for the host which sessions changed, and whether tasks did.

    Raises:
        SessionExists, SequenceConflict, UnknownSession, TaskConflict, UnknownTask: the caller must undo what
            was written.
        sqlite3.Error, UnicodeError, OverflowError, ValueError: the same.
    """
    for header in batch.created:
        session = _create(connection, header)
        if tell_host:
            _note_change(connection, session)
    for append in batch.appends:
        session = _append(connection, append)
        if tell_host:
            _note_change(connection, session)
    if batch.tasks:
        write_tasks(connection, batch.tasks)
        if tell_host:
            _note_change(connection, None)
    for receipt in batch.receipts:
        add_receipt(connection, receipt, retention)


def _create(connection: sqlite3.Connection, header: SessionHeader) -> int | None:
    cursor = connection.execute(
        "INSERT INTO sessions (id, header) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
        (header.id, stringify(header_to_wire(header))),
    )
    if cursor.rowcount == 0:
        raise SessionExists(header.id)
    return cursor.lastrowid


def _append(connection: sqlite3.Connection, append: Append) -> int:
    row = connection.execute(
        "SELECT session, length, due_millis, runnable FROM sessions WHERE id = ?", (append.session_id,)
    ).fetchone()
    if row is None:
        raise UnknownSession(append.session_id)
    session: int
    session, length, due_millis, runnable = row
    if length != append.expected:
        raise SequenceConflict(append.session_id, append.expected, length)
    connection.executemany(
        "INSERT INTO events (session, seq, type, at_millis, ignorable, data) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (session, seq, record.type, record.at_millis, record.ignorable, record.data)
            for seq, record in enumerate(append.records, length)
        ],
    )
    length += len(append.records)
    index = append.index
    if index.due_millis == due_millis and index.runnable == runnable:
        # Naming an indexed column rewrites its index even if the value stays: one page less to sync.
        connection.execute("UPDATE sessions SET length = ? WHERE session = ?", (length, session))
    else:
        connection.execute(
            "UPDATE sessions SET length = ?, due_millis = ?, runnable = ? WHERE session = ?",
            (length, index.due_millis, index.runnable, session),
        )
    return session


def _note_change(connection: sqlite3.Connection, session: int | None) -> None:
    """Note a change of one session; None stands for the tasks."""
    connection.execute("INSERT INTO foreign_changes (session) VALUES (?)", (session,))
