"""Whose file is it? Told before anything could change it, or put a file beside it (SPEC 3.4).

SQLite itself reads the header, through a connection marked `immutable`
(https://sqlite.org/uri.html#uriimmutable), which takes no locks and makes no `-wal` or `-shm`
file. Reading the header through a descriptor of our own would be simpler and wrong: closing any
descriptor of the file drops the record locks that other connections of this process have on it
(see `lock`), whereas SQLite knows its own and closes the file only when the last lock is gone.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import attrs

from whenidle_actors.errors import NotAStore, StoreDamaged, StoreUnavailable
from whenidle_actors.stores.sqlite.failures import open_failure, primary_code
from whenidle_actors.stores.sqlite.schema import APPLICATION_ID, refuse_newer, user_version

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100  # https://sqlite.org/fileformat.html#the_database_header


@attrs.frozen
class Identity:
    """What the file is, as far as its header tells."""

    blank: bool
    """True if there is no store yet: no file, an empty file, or a database without content."""
    short: bool = False
    """True if the file ends before the last page its header counts: cut off, or in mid-checkpoint."""


def identify(path: Path) -> Identity:
    """Look at the file at `path`, a resolved path, without changing anything.

    Raises:
        NotAStore: it is not an SQLite database, or another application's.
        StoreTooNew: its schema is newer than this code knows.
        StoreDamaged: it was a store, and its header is incomplete.
        StoreUnavailable: it cannot be read, or is a folder.
    """
    size = _size(path)
    if size == 0:
        if side_file_size(path, "-wal"):
            raise StoreDamaged(f"{path} is damaged: the file is empty, and its write-ahead log is not")
        return Identity(blank=True)
    if size < _HEADER_BYTES:
        _refuse_fragment(path, size)
    try:
        return _read_header(path)
    except sqlite3.Error as error:
        raise open_failure(error, str(path)) from error


def side_file_size(path: Path, suffix: str) -> int:
    """Return the bytes in SQLite's file `path` + `suffix`, 0 if there is none."""
    try:
        return Path(f"{path}{suffix}").stat().st_size
    except FileNotFoundError:
        return 0


def database_uri(path: Path, **parameters: str | int) -> str:
    """Return the URI of `path` for `sqlite3.connect(…, uri=True)`."""
    query = "&".join(f"{key}={value}" for key, value in parameters.items())
    return f"file:{quote(os.fsencode(path))}?{query}"


def _size(path: Path) -> int:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise StoreUnavailable(f"{path}: there is no folder {path.parent}; make it first") from None
        return 0
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error
    if path.is_dir():
        raise StoreUnavailable(f"{path} is a folder; a store is one file in it")
    return size


def _refuse_fragment(path: Path, size: int) -> None:
    # No connection can have locks on a file this short, so that reading it here is safe.
    start = path.read_bytes()[: len(_MAGIC)]
    if _MAGIC.startswith(start):
        raise StoreDamaged(f"{path} is damaged: it ends after {size} bytes, within the database header")
    raise NotAStore(f"{path} is not a whenidle store: it is not an SQLite database")


def _read_header(path: Path) -> Identity:
    with closing(sqlite3.connect(database_uri(path, mode="ro", immutable=1), uri=True)) as connection:
        short = _is_short(connection)
        application_id: int = connection.execute("PRAGMA application_id").fetchone()[0]
        if application_id == APPLICATION_ID:
            refuse_newer(user_version(connection), store=str(path))
            _refuse_torn_page(connection, path)
            return Identity(blank=False, short=short)
        if application_id == 0 and not short and _has_no_content(connection, path):
            return Identity(blank=True)
        raise NotAStore(
            f"{path} is not a whenidle store: it is an SQLite database of another application "
            f"(application_id {_name(application_id)})"
        )


def _refuse_torn_page(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite writes whole pages and takes what is missing of the last one for zeros. With a write-ahead
    # log the page may be in there, and the quick look that a short file gets decides.
    size = path.stat().st_size
    if size % connection.execute("PRAGMA page_size").fetchone()[0] and not side_file_size(path, "-wal"):
        raise StoreDamaged(f"{path} is damaged: it ends after {size} bytes, within a page")


def _is_short(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        if primary_code(error) != sqlite3.SQLITE_CORRUPT:
            raise
        # Makes SQLite take the length of the file for the number of pages, so that page 1 can be read.
        connection.execute("PRAGMA writable_schema = ON")
        return True
    return False


def _has_no_content(connection: sqlite3.Connection, path: Path) -> bool:
    # A store is created before it has a write-ahead log, so what is in a log here is somebody else's.
    return (
        user_version(connection) == 0
        and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
        and not side_file_size(path, "-wal")
    )


def _name(application_id: int) -> str:
    octets = (application_id & 0xFFFFFFFF).to_bytes(4, "big")
    text = octets.decode("ascii", "replace")
    return f"{octets.hex()}, {text!r}" if text.isprintable() and text.isascii() else octets.hex()
