"""`whenidle run`: a host whose agents are a command."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import trio
from cyclopts import Parameter

from whenidle.cli.arguments import DEFAULT_STORE, STORE_VARIABLE, Json, Store
from whenidle.cli.exits import Exit, UsageError
from whenidle.cli.live import reporter_for
from whenidle.cli.output import Output
from whenidle.cli.service import Settings, serve
from whenidle.cli.values import whole_number
from whenidle.command_agent import DEFAULT_GRACE, DEFAULT_TIME_LIMIT, CommandAgent
from whenidle_clock import SystemClock

DEFAULT_TURNS = 8
"""Commands that run at once: after a night's sleep a thousand agents may be due together (SPEC 2.11)."""
DEFAULT_SHUTDOWN = 10.0


def run(  # noqa: PLR0913 - one parameter an option
    *,
    agent: Annotated[str, Parameter(metavar="COMMAND", help="The command that runs each turn; not given to a shell.")],
    time_limit: Annotated[float, Parameter(metavar="SECONDS", help="How long a turn may take.")] = DEFAULT_TIME_LIMIT,
    max_turns: Annotated[
        int, Parameter(converter=whole_number, metavar="N", help="Turns that may run at once.")
    ] = DEFAULT_TURNS,
    shutdown_timeout: Annotated[
        float, Parameter(metavar="SECONDS", help="How long a stop may take; turns that run may finish in it.")
    ] = DEFAULT_SHUTDOWN,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> Exit:
    """Run a host until Ctrl-C or SIGTERM.

    Each turn of an agent runs the command in a process group of its own, with the message on standard input
    and WHENIDLE_SESSION, WHENIDLE_MESSAGE_ID, WHENIDLE_SOURCE, WHENIDLE_TURN, WHENIDLE_ATTEMPT,
    WHENIDLE_REDELIVERED and WHENIDLE_STORE in the environment. The end of its output is kept in the log.

    On a terminal the host shows what its agents do; otherwise it writes a line for each thing that
    happens, with --json a JSON document. The first signal stops it in order, the second kills running commands at once.
    SIGTERM ends with status 0, Ctrl-C with 130.
    """
    _check_positive("--time-limit", time_limit)
    _check_positive("--max-turns", max_turns)
    _check_positive("--shutdown-timeout", shutdown_timeout)
    clock = SystemClock()
    output = Output.standard(json=json)
    settings = Settings(
        store=store,
        agent=CommandAgent.from_command_line(
            agent,
            time_limit=time_limit,
            # Killing has to be over, too, when the host's patience is.
            grace=min(DEFAULT_GRACE, shutdown_timeout / 2),
            environment={STORE_VARIABLE: str(Path(store).absolute())},
            clock=clock,
        ),
        clock=clock,
        max_turns=max_turns,
        shutdown_timeout=shutdown_timeout,
    )
    return trio.run(serve, settings, reporter_for(output, clock))


def _check_positive(option: str, number: float) -> None:
    if not (isfinite(number) and number > 0):
        raise UsageError(f"{option} takes a number above 0, not {number}")
