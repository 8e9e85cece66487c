"""What the database holds, and how an older one becomes a current one.

A new store is a store of version 0 that is migrated: there is one path, and it is one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.errors import StoreTooNew

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

APPLICATION_ID = int.from_bytes(b"wIdl", "big")
"""`PRAGMA application_id` of every store (https://sqlite.org/pragma.html#pragma_application_id)."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # `length` is the number of events. What changes with every commit stands before the header, so
        # that it is found without reading past a long one.
        """
        CREATE TABLE sessions (
            session INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            length INTEGER NOT NULL DEFAULT 0,
            due_millis INTEGER,
            runnable INTEGER NOT NULL DEFAULT 0,
            header TEXT NOT NULL
        )
        """,
        # Partial, so that idle sessions cost nothing there and a host start reads only what it wakes.
        "CREATE INDEX runnable_sessions ON sessions (runnable) WHERE runnable",
        "CREATE INDEX due_sessions ON sessions (due_millis) WHERE due_millis IS NOT NULL",
        # Without rowid a log lies together, and an append touches one page.
        """
        CREATE TABLE events (
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            type TEXT NOT NULL,
            at_millis INTEGER NOT NULL,
            ignorable INTEGER NOT NULL,
            data TEXT NOT NULL,
            PRIMARY KEY (session, seq)
        ) WITHOUT ROWID
        """,
        # AUTOINCREMENT: a number is never used again, so that deleting up to one that was reported
        # cannot take a later change with it.
        """
        CREATE TABLE foreign_changes (
            change INTEGER PRIMARY KEY AUTOINCREMENT,
            session INTEGER NOT NULL
        )
        """,
    ),
    (
        # As in `sessions`, what changes stands before the text. `updated_millis` is the version.
        """
        CREATE TABLE tasks (
            task INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            updated_millis INTEGER NOT NULL,
            next_millis INTEGER,
            session_id TEXT,
            creator TEXT NOT NULL,
            data TEXT NOT NULL
        )
        """,
        # The two halves of a list, each in its order, with the id for ties: a page is read, not sorted.
        "CREATE INDEX due_tasks ON tasks (next_millis, id) WHERE next_millis IS NOT NULL",
        "CREATE INDEX other_tasks ON tasks (updated_millis DESC, id) WHERE next_millis IS NULL",
        # What is due for one session, wanted when its agent becomes idle.
        """
        CREATE INDEX due_tasks_by_session ON tasks (session_id, next_millis, id)
        WHERE next_millis IS NOT NULL AND session_id IS NOT NULL
        """,
        # Counting a million index entries takes tens of milliseconds; these are kept with each commit.
        """
        CREATE TABLE task_totals (
            row INTEGER PRIMARY KEY CHECK (row = 1),
            active INTEGER NOT NULL,
            others INTEGER NOT NULL
        )
        """,
        "INSERT INTO task_totals VALUES (1, 0, 0)",
        "CREATE TABLE active_by_creator (creator TEXT PRIMARY KEY, active INTEGER NOT NULL) WITHOUT ROWID",
        # Numbered within a task and without gaps, so that how many there are is told from the two ends.
        """
        CREATE TABLE receipts (
            task INTEGER NOT NULL,
            number INTEGER NOT NULL,
            scheduled_millis INTEGER NOT NULL,
            delivered_millis INTEGER NOT NULL,
            data TEXT NOT NULL,
            PRIMARY KEY (task, number)
        ) WITHOUT ROWID
        """,
        # The same table, whose `session` may now be null: a change of tasks.
        "ALTER TABLE foreign_changes RENAME TO foreign_changes_1",
        "CREATE TABLE foreign_changes (change INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER)",
        "INSERT INTO foreign_changes SELECT change, session FROM foreign_changes_1 ORDER BY change",
        "DROP TABLE foreign_changes_1",
    ),
)
"""`MIGRATIONS[n]` brings a store from version n to n + 1; never edited once released."""

VERSION = len(MIGRATIONS)
"""The schema version this code reads and writes, kept in `PRAGMA user_version`."""

TABLES: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "sessions": ("session", "id", "length", "due_millis", "runnable", "header"),
        "events": ("session", "seq", "type", "at_millis", "ignorable", "data"),
        "foreign_changes": ("change", "session"),
    },
    {
        "tasks": ("task", "id", "updated_millis", "next_millis", "session_id", "creator", "data"),
        "task_totals": ("active", "others"),
        "active_by_creator": ("creator", "active"),
        "receipts": ("task", "number", "scheduled_millis", "delivered_millis", "data"),
    },
)
"""`TABLES[n]` is what version n + 1 added: the columns that the statements of this package name, by table."""


def migrate(connection: sqlite3.Connection, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the store to the newest version of `migrations`, in one transaction or not at all.

    Raises:
        sqlite3.Error: a step failed; the store is as it was.
        StoreTooNew: the store is of a version beyond `migrations`.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read inside the transaction: another process may have been first.
        found = user_version(connection)
        refuse_newer(found, len(migrations))
        for step in migrations[found:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def refuse_newer(found: int, known: int = VERSION, *, store: str = "the store") -> None:
    """Check that schema version `found` of `store` is one that this code knows.

    Raises:
        StoreTooNew: it is above `known`.
    """
    if found > known:
        raise StoreTooNew(
            f"{store} has schema version {found}, and this whenidle knows versions up to {known}; "
            "open it with a newer whenidle"
        )


def user_version(connection: sqlite3.Connection) -> int:
    """Return the schema version of the open database, 0 if nothing was created yet."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
