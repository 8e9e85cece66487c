"""The host lock: at most one host schedules from a file (SPEC 3.4).

It is a `flock` on a file beside the database, not on the database itself. SQLite keeps POSIX
record locks on the database, and POSIX drops all of a process's record locks on a file as soon as
the process closes any descriptor of it (https://sqlite.org/howtocorrupt.html, section 2.2): a
second descriptor of ours would silently unlock the database. A `flock` belongs to the open file,
not to the process, so a second host in the same process is refused too, and the kernel frees it
when the process dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from whenidle_actors.errors import StoreLocked, StoreUnavailable

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = "-host"
"""Appended to the database's real path. The file stays when the host has gone; only its lock counts."""

_LOOKS = 20
_SECONDS_BETWEEN_LOOKS = 0.01
_PID_BYTES = 32


class HostLock:
    """The lock, held from construction until `release`."""

    def __init__(self, database: Path) -> None:
        """Take the lock of `database`, whose path must be resolved.

        Raises:
            StoreLocked: another host has it.
            StoreUnavailable: the lock file cannot be made.
        """
        path = f"{database}{SUFFIX}"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreUnavailable(f"{path}, the host lock, cannot be opened: {error.strerror}") from error
        try:
            self._take(str(database))
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Give the lock up."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def _take(self, database: str) -> None:
        holder = 0
        # A holder writes its process id just after it has the lock; what a killed host left behind
        # is told from it by looking again while the process named is not there.
        for _look in range(_LOOKS):
            with suppress(BlockingIOError):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._write_pid()
                return
            holder = self._read_pid()
            if _is_running(holder):
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS)  # on a thread; what it waits for is another process
        raise StoreLocked(database, holder)

    def _write_pid(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)

    def _read_pid(self) -> int:
        text = os.pread(self._descriptor, _PID_BYTES, 0).strip()
        return int(text) if text.isdigit() else 0


def _is_running(pid: int) -> bool:
    if pid == 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs, as another user
        return True
    return True
