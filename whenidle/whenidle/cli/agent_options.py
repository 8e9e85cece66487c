"""The options that say which command runs the turns of agents, and how."""

import re
from math import isfinite
from pathlib import Path
from typing import Annotated

import attrs
from cyclopts import Group, Parameter

from whenidle.cli.arguments import STORE_VARIABLE
from whenidle.cli.exits import UsageError
from whenidle.cli.text import shortened
from whenidle.cli.values import check_within, whole_number
from whenidle.command_agent import DEFAULT_GRACE, DEFAULT_TIME_LIMIT, CommandAgent
from whenidle.command_retries import Retries
from whenidle.command_template import command_line, shell_script
from whenidle_clock import Clock

DEFAULT_TURNS = 8
"""Commands that run at once: after a night's sleep a thousand agents may be due together (SPEC 2.11)."""
DEFAULT_SHUTDOWN = 10.0

MOST_RETRIES = 100
_HIGHEST_STATUS = 255
_STATUS = re.compile("[1-9][0-9]{0,2}")

GROUP = Group("Turns", sort_key=1)


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class AgentOptions:
    """An agent command, and what it may use."""

    agent: Annotated[
        str,
        Parameter(
            group=GROUP,
            metavar="COMMAND",
            help="The command that runs each turn; not given to a shell. {message} in its arguments is where the"
            " message goes, without it to standard input.",
        ),
    ]
    shell: Annotated[
        bool,
        Parameter(
            group=GROUP,
            negative=(),
            show_default=False,
            help="The command is a script for /bin/sh; the message is on standard input, never part of it.",
        ),
    ] = False
    env: Annotated[
        tuple[str, ...],
        Parameter(
            group=GROUP,
            metavar="NAME=VALUE",
            negative=(),
            show_default=False,
            help="A variable in the command's environment; may be given several times.",
        ),
    ] = ()
    folders: Annotated[
        Path | None,
        Parameter(
            group=GROUP,
            metavar="DIR",
            help="Run the command of each session that has no working directory in a folder of its own in DIR.",
        ),
    ] = None
    time_limit: Annotated[float, Parameter(group=GROUP, metavar="SECONDS", help="How long the command may run.")] = (
        DEFAULT_TIME_LIMIT
    )
    retries: Annotated[
        int,
        Parameter(
            group=GROUP,
            converter=whole_number,
            metavar="N",
            help="How often a command that fails is run again, with waits that double from 1 to 60 seconds.",
        ),
    ] = 0
    retry_status: Annotated[
        str | None,
        Parameter(
            group=GROUP, metavar="N,N...", help="The exit statuses that are tried again, like 75; else every failure."
        ),
    ] = None
    max_turns: Annotated[
        int,
        Parameter(group=GROUP, converter=whole_number, metavar="N", help="Turns that may run at once."),
    ] = DEFAULT_TURNS
    shutdown_timeout: Annotated[
        float,
        Parameter(group=GROUP, metavar="SECONDS", help="How long a stop may take; turns that run may finish in it."),
    ] = DEFAULT_SHUTDOWN

    def command(self, store: str, clock: Clock) -> CommandAgent:
        """Return what runs the turns of the agents in `store`.

        Raises:
            UsageError, InvalidArgument: an option is not what it should be.
            CommandNotFound: there is no such program.
        """
        check_positive("--time-limit", self.time_limit)
        check_positive("--shutdown-timeout", self.shutdown_timeout)
        check_positive("--max-turns", self.max_turns)
        check_within("--retries", self.retries, 0, MOST_RETRIES)
        if self.folders is not None and self.folders.exists() and not self.folders.is_dir():
            raise UsageError(f"--folders takes a folder; '{shortened(str(self.folders), 80)}' is none")
        return CommandAgent(
            argv=shell_script(self.agent) if self.shell else command_line(self.agent),
            time_limit=self.time_limit,
            # Killing has to be over, too, when the host's patience is.
            grace=min(DEFAULT_GRACE, self.shutdown_timeout / 2),
            environment={**dict(map(_variable, self.env)), STORE_VARIABLE: str(Path(store).absolute())},
            folders=None if self.folders is None else self.folders.absolute(),
            retries=Retries(runs=self.retries + 1, statuses=_statuses(self.retry_status)),
            clock=clock,
        )


def check_positive(option: str, number: float) -> None:
    """Check the number of an option.

    Raises:
        UsageError: it is not above 0, or infinite.
    """
    if not (isfinite(number) and number > 0):
        raise UsageError(f"{option} takes a number above 0, not {number}")


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise UsageError(f"--env takes NAME=VALUE, not '{shortened(text, 40)}'")
    return name, value


def _statuses(text: str | None) -> frozenset[int] | None:
    if text is None:
        return None
    words = text.split(",")
    if not all(map(_STATUS.fullmatch, words)) or max(map(int, words)) > _HIGHEST_STATUS:
        raise UsageError(
            f"--retry-status takes numbers from 1 to {_HIGHEST_STATUS}, like 75,111, not '{shortened(text, 40)}'"
        )
    return frozenset(map(int, words))
