"""The world of one run: its time, its store, its choices, and what scenarios do in it."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from whenidle_actors.activity import is_inside
from whenidle_actors.composition import open_host
from whenidle_actors.errors import (
    ActorRestarted,
    AgentBusy,
    AgentDisposed,
    AgentFaulted,
    InvalidArgument,
    StoreError,
    UnknownMessage,
    WhenidleError,
)
from whenidle_actors.observation import EventKind
from whenidle_actors.offline import Manager
from whenidle_actors.session import Journal
from whenidle_actors.task_desk import TaskDesk
from whenidle_actors.tasks import Tasks
from whenidle_clock import VirtualClock
from whenidle_lab.choices import Candidate, Topic
from whenidle_lab.depths import Depths
from whenidle_lab.faults import FaultKind, Mischief
from whenidle_lab.faults.haunting import misbehave
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.scenario import Broken, EachRound
from whenidle_lab.store import Defect, SimulatedStore
from whenidle_lab.trace import Happening, Trace, What
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_settings import Caller, TaskSettings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence

    from whenidle_actors.actor import Actor
    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.turn import Turn
    from whenidle_lab.choices import Chooser
    from whenidle_lab.scenario import Invariant, Scenario
    from whenidle_protocol.events import Message
    from whenidle_protocol.task_requests import CreateTask

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
"""What the wall shows when a run begins."""

SPANS = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
"""Seconds that `World.draw_span` draws from: sizes that matter lie on a scale of powers."""


_TOLD = frozenset(
    {
        EventKind.AGENT_STARTED,
        EventKind.AGENT_PASSIVATED,
        EventKind.AGENT_DISPOSED,
        EventKind.AGENT_RESTARTED,
        EventKind.AGENT_FAULTED,
        EventKind.MAINTENANCE_STARTED,
        EventKind.MAINTENANCE_ENDED,
        EventKind.TASK_FAILED,
        EventKind.RESTORE_FAILED,
        EventKind.DELIVERY_FAILED,
    }
)
"""What a host announces that the trace does not have from elsewhere."""


_GONE = (AgentDisposed, AgentFaulted)
"""What whoever speaks to an agent has to expect."""

_FAILURES = (*_GONE, StoreError, ActorRestarted, Defect)
"""What whoever has something written has to expect in a faulty world."""


class World:
    """One run, as a scenario sees it.

    Times are virtual: `wait` an hour, and no time passes. Everything a scenario draws comes from `draw` and its
    like, so that it is recorded, replayed and shrunk with the rest. Use the methods here rather than those of
    `Agent` for what users do: they are the same, but for being seen by invariants and pictures, and for taking
    the failures a faulty world brings as an answer.
    """

    def __init__(
        self, scenario: Scenario, chooser: Chooser, invariants: Sequence[Invariant], *, detailed: bool = False
    ) -> None:
        self.scenario: Scenario = scenario
        self.chooser: Chooser = chooser
        self.trace: Trace = Trace()
        self.store: SimulatedStore = SimulatedStore(self)
        self.mischief: Mischief = Mischief(scenario.faults, chooser)
        self.detailed: bool = detailed
        """Whether what only pictures show is in the trace too."""
        self.clock: VirtualClock = VirtualClock(START, autojump=True)
        """The clock of the process that lives now."""
        self.life: int = -1
        """Which process lives now, from 0."""
        self.step: int = 0
        """Rounds of the event loop so far."""
        self.dead: bool = False
        """Whether the process is dead: what its code still does, on its way out, is nobody's business."""
        self.stopped: bool = False
        """Whether the process that lives now was told to stop its host in order."""
        self.on_death: Callable[[], object] = lambda: None
        self.on_stop: Callable[[], object] = lambda: None
        self.before_ns: int = 0
        """Monotonic time of all lives before this one."""
        self._host: Host | None = None
        self._done: set[str] = set()
        self.finding: Finding | None = None
        """What was found; the run is over then."""
        self._numbers = 0
        self._depths = Depths()
        self._actors: dict[str, Candidate] = {}
        self._invariants = tuple(invariants)
        self._each_round = tuple(one for one in self._invariants if isinstance(one, EachRound))
        self._judges: dict[What, tuple[Callable[[Happening], None], ...]] = {
            what: tuple(one.happened for one in self._invariants if what in one.listens) for what in What
        }
        for invariant in self._invariants:
            invariant.begin(self)

    # For scenarios ----------------------------------------------------------------------------

    @property
    def host(self) -> Host:
        """The host of the process that lives now.

        Raises:
            RuntimeError: none is open.
        """
        if self._host is None:
            raise RuntimeError("the host is not open: use it in play() and turn()")
        return self._host

    def once(self, name: str) -> bool:
        """Return True the first time in the run that it is asked about `name`, over all lives."""
        fresh = name not in self._done
        self._done.add(name)
        return fresh

    def draw(self, count: int) -> int:
        """Return a number below `count`; recorded."""
        return self.chooser.pick(Topic.SCENARIO, count)

    def choose(self, options: Sequence[T]) -> T:
        """Return one of some options, of which the first is the quiet one; recorded."""
        return options[self.draw(len(options))]

    def draw_span(self, most: float = 3600.0) -> float:
        """Return seconds, at most `most`, as often short as long; recorded."""
        spans = [span for span in SPANS if span <= most]
        return spans[self.draw(len(spans))] * (1 + self.draw(4))

    async def wait(self, seconds: float) -> None:
        """Let so many seconds of virtual time pass."""
        await trio.sleep(seconds)

    async def agent(self, session_id: str, **header: Any) -> Agent:
        """Return the agent of a session, which is made if there is none; tried again while faults prevent it."""
        pause = 1.0
        while True:
            try:
                if any(one.id == session_id for one in await self.store.sessions()):
                    return await self.host.agent(session_id)
                return await self.host.create_agent(session_id, **header)
            except (StoreError, Defect):
                await self.wait(pause)
                pause = min(2 * pause, 60.0)

    async def call(self, agent: Agent, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool as a model would, and return the answer; None if the agent is gone."""
        number = self._number()
        self.happened(What.CALL_BEGAN, agent.id, call=number, tool=tool, arguments=dict(arguments))
        try:
            answer = await agent.call_tool(tool, arguments)
        except _GONE as error:
            self.happened(What.CALL_ENDED, agent.id, call=number, error=_name(error))
            return None
        self.happened(What.CALL_ENDED, agent.id, call=number, answer=answer)
        return answer

    async def send(self, agent: Agent, text: str, how: str = "followup") -> str | None:
        """Send a message by `followup`, `steer` or `inject`; return its id, or None if it was not accepted."""
        number = self._number()
        self.happened(What.SEND_BEGAN, agent.id, send=number, how=how, text=text)
        send: Callable[[str], Awaitable[str]] = getattr(agent, how)
        try:
            message = await send(text)
        except _FAILURES as error:
            self.happened(What.SEND_ENDED, agent.id, send=number, error=_name(error))
            return None
        self.happened(What.SEND_ENDED, agent.id, send=number, message=message)
        return message

    async def remove(self, agent: Agent, message: str) -> bool:
        """Take a pending message out of the inbox; return whether it was still there and is gone."""
        return await self._change(agent, message, "remove", agent.remove(message))

    async def replace(self, agent: Agent, message: str, text: str) -> bool:
        """Give a pending message another text; return whether it was still there and has it."""
        return await self._change(agent, message, "replace", agent.replace(message, text))

    async def _change(self, agent: Agent, message: str, how: str, change: Awaitable[None]) -> bool:
        error: str | None = None
        try:
            await change
        except (UnknownMessage, *_FAILURES) as failure:
            error = _name(failure)
        self.happened(What.CHANGED, agent.id, how=how, message=message, error=error)
        return error is None

    async def fork(self, agent: Agent, upto: int | None = None, *, new_id: str | None = None) -> Agent | None:
        """Fork an agent's session at some event, or at its end; return the new agent, or None if that cannot be."""
        try:
            fork = await self.host.fork(agent.id, upto=upto, new_id=new_id)
        except (InvalidArgument, *_FAILURES):
            return None
        self.happened(What.FORKED, agent.id, session=fork.id, upto=fork.header.seed_length)
        return fork

    async def create_task(self, request: CreateTask, agent: Agent) -> str | None:
        """Make a task by the host's own API, for an agent; return its id, or None if it may not be there."""
        header = agent.header
        try:
            task = await self._tasks().desk.create(request, Caller(agent.id, cwd=header.cwd, preset=header.preset))
        except (ToolError, *_FAILURES):
            return None
        return task.id

    def _tasks(self) -> Tasks:
        return next(suite for suite in self.host.suites if isinstance(suite, Tasks))

    def manager(self, settings: TaskSettings | None = None) -> Manager:
        """Return what another process manages the store with, beside the host; no fault befalls it."""
        journal = Journal(self.store.beside(), self.clock)
        seed = f"manager {self._number()}"
        desk = TaskDesk(journal, settings or TaskSettings(), random.Random(seed))  # noqa: S311 - ids, the same in replays
        return Manager(journal, desk)

    async def run_task(self, task_id: str) -> bool:
        """Run a task of the host's now, as its owner may; return whether it was delivered."""
        number, suite = self._number(), self._tasks()
        self.happened(What.CALL_BEGAN, call=number, tool="run", arguments={"id": task_id})
        error: str | None = None
        try:
            await suite.run(task_id)
        except (ToolError, *_FAILURES) as failure:
            error = _name(failure)
        self.happened(What.CALL_ENDED, call=number, error=error)
        return error is None

    async def maintain(self, agent: Agent, seconds: float = 0.0) -> bool:
        """Hold a maintenance claim for some seconds; return whether there was one to get."""
        number = self._number()

        async def hold() -> None:
            self.happened(What.MAINTENANCE_BEGAN, agent.id, claim=number)
            how = "cancelled"
            try:
                await trio.sleep(seconds)
                how = "returned"
            finally:
                self.happened(What.MAINTENANCE_ENDED, agent.id, claim=number, how=how, error=None)

        try:
            await agent.run_maintenance(hold)
        except (AgentBusy, *_GONE) as error:
            self.happened(What.CLAIM_REFUSED, agent.id, claim=number, error=_name(error))
            return False
        except WhenidleError:  # aborted by a cancellation
            return True
        return True

    async def when_idle(self, agent: Agent) -> bool:
        """Wait until an agent is idle; return whether it is, or False if it was disposed."""
        number = self._number()
        self.happened(What.WAIT_BEGAN, agent.id, wait=number)
        error: str | None = None
        try:
            await agent.when_idle()
        except _GONE as gone:
            error = _name(gone)
        except trio.Cancelled as cancelled:  # whoever waited has lost interest
            self.happened(What.WAIT_ENDED, agent.id, wait=number, error=_name(cancelled))
            raise
        self.happened(What.WAIT_ENDED, agent.id, wait=number, error=error)
        return error is None

    async def cancel(self, agent: Agent, cause: str, *, keep_inbox: bool = False) -> None:
        """Cancel what an agent does."""
        number, error = self._number(), None
        self.happened(What.CANCEL, agent.id, cancel=number, cause=cause, keep_inbox=keep_inbox)
        try:
            await agent.cancel(cause, keep_inbox=keep_inbox)
        except _FAILURES as failure:
            error = _name(failure)
        self.happened(What.CANCEL_ENDED, agent.id, cancel=number, error=error)

    async def next_step(self, turn: Turn) -> tuple[Message, ...]:
        """Take, between two steps of a turn, what has come meanwhile; raises as `Turn.next_step`."""
        messages = await turn.next_step()
        ids = [message.id for message in messages]
        self.happened(What.STEPPED, turn.agent.id, turn=turn.number, messages=ids)
        return messages

    async def dispose(self, agent: Agent) -> None:
        """Dispose an agent."""
        self.happened(What.DISPOSE_BEGAN, agent.id, current=self._host is not None and agent in self._host.agents)
        await agent.dispose()
        self.happened(What.DISPOSE_ENDED, agent.id, inside=is_inside(agent))

    def note(self, text: str, agent: str = "", **detail: Any) -> None:
        """Put something of the scenario's own into the trace."""
        self.happened(What.NOTE, agent, text=text, **detail)

    # For the lab ------------------------------------------------------------------------------

    def happened(self, what: What, agent: str = "", **detail: Any) -> None:
        """Add to the trace that something happened now, and have it judged. What a dead process does is not in it."""
        if self.dead:
            return
        clock = self.clock
        happening = Happening(
            self.step, self.life, self.before_ns + clock.monotonic_ns, clock.now_millis(), what, agent, detail
        )
        self.trace.add(happening)
        if self.finding is not None:
            return  # the end of a run that has been judged
        try:
            for judge in self._judges[what]:
                judge(happening)
        except Exception as error:  # noqa: BLE001 - see `_judged`
            self.found(_judged(error))

    @contextmanager
    def judging(self) -> Generator[None]:
        """End the run if an invariant says in the block that it does not hold."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see `_judged`
            self.found(_judged(error))

    def found(self, finding: Finding) -> None:
        """End the run with a finding; only the first one counts."""
        if self.finding is None:
            self.finding = finding
            self.trace.add(
                Happening(
                    self.step,
                    self.life,
                    self.before_ns + self.clock.monotonic_ns,
                    self.clock.now_millis(),
                    What.BROKEN,
                    "",
                    {"invariant": finding.name, "text": finding.trace_text},
                )
            )
        self.die("broken")

    def step_clock(self, by: timedelta, *, announce: bool, how: str = "step") -> None:
        """Step the wall clock, as `VirtualClock.step`, or as `suspend` if `how` is so."""
        self.clock.step(by, announce=announce)
        self.happened(What.CLOCK, how=how, by=by.total_seconds(), announced=announce)

    def drift(self, ppm: int) -> None:
        """Let the wall clock drift from now on."""
        self.clock.drift_ppm = ppm
        self.happened(What.CLOCK, how="drift", by=ppm, announced=False)

    def die(self, how: str = "crashed") -> None:
        """Let the process die here: nothing it does from now on has any effect."""
        if self.dead:
            return
        self.happened(What.LIFE_ENDED, how=how)
        self.dead = True
        self.on_death()

    def stop(self) -> None:
        """Have the process stop its host in order, from here on; what the users do ends at once."""
        self.stopped = True
        self.on_stop()

    def begin_life(self, down: float) -> VirtualClock:
        """Let the next process begin, `down` seconds after the last one, and return its clock."""
        self._depths = Depths()
        self.before_ns += self.clock.monotonic_ns
        self.clock = VirtualClock(self.clock.now() + timedelta(seconds=down), autojump=True)
        self.life += 1
        self.dead = self.stopped = False
        self.store.begin_life()
        self.happened(What.LIFE_BEGAN, down=down)
        return self.clock

    def begin_round(self, *, jumped: bool) -> None:
        """Look at the runtime, and do the mischief that is planned for this round of the event loop.

        Raises:
            Diverged: see `Chooser`.
        """
        if self._host is None:
            return
        if self.detailed:
            for agent, depth in self._depths.changes(self._host):
                self.happened(What.DEPTH, agent, depth=depth)
        try:  # not `judging`, which is slower: this is done hundreds of times a run
            for invariant in self._each_round:
                invariant.look(self)
        except Exception as error:  # noqa: BLE001 - see `_judged`
            self.found(_judged(error))
        if not self.dead:
            self.mischief.begin_round(self, jumped=jumped)

    def tasks(self) -> list[trio.lowlevel.Task]:
        """Return all tasks of the process that lives now, trio's own included."""
        root = trio.lowlevel.current_root_task()
        found = [] if root is None else [root]
        for task in found:
            for nursery in task.child_nurseries:
                found.extend(nursery.child_tasks)
        return found

    def judge(self) -> None:
        """Have the invariants judge the run as a whole."""
        with self.judging():
            for invariant in self._invariants:
                invariant.settled(self)

    def choose_actor(self, ready: Any) -> int:
        """Return which of the ready actors, a sequence of `Actor`, runs next."""
        if self.dead or len(ready) == 1:
            return 0
        return self.chooser.order(Topic.ACTOR, [self._actor(actor) for actor in ready])

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Host]:
        """Open the host of one life."""
        options: dict[str, Any] = {"shutdown_timeout": 0.0, **self.scenario.options(), **self.mischief.host_options()}
        async with open_host(
            store=self.store,
            clock=self.clock,
            turn=self._turn,
            rng=random.Random(f"life {self.life}"),  # noqa: S311 - ids and jitter, the same in every replay
            choose=self.choose_actor,
            **options,
        ) as host:
            self._host = host
            # Most events are of what the trace has from the store; making them costs a tenth of a run.
            announcer = host._services.announcer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it tells of everything
            announcer.subscribe(self._announced, _TOLD)
            try:
                yield host
            finally:
                self._host = None

    async def _turn(self, turn: Turn) -> None:
        """Run a turn of the scenario's, seen by the trace."""
        if self.dead:
            return
        agent, fault = turn.agent.id, self.mischief.meet_turn()
        self.happened(
            What.TURN_BEGAN,
            agent,
            turn=turn.number,
            attempt=turn.attempt,
            redelivered=turn.redelivered,
            messages=[message.id for message in turn.messages],
            fault=None if fault is None else fault.kind.value,
        )
        how, error = "cancelled", None
        try:
            await (self.scenario.turn(self, turn) if fault is None else misbehave(self, turn, fault))
            how = "returned"
        except Exception as raised:
            how, error = "raised", _name(raised)
            raise
        finally:
            self.happened(What.TURN_ENDED, agent, turn=turn.number, how=how, error=error)

    def _announced(self, event: HostEvent) -> None:
        if event.kind is EventKind.AGENT_PASSIVATED and "passivate_after" in self.mischief.host_options():
            self.mischief.note(FaultKind.AGENT_PASSIVATED)
        self.happened(What.HOST, event.session_id, event=event.kind.value, **event.detail)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _actor(self, actor: Actor) -> Candidate:
        found = self._actors.get(actor.name)
        if found is None:
            found = self._actors[actor.name] = Candidate(len(self._actors), actor.name)
        return found


def _judged(error: Exception) -> Finding:
    """Return what an invariant found; one that fails itself must not be taken for a fault of what called it."""
    if isinstance(error, Broken):
        return Finding(FindingKind.INVARIANT, error.invariant, error.text)
    return Finding.of(error)


def _name(error: BaseException) -> str:
    return type(error).__name__
