"""Opening the database file: look, check, create or migrate, connect.

Nothing is written before the file is known to be a sound store, or to be none yet.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import attrs

from whenidle_actors.errors import StoreDamaged
from whenidle_actors.stores.sqlite.check import quick_faults
from whenidle_actors.stores.sqlite.failures import open_failure, primary_code
from whenidle_actors.stores.sqlite.identity import Identity, database_uri, identify, side_file_size
from whenidle_actors.stores.sqlite.lock import HostLock
from whenidle_actors.stores.sqlite.schema import VERSION, migrate, user_version

if TYPE_CHECKING:
    from pathlib import Path

_CHECKED_WHOLE_UP_TO = 32 * 1024 * 1024
"""Bytes of a store that is checked page by page at each open (about 50 ms); `check` does it at any size."""

_SECONDS_BETWEEN_TRIES = 0.01


@attrs.frozen
class Place:
    """Where a store is and how its connections are made."""

    path: Path
    """Resolved, so that two names of one file share a lock and a write-ahead log."""
    busy_timeout: float
    """Seconds to wait for another process's write lock."""
    connection_factory: type[sqlite3.Connection] = sqlite3.Connection
    """Class of the writing connection."""

    def connect_writer(self) -> sqlite3.Connection:
        """Return a connection set up for durable commits to an existing store."""
        connection = self._connect(self.connection_factory, "rw")
        # https://sqlite.org/pragma.html#pragma_synchronous: in WAL mode FULL syncs the log at each
        # commit. The second is what makes macOS flush the drive's cache too; elsewhere it does nothing.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        return connection

    def connect_reader(self) -> sqlite3.Connection:
        """Return a connection that cannot write, for use in one thread at a time."""
        connection = self._connect(sqlite3.Connection, "rw")
        connection.execute("PRAGMA query_only = ON")
        return connection

    def connect_creating(self) -> sqlite3.Connection:
        """Return a connection that makes the file if there is none."""
        return self._connect(sqlite3.Connection, "rwc")

    def connect_inspecting(self) -> sqlite3.Connection:
        """Return a connection that leaves the database file as it is, its closing included.

        The last read-write connection to close moves the write-ahead log into the database; a read-only
        one cannot, but where there is no log it leaves an empty one behind. So it depends.
        """
        return self._connect(sqlite3.Connection, "ro" if side_file_size(self.path, "-wal") else "rw")

    def _connect(self, factory: type[sqlite3.Connection], mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            database_uri(self.path, mode=mode),
            uri=True,
            timeout=self.busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=factory,
        )


def open_database(place: Place, *, host: bool) -> tuple[sqlite3.Connection, HostLock | None]:
    """Return the writing connection of a store that is sound and current, and the host lock if asked for.

    Raises:
        StoreLocked, NotAStore, StoreTooNew, StoreDamaged, StoreUnavailable: nothing was changed.
        StoreBusy, StoreFull: it could not be created or migrated now.
    """
    identity = identify(place.path)
    lock = HostLock(place.path) if host else None
    try:
        prepare(place, identity, locked=host)
        connection = place.connect_writer()
        _sync_what_is_found(connection)
        return connection, lock  # noqa: TRY300 - an `else` would be further from what it belongs to
    except BaseException as error:
        if lock is not None:
            lock.release()
        if isinstance(error, sqlite3.Error):
            raise open_failure(error, str(place.path)) from error
        raise


def _sync_what_is_found(connection: sqlite3.Connection) -> None:
    """Make durable what the log holds before anybody acts on it.

    A process that was killed between writing a commit and syncing it leaves it readable, but not yet safe
    from a power failure. A checkpoint syncs the log before it does anything else.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.OperationalError as error:
        # No room to move the log into the database: it was synced, and a full store can still be read.
        if primary_code(error) != sqlite3.SQLITE_FULL:
            connection.close()
            raise


def prepare(place: Place, identity: Identity, *, locked: bool) -> None:
    """Check the store; create or migrate it where that is needed.

    Migration needs the host lock, so that no host of an older version runs on the store meanwhile; it
    is taken here unless `locked` says that the caller has it.
    """
    version = 0 if identity.blank else _inspect(place, identity)
    if version == VERSION:
        return
    lock = None if locked or version == 0 else HostLock(place.path)
    try:
        _bring_up_to_date(place)
    finally:
        if lock is not None:
            lock.release()


def _inspect(place: Place, identity: Identity) -> int:
    """Return the version of a sound store, 0 if it is not whole yet."""
    with closing(place.connect_inspecting()) as connection:
        try:
            version = user_version(connection)
            faults = list(quick_faults(connection, version, whole=_check_whole(place.path, identity)))
            write_ahead: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
        except sqlite3.DatabaseError as error:
            if identity.short and primary_code(error) == sqlite3.SQLITE_CORRUPT:
                raise StoreDamaged(
                    f"{place.path} is damaged: it ends after {place.path.stat().st_size} bytes, "
                    "before the last page that its header counts"
                ) from error
            raise
    if faults:
        raise StoreDamaged(f"{place.path} is damaged: {'; '.join(faults)}")
    return version if write_ahead == "wal" else 0


def _check_whole(path: Path, identity: Identity) -> bool:
    return identity.short or path.stat().st_size <= _CHECKED_WHOLE_UP_TO


def _bring_up_to_date(place: Place) -> None:
    with closing(place.connect_creating()) as connection:
        # Created with a rollback journal and switched afterwards: dying in between leaves either nothing
        # that counts or a whole store, and the header in the file itself always says which.
        if user_version(connection) != VERSION:
            migrate(connection)
        _switch_to_write_ahead_log(connection, place.busy_timeout)


def _switch_to_write_ahead_log(connection: sqlite3.Connection, busy_timeout: float) -> None:
    # The switch does not use SQLite's busy timeout when another process is just creating the same store.
    tries = max(1, round(busy_timeout / _SECONDS_BETWEEN_TRIES))
    for left in reversed(range(tries)):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or left == 0:
                raise
            time.sleep(_SECONDS_BETWEEN_TRIES)  # on a thread; what it waits for is another process
        else:
            return
