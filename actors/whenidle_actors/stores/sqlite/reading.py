"""What is read, each function in one short transaction so that no reader holds up a checkpoint.

A long log is read in several pieces. That is still one consistent view: the first piece tells how
long the log is, and what is in a log never changes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from whenidle_actors.errors import StoreDamaged, UnknownSession
from whenidle_actors.stores.base import Attention, SessionHeader, SessionIndex, SessionSlice
from whenidle_actors.stores.header_text import header_from_wire
from whenidle_clock.instants import MIN_MILLIS
from whenidle_protocol.events import EventRecord

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

PIECE = 1000
"""Records or sessions read at a time: a few milliseconds of a thread."""


@attrs.frozen
class LogHead:
    """A session as it was at the start of a read."""

    session: int
    length: int
    header: SessionHeader
    index: SessionIndex


def read_head(connection: sqlite3.Connection, session_id: str, start: int) -> tuple[LogHead, list[EventRecord]]:
    """Return what the store knows of a session, and the first piece of its log from `start` on.

    Raises:
        UnknownSession: there is none of that id.
        StoreDamaged: it is not what was written.
    """
    row = connection.execute(
        "SELECT session, length, due_millis, runnable, header FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise UnknownSession(session_id)
    session, length, due_millis, runnable, header = row
    head = LogHead(session, length, _header(session_id, header), SessionIndex(due_millis, bool(runnable)))
    return head, read_records(connection, head, start)


def read_sessions(connection: sqlite3.Connection, session_ids: Sequence[str]) -> list[SessionSlice | None]:
    """Return each of some sessions; None for one that is not there, is damaged, or has a log of several pieces."""
    found: list[SessionSlice | None] = []
    for session_id in session_ids:
        try:
            head, records = read_head(connection, session_id, 0)
        except (UnknownSession, StoreDamaged):
            found.append(None)
        else:
            whole = len(records) == head.length
            found.append(SessionSlice(head.header, head.index, 0, tuple(records)) if whole else None)
    return found


def read_records(connection: sqlite3.Connection, head: LogHead, start: int) -> list[EventRecord]:
    """Return the records from `start` on, at most `PIECE` of them; none if the log ends before.

    Raises:
        StoreDamaged: one is missing, or is not what was written.
    """
    end = min(start + PIECE, head.length)
    if start >= end:
        return []
    rows = connection.execute(
        "SELECT seq, type, at_millis, data, ignorable FROM events "
        "WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq",
        (head.session, start, end),
    ).fetchall()
    records: list[EventRecord] = []
    for expected, (seq, type_, at_millis, data, ignorable) in enumerate(rows, start):
        if seq != expected:
            break
        if type(type_) is not str or type(at_millis) is not int or type(data) is not str:
            raise StoreDamaged(f"session {head.header.id!r} is damaged: event {seq} is not what was written")
        records.append(EventRecord(type_, at_millis, data, bool(ignorable)))
    if start + len(records) != end:
        raise StoreDamaged(
            f"session {head.header.id!r} is damaged: event {start + len(records)} of {head.length} is missing"
        )
    return records


def read_headers(connection: sqlite3.Connection, after: str, limit: int) -> tuple[SessionHeader, ...]:
    """Return up to `limit` headers with ids above `after`, in order of id."""
    rows = connection.execute("SELECT id, header FROM sessions WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
    return tuple(_header(session_id, header) for session_id, header in rows)


@attrs.frozen
class Cursor:
    """Where a scan for attention goes on: behind this session of the runnable ones, or of the due ones."""

    session: int
    due_millis: int | None = None
    """None while the scan is still with the runnable sessions."""


FIRST = Cursor(0)


def read_attention(connection: sqlite3.Connection, cursor: Cursor) -> tuple[list[Attention], Cursor | None]:
    """Return the next sessions that need attention, perhaps none, and where to go on; None at the end."""
    if cursor.due_millis is None:
        return _read_runnable(connection, cursor.session)
    return _read_due(connection, cursor.due_millis, cursor.session)


def _read_runnable(connection: sqlite3.Connection, after: int) -> tuple[list[Attention], Cursor]:
    rows = connection.execute(
        "SELECT session, id, due_millis FROM sessions INDEXED BY runnable_sessions "
        "WHERE runnable AND session > ? ORDER BY session LIMIT ?",
        (after, PIECE),
    ).fetchall()
    found = [Attention(session_id, SessionIndex(due, runnable=True)) for _, session_id, due in rows]
    return found, Cursor(rows[-1][0]) if rows else Cursor(0, _BEFORE_ALL)


def _read_due(connection: sqlite3.Connection, due_millis: int, session: int) -> tuple[list[Attention], Cursor | None]:
    rows = connection.execute(
        "SELECT session, id, due_millis FROM sessions INDEXED BY due_sessions "
        "WHERE due_millis IS NOT NULL AND (due_millis, session) > (?, ?) AND NOT runnable "
        "ORDER BY due_millis, session LIMIT ?",
        (due_millis, session, PIECE),
    ).fetchall()
    found = [Attention(session_id, SessionIndex(due)) for _, session_id, due in rows]
    return found, Cursor(rows[-1][0], rows[-1][2]) if rows else None


_BEFORE_ALL = MIN_MILLIS - 1


def read_foreign_changes(connection: sqlite3.Connection, after: int) -> list[tuple[int, str | None]]:
    """Return number and session id, None for tasks, of each change by another process numbered above `after`."""
    return connection.execute(
        "SELECT change, id FROM foreign_changes LEFT JOIN sessions USING (session) WHERE change > ? ORDER BY change",
        (after,),
    ).fetchall()


def read_revision(connection: sqlite3.Connection) -> int:
    """Return what SQLite changes when another connection than this one commits: this one never does.

    https://sqlite.org/pragma.html#pragma_data_version
    """
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _header(session_id: str, text: str) -> SessionHeader:
    try:
        return header_from_wire(json.loads(text))
    except (TypeError, ValueError) as error:
        raise StoreDamaged(f"session {session_id!r} is damaged: {error}") from error
