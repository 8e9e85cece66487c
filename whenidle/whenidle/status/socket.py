"""How a host is asked from another process what it does: a UNIX socket beside its store.

Each connection gets one JSON document, a `View`, and is closed. Nothing is read from it and nothing can be changed
by it. Only the user of the host can connect.
"""

from __future__ import annotations

import json
import logging
import os
import socket as sockets
import stat
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from whenidle.status.board import watching
from whenidle.status.view import NoView, document, read_document
from whenidle_actors.logs import report
from whenidle_actors.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Generator

    from whenidle.status.board import Board
    from whenidle.status.view import View
    from whenidle_actors.host import Host

logger: logging.Logger = logging.getLogger("whenidle.status")

SUFFIX: Final = "-status"
_LONGEST: Final = 107
"""Bytes of a socket's address on Linux, without the zero behind it (unix(7))."""
_OF_PROCESS: Final = 8
"""Of these for the process that makes it: a dot and its id, which has at most seven digits (proc_pid(5))."""
_CLIENTS: Final = 8
"""Connections answered at once; more wait."""
_WAITING: Final = 128
"""Connections that wait to be taken up; a further one is refused by Linux in a way that looks like a dead host."""
_SECONDS: Final = 5.0
"""How long one may take to be answered."""
_LARGEST: Final = 4 * 1024 * 1024
"""Bytes of an answer that are read: more is none of ours."""


class NoHost(Exception):
    """No host answers for this store."""


async def serve_status(host: Host, task_status: trio.TaskStatus[bool] = trio.TASK_STATUS_IGNORED) -> None:
    """Answer whoever asks what `host` does, until cancelled; for a host whose store is a file.

    Tells its starter whether it does: where no socket can be made, a warning says why and it returns. What an
    earlier host left behind is replaced; that one cannot be running, since this one has the store.
    """
    try:
        with _bound(_path_of(host)) as listener, watching(host) as board:
            task_status.started(True)  # noqa: FBT003 - the value of a start
            listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(listener))]
            await trio.serve_listeners(partial(_answer, board, trio.CapacityLimiter(_CLIENTS)), listeners)
    except _NoSocket as error:
        report(logger, logging.WARNING, "status-not-served", "no status for whenidle top: %s", str(error))
        task_status.started(False)  # noqa: FBT003 - the value of a start


async def _answer(board: Board, limit: trio.CapacityLimiter, stream: trio.SocketStream) -> None:
    """Answer one connection; whatever becomes of it is no concern of the host's."""
    try:
        with trio.move_on_after(_SECONDS):
            async with limit, stream:
                text = json.dumps(document(await board.look()), separators=(",", ":"))
                await stream.send_all(text.encode() + b"\n")
    except trio.BrokenResourceError:
        pass  # it has hung up
    except Exception as error:  # noqa: BLE001 - logged
        report(logger, logging.ERROR, "status-failed", "the status could not be told", error=error)


async def ask_status(store: str | os.PathLike[str]) -> View:
    """Return what the host of a store does now.

    Raises:
        NoHost: none answers, or not within some seconds, or what answers is no host.
    """
    received = bytearray()
    try:
        with trio.fail_after(_SECONDS), _address(_resolved(store)) as address:
            async with await trio.open_unix_socket(address) as stream:
                async for part in stream:
                    received += part
                    if len(received) > _LARGEST:
                        raise NoHost("what answers at the store's socket says too much")
        return read_document(json.loads(received))
    except (OSError, trio.TooSlowError, trio.BrokenResourceError, _NoSocket) as error:
        raise NoHost(f"no host answers: {error}") from error
    except (ValueError, RecursionError, NoView) as error:
        raise NoHost("what answers at the store's socket is no host") from error


def _path_of(host: Host) -> str:
    if not isinstance(host.store, SqliteStore):
        raise _NoSocket(f"the store is no file: {host.store.name}")
    return _resolved(host.store.name)


def _resolved(store: str | os.PathLike[str]) -> str:
    """Return the path that a store has by whatever name it is opened."""
    return os.path.realpath(store)


class _NoSocket(Exception):
    """There cannot be a socket; says why."""


@contextmanager
def _address(store: str) -> Generator[str]:
    """Yield an address for the socket beside a store that is short enough, however long its path.

    Raises:
        _NoSocket: there is none.
    """
    path = Path(store + SUFFIX)
    if len(os.fsencode(path)) + _OF_PROCESS <= _LONGEST:
        yield str(path)
        return
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _NoSocket(str(error)) from error
    try:
        short = f"/proc/self/fd/{folder}/{path.name}"
        if len(os.fsencode(short)) + _OF_PROCESS > _LONGEST:
            raise _NoSocket("the name of the store is too long for a socket beside it")
        yield short
    finally:
        os.close(folder)


@contextmanager
def _bound(store: str) -> Generator[sockets.socket]:
    """Yield a socket that listens beside a store, and take it away again.

    It is made under another name, closed to others before it listens, and then put into its place at once.

    Raises:
        _NoSocket: it cannot be made.
    """
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as listener, _address(store) as address:
        made = Path(f"{address}.{os.getpid()}")
        try:
            _remove(made)
            listener.bind(str(made))
            made.chmod(0o600)
            listener.listen(_WAITING)
            _remove(Path(address))
            made.rename(address)
            mine = Path(address).lstat()
        except OSError as error:
            with suppress(OSError):
                _remove(made)
            raise _NoSocket(str(error)) from error
        try:
            yield listener
        finally:
            with suppress(OSError):
                if os.path.samestat(Path(address).lstat(), mine):
                    Path(address).unlink()


def _remove(path: Path) -> None:
    """Remove a socket that was left behind.

    Raises:
        OSError: something else is there, or it cannot be removed.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is in the way and is no socket")
        path.unlink()
