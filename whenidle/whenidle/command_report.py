"""What is noted of a run of an agent command in the session log, and the failure that a note tells of.

A note is written when the run has ended and before anything follows from it, so that it is known after a crash:

| key | value |
|---|---|
| `command`, `run` | the program; 1 for the first run for these messages, 2 for the next |
| `exitStatus` | -n if signal n ended it, null if it was not started |
| `again` | whether another run follows it |
| `error` | why it was not started; then the keys below are missing |
| `timedOut`, `timeLimit`, `durationMillis` | whether the time limit ended it; seconds, null without one; milliseconds |
| `stdout`, `stdoutBytes`, `stdoutTruncated` | the end of what it wrote, how much it was, whether the rest was dropped |
| `stderr`, `stderrBytes`, `stderrTruncated` | the same |
"""

import math
import signal
from collections.abc import Mapping
from typing import Any

from whenidle.command_template import CommandError
from whenidle.process_group import Finished


class CommandFailed(CommandError):
    """The agent command could not be started or ended with a status other than 0.

    `exit_status` is -n when signal n ended it, None when it did not start.
    """

    def __init__(self, message: str, exit_status: int | None) -> None:
        self.exit_status = exit_status
        super().__init__(message)


class CommandTimedOut(CommandError):
    """The agent command ran into its time limit and was stopped."""


def unstarted_note(program: str, run: int, why: str, *, again: bool) -> dict[str, Any]:
    """Return the note of a run that did not come about."""
    return {"command": program, "run": run, "exitStatus": None, "again": again, "error": why}


def finished_note(  # noqa: PLR0913 - each is a fact
    program: str, run: int, finished: Finished, milliseconds: int, time_limit: float, *, again: bool
) -> dict[str, Any]:
    """Return the note of a run that has ended."""
    return {
        "command": program,
        "run": run,
        "exitStatus": finished.status,
        "again": again,
        "timedOut": finished.timed_out,
        "timeLimit": _plain(time_limit),
        "durationMillis": milliseconds,
        "stdout": finished.stdout.text,
        "stdoutBytes": finished.stdout.total_bytes,
        "stdoutTruncated": finished.stdout.truncated,
        "stderr": finished.stderr.text,
        "stderrBytes": finished.stderr.total_bytes,
        "stderrTruncated": finished.stderr.truncated,
    }


def _plain(seconds: float) -> float | None:
    """Return seconds as JSON shows them: `5`, not `5.0`; no bound is null."""
    if not math.isfinite(seconds):
        return None
    return int(seconds) if seconds == int(seconds) else seconds


def failure_in(note: Mapping[str, Any]) -> CommandError | None:
    """Return the failure that a note tells of; None if the command did its work."""
    status = note["exitStatus"]
    if status is None:
        return CommandFailed(str(note.get("error")), None)
    if note.get("timedOut"):
        return CommandTimedOut(f"the command ran longer than its time limit of {note.get('timeLimit')} s")
    if status < 0:
        return CommandFailed(f"the command was ended by {_signal_name(-status)}", status)
    return CommandFailed(f"the command ended with exit status {status}", status) if status else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
