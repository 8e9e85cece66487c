"""How a command ends: its exit status, and what is said when it fails.

| status | meaning |
|---|---|
| 0 | done; for `run`: stopped in order on SIGTERM |
| 1 | refused or failed: nothing was changed, and the message says what to do instead |
| 2 | usage: an unknown command or option, or an argument that cannot be meant (a session id with a slash) |
| 3 | the store: locked by another host, damaged, also in part, of another application, too new, not there, or full |
| 70 | a fault of whenidle itself; with `WHENIDLE_TRACEBACK` set the traceback is shown |
| 130 | Ctrl-C, also after an orderly stop of `run`, so that a shell script around it stops too |
| 141 | whoever read standard output has gone away (`whenidle log ... | head`) |

With `--json` a failure is one JSON document on standard output, `{"code": ..., "message": ...}`, where the
result would have been, and standard error stays empty; a stream of lines ends with it. Statuses 130 and 141 go
without saying. `code` is the tool's
own for an answer of a tool (SPEC 5.7), and otherwise the name of the error: `usage`, `store_locked`,
`unknown_session` and so on. Without `--json` it is one line on standard error.
"""

import enum
import re
from collections.abc import Iterator
from typing import cast

import attrs
from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from whenidle.cli.text import shortened
from whenidle.cli.tokens import STDIN_MARK
from whenidle_actors import errors
from whenidle_protocol.errors import CorruptLog

LONGEST_MESSAGE = 1_000
"""Characters of an error message that are shown; somebody else's text may be in it."""


class Exit(enum.IntEnum):
    """The exit statuses of all commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    STORE = 3
    FAULT = 70
    INTERRUPTED = 130
    READER_GONE = 141


class CommandRefused(Exception):
    """A command that ends with `code`, `message` and `status`, having changed nothing."""

    def __init__(self, code: str, message: str, status: Exit = Exit.FAILED) -> None:
        self.code = code
        self.message = message
        self.status = status
        super().__init__(message)


class UsageError(CommandRefused):
    """Arguments that do not make a command."""

    def __init__(self, message: str, code: str = "usage") -> None:
        super().__init__(code, message, Exit.USAGE)


@attrs.frozen
class Failure:
    """What is told about a failure, and the status to exit with."""

    status: Exit
    code: str
    message: str


def failure_of(error: BaseException) -> Failure:
    """Return what to tell about `error`, whatever it is."""
    causes = tuple(_leaves(error))
    known = next((cause for cause in causes if not isinstance(cause, KeyboardInterrupt)), causes[0])
    status, code, message = _classified(known)
    return Failure(status, code, shortened(message.replace(STDIN_MARK, "-"), LONGEST_MESSAGE))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Iterate over what a group holds: a failure next to other tasks comes wrapped in one."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from _leaves(member)
    else:
        yield error


_STATUSES: tuple[tuple[tuple[type[BaseException], ...], Exit], ...] = (
    ((KeyboardInterrupt,), Exit.INTERRUPTED),
    ((errors.InvalidArgument,), Exit.USAGE),
    (
        (errors.UnknownSession, errors.SessionExists, errors.CorruptImport, errors.CommitUncertain),
        Exit.FAILED,
    ),
    ((errors.StoreError, CorruptLog), Exit.STORE),
    ((errors.WhenidleError,), Exit.FAILED),
    ((BrokenPipeError,), Exit.READER_GONE),
    ((OSError,), Exit.FAILED),
)
"""The first that fits tells the status of an exception that does not bring its own."""


def _classified(error: BaseException) -> tuple[Exit, str, str]:
    if isinstance(error, CommandRefused):
        return error.status, error.code, error.message
    if isinstance(error, CycloptsError):
        return Exit.USAGE, "usage", _usage(error)
    for kinds, status in _STATUSES:
        if isinstance(error, kinds):
            return status, _code(error), str(error) or _code(error).replace("_", " ")
    return Exit.FAULT, "internal_error", f"a fault in whenidle: {type(error).__name__}: {error}"


def _usage(error: CycloptsError) -> str:
    command = " ".join(error.command_chain or ())
    guide = f"see whenidle {command} --help" if command else "see whenidle --help"
    if isinstance(error, UnusedCliTokensError):
        extra = (error.unused_tokens or ("",))[0]
        return f"there is an argument too many, {extra!r}; put a text with spaces in quotes ({guide})"
    if isinstance(error, MissingArgumentError):
        return f"{str(error).removesuffix('.')} ({guide})"
    return f"{' '.join(str(error).split()).removesuffix('.')} ({guide})"


def _code(error: BaseException) -> str:
    """Return the name of an exception class in the form of a code: `StoreLocked` is `store_locked`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(error).__name__).lower()
