"""The SQLite store: one file, group commit, and no surprise when the process dies."""

from whenidle_actors.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
