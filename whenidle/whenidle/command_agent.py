"""An agent that is a command: each turn runs it once, with the message on its standard input.

A host is given a `CommandAgent` where it takes a turn function. What the command is told, besides the
message:

| variable | value |
|---|---|
| `WHENIDLE_SESSION` | session id |
| `WHENIDLE_MESSAGE_ID` | id of the message; with several messages their ids, separated by commas |
| `WHENIDLE_SOURCE` | `user` or `schedule`, in the same order and form as the ids |
| `WHENIDLE_TURN` | number of the turn: 1, 2, 3 ... |
| `WHENIDLE_ATTEMPT` | 1, or more when an interrupted turn's messages are given again |
| `WHENIDLE_REDELIVERED` | `1` when they are given again, else `0` |

With several messages (steered or injected ones come first) an empty line separates them.

A host that is itself killed without warning cannot end its commands. They may then still run when the next host
gives their messages again, with a higher `WHENIDLE_ATTEMPT`.
"""

import os
import shlex
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

import attrs
import trio

from whenidle.process_group import Finished, Limits, Program, run_group
from whenidle_actors.errors import InvalidArgument, WhenidleError
from whenidle_actors.turn import Turn
from whenidle_clock import Clock, SystemClock, work_in_flight

DEFAULT_TIME_LIMIT = 300.0
"""Seconds a turn's command may run: long for a tool, short for a hang nobody watches."""
DEFAULT_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL; half of a host's default shutdown timeout."""
DEFAULT_OUTPUT_LIMIT = 65_536
"""Bytes kept of the end of each output stream: it all goes into the session log."""


class CommandError(WhenidleError):
    """An agent command could not do its turn."""


class CommandNotFound(CommandError):
    """The agent command does not exist or may not be executed."""


class CommandFailed(CommandError):
    """The agent command could not be started or ended with a status other than 0.

    `exit_status` is -n when signal n ended it, None when it did not start.
    """

    def __init__(self, message: str, exit_status: int | None) -> None:
        self.exit_status = exit_status
        super().__init__(message)


class CommandTimedOut(CommandError):
    """The agent command ran into its time limit and was stopped."""


@attrs.frozen(kw_only=True)
class CommandAgent:
    """A turn function that runs `argv` (no shell) in a process group of its own.

    What the command writes is kept in the session log by `turn.note`, the last `output_limit` bytes of each
    stream, whatever the outcome; after a status other than 0 or a timeout the turn then fails with a
    `CommandError`. No process of the group outlives its turn: when the command exits, runs out of time or
    the turn is cancelled, the rest of the group is ended (SIGTERM, `grace` seconds, SIGKILL).
    """

    argv: tuple[str, ...]
    time_limit: float = DEFAULT_TIME_LIMIT
    """Seconds."""
    grace: float = DEFAULT_GRACE
    """Seconds."""
    output_limit: int = DEFAULT_OUTPUT_LIMIT
    """Bytes, for each of standard output and standard error."""
    environment: Mapping[str, str] = MappingProxyType({})
    """Added to the host's own environment."""
    clock: Clock = attrs.field(factory=SystemClock)
    hurry: trio.Event = attrs.field(factory=trio.Event)
    """Set it to kill at once, without grace, whatever is being ended."""

    @classmethod
    def from_command_line(
        cls,
        command: str,
        *,
        time_limit: float = DEFAULT_TIME_LIMIT,
        grace: float = DEFAULT_GRACE,
        environment: Mapping[str, str] = MappingProxyType({}),
        clock: Clock | None = None,
    ) -> Self:
        """Return the agent for a command line, split as a POSIX shell would but run without one.

        Raises:
            InvalidArgument: the command is empty or its quotes do not match.
            CommandNotFound: there is no such program, or it may not be executed.
        """
        argv = _split(command)
        program = shutil.which(argv[0])
        if program is None:
            problem = "is not executable" if Path(argv[0]).is_file() else "was not found"
            raise CommandNotFound(f"the agent command {argv[0]!r} {problem}; give a program on PATH or a path")
        # Absolute, because the session may have a working directory of its own.
        resolved = (str(Path(program).absolute()), *argv[1:])
        return cls(
            argv=resolved,
            time_limit=time_limit,
            grace=grace,
            environment=environment,
            clock=clock or SystemClock(),
        )

    async def __call__(self, turn: Turn) -> None:
        """Run the command for `turn`.

        Raises:
            CommandFailed: it did not start, or its exit status is not 0.
            CommandTimedOut: it was stopped at the time limit.
        """
        began = self.clock.monotonic()
        try:
            with work_in_flight():
                finished = await self._run(turn)
        except OSError as error:
            reason = f"the command could not be started: {error}"
            await turn.note({"command": self.argv[0], "exitStatus": None, "error": reason})
            raise CommandFailed(reason, None) from error
        milliseconds = round((self.clock.monotonic() - began) * 1000)
        await turn.note(_report(self.argv[0], finished, milliseconds))
        self._judge(finished)

    async def _run(self, turn: Turn) -> Finished:
        text = "\n\n".join(message.text for message in turn.messages)
        return await run_group(
            Program(
                self.argv,
                {**os.environ, **self.environment, **_told(turn)},
                turn.agent.header.cwd or None,
            ),
            stdin=text.encode("utf-8", errors="replace"),
            limits=Limits(self.time_limit, self.grace, self.output_limit),
            hurry=self.hurry,
        )

    def _judge(self, finished: Finished) -> None:
        if finished.timed_out:
            raise CommandTimedOut(f"the command ran longer than its time limit of {self.time_limit:g} s")
        if finished.status < 0:
            raise CommandFailed(f"the command was ended by {_signal_name(-finished.status)}", finished.status)
        if finished.status > 0:
            raise CommandFailed(f"the command ended with exit status {finished.status}", finished.status)


def _split(command: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise InvalidArgument(f"the agent command cannot be read: {error}") from error
    if not argv or not argv[0]:
        raise InvalidArgument("the agent command is empty; write a program and its arguments")
    return argv


def _told(turn: Turn) -> dict[str, str]:
    return {
        "WHENIDLE_SESSION": turn.agent.id,
        "WHENIDLE_MESSAGE_ID": ",".join(message.id for message in turn.messages),
        "WHENIDLE_SOURCE": ",".join(message.source for message in turn.messages),
        "WHENIDLE_TURN": str(turn.number),
        "WHENIDLE_ATTEMPT": str(turn.attempt),
        "WHENIDLE_REDELIVERED": "1" if turn.redelivered else "0",
    }


def _report(program: str, finished: Finished, milliseconds: int) -> dict[str, object]:
    return {
        "command": program,
        "exitStatus": finished.status,
        "timedOut": finished.timed_out,
        "durationMillis": milliseconds,
        "stdout": finished.stdout.text,
        "stdoutBytes": finished.stdout.total_bytes,
        "stdoutTruncated": finished.stdout.truncated,
        "stderr": finished.stderr.text,
        "stderrBytes": finished.stderr.total_bytes,
        "stderrTruncated": finished.stderr.truncated,
    }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
