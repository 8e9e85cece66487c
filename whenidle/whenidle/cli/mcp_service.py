"""An MCP server that runs until its client goes or a signal comes."""

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress

import attrs
import trio

from whenidle.cli.exits import Exit
from whenidle.cli.output import Output
from whenidle.cli.reporting import Happening, LogToReporter, Reporter
from whenidle.cli.service import STOP_SIGNALS
from whenidle.command_agent import CommandAgent
from whenidle.mcp.changes import ChangeFeed
from whenidle.mcp.post import Place, Post
from whenidle.mcp.server import TaskServer
from whenidle.mcp.stdio import Wire, own_stdio
from whenidle.mcp.transport import Transport
from whenidle.status.socket import serve_status
from whenidle_clock import Clock
from whenidle_protocol.task_settings import Caller

LAST_WORDS_SECONDS = 1.0
"""How long a client that does not read keeps the server from stopping."""


@attrs.frozen(kw_only=True)
class McpSettings:
    """What an MCP server is made of."""

    store: str
    agent: CommandAgent
    session: str
    """Id of the session that stands for the client."""
    clock: Clock
    max_turns: int
    shutdown_timeout: float
    """Seconds from the end of the client until nothing runs any more; the agent's grace is a part of it."""


async def serve_mcp(settings: McpSettings) -> Exit:
    """Serve the client on standard input and output, and return the exit status.

    When the client closes its side, what it asked before is answered; then turns that run may finish, until their
    command's grace before the timeout, and the others are interrupted and given again by the next host. A signal does
    the same without the answers, and one that comes while the server stops kills running commands at once.

    Raises:
        ExceptionGroup: of a StoreError; the store cannot be opened, and no client was served.
    """
    reporter = _ErrorReporter(Output.standard(json=False), settings.clock)
    obeyed = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    with own_stdio() as wire, _logging_to(reporter):
        try:
            with trio.open_signal_receiver(*obeyed) as signals:
                return await _Service(settings, reporter).run(wire, signals)
        finally:
            reporter.close()


class _ErrorReporter(Reporter):
    """Writes a line for each thing that happens to standard error, as long as somebody takes it."""

    def write(self, news: Sequence[Happening]) -> None:
        """Write each of `news`."""
        with suppress(OSError):  # the client is served all the same
            sys.stderr.writelines(f"{happening.line()}\n" for happening in news)
            sys.stderr.flush()


class _Service:
    def __init__(self, settings: McpSettings, reporter: Reporter) -> None:
        self._settings = settings
        self._reporter = reporter
        agent = settings.agent
        self._place = place = Place(
            store=settings.store,
            turn=agent,
            session=settings.session,
            clock=settings.clock,
            max_turns=settings.max_turns,
            shutdown_timeout=max(settings.shutdown_timeout - agent.grace, 0.0),
        )
        self._post = Post(place, reporter.tell, reporter.event)
        self._serving = trio.CancelScope()
        self._stopping = False
        self._exit = Exit.OK

    async def run(self, wire: Wire, signals: AsyncIterator[int]) -> Exit:
        async with Transport(wire, self._serving.cancel) as transport, trio.open_nursery() as beside:
            beside.start_soon(self._reporter.watch, None)
            beside.start_soon(self._obey, signals, transport, beside)
            beside.start_soon(self._show)
            async with trio.open_nursery() as nursery:
                await nursery.start(self._post.keep)
                await self._serve(transport)
                self._post.stop()
            beside.cancel_scope.cancel()
        self._reporter.tell("stopped")
        return self._exit

    async def _serve(self, transport: Transport) -> None:
        feed = ChangeFeed(self._post)
        async with trio.open_nursery() as nursery:
            await nursery.start(feed.watch)
            with self._serving:
                caller = Caller(self._settings.session, cwd=self._folder())
                await TaskServer(self._post, feed, caller, self._place.settings).serve(transport)
            self._stopping = True
            transport.give_up()
            nursery.cancel_scope.cancel()
        self._reporter.tell("client-gone")

    async def _show(self) -> None:
        """Answer `whenidle top` once this server is the host, and while that stops."""
        await serve_status(await self._post.host())

    def _folder(self) -> str:
        """Return where new sessions of the client's tasks work: where the server started, unless each has its own."""
        if self._settings.agent.folders is None:
            with suppress(OSError):  # it may have been deleted
                return os.getcwd()  # noqa: PTH109 - as it is, not resolved
        return ""

    async def _obey(self, signals: AsyncIterator[int], transport: Transport, beside: trio.Nursery) -> None:
        async for number in signals:
            if self._stopping:
                self._reporter.tell("hurrying")
                self._settings.agent.hurry.set()
                self._post.interrupt()
            else:
                self._stopping = True
                self._exit = Exit.INTERRUPTED if number == signal.SIGINT else Exit.OK
                name = signal.Signals(number).name
                self._reporter.tell("stopping", cause=name, seconds=self._settings.shutdown_timeout)
                self._serving.cancel()
                beside.start_soon(_give_up_later, transport)


async def _give_up_later(transport: Transport) -> None:
    await trio.sleep(LAST_WORDS_SECONDS)
    transport.give_up()


@contextmanager
def _logging_to(reporter: Reporter) -> Generator[None]:
    """Let the reporter tell what the runtime and the SDK log."""
    handler = LogToReporter(reporter)
    loggers = [logging.getLogger(name) for name in ("whenidle", "mcp")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
