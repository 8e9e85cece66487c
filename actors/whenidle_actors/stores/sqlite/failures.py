"""What an SQLite error means for the person who asked.

The codes are those of https://sqlite.org/rescode.html; an extended code keeps its primary
code in the low byte.
"""

from __future__ import annotations

import sqlite3

from whenidle_actors.errors import (
    CommitRefused,
    CommitUncertain,
    NotAStore,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_LEAVES_NO_DOUBT = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_CONSTRAINT, *_BUSY}
"""Errors of a COMMIT after which nothing was committed. SQLITE_FULL among them: the frame that makes a
transaction valid is the last one written to the log, so a write that found no room came before it."""


def primary_code(error: BaseException) -> int:
    """Return the primary result code, `SQLITE_ERROR` if the error did not come from SQLite."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def leaves_doubt(error: BaseException) -> bool:
    """Tell whether a transaction may have been committed although its COMMIT raised `error`."""
    return primary_code(error) not in _LEAVES_NO_DOUBT


def refusal(error: BaseException, store: str) -> StoreError:
    """Return what to tell a caller whose commit changed nothing because of `error`."""
    return _caused(_refusal(error, store), error)


def _refusal(error: BaseException, store: str) -> StoreError:
    code = primary_code(error)
    if isinstance(error, StoreError):
        return error
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"{store}: no room for the commit; it is tried again once there is space")
    if code in _BUSY:
        return StoreBusy(f"{store}: another process held the write lock too long")
    return CommitRefused(f"{store}: the commit changed nothing: {error}")


def uncertainty(error: BaseException, store: str) -> CommitUncertain:
    """Return what to tell a caller whose commit may have happened or not because of `error`."""
    uncertain = CommitUncertain(f"{store}: whether the commit happened is not known; read it back: {error}")
    uncertain.__cause__ = error
    return uncertain


def read_failure(error: sqlite3.Error, store: str) -> StoreError:
    """Return what to tell a caller whose read failed with `error`."""
    code = primary_code(error)
    failure: StoreError
    if code in _DAMAGED or "decode" in str(error):
        failure = StoreDamaged(f"{store} is damaged: {error}")
    elif code in _BUSY:
        failure = StoreBusy(f"{store}: another process held the lock too long")
    else:
        failure = StoreUnavailable(f"{store} cannot be read: {error}")
    return _caused(failure, error)


def open_failure(error: sqlite3.Error, store: str) -> StoreError:
    """Return what to tell a caller whose store did not open because of `error`."""
    code = primary_code(error)
    failure: StoreError
    if code == sqlite3.SQLITE_NOTADB:
        failure = NotAStore(f"{store} is not a whenidle store: it is not an SQLite database")
    elif code == sqlite3.SQLITE_FULL:
        failure = StoreFull(f"{store}: no room to create or migrate it")
    elif code in _DAMAGED | _BUSY:
        failure = read_failure(error, store)
    else:
        failure = StoreUnavailable(f"{store} cannot be opened: {error}")
    return _caused(failure, error)


def _caused(failure: StoreError, error: BaseException) -> StoreError:
    if failure is not error:
        failure.__cause__ = error
    return failure
