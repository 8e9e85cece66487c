"""`Sim`: a virtual clock, a store, and hosts that run on them one after the other."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import trio

from whenidle.testing.mortal_store import MortalStore
from whenidle.testing.told import line, told
from whenidle.testing.window import Window
from whenidle_actors.composition import open_host
from whenidle_actors.observation import EventKind
from whenidle_actors.reminders import Reminders
from whenidle_clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping

    from whenidle import aio
    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.suites import Suite
    from whenidle_actors.turn import Turn, TurnFunction

START = datetime(2026, 1, 1, tzinfo=UTC)
"""What the wall of a `Sim` shows first, unless it says otherwise: midnight on a Thursday."""

_DELIVERIES = {EventKind.REMINDER_DELIVERED: "reminders", EventKind.TASK_DELIVERED: "tasks"}


class NotIdle(AssertionError):
    """An agent was not idle in the time it was given."""


@attrs.frozen
class Delivery:
    """Something that was due entered an inbox."""

    session_id: str
    at: datetime
    """What the wall showed, UTC."""
    schedules: tuple[str, ...]
    """The ids of the reminders or tasks, in the order of the message."""
    late: timedelta
    """How long after its occurrence the latest of them came."""


@attrs.frozen
class TurnRun:
    """A turn that the default turn function ran."""

    session_id: str
    at: datetime
    """What the wall showed, UTC."""
    texts: tuple[str, ...]
    """Its messages."""
    attempt: int


class Sim(VirtualClock):
    """A world for a test: a clock that moves when told to, a store, and hosts that run on both.

    Time stands still until the test moves it, and passes as needed while a host stops.

    It is a `VirtualClock` and must be the clock of the trio run: pytest-trio sees to that for every test that
    takes it as an argument, `run` for all else. In asyncio, `aio_host` does. Nothing in it is random: ids and
    jitter are the same in every run.

    Args:
        start: what the wall shows first, an aware instant of whole milliseconds.
    """

    autojump: bool
    """See `VirtualClock.autojump`."""

    def __init__(self, start: datetime = START) -> None:
        super().__init__(start)
        self.store: MortalStore = MortalStore()
        """Where hosts keep their sessions; outlives them."""
        self.turns: list[TurnRun] = []
        """What the default turn function was called with."""
        self.events: list[HostEvent] = []
        """All that hosts have announced."""
        self._lines: list[tuple[datetime, str, str]] = []
        self._hosts = 0
        self._live: Mapping[str, Agent] = {}
        self._is_open = False
        self._crash: Callable[[], object] | None = None

    # Hosts ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def host(self, turn: TurnFunction | None = None, **options: Any) -> AsyncGenerator[Host]:
        """Run a host, in trio.

        Args:
            turn: the agent; if not given, turns end at once and are kept in `turns`.
            options: further arguments of `open_host`.
        """
        with trio.CancelScope() as process, self._process(process.cancel, options):
            async with open_host(turn=turn or self._note, **self._options(options)) as host:
                host.subscribe(self._take)
                with self._time_to_stop():
                    yield host

    @asynccontextmanager
    async def aio_host(self, turn: aio.TurnFunction | None = None, **options: Any) -> AsyncGenerator[aio.Host]:
        """Run a host, in asyncio; otherwise like `host`."""
        from whenidle import aio  # noqa: PLC0415 - trio's tests do without

        owner = asyncio.current_task()
        assert owner is not None  # noqa: S101 - this runs in asyncio
        before = owner.cancelling()
        with self._process(owner.cancel, options) as is_dead:
            try:
                async with aio.open_host(turn=turn or self._note, **self._options(options)) as host:
                    host.subscribe(self._take)
                    with self._time_to_stop():
                        yield host
            except BaseException as error:
                # Only the cancellation that is the crash ends here.
                if not is_dead() or owner.uncancel() > before or not isinstance(error, asyncio.CancelledError):
                    raise

    async def crash(self) -> NoReturn:
        """Let the process of the host die here and now, as if it were killed, and leave the host's block.

        Nothing becomes durable from here on. What follows the block is the next process.

        Raises:
            RuntimeError: no host is open, or it has a store of its own.
        """
        if self._crash is None:
            raise RuntimeError("there is no host to crash: do it inside `async with sim.host()`, without store=...")
        self._tell("", "the process died")
        self.store.dead = True
        self._crash()
        if trio.lowlevel.in_trio_task():
            await trio.sleep_forever()
        await asyncio.Event().wait()
        raise AssertionError("a process that died goes on")

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a trio async function on this clock, as `trio.run` does: for tests that pytest-trio does not run."""
        return trio.run(function, *args, clock=self)

    # Time -------------------------------------------------------------------------------------

    async def advance(self, by: timedelta) -> None:
        """See `VirtualClock.advance`; in asyncio too, while a host is open."""
        if trio.lowlevel.in_trio_task():
            await super().advance(by)
        else:
            from whenidle import aio  # noqa: PLC0415 - trio's tests do without

            await aio.run_trio(super().advance, by)

    async def run_until_idle(self, within: timedelta = timedelta(hours=1)) -> None:
        """Let time pass until every agent is idle and nothing is due: not at all if that is so.

        Raises:
            NotIdle: that took longer than `within`; it says which agents are busy.
        """
        if trio.lowlevel.in_trio_task():
            await self._run_until_idle(within)
        else:
            from whenidle import aio  # noqa: PLC0415 - trio's tests do without

            await aio.run_trio(self._run_until_idle, within)

    async def _run_until_idle(self, within: timedelta) -> None:
        await super().advance(timedelta(0))
        before, self.autojump = self.autojump, True
        try:
            with trio.move_on_after(within.total_seconds()) as limit:
                while busy := [agent for agent in self._live.values() if not agent.is_quiet]:
                    await busy[0].when_idle()
                    await super().advance(timedelta(0))
        finally:
            self.autojump = before
        if limit.cancelled_caught:
            busy = [agent for agent in self._live.values() if not agent.is_quiet]
            told = ", ".join(f"{agent.id} ({agent.phase.value})" for agent in busy)
            raise NotIdle(f"not idle within {within}: {told}")

    def step(self, by: timedelta, *, announce: bool = True) -> None:
        """See `VirtualClock.step`."""
        super().step(by, announce=announce)
        sign = "-" if by < timedelta(0) else "+"
        self._tell("", f"the wall clock moved by {sign}{abs(by)}")

    # What happened ----------------------------------------------------------------------------

    def deliveries(self) -> list[Delivery]:
        """Return what has entered inboxes because it was due, in order, over all hosts."""
        return [
            Delivery(
                event.session_id,
                event.at,
                tuple(event.detail[_DELIVERIES[event.kind]]),
                timedelta(milliseconds=max(event.detail["late_millis"])),
            )
            for event in self.events
            if event.kind in _DELIVERIES
        ]

    def timeline(self, zone: str = "UTC") -> str:
        """Return what happened as lines of text, with the local time of `zone`.

        Raises:
            zoneinfo.ZoneInfoNotFoundError: there is no such zone.
        """
        return "".join(f"{line(at, session_id, text, zone)}\n" for at, session_id, text in self._lines)

    # ------------------------------------------------------------------------------------------

    @contextmanager
    def _process(self, crash: Callable[[], object], options: Mapping[str, Any]) -> Generator[Callable[[], bool]]:
        """Be a process that `crash` ends, unless it has a store of its own; give what tells whether it has."""
        if self._is_open:
            raise RuntimeError("a host of this Sim is open already: it is one process after the other")
        self._is_open = True
        self.store.dead = False
        self._crash = None if "store" in options else crash
        self._tell("", "the process began")
        jumps = self.autojump
        try:
            yield lambda: self.store.dead
        finally:
            self.autojump = jumps
            self._is_open = False
            self._crash = None
            self._live = {}

    @contextmanager
    def _time_to_stop(self) -> Generator[None]:
        """Let the host, behind the block, have the time it takes to stop."""
        try:
            yield
        finally:
            self.autojump = True

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        suites: Iterable[Suite] | None = options.get("suites")
        given = [Reminders()] if suites is None else list(suites)
        self._hosts += 1
        return {
            "store": self.store,
            "clock": self,
            "rng": random.Random(self._hosts),  # noqa: S311 - the same in every run of the test
            **options,
            "suites": [*given, Window(self._look_at)],
        }

    async def _note(self, turn: Turn | aio.Turn) -> None:
        texts = tuple(message.text for message in turn.messages)
        self.turns.append(TurnRun(turn.agent.id, self.now(), texts, turn.attempt))

    def _take(self, event: HostEvent) -> None:
        if self.store.dead:
            return
        self.events.append(event)
        text = told(event)
        if text is not None:
            self._lines.append((event.at, event.session_id, text))

    def _tell(self, session_id: str, text: str) -> None:
        self._lines.append((self.now(), session_id, text))

    def _look_at(self, live: Mapping[str, Agent]) -> None:
        self._live = live
