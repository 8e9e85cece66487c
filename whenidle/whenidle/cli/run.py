"""`whenidle run`: a host whose agents are a command."""

import trio

from whenidle.cli.agent_options import AgentOptions
from whenidle.cli.arguments import DEFAULT_STORE, Json, Store
from whenidle.cli.exits import Exit
from whenidle.cli.live import reporter_for
from whenidle.cli.output import Output
from whenidle.cli.service import Settings, serve
from whenidle_clock import SystemClock


def run(*, turns: AgentOptions, store: Store = DEFAULT_STORE, json: Json = False) -> Exit:
    """Run a host until Ctrl-C or SIGTERM.

    Each turn of an agent runs the command in a process group of its own, with the message on standard input
    and WHENIDLE_SESSION, WHENIDLE_PRESET, WHENIDLE_MESSAGE_ID, WHENIDLE_SOURCE, WHENIDLE_TURN, WHENIDLE_ATTEMPT,
    WHENIDLE_REDELIVERED, WHENIDLE_RUN and WHENIDLE_STORE in the environment. The end of its output is kept in the log.

    On a terminal the host shows what its agents do; otherwise it writes a line for each thing that
    happens, with --json a JSON document. The first signal stops it in order, the second kills running commands at once.
    SIGTERM ends with status 0, Ctrl-C with 130.
    """
    clock = SystemClock()
    output = Output.standard(json=json)
    settings = Settings(
        store=store,
        agent=turns.command(store, clock),
        clock=clock,
        max_turns=turns.max_turns,
        shutdown_timeout=turns.shutdown_timeout,
    )
    return trio.run(serve, settings, reporter_for(output, clock))
