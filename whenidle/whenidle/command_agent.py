"""An agent that is a command: each turn runs it, with the message on its standard input or as an argument.

A host is given a `CommandAgent` where it takes a turn function. What the command is told, besides the
message:

| variable | value |
|---|---|
| `WHENIDLE_SESSION` | session id |
| `WHENIDLE_PRESET` | the session's preset, empty if it has none |
| `WHENIDLE_MESSAGE_ID` | id of the message; with several messages the ids of the first 1,000, separated by commas |
| `WHENIDLE_SOURCE` | `user` or `schedule`, in the same order and form as the ids |
| `WHENIDLE_TURN` | number of the turn: 1, 2, 3 ... |
| `WHENIDLE_ATTEMPT` | 1, or more when an interrupted turn's messages are given again |
| `WHENIDLE_REDELIVERED` | `1` when they are given again, else `0` |
| `WHENIDLE_RUN` | 1, or more when the command failed on these messages before and is run again |

With several messages (steered or injected ones come first) an empty line separates them.

A host that is itself killed without warning cannot end its commands. They may then still run when the next host
gives their messages again, with a higher `WHENIDLE_ATTEMPT`.
"""

import errno
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import attrs
import trio

from whenidle.command_report import failure_in, finished_note, unstarted_note
from whenidle.command_retries import NO_RETRIES, Retries
from whenidle.command_template import check_argv, filled, takes_message
from whenidle.process_group import Finished, Limits, Program, run_group
from whenidle_actors.errors import InvalidArgument, StoreError
from whenidle_actors.session import check_session_id
from whenidle_actors.stores.base import SessionHeader
from whenidle_actors.turn import Turn
from whenidle_clock import Clock, SystemClock, work_in_flight

DEFAULT_TIME_LIMIT = 300.0
"""Seconds a turn's command may run: long for a tool, short for a hang nobody watches."""
DEFAULT_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL; half of a host's default shutdown timeout."""
DEFAULT_OUTPUT_LIMIT = 65_536
"""Bytes kept of the end of each output stream: it all goes into the session log."""

IDS_TOLD = 1_000
"""Ids of messages in the environment; more, and the kernel might not take it."""
_NOTE_HEAD = 8_192
"""Characters of a note besides the output."""
_WIDEST = 6
"""Characters that JSON writes for one byte of output at most (RFC 8259 section 7)."""

Environment: TypeAlias = Mapping[str, str] | Callable[[SessionHeader], Mapping[str, str]]
"""Variables for every session, or what tells those of one."""


def _positive(agent: object, attribute: "attrs.Attribute[float]", value: float) -> None:
    if not value > 0:
        raise InvalidArgument(f"{type(agent).__name__}.{attribute.name} is {value!r}; write more than 0")


def _seconds(agent: object, attribute: "attrs.Attribute[float]", value: float) -> None:
    if not value >= 0:
        raise InvalidArgument(f"{type(agent).__name__}.{attribute.name} is {value!r}; write seconds, 0 or more")


def _limit(agent: object, attribute: "attrs.Attribute[int]", value: int) -> None:
    _check_whole(f"{type(agent).__name__}.{attribute.name}", value)


def _slots(agent: "CommandAgent") -> trio.CapacityLimiter:
    if agent.max_running is None:
        return trio.CapacityLimiter(math.inf)
    _check_whole("CommandAgent.max_running", agent.max_running)
    return trio.CapacityLimiter(agent.max_running)


def _check_whole(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise InvalidArgument(f"{name} is {value!r}; write a whole number from 1 on")


@attrs.frozen(kw_only=True)
class CommandAgent:
    """A turn function that runs `argv` in a process group of its own.

    What the command writes is kept in the session log by `turn.note`, the last `output_limit` bytes of each
    stream, whatever the outcome; after a status other than 0 or a timeout the turn then fails with a
    `CommandError`, unless `retries` has it run again. No process of the group outlives its turn: when the
    command exits, runs out of time or the turn is cancelled, the rest of the group is ended (SIGTERM, `grace`
    seconds, SIGKILL).

    A run that is on record is not repeated: a redelivered turn whose command had ended before the host died takes
    that for its outcome.

    Raises:
        InvalidArgument: a field is not what it should be.
    """

    argv: tuple[str, ...] = attrs.field(validator=lambda _agent, _field, argv: check_argv(argv))
    """The program and its arguments; `command_line` and `shell_script` make them of a text. `{message}` in an argument
    is where the message goes; without it, to standard input. See `command_template`."""
    time_limit: float = attrs.field(default=DEFAULT_TIME_LIMIT, validator=_positive)
    """Seconds that one run may take."""
    grace: float = attrs.field(default=DEFAULT_GRACE, validator=_seconds)
    """Seconds."""
    output_limit: int = attrs.field(default=DEFAULT_OUTPUT_LIMIT, validator=_limit)
    """Bytes, for each of standard output and standard error; less if a host's messages may not be that long."""
    environment: Environment = MappingProxyType({})
    """Added to the host's own environment."""
    folders: Path | None = None
    """Where sessions without a working directory get one, a folder with their id as its name, made when it is needed.
    None runs their commands in the host's own."""
    retries: Retries = NO_RETRIES
    max_running: int | None = None
    """How many runs of this command there may be at once, besides the host's own bound on turns; None sets none.
    Whoever waits holds its turn, and its time limit has not begun."""
    clock: Clock = attrs.field(factory=SystemClock)
    hurry: trio.Event = attrs.field(factory=trio.Event)
    """Set it to kill at once, without grace, whatever is being ended."""
    _slots: trio.CapacityLimiter = attrs.field(init=False, default=attrs.Factory(_slots, takes_self=True))

    async def __call__(self, turn: Turn) -> None:
        """Run the command for `turn`. Cancelled, it leaves no process behind.

        Raises:
            CommandFailed: it did not start, or its exit status is not 0.
            CommandTimedOut: it was stopped at the time limit.
        """
        note = await self._on_record(turn)
        while note is None or note["again"]:
            run = 1
            if note is not None:
                run = note["run"] + 1
                await trio.sleep(self.retries.wait(note["run"], turn.agent.services.random))
            note = await self._run(turn, run)
            await turn.note(note)
        failure = failure_in(note)
        if failure is not None:
            raise failure

    async def _on_record(self, turn: Turn) -> dict[str, Any] | None:
        """Return how the last run of the command for these messages ended, if a turn before noted that.

        A log that cannot be read now says nothing: to run the command again is what at-least-once allows.
        """
        if not turn.redelivered:
            return None
        try:
            history = await turn.history()
        except StoreError:
            return None
        note = None if history is None else history.note
        if not isinstance(note, dict) or not {"exitStatus", "run", "again"} <= note.keys():
            return None
        told = cast("dict[str, Any]", note)
        # Another turn function may have noted something like it.
        is_ours = type(told["run"]) is int and isinstance(told["exitStatus"], int | None)
        return told if is_ours else None

    async def _run(self, turn: Turn, run: int) -> dict[str, Any]:
        """Run the command once, and return what there is to note of it."""
        async with self._slots:
            began = self.clock.monotonic()
            try:
                with work_in_flight():
                    finished = await self._run_group(turn, run)
            except (OSError, ValueError) as error:
                again = _may_succeed(error) and self.retries.again(run, None)
                return unstarted_note(self.argv[0], run, self._why(error), again=again)
        milliseconds = round((self.clock.monotonic() - began) * 1000)
        failed = finished.timed_out or finished.status != 0
        status = None if finished.timed_out else finished.status
        again = failed and self.retries.again(run, status)
        return finished_note(self.argv[0], run, finished, milliseconds, self.time_limit, again=again)

    async def _run_group(self, turn: Turn, run: int) -> Finished:
        text = "\n\n".join(message.text for message in turn.messages)
        argument = takes_message(self.argv)
        room = (turn.agent.services.max_message_bytes - _NOTE_HEAD) // (2 * _WIDEST)
        return await run_group(
            Program(
                filled(self.argv, text) if argument else self.argv,
                {**os.environ, **self._variables(turn.agent.header), **_told(turn, run)},
                await self._folder(turn),
            ),
            stdin=b"" if argument else text.encode("utf-8", errors="replace"),
            limits=Limits(self.time_limit, self.grace, max(min(self.output_limit, room), 1)),
            hurry=self.hurry,
        )

    def _variables(self, header: SessionHeader) -> Mapping[str, str]:
        return self.environment(header) if callable(self.environment) else self.environment

    async def _folder(self, turn: Turn) -> str | None:
        header = turn.agent.header
        if header.cwd or self.folders is None:
            return header.cwd or None
        # An id is one name, no slash and no leading dot: also in a store that others have written to.
        folder = trio.Path(self.folders) / check_session_id(header.id)
        await folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(folder)

    def _why(self, error: Exception) -> str:
        if isinstance(error, OSError) and error.errno == errno.E2BIG:
            what = "the message is" if takes_message(self.argv) else "arguments and environment are"
            return f"{what} too long to be given to the command; have it read the message from standard input"
        return f"the command could not be started: {error}"


def _may_succeed(error: Exception) -> bool:
    """Return whether the same command and message might start another time."""
    return isinstance(error, OSError) and error.errno != errno.E2BIG


def _told(turn: Turn, run: int) -> dict[str, str]:
    messages = turn.messages[:IDS_TOLD]
    return {
        "WHENIDLE_SESSION": turn.agent.id,
        "WHENIDLE_PRESET": turn.agent.header.preset,
        "WHENIDLE_MESSAGE_ID": ",".join(message.id for message in messages),
        "WHENIDLE_SOURCE": ",".join(message.source for message in messages),
        "WHENIDLE_TURN": str(turn.number),
        "WHENIDLE_ATTEMPT": str(turn.attempt),
        "WHENIDLE_REDELIVERED": "1" if turn.redelivered else "0",
        "WHENIDLE_RUN": str(run),
    }
