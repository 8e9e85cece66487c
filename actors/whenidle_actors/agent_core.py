"""The runtime's half of an agent: its mailbox, its phase, its end.

Whatever changes the session runs in the mailbox, one thing at a time, and is a durable event before it
is anything else. Turns and maintenance tasks run beside the mailbox, so that their tools are served
while they run; which of them may run is the phase, a table in `whenidle_protocol.agent_state`. This is
the shell around that table.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

import trio

from whenidle_actors.activity import Activity, is_inside
from whenidle_actors.actor import Actor
from whenidle_actors.drain import drain
from whenidle_actors.errors import ActorStopped, AgentDisposed, AgentFaulted, StoreError, WhenidleError
from whenidle_actors.logs import report
from whenidle_actors.mailbox import Lifecycle
from whenidle_actors.observation import EventKind
from whenidle_protocol.agent_state import Effect, Event, Phase, transition
from whenidle_protocol.errors import ToolError
from whenidle_protocol.turn_changes import NotPending, TurnOver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from whenidle_actors.services import Services
    from whenidle_actors.session import Session
    from whenidle_actors.suites import Suite

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("whenidle.host")

_ENDING = frozenset({Phase.DISPOSING_TURN, Phase.DISPOSING_MAINTENANCE, Phase.DISPOSED})

_ANSWERS = (WhenidleError, ToolError, NotPending, TurnOver)
"""What an operation may raise as its answer; anything else is a fault of the actor (SPEC 2.7)."""


class _Refusal:
    """An answer that is raised to whoever asked."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def _unwrap(answer: T | _Refusal) -> T:
    if isinstance(answer, _Refusal):
        raise answer.error
    return answer


class _Stay:
    """What an agent has only while it is not idle, or somebody waits for it."""

    __slots__ = ("activity", "calls", "phase", "waiters")

    def __init__(self) -> None:
        self.phase = Phase.IDLE
        self.activity: Activity | None = None
        self.waiters: trio.Event | None = None
        self.calls: list[Callable[[], None]] | None = None


class AgentCore(Actor):
    """An actor that drives a session. Everything here belongs to the runtime; users hold an `Agent`."""

    __slots__ = ("_stay", "services", "session", "suites")

    def __init__(self, services: Services, session: Session, suites: tuple[Suite, ...]) -> None:
        super().__init__(session.header.id, services.scheduler, supervision=services.supervision)
        self.services: Services = services
        self.session: Session = session
        """To be used inside the mailbox."""
        self.suites: tuple[Suite, ...] = suites
        """What was mounted when the agent was made (SPEC 5.1)."""
        self._stay: _Stay | None = None

    # The mailbox ------------------------------------------------------------------------------

    async def receive(self, message: Callable[[], Awaitable[Any]]) -> Any:
        """Run an operation on the session; a refusal is an answer, any other exception a fault."""
        try:
            return await message()
        except _ANSWERS as error:
            return _Refusal(error)

    async def started(self) -> None:
        """After a restart, look again at what the log says is to be done: it may be more than was known."""
        if self.record is not None and self.record.restarts:
            self.rouse()
            self.recompute()

    def restarting(self, error: Exception) -> None:
        """Doubt what is in memory: the log is read again before anything else is decided."""
        self.session.drop()
        self.services.announce(EventKind.AGENT_RESTARTED, self.name, error=repr(error))

    def faulted(self, error: Exception) -> None:
        """End like a disposed agent, but stay in the registry so that the fault can be seen (SPEC 2.7)."""
        report(
            logger,
            logging.ERROR,
            "agent-faulted",
            "session %s: its agent failed too often and is given up",
            self.name,
            session=self.name,
            error=error,
        )
        self.begin_disposal("faulted")
        self.services.announce(EventKind.AGENT_FAULTED, self.name, error=repr(error))

    async def in_queue(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation in the mailbox, after what users asked for before.

        Raises:
            AgentDisposed, AgentFaulted: the agent takes no more; a turn that may still finish is served.
            ActorRestarted: the actor was restarted while the operation waited; nothing of it happened.
        """
        if not is_inside(self):
            self.refuse_ended()
        self.services.registry.on_busy(self)
        try:
            answer: T | _Refusal = await self.ask(self.services.announcer.carry(operation))
        except ActorStopped:
            raise self._disposed() from None
        finally:
            self._note_quiet()
        return _unwrap(answer)

    async def in_mailbox(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run an operation in the mailbox before what users asked for, also while the agent is ending."""
        try:
            answer: T | _Refusal = await self.ask_system(self.services.announcer.carry(operation))
        except ActorStopped:
            raise self._disposed() from None
        finally:
            self._note_quiet()
        return _unwrap(answer)

    def _note_quiet(self) -> None:
        """Begin to count the quiet period anew: an operation may take longer than it."""
        if self.phase is Phase.IDLE:
            self.session.rest()
            self.services.registry.on_quiet(self)

    # The phase --------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """What the agent is doing, in full."""
        return Phase.IDLE if self._stay is None else self._stay.phase

    @property
    def activity(self) -> Activity | None:
        """The drain or maintenance task in flight."""
        return None if self._stay is None else self._stay.activity

    @activity.setter
    def activity(self, activity: Activity | None) -> None:
        self._dwell().activity = activity

    def _dwell(self) -> _Stay:
        if self._stay is None:
            self._stay = _Stay()
        return self._stay

    @property
    def ending(self) -> bool:
        """Whether nothing new may start."""
        return self._stay is not None and self._stay.phase in _ENDING

    @property
    def is_quiet(self) -> bool:
        """Whether it could be dropped from memory: idle, and nobody waits for it."""
        return self.phase is Phase.IDLE and self.backlog is None and (self._stay is None or self._stay.waiters is None)

    def step(self, event: Event) -> tuple[Effect, ...]:
        """Let `event` happen: change the phase and carry out what follows. Never blocks.

        Raises:
            IllegalTransition: it cannot happen in this phase; nothing changed.
        """
        before, step = self.phase, transition(self.phase, event)
        self._dwell().phase = step.phase
        for effect in step.effects:
            if effect is Effect.START_TURN and before is not Phase.RUNNING:
                self.activity = Activity()
                self.services.start(drain, self)
            elif effect is Effect.NOTIFY_IDLE:
                self.notify()
                self._stay = None
                self.session.rest()
                self.services.registry.on_quiet(self)
            elif effect is Effect.FORGET:
                self.services.start(self._finish)
        return step.effects

    def rouse(self) -> None:
        """Start turns if the agent is idle and its log gives a reason to run, or holds a turn to clear up."""
        if self.phase is Phase.IDLE and self.may_have_reason_to_run():
            self.services.registry.on_busy(self)
            self.step(Event.WAKE)

    def may_have_reason_to_run(self) -> bool:
        """Return False only if the log gives no reason; a drain looks again before it runs anything."""
        state = self.session.confirmed_state
        return state is None or state.turn is not None or state.has_reason_to_run

    def recompute(self) -> None:
        """Have every suite look again at what is due."""
        for suite in self.suites:
            suite.recompute(self)

    def lose_log(self, error: StoreError) -> None:
        """End because the log cannot be read any more: nothing can be decided, and waiting would not mend it."""
        report(
            logger,
            logging.ERROR,
            "session-lost",
            "session %s: its log cannot be read, its agent ends",
            self.name,
            session=self.name,
            error=error,
        )
        known = self.ending
        self.begin_disposal("its log cannot be read")
        if not known:  # turns and deliveries find it out each for itself
            self.services.announce(EventKind.RESTORE_FAILED, self.name, error=str(error))

    # Waiting, and the end ---------------------------------------------------------------------

    def notify(self) -> None:
        """Let everyone look again who waits for the phase to change."""
        stay = self._stay
        if stay is None:
            return
        if stay.waiters is not None:
            stay.waiters.set()
            stay.waiters = None
        if stay.calls is not None:
            calls, stay.calls = stay.calls, None
            for call in calls:
                call()

    async def next_change(self) -> None:
        """Wait until `notify` is called."""
        stay = self._dwell()
        if stay.waiters is None:
            stay.waiters = trio.Event()
        await stay.waiters.wait()

    def call_on_change(self, call: Callable[[], None]) -> None:
        """Have `call` called once, the next time `notify` is: for those who wait for many. It must not block or raise.

        Only while the agent is not idle: an idle one may be dropped from memory.
        """
        stay = self._dwell()
        if stay.calls is None:
            stay.calls = []
        stay.calls.append(call)

    def refuse_ended(self) -> None:
        """Return unless the agent is ending or has ended.

        Raises:
            AgentDisposed, AgentFaulted: it has.
        """
        if self.lifecycle is Lifecycle.FAULTED:
            raise AgentFaulted(f"agent {self.name!r} failed too often and was given up; dispose it to start anew")
        if self.ending:
            raise self._disposed()

    def begin_disposal(self, cause: str, *, patient: bool = False, interrupt: bool = False) -> None:
        """Let nothing new start, and abort what runs, at once or not at all if `patient`.

        With `interrupt` the turn in flight did nothing wrong and its messages are to be delivered again.
        """
        if not self.ending:
            for suite in self.suites:
                suite.release(self.name)
        self.step(Event.DISPOSE)
        if not patient and self.activity is not None:
            self.activity.end(cause, interrupted=interrupt)
        self.notify()

    async def _finish(self) -> None:
        """Leave the registry and announce the end, when the actor has ended."""
        if self.lifecycle is Lifecycle.FAULTED:
            self.notify()
        else:
            await self.stop()
            self.leave()

    async def leave_when_over(self) -> None:
        """Leave the registry as soon as nothing of a faulted agent is in flight any more."""
        while self.phase is not Phase.DISPOSED:
            await self.next_change()
        self.leave()

    def leave(self) -> None:
        """Leave the registry and announce it."""
        if self.services.registry.remove(self):
            self.services.announce(EventKind.AGENT_DISPOSED, self.name)
        self.notify()

    def _disposed(self) -> AgentDisposed:
        return AgentDisposed(f"agent {self.name!r} was disposed; its session is kept")
