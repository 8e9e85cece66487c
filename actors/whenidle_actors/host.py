"""The host: one process that owns agents, and the registry they live in."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle_actors.activity import is_inside
from whenidle_actors.agent import Agent
from whenidle_actors.errors import (
    AgentDisposed,
    CompositionError,
    InvalidArgument,
    StoreDamaged,
)
from whenidle_actors.event_stream import STREAM_CAPACITY
from whenidle_actors.observation import EventKind
from whenidle_actors.session import Session, check_session_id, fold
from whenidle_actors.stores.base import Append, Batch, SessionHeader
from whenidle_protocol.agent_state import Phase
from whenidle_protocol.session_state import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextvars import Context

    from whenidle_actors.attendance import Attendance
    from whenidle_actors.event_stream import EventStream
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.probe import Probe
    from whenidle_actors.scheduler import SchedulerStatistics
    from whenidle_actors.services import Services
    from whenidle_actors.stores.base import Store, StoreStatistics
    from whenidle_actors.suites import Suite
    from whenidle_actors.supervisor import SupervisorStatistics
    from whenidle_clock import AlarmStatistics, Clock
    from whenidle_protocol.events import EventRecord


@attrs.frozen
class HostStatistics:
    """What a host is doing now (SPEC 2.12)."""

    agents: int
    """Live agents."""
    running: int
    """Of them, those that run a turn or wait for a slot to run one."""
    passivated: int
    """How often an agent was dropped from memory since the host was opened."""
    turn_slots: float
    """Most turns that run at once; infinite without a limit."""
    alarm: AlarmStatistics
    scheduler: SchedulerStatistics
    supervisor: SupervisorStatistics
    store: StoreStatistics


@attrs.frozen
class HostLoad:
    """How much a host has to do at one moment, in numbers that cost nothing to find out."""

    agents: int
    """Live agents."""
    turns: int
    """Turns that run."""
    turns_waiting: int
    """Turns that wait for a slot (SPEC 2.11)."""
    ready: int
    """Agents whose mailbox waits for a worker."""
    commits: int
    """Commits handed to the store and not yet answered."""
    armed: int
    """Targets that the alarm holds."""


class Host:
    """Creates, finds and disposes agents. Made by `open_host`; all methods belong to the trio thread."""

    def __init__(self, services: Services, attendance: Attendance) -> None:
        self._services = services
        self._attendance = attendance
        services.registry.restore = self.agent
        services.registry.restore_all = self._agents

    @property
    def clock(self) -> Clock:
        """The clock that decides what is due."""
        return self._services.clock

    @property
    def context(self) -> Context:
        """The context variables that turns and deliveries start with: those of whoever opened the host."""
        return self._services.context

    @property
    def store(self) -> Store:
        """Where the sessions are."""
        return self._services.journal.store

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents that are live now."""
        return tuple(self._services.registry.live.values())

    @property
    def suites(self) -> tuple[Suite, ...]:
        """The suites that agents made from now on get."""
        return self._attendance.suites

    def mount(self, suite: Suite) -> None:
        """Give a suite to agents made or restored from now on; those that are live do not get it (SPEC 5.1).

        Raises:
            CompositionError: the host has no store, another suite has that name, or has one of its tools and may
                be given to the same agent, or the suite cannot work here.
        """
        if not self._services.durable:
            raise CompositionError(
                f"the suite {suite.name!r} keeps promises and needs a store; give open_host a store "
                "(MemoryStore() if nothing has to outlive the process)"
            )
        meeting = [other for other in self.suites if _may_meet(other, suite)]
        taken = {tool.name: other.name for other in meeting for tool in other.tools()}
        clashes = sorted(tool.name for tool in suite.tools() if tool.name in taken)
        if clashes:
            raise CompositionError(
                f"the suites {taken[clashes[0]]!r} and {suite.name!r} both have the tool {clashes[0]!r}, and an agent "
                "could be given both; mount one of them, or have them for different presets (`presets=()` gives an "
                "agent none of a suite's tools)"
            )
        if any(suite.name == other.name for other in self.suites):
            raise CompositionError(f"a suite named {suite.name!r} is mounted already")
        suite.mounted(self._services)
        self._attendance.add(suite)

    async def create_agent(
        self, session_id: str | None = None, *, parent: str | None = None, cwd: str = "", preset: str = ""
    ) -> Agent:
        """Create a session and its agent, and return it; the session is durable then.

        Args:
            session_id: up to 128 characters of `A-Z a-z 0-9 . _ : -`; drawn at random if not given.
            parent: session id of the agent that delegates to the new one; it is one level deeper (SPEC 2.10).
            cwd: working directory, kept in the session header; the runtime does not use it.
            preset: name of a configuration, kept in the session header; the runtime does not use it.

        Raises:
            InvalidArgument: the id cannot name a session.
            SessionExists: there is a session of that id; `agent` restores it.
            UnknownSession: there is no session `parent`.
            StoreError: as `Store.commit`.
        """
        depth = 0 if parent is None else (await self.agent(parent)).header.delegation_depth + 1
        header = SessionHeader(
            self._new_id(session_id),
            self.clock.now(),
            parent=parent,
            delegation_depth=depth,
            cwd=cwd,
            preset=preset,
        )
        journal = self._services.journal
        await journal.commit(Batch(created=(header,)))
        return self._adopt(Session(journal, header, SessionState(fixed_rate=journal.fixed_rate)))

    async def agent(self, session_id: str) -> Agent:
        """Return the live agent of a session, restored from its log if need be.

        While an agent is being disposed this waits until it is gone, and restores it anew; except from inside
        that agent's own work, and while the host stops.

        Raises:
            InvalidArgument: the id cannot name a session.
            UnknownSession: there is none of that id.
            StoreDamaged: its log cannot be read.
        """
        registry = self._services.registry
        while (found := registry.find(check_session_id(session_id))) is not None:
            if not found.ending or found.is_faulted or is_inside(found) or registry.closing:
                await trio.lowlevel.checkpoint()
                return found
            await found.next_change()
        return self._adopt(await Session.load(self._services.journal, session_id))

    async def _agents(self, session_ids: Sequence[str]) -> dict[str, Agent]:
        """Return the agents of some sessions, restored together if need be; what cannot be had at once is left out."""
        registry, journal = self._services.registry, self._services.journal
        found: dict[str, Agent] = {}
        cold: list[str] = []
        for session_id in session_ids:
            agent = registry.find(session_id)
            if agent is None:
                cold.append(session_id)
            else:
                found[session_id] = agent
        for whole in await journal.store.read_all(cold) if cold else ():
            with suppress(StoreDamaged):
                if whole is not None:
                    found[whole.header.id] = self._adopt(await Session.of(journal, whole))
        return {session_id: agent for session_id, agent in found.items() if not agent.ending}

    async def fork(self, session_id: str, *, upto: int | None = None, new_id: str | None = None) -> Agent:
        """Create a session that begins with the first `upto` events of another, and return its agent (SPEC 3.1).

        The new session owns no message and no reminder of what it inherits.

        Args:
            session_id: the session to fork.
            upto: how many events to inherit; all, if not given.
            new_id: as `session_id` of `create_agent`.

        Raises:
            InvalidArgument: the log has no `upto` events, or a turn is open there.
            UnknownSession, SessionExists, StoreError: as `agent` and `create_agent`.
        """
        source = await self.store.read(check_session_id(session_id))
        cut = source.length if upto is None else upto
        if type(cut) is not int or not 0 <= cut <= source.length:
            raise InvalidArgument(f"session {session_id!r} has {source.length} events; it cannot be cut at {cut!r}")
        records = source.records[:cut]
        if _is_in_turn(records):
            raise InvalidArgument(f"a turn of session {session_id!r} is open at event {cut}; cut outside of turns")
        header = attrs.evolve(
            source.header,
            id=self._new_id(new_id),
            created_at=self.clock.now(),
            seed_length=cut,
            forked_from=session_id,
        )
        journal = self._services.journal
        state = fold(header, records, fixed_rate=journal.fixed_rate)
        inherited = (Append(header.id, 0, records),) if records else ()
        await journal.commit(Batch(created=(header,), appends=inherited))
        return self._adopt(Session(journal, header, state))

    async def dispose(self, session_id: str) -> None:
        """Dispose the agent of a session if there is one; see `Agent.dispose`.

        What comes due for a session without an agent is not delivered, either, until it is restored.
        """
        found = self._services.registry.find(session_id)
        if found is None:
            for suite in self.suites:
                suite.release(session_id)
            await trio.lowlevel.checkpoint()
        else:
            await found.dispose()

    def subscribe(self, observer: Callable[[HostEvent], None]) -> Callable[[], None]:
        """Call `observer` with everything that happens, as it happens, and return what ends that.

        The observer must not block. What it raises is logged. Readers who take their time use `events`.
        """
        return self._services.announcer.subscribe(observer)

    def events(self, *, capacity: int = STREAM_CAPACITY) -> EventStream:
        """Return a stream of everything that happens from now on, for `async with` and `async for`.

        The host never waits for its reader: of more than `capacity` events that wait, the oldest are given up,
        and an `EventGap` says how many. It ends when the host has stopped: read it outside of the host's block,
        or in a task that you cancel, if it is to see the end of the host.

        Raises:
            InvalidArgument: the capacity is not a whole number above 0.
        """
        return self._services.announcer.stream(capacity)

    def attach(self, probe: Probe) -> Callable[[], None]:
        """Have `probe` wrap the work that begins from now on, and return what ends that; for `whenidle.telemetry`.

        Raises:
            CompositionError: the host has a probe.
        """
        return self._services.announcer.attach(probe)

    def load(self) -> HostLoad:
        """Return how much there is to do now.

        It takes the same time for any number of agents, and may be called from any thread.
        """
        services = self._services
        return HostLoad(
            agents=len(services.registry.live),
            turns=services.turn_slots.borrowed_tokens,
            turns_waiting=services.turn_slots.statistics().tasks_waiting,
            ready=len(services.scheduler.ready),
            commits=self.store.statistics().waiting,
            armed=len(services.alarm),
        )

    def statistics(self) -> HostStatistics:
        """Return what the host is doing now."""
        services = self._services
        live = services.registry.live
        return HostStatistics(
            agents=len(live),
            running=sum(agent.phase in {Phase.RUNNING, Phase.DISPOSING_TURN} for agent in live.values()),
            passivated=services.registry.passivated,
            turn_slots=services.turn_slots.total_tokens,
            alarm=services.alarm.statistics(),
            scheduler=services.scheduler.statistics(),
            supervisor=services.scheduler.supervisor.statistics(),
            store=self.store.statistics(),
        )

    def interrupt(self) -> None:
        """Interrupt every turn that runs, and let no other start: for a host that stops and has no time left.

        What is interrupted is delivered again when the store is opened next, if the host redelivers at all.
        """
        for agent in self.agents:
            agent.begin_disposal("the host stops", interrupt=True)

    async def close(self, *, grace: float) -> None:
        """Dispose all agents: let turns that run finish for `grace` seconds, then interrupt them.

        Messages of a turn that is interrupted are delivered again when the store is opened next, if the host
        redelivers at all.
        """
        self._services.registry.closing = True
        for agent in self.agents:
            agent.begin_disposal("the host stops", patient=True)
        with trio.move_on_after(grace):
            await self._all_gone()
        while any(not agent.is_faulted for agent in self.agents):  # a turn may have made another
            self.interrupt()
            await self._all_gone()

    async def _all_gone(self) -> None:
        for agent in self.agents:
            while not agent.is_faulted and self._services.registry.live.get(agent.id) is agent:
                await agent.next_change()

    def _new_id(self, wanted: str | None) -> str:
        if wanted is not None:
            return check_session_id(wanted)
        return f"session-{self._services.random.getrandbits(64):016x}"

    def _adopt(self, session: Session) -> Agent:
        """Make the agent of a session live, and have it look at what its log says is to be done."""
        registry = self._services.registry
        found = registry.find(session.header.id)
        if found is not None:  # somebody else was faster
            return found
        if registry.closed:
            raise AgentDisposed(f"the host has stopped; session {session.header.id!r} is kept")
        mounted = self.suites
        suites = tuple(suite for suite in mounted if suite.suits(session.header))
        agent = Agent(self._services, session, suites if len(suites) != len(mounted) else mounted)
        self._services.registry.add(agent)
        self._services.announce(EventKind.AGENT_STARTED, agent.id)
        if not registry.closing:
            agent.rouse()
            agent.recompute()
        session.rest()
        return agent


def _is_in_turn(records: Sequence[EventRecord]) -> bool:
    """Return whether a turn is open behind `records`, the beginning of a log."""
    starts_and_ends = (record.type for record in reversed(records) if record.type in {"turn/start", "turn/end"})
    return next(starts_and_ends, None) == "turn/start"


def _may_meet(one: Suite, other: Suite) -> bool:
    """Return whether some agent could be given both suites, as far as presets tell."""
    if one.presets is None or other.presets is None:
        return frozenset() not in {one.presets, other.presets}
    return not one.presets.isdisjoint(other.presets)
