"""The arguments that several commands share, and how their text is read."""

import os
import sys
from typing import Annotated

import trio
from cyclopts import Parameter

from whenidle.cli.exits import CommandRefused, Exit, UsageError
from whenidle.cli.tokens import STDIN_MARK

DEFAULT_STORE = "whenidle.db"
"""In the working directory, unless the option or the variable says otherwise."""
STORE_VARIABLE = "WHENIDLE_STORE"

STDIN_LIMIT = 16 * 1024 * 1024
"""Bytes read from standard input for one text; far above what a store takes, far below what hurts."""

Store = Annotated[
    str,
    Parameter(
        name="--store",
        env_var=STORE_VARIABLE,
        metavar="FILE",
        help="The SQLite file that holds the sessions.",
    ),
]
Json = Annotated[
    bool,
    Parameter(name="--json", negative=(), show_default=False, help="Write JSON instead of text for people."),
]
Session = Annotated[str, Parameter(help="Id of the session: letters, digits and . _ : - only.")]
TaskId = Annotated[str, Parameter(name="ID", help="Id of the task, as `whenidle task list` shows it.")]


async def text_argument(value: str, name: str) -> str:
    """Return the text of the argument `name`; where that is `-`, all of standard input, unchanged.

    Raises:
        UsageError: the text is not UTF-8, or longer than `STDIN_LIMIT`.
    """
    if value == STDIN_MARK:
        return await _standard_input(name)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{name} is not UTF-8 at character {error.start + 1}", "not_utf8") from error
    return value


async def _standard_input(name: str) -> str:
    raw: bytes = await trio.to_thread.run_sync(sys.stdin.buffer.read, STDIN_LIMIT + 1, abandon_on_cancel=True)
    if len(raw) > STDIN_LIMIT:
        raise UsageError(f"{name} on standard input is longer than {STDIN_LIMIT} bytes", "too_long")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        wrong = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise UsageError(f"{name} on standard input is not UTF-8: {wrong}", "not_utf8") from error


def existing_store(path: str) -> str:
    """Return `path` if something is there; commands that only read must not make an empty store.

    Raises:
        CommandRefused: there is nothing.
    """
    if not os.path.lexists(path):
        message = (
            f"there is no store {path!r}; name it with --store or {STORE_VARIABLE}"
            " (run, send, remind, task create and import make one)"
        )
        raise CommandRefused("store_unavailable", message, Exit.STORE)
    return path
