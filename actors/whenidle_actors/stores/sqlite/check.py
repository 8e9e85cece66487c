"""Looking for damage: a quick look at each open, and a whole one on request."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

from whenidle_actors.stores.header_text import header_from_wire
from whenidle_actors.stores.sqlite.schema import TABLES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_MAX_FAULTS = 100  # of SQLite's own check; the first ones tell what to do


def quick_faults(connection: sqlite3.Connection, version: int, *, whole: bool) -> Iterator[str]:
    """Yield what is wrong with the database's structure; `whole` looks at each page.

    Raises:
        sqlite3.DatabaseError: it is so wrong that SQLite gives up.
    """
    if whole:
        yield from _sqlite_faults(connection, "quick_check")
    tables = _columns_by_table(connection)
    if version == 0 and tables:
        yield "it holds tables but no schema version"
    for table, needed in chain.from_iterable(added.items() for added in TABLES[:version]):
        missing = [column for column in needed if column not in tables.get(table, ())]
        if table not in tables:
            yield f"the table {table} is missing"
        elif missing:
            yield f"the table {table} has no column {', '.join(missing)}"


def all_faults(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield one line for each thing that is wrong with the store, pages and contents.

    Raises:
        sqlite3.DatabaseError: a page could not be read for the contents; earlier lines tell more.
    """
    yield from _sqlite_faults(connection, "integrity_check")
    for session_id, header in connection.execute("SELECT id, header FROM sessions ORDER BY id"):
        yield from _header_faults(session_id, header)
    for query, line in _CONTENT:
        for row in connection.execute(query):
            yield line.format(*row)


def _sqlite_faults(connection: sqlite3.Connection, check: str) -> Iterator[str]:
    for (line,) in connection.execute(f"PRAGMA {check}({_MAX_FAULTS})"):
        if line != "ok":
            # Some lines hold several, below a heading for the database that is always "main" here.
            yield from (part for part in str(line).splitlines() if not part.startswith("***"))


def _columns_by_table(connection: sqlite3.Connection) -> dict[str, set[str]]:
    columns: dict[str, set[str]] = {}
    query = """
        SELECT tables.name, columns.name
        FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite%'
    """
    for table, column in connection.execute(query):
        columns.setdefault(table, set()).add(column)
    return columns


def _header_faults(session_id: Any, text: Any) -> Iterator[str]:
    try:
        header = header_from_wire(json.loads(text))
    except (TypeError, ValueError) as error:
        yield f"session {session_id!r}: {error}"
    else:
        if header.id != session_id:
            yield f"session {session_id!r}: its header names another session, {header.id!r}"


_CONTENT = (
    (
        """
        SELECT id, length, count(seq), min(seq), max(seq)
        FROM sessions LEFT JOIN events USING (session)
        GROUP BY session
        HAVING count(seq) IS NOT length OR ifnull(min(seq), 0) IS NOT 0
            OR ifnull(max(seq), -1) IS NOT length - 1
        """,
        "session {0!r}: its log should have {1} events and has {2}, numbered {3} to {4}",
    ),
    (
        "SELECT DISTINCT session FROM events WHERE session NOT IN (SELECT session FROM sessions)",
        "events belong to a session number {0} that does not exist",
    ),
    (
        """
        SELECT id, seq FROM events JOIN sessions USING (session)
        WHERE typeof(seq) <> 'integer' OR typeof(type) <> 'text' OR typeof(at_millis) <> 'integer'
            OR ignorable NOT IN (0, 1) OR typeof(data) <> 'text' OR NOT json_valid(data)
        """,
        "session {0!r}: event {1} is not a type, an instant and JSON text",
    ),
    (
        """
        SELECT id FROM sessions
        WHERE typeof(length) <> 'integer' OR typeof(due_millis) NOT IN ('integer', 'null')
            OR runnable NOT IN (0, 1)
        """,
        "session {0!r}: its length or index is not of its kind",
    ),
    (
        """
        SELECT id FROM tasks
        WHERE typeof(id) <> 'text' OR typeof(updated_millis) <> 'integer'
            OR typeof(next_millis) NOT IN ('integer', 'null') OR typeof(session_id) NOT IN ('text', 'null')
            OR typeof(creator) <> 'text' OR typeof(data) <> 'text' OR NOT json_valid(data)
        """,
        "task {0!r}: it is not an id, instants, sessions and JSON text",
    ),
    (
        """
        SELECT active, others, true_active, true_others
        FROM (SELECT count(next_millis) AS true_active, count(*) - count(next_millis) AS true_others FROM tasks)
        LEFT JOIN task_totals
        WHERE active IS NOT true_active OR others IS NOT true_others
        """,
        "the totals of tasks are {0} active and {1} others, and should be {2} and {3}",
    ),
    (
        """
        SELECT creator, ifnull(sum(counted), 0), ifnull(sum(true_count), 0)
        FROM (
            SELECT creator, active AS counted, NULL AS true_count FROM active_by_creator
            UNION ALL
            SELECT creator, NULL, count(*) FROM tasks WHERE next_millis IS NOT NULL GROUP BY creator
        )
        GROUP BY creator
        HAVING sum(counted) IS NOT sum(true_count)
        """,
        "the active tasks of creator {0!r} are counted as {1}, and should be {2}",
    ),
    (
        "SELECT DISTINCT task FROM receipts WHERE task NOT IN (SELECT task FROM tasks)",
        "receipts belong to a task number {0} that does not exist",
    ),
    (
        """
        SELECT id, count(*), min(number), max(number)
        FROM receipts JOIN tasks USING (task)
        GROUP BY task
        HAVING count(*) <> max(number) - min(number) + 1
        """,
        "task {0!r}: {1} receipts cannot be numbered {2} to {3}",
    ),
    (
        """
        SELECT id, number FROM receipts JOIN tasks USING (task)
        WHERE typeof(number) <> 'integer' OR typeof(scheduled_millis) <> 'integer'
            OR typeof(delivered_millis) <> 'integer' OR typeof(receipts.data) <> 'text' OR NOT json_valid(receipts.data)
        """,
        "task {0!r}: receipt {1} is not two instants and JSON text",
    ),
)
"""Queries for what SQLite itself cannot know, and what to say of each row they find."""
