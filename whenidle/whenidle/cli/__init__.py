"""The command line: `whenidle` and `python -m whenidle`.

Exit statuses and the form of errors are in `exits`, the options that all commands share in `arguments`, and
one module holds each group of commands.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from whenidle.cli.app import app
from whenidle.cli.exits import Exit, failure_of
from whenidle.cli.output import Output
from whenidle.cli.tokens import mark_stdin, wants_json


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    `argv` is without the program's name; None means the arguments of this process.

    Never raises for a reason the user can act on: that is told in one line, or with `--json` in one document.
    """
    tokens = list(sys.argv[1:] if argv is None else argv)
    _stand_in_for_closed_streams()
    _never_fail_to_encode()
    output = Output.standard(json=wants_json(tokens))
    try:
        status = app(mark_stdin(tokens), console=output.console, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - this is where all errors end
        return _ended_by(error, output)
    return Exit(status or Exit.OK)


def _ended_by(error: BaseException, output: Output) -> Exit:
    failure = failure_of(error)
    if "WHENIDLE_TRACEBACK" in os.environ:
        traceback.print_exception(error)
    if failure.status is Exit.READER_GONE:
        _discard_output()
    elif failure.status is not Exit.INTERRUPTED:  # who pressed Ctrl-C need not be told
        with suppress(OSError):  # standard output may be what failed
            output.fail(failure)
    return failure.status


def _stand_in_for_closed_streams() -> None:
    """Open the null device where the shell closed a standard stream (`>&-`).

    Else the next file that is opened, the store perhaps, would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for good


def _never_fail_to_encode() -> None:
    """Where a terminal's or a file's encoding lacks a character, write it as an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let the interpreter's own last flush have somewhere to go; it would complain."""
    with suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
