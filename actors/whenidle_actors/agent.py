"""The agent as its host's users see it (SPEC 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import trio

from whenidle_actors.activity import Activity, inside, is_inside, refuse_inside
from whenidle_actors.agent_core import AgentCore
from whenidle_actors.errors import (
    AgentBusy,
    CommitUncertain,
    InvalidArgument,
    MaintenanceAborted,
    TurnEnded,
    UnknownMessage,
    UnknownTool,
)
from whenidle_actors.mailbox import Lifecycle, MailboxStatistics
from whenidle_actors.observation import EventKind
from whenidle_actors.probe import Work
from whenidle_actors.session import check_message
from whenidle_protocol import turn_changes
from whenidle_protocol.agent_state import Event, Phase, Status, is_legal, status_of, transition
from whenidle_protocol.events import Lane, Message, Outcome, Source
from whenidle_protocol.json_text import stringify
from whenidle_protocol.json_values import json_object
from whenidle_protocol.turn_changes import NotPending, TurnOver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from whenidle_actors.stores.base import SessionHeader
    from whenidle_actors.suites import Suite
    from whenidle_protocol.session_state import SessionState
    from whenidle_protocol.tool_schemas import ToolSchema
    from whenidle_protocol.turn_changes import Decided

T = TypeVar("T")


@attrs.frozen
class InboxView:
    """What an agent has not taken yet, at one moment (SPEC 2.2)."""

    next_turn: tuple[Message, ...]
    next_step: tuple[Message, ...]


@attrs.frozen
class AgentStatistics(MailboxStatistics):
    """What an agent is doing now, with the account of its mailbox (SPEC 2.12).

    The numbers of the log are None while a commit is under way or the log has to be read back.
    """

    phase: Phase = Phase.IDLE
    turns: int | None = None
    """Turns started in the session's life, those inherited by a fork included."""
    pending: int | None = None
    """Messages in the inbox."""
    reminders: int | None = None
    """Active reminders."""
    log_length: int | None = None
    """Events in the session log."""


class Agent(AgentCore):
    """One live agent; a host makes it. It stays valid until it is disposed, also while it is passivated.

    All methods belong to the trio thread. Those that change something return when it is durable; a caller
    that is cancelled before its turn in the mailbox has changed nothing.
    """

    __slots__ = ()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.name

    @property
    def header(self) -> SessionHeader:
        """Parent, delegation depth, working directory and preset (SPEC 2.10)."""
        return self.session.header

    @property
    def status(self) -> Status:
        """`idle` or `running`; maintenance counts as idle (SPEC 2.1)."""
        return status_of(self.phase)

    @property
    def is_faulted(self) -> bool:
        """Whether it was given up after too many faults (SPEC 2.7). Dispose it to start anew."""
        return self.lifecycle is Lifecycle.FAULTED

    def statistics(self) -> AgentStatistics:
        """Return what the agent is doing now."""
        mailbox = attrs.asdict(super().statistics())
        state = self.session.confirmed_state
        if state is None:
            return AgentStatistics(**mailbox, phase=self.phase)
        self.session.rest()  # looking at a million idle agents must not make them larger
        return AgentStatistics(
            **mailbox,
            phase=self.phase,
            turns=state.turns,
            pending=len(state.inbox),
            reminders=len(state.reminders),
            log_length=state.length,
        )

    # The inbox --------------------------------------------------------------------------------

    async def followup(self, text: str, *, source: Source = Source.USER) -> str:
        """Append a message to next-turn, wake the agent, and return the message's id (SPEC 2.2).

        Raises:
            InvalidArgument: `text` is no string, or longer than the host's limit.
            AgentDisposed, AgentFaulted, StoreError: the message was not taken, unless it is CommitUncertain.
        """
        return await self._insert(Lane.NEXT_TURN, text, source, wake=True)

    async def steer(self, text: str) -> str:
        """Append a message to next-step and wake the agent; otherwise like `followup`."""
        return await self._insert(Lane.NEXT_STEP, text, Source.USER, wake=True)

    async def inject(self, text: str) -> str:
        """Append a message to next-step for whenever the agent runs next; otherwise like `followup`."""
        return await self._insert(Lane.NEXT_STEP, text, Source.USER, wake=False)

    async def remove(self, message_id: str) -> None:
        """Take a message that is still pending out of the inbox.

        Raises:
            UnknownMessage: none of that id is pending; a turn may have taken it.
        """
        await self._change_message(lambda state: turn_changes.remove(state, message_id))

    async def replace(self, message_id: str, text: str) -> None:
        """Give a message that is still pending another text; it keeps its id and place.

        Raises:
            UnknownMessage: none of that id is pending; a turn may have taken it.
            InvalidArgument: as for `followup`.
        """
        check_message(text, self.services.max_message_bytes)
        await self._change_message(lambda state: turn_changes.replace(state, message_id, text))

    async def inbox(self) -> InboxView:
        """Return the messages that are pending."""

        async def look() -> InboxView:
            state = await self.session.confirm()
            return InboxView(state.inbox.next_turn, state.inbox.next_step)

        return await self.in_queue(look)

    # Idleness ---------------------------------------------------------------------------------

    async def run_maintenance(self, task: Callable[[], Awaitable[T]]) -> T:
        """Claim the idle agent, run `task()`, and return its result; its exception passes through (SPEC 2.3).

        There is no checkpoint between the test and the claim. While the claim is held no turn starts; input
        that arrives meanwhile starts one when it is released.

        Raises:
            AgentBusy: at once, the agent is not idle.
            WouldWaitForItself: called from inside the agent's own turn, maintenance task or tool.
            MaintenanceAborted: `cancel` ended the task.
            AgentDisposed: the agent is disposed, or was while the task ran.
        """
        refuse_inside(self, "be claimed for maintenance")
        self.refuse_ended()
        if not is_legal(self.phase, Event.CLAIM):
            raise AgentBusy(f"agent {self.id!r} is not idle: {self.phase.value}")
        self.services.registry.on_busy(self)
        self.step(Event.CLAIM)
        activity = self.activity = Activity()
        outcome = Outcome.ABORTED
        try:
            self.services.announce(EventKind.MAINTENANCE_STARTED, self.id)
            with self.services.announcer.work(Work.CLAIM, self.id), activity.guard(), inside(activity):
                result = await task()
                outcome = Outcome.COMPLETED
                return result
        except Exception:
            if activity.cause is None:
                outcome = Outcome.ERROR
            raise
        finally:
            self._leave_maintenance(outcome)
        self.refuse_ended()
        raise MaintenanceAborted(f"the maintenance task of {self.id!r} was cancelled: {activity.cause}")

    def claim(self) -> Activity | None:
        """Claim the idle agent and its mailbox at once, for one task that holds the claims of many; None if it is busy.

        As in a maintenance task that has an operation in the mailbox: whoever asks for something waits for
        `release`. The activity says whether the claim was aborted.
        """
        if self.phase is not Phase.IDLE or not self.take_in_hand():
            return None
        self.services.registry.on_busy(self)
        self.step(Event.CLAIM)
        activity = self.activity = Activity()
        self.services.announce(EventKind.MAINTENANCE_STARTED, self.id)
        return activity

    def release(self, outcome: Outcome) -> None:
        """Give up what `claim` got; `outcome` is that of the work."""
        self._leave_maintenance(outcome)
        self.let_go()

    def _leave_maintenance(self, outcome: Outcome) -> None:
        self.activity = None
        self.step(Event.RELEASED_MORE if self.may_have_reason_to_run() else Event.RELEASED)
        self.services.announce(EventKind.MAINTENANCE_ENDED, self.id, outcome=outcome.value)

    async def when_idle(self) -> None:
        """Wait until the agent is idle: no turn, no maintenance task, and none released behind it (SPEC 2.4).

        It says nothing about a particular message. Cancelling it changes nothing.

        Raises:
            WouldWaitForItself: called from inside the agent's own turn, maintenance task or tool.
            AgentDisposed, AgentFaulted: the agent is gone, or went meanwhile.
        """
        refuse_inside(self, "wait until it is idle")
        self.refuse_ended()
        if self.phase is Phase.IDLE:
            await trio.lowlevel.checkpoint()
        while self.phase is not Phase.IDLE:
            await self.next_change()
            self.refuse_ended()

    async def cancel(self, cause: str, *, keep_inbox: bool = False) -> None:
        """Abort the turn or maintenance task that runs, and empty the inbox unless told to keep it (SPEC 2.5).

        Returns when that is durable; the turn may still be unwinding (`when_idle` waits for it). What is kept
        after a turn waits for the next waking message; what is kept after a maintenance task starts a turn as
        usual, because no turn was cancelled. An idle agent is left alone, its inbox too.

        Raises:
            InvalidArgument: `cause` is no string, or longer than a message may be.
            AgentDisposed, AgentFaulted, StoreError: what runs is aborted all the same.
        """
        if not isinstance(cause, str):
            raise InvalidArgument(f"the cause of a cancel is a string, not {type(cause).__name__}")
        check_message(cause, self.services.max_message_bytes)
        self.refuse_ended()
        activity = self.activity
        if activity is None or not transition(self.phase, Event.CANCEL).effects:
            await trio.lowlevel.checkpoint()
            return

        async def accept() -> None:
            try:
                await self.session.decide(lambda state: turn_changes.abort_turn(state, cause, keep_inbox=keep_inbox))
            finally:
                # A turn that began after the first abort is meant, too. One that begins later is not.
                if self.activity is activity:
                    activity.abort(cause)

        activity.abort(cause)
        # A turn that cancels itself is cancelled from here on, and yet has to say so in the log.
        with trio.CancelScope(shield=is_inside(self)):
            await self.in_mailbox(accept)

    async def dispose(self) -> None:
        """End the agent, not its session: abort what runs, wait for it, and leave the registry (SPEC 2.6).

        Idempotent; every caller returns when it is done, except that one inside the agent's own turn,
        maintenance task or tool returns at once. Cancelling the wait does not take the disposal back.
        Nothing durable is deleted.
        """
        if not self.ending:
            self.services.registry.on_busy(self)
        self.begin_disposal("disposed")
        if self.is_faulted:
            self.services.start(self.leave_when_over)
        if not is_inside(self):
            while self.services.registry.live.get(self.id) is self:
                await self.next_change()
        await trio.lowlevel.checkpoint()

    # Tools ------------------------------------------------------------------------------------

    def tools(self) -> tuple[ToolSchema, ...]:
        """Return the tools this agent has, as a model is told of them."""
        return tuple(tool for suite in self.suites for tool in suite.tools())

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool and return its answer, a JSON value; a refusal is an answer too: `{code, message}`.

        Raises:
            UnknownTool: the agent has no such tool.
            AgentDisposed, AgentFaulted: the agent is gone.
        """
        for suite in self.suites:
            for tool in suite.tools():
                if tool.name == name:
                    return await self._call(suite, name, arguments)
        raise UnknownTool(f"agent {self.id!r} has no tool {str(name)[:100]!r}")

    async def _call(self, suite: Suite, name: str, arguments: Mapping[str, Any]) -> Any:
        announcer, clock = self.services.announcer, self.services.clock
        if not announcer.attended:
            return await suite.call(self, name, arguments)
        began = clock.monotonic()
        with announcer.work(Work.TOOL_CALL, self.id, tool=name) as note:
            answer = await suite.call(self, name, arguments)
            fields = json_object(answer)
            code = None if fields is None else fields.get("code")
            note(code=code)
        millis = round((clock.monotonic() - began) * 1000, 3)
        self.services.announce(EventKind.TOOL_ANSWERED, self.id, tool=name, code=code, millis=millis)
        return answer

    # For suites -------------------------------------------------------------------------------

    async def admit(self, operation: Callable[[Callable[[], bool]], Awaitable[T]]) -> T:
        """Claim the idle agent and run one operation of the mailbox in the claim, to its end.

        For deliveries: the claim is held until the operation cannot change the session any more, also if this
        call, or the claim, is cancelled. The operation is given a question to ask before it decides anything:
        whether that has happened.

        Raises:
            AgentBusy, MaintenanceAborted, AgentDisposed, AgentFaulted: as `run_maintenance`. What the operation
                changed before is durable.
        """
        began = withdrawn = False
        ended = trio.Event()

        async def in_mailbox() -> T:
            nonlocal began
            began = True
            try:
                return await operation(lambda: withdrawn)
            finally:
                ended.set()

        async def claimed() -> T:
            nonlocal withdrawn
            try:
                return await self.in_mailbox(in_mailbox)
            except trio.Cancelled:
                withdrawn = True
                with trio.CancelScope(shield=True):
                    if began:
                        await ended.wait()
                raise

        return await self.run_maintenance(claimed)

    # For `Turn` -------------------------------------------------------------------------------

    async def claim_step(self, number: int) -> tuple[Message, ...]:
        """Let the running turn take what is in next-step; see `Turn.next_step`."""
        activity = self.activity

        async def claim() -> tuple[Message, ...]:
            handed = 0 if activity is None else activity.handed
            messages = await self.session.decide(lambda state: turn_changes.claim_step(state, number, handed))
            if activity is not None:
                activity.handed += len(messages)
            return messages

        taken: list[Message] = []
        # What is claimed and not handed over would be lost to the turn.
        with trio.CancelScope(shield=True):
            taken.extend(await self._in_turn(claim))
        return tuple(taken)

    async def note(self, number: int, data: Any) -> None:
        """Keep a record of the running turn; see `Turn.note`."""
        try:
            # Nested as it will be, in an event and that in a line of an export.
            size = len(stringify([[data]])) - len("[[]]")
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"a note is a JSON value: {error}") from None
        limit = self.services.max_message_bytes
        if size > limit:
            raise InvalidArgument(f"the note has {size} characters as JSON; the limit is {limit}")
        await self._in_turn(lambda: self.session.decide(lambda state: turn_changes.note(state, number, data)))

    # ------------------------------------------------------------------------------------------

    async def _insert(self, lane: Lane, text: str, source: Source, *, wake: bool) -> str:
        check_message(text, self.services.max_message_bytes)

        async def insert() -> str:
            try:
                message = await self.session.decide(
                    lambda state: turn_changes.insert(state, lane, text, source, wake=wake)
                )
            except CommitUncertain:
                if wake:
                    self.rouse()  # it may be in the inbox, and then it is to run
                raise
            self.rouse()
            return message.id

        return await self.in_queue(insert)

    async def _change_message(self, decision: Callable[[SessionState], Decided[None]]) -> None:
        try:
            await self.in_queue(lambda: self.session.decide(decision))
        except NotPending as error:
            raise UnknownMessage(str(error)) from None

    async def _in_turn(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self.in_mailbox(operation)
        except TurnOver as error:
            raise TurnEnded(str(error)) from None
