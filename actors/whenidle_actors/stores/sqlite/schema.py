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
)
"""`MIGRATIONS[n]` brings a store from version n to n + 1; never edited once released."""

VERSION = len(MIGRATIONS)
"""The schema version this code reads and writes, kept in `PRAGMA user_version`."""

TABLES = {
    "sessions": ("session", "id", "length", "due_millis", "runnable", "header"),
    "events": ("session", "seq", "type", "at_millis", "ignorable", "data"),
    "foreign_changes": ("change", "session"),
}
"""The columns that the statements of this package name, by table."""


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


def refuse_newer(found: int, known: int = VERSION) -> None:
    """Check that schema version `found` is one that this code knows.

    Raises:
        StoreTooNew: it is above `known`.
    """
    if found > known:
        raise StoreTooNew(
            f"the store has schema version {found}, and this whenidle knows versions up to {known}; "
            "open it with a newer whenidle"
        )


def user_version(connection: sqlite3.Connection) -> int:
    """Return the schema version of the open database, 0 if nothing was created yet."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
