"""`whenidle mcp`: the task tools for any MCP client, on standard input and output."""

from typing import Annotated

import attrs
import trio
from cyclopts import Parameter

from whenidle.cli.agent_options import GROUP, AgentOptions
from whenidle.cli.arguments import DEFAULT_STORE, Store
from whenidle.cli.exits import CommandRefused, Exit
from whenidle_actors.session import check_session_id
from whenidle_clock import SystemClock

DEFAULT_SHUTDOWN = 2.0
"""Seconds: MCP clients kill a server that has not ended about so long after they closed its input."""
DEFAULT_SESSION = "mcp"

_SDK = frozenset({"mcp", "mcp_types"})


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class ServedAgentOptions(AgentOptions):
    """As for `whenidle run`, with less time to stop in."""

    shutdown_timeout: Annotated[
        float,
        Parameter(group=GROUP, metavar="SECONDS", help="How long a stop may take; turns that run may finish in it."),
    ] = DEFAULT_SHUTDOWN


def mcp(
    *,
    turns: ServedAgentOptions,
    session: Annotated[
        str, Parameter(metavar="SESSION", help="The session that stands for the client: what this_session means.")
    ] = DEFAULT_SESSION,
    store: Store = DEFAULT_STORE,
) -> Exit:
    """Serve the task tools to an MCP client on standard input and output, until it closes them.

    The server runs the host that delivers tasks, with the command of --agent; while another process is the host of
    this store it only manages tasks, and takes over when that process ends. What happens is told on standard error.

    It needs the extra whenidle[mcp]. SIGTERM ends it in order with status 0, a second one kills running commands at
    once.
    """
    try:
        from whenidle.cli.mcp_service import McpSettings, serve_mcp  # noqa: PLC0415 - half a second, and an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _SDK:
            raise
        message = "whenidle mcp needs the MCP SDK; install it with: python -m pip install 'whenidle[mcp]'"
        raise CommandRefused("missing_extra", message) from error
    clock = SystemClock()
    settings = McpSettings(
        store=store,
        agent=turns.command(store, clock),
        session=check_session_id(session),
        clock=clock,
        max_turns=turns.max_turns,
        shutdown_timeout=turns.shutdown_timeout,
    )
    return trio.run(serve_mcp, settings)
