"""A host that runs until it is told to stop by a signal."""

import logging
import signal
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle.cli.exits import Exit
from whenidle.cli.reporting import LogToReporter, Reporter
from whenidle.command_agent import CommandAgent
from whenidle.status.socket import serve_status
from whenidle_actors.composition import open_host
from whenidle_actors.reminders import Reminders
from whenidle_actors.tasks import Tasks
from whenidle_clock import Clock

if TYPE_CHECKING:
    from whenidle_actors.host import Host

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Unless the host was started with one of them ignored, as nohup does with SIGHUP."""

_EXITS = {signal.SIGINT: Exit.INTERRUPTED}
"""Asked to stop by anything else, the host did as it was told."""


@attrs.frozen(kw_only=True)
class Settings:
    """What a service is made of."""

    store: str
    agent: CommandAgent
    clock: Clock
    max_turns: int
    shutdown_timeout: float
    """Seconds from the signal until nothing runs any more; the agent's grace is a part of it."""


async def serve(settings: Settings, reporter: Reporter) -> Exit:
    """Run a host until a stop signal, then stop it in order, and return the exit status.

    In order means: no turn begins any more; those that run may finish, until their command's grace before the
    timeout; the others are interrupted, which ends their commands, and are given again by the next host. A
    second signal interrupts them at once and kills their commands without grace.

    Raises:
        ExceptionGroup: of a StoreError; the store cannot be opened, and nothing was started.
        OSError: the host has stopped because nothing can be reported any more.
    """
    stop = _Stop(settings, reporter)
    obeyed = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        with trio.open_signal_receiver(*obeyed) as signals, _logging_to(reporter):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop.obey, signals)
                await _host(settings, reporter, stop, nursery)
                nursery.cancel_scope.cancel()
            if stop.failure is not None:
                raise stop.failure
            reporter.tell("host-stopped")
    finally:
        reporter.close()
    return stop.exit


async def _host(settings: Settings, reporter: Reporter, stop: "_Stop", beside: trio.Nursery) -> None:
    async with open_host(
        store=settings.store,
        turn=settings.agent,
        clock=settings.clock,
        # An agent has one of the two suites' tools; reminders are its own, tasks the command line's.
        suites=(Reminders(), Tasks(presets=())),
        max_concurrent_turns=settings.max_turns,
        shutdown_timeout=max(settings.shutdown_timeout - settings.agent.grace, 0.0),
    ) as host:
        stop.host = host
        host.subscribe(reporter.event)
        with instrumented(host):
            await beside.start(serve_status, host)  # for `whenidle top`
            reporter.started(host)
            beside.start_soon(stop.tell, host)  # both go on while the host stops
            await stop.requested.wait()


class _Stop:
    """Turns signals into an orderly stop, and the second one into a hard one."""

    def __init__(self, settings: Settings, reporter: Reporter) -> None:
        self._settings = settings
        self._reporter = reporter
        self.host: Host | None = None
        self.failure: OSError | None = None
        self.requested = trio.Event()
        self.exit = Exit.OK

    async def obey(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            if self.requested.is_set():
                self._hurry()
            else:
                self._begin(signal.Signals(number))

    async def tell(self, host: "Host") -> None:
        """Have the reporter tell of `host`; a host that nobody can see any more stops in order."""
        try:
            await self._reporter.watch(host)
        except OSError as error:
            self.failure = error
            self.requested.set()

    def _begin(self, number: signal.Signals) -> None:
        self.exit = _EXITS.get(number, Exit.OK)
        seconds = self._settings.shutdown_timeout
        self._reporter.tell("host-stopping", cause=number.name, seconds=seconds)
        self.requested.set()

    def _hurry(self) -> None:
        self._reporter.tell("host-hurrying")
        self._settings.agent.hurry.set()
        if self.host is not None:
            self.host.interrupt()


def instrumented(host: "Host") -> AbstractContextManager[object]:
    """Instrument the host where OpenTelemetry was set up before us, as `opentelemetry-instrument` does."""
    if "opentelemetry.sdk" not in sys.modules:
        return nullcontext()
    from whenidle.telemetry import instrument  # noqa: PLC0415 - it is for those alone who have it

    return instrument(host)


@contextmanager
def _logging_to(reporter: Reporter) -> Generator[None]:
    """Let the reporter tell what the runtime logs, instead of the interpreter's last resort."""
    logger, handler = logging.getLogger("whenidle"), LogToReporter(reporter)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
