"""Actors: objects that handle one message at a time and cost nothing while they wait (SPEC 2.7-2.9)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import trio

from whenidle_actors.backlog import Ask, Backlog
from whenidle_actors.deadlock import asking_actor, refuse_deadlock
from whenidle_actors.errors import AskTimeout
from whenidle_actors.mailbox import UNBOUNDED, Lifecycle, Mailbox, MailboxPolicy
from whenidle_actors.supervision import DEFAULT_SUPERVISION, Supervision

if TYPE_CHECKING:
    from whenidle_actors.scheduler import Scheduler

_SERVING = Lifecycle.SERVING


class Actor(Mailbox):
    """One serial handler of messages. Subclass it, with `__slots__`, and override `receive`.

    An idle actor is data: it has no task, no queue and no timer. Its handlers run one at a time, in the order
    the messages came, system messages first; `started` runs before the first message.

    All methods belong to the trio thread.
    """

    __slots__ = ()

    backlog: Backlog | None  # said again because it is assigned here too, on the shortest way

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        *,
        mailbox: MailboxPolicy = UNBOUNDED,
        supervision: Supervision = DEFAULT_SUPERVISION,
    ) -> None:
        super().__init__(name, scheduler.setup(mailbox, supervision))

    # For subclasses to override ---------------------------------------------------------------

    async def started(self) -> None:
        """Build the actor's state. Runs before the first message, and again after each restart.

        It may tell the actor something: that is taken even if the mailbox is full. An exception is a fault.
        """

    @abstractmethod
    def receive(self, message: Any) -> Any:
        """Handle one message; plain or async. What it returns is the reply to an ask.

        A handler that never blocks costs no task switch. While it blocks, other actors run and this one's
        messages wait. An exception goes to the caller if the message was an ask, and is a fault in any
        case (`Supervision`). `ActorExit` ends the actor in the normal way.

        Handlers share worker tasks: a context variable set in one may or may not be seen in later ones. A
        task that outlives its handler must be started inside `outside_mailbox`.
        """

    async def stopped(self) -> None:
        """Release the actor's state. Runs last in an orderly stop; an exception is logged."""

    def restarting(self, error: Exception) -> None:
        """Drop the actor's state after the fault `error`; `started` will build it anew. Must not block."""

    def faulted(self, error: Exception) -> None:
        """Tell the host that the actor was given up after the fault `error`. Called once; must not block."""

    # For callers ------------------------------------------------------------------------------

    def tell(self, message: Any) -> None:
        """Queue a message and return at once; never blocks.

        To an actor that has stopped or is faulted it becomes a dead letter, without an exception: a teller
        cannot know, and the stop may happen right after just as well.

        Raises:
            MailboxFull: the mailbox is bounded, full, and its overflow policy is to reject.
        """
        setup = self.setup
        if setup.capacity is None and self.lifecycle is _SERVING:  # the rest of `offer` is not for these
            backlog = self.backlog
            if backlog is None:
                backlog = self.backlog = Backlog()
                backlog.append(message)
                setup.scheduler.make_ready(self)
            else:
                backlog.append(message)
        else:
            self.offer(message)

    async def ask(self, message: Any, *, deadline: float | None = None) -> Any:
        """Queue a message, wait for its handler to end, and return what it returned.

        `deadline` is in seconds from now on trio's clock. A caller that is cancelled, or whose deadline
        passes, before the message's turn withdraws it: nothing changes. Later than that, the handler runs
        to its end and its reply is dropped.

        Raises:
            AskTimeout: the deadline passed.
            MailboxDeadlock: the handler this is called from could then never end; raised at once, whatever
                the deadline.
            MailboxFull: there was no room, or room was made for a newer message.
            ActorStopped, AgentFaulted: the actor takes no more messages.
            ActorRestarted: the actor was restarted while the message waited.
            Exception: whatever the handler raised.
        """
        if deadline is None:
            return await self._send_ask(message, system=False)
        return await self._send_ask_until(deadline, message, system=False)

    def tell_system(self, message: Any) -> None:
        """Queue a message that goes before all user messages and uses no capacity; see `tell`."""
        self.offer_system(message)

    async def ask_system(self, message: Any, *, deadline: float | None = None) -> Any:
        """Ask before all user messages, using no capacity; see `ask`. It waits over a restart."""
        if deadline is None:
            return await self._send_ask(message, system=True)
        return await self._send_ask_until(deadline, message, system=True)

    def start(self) -> None:
        """Have `started` run now rather than before the first message. Without effect once it ran."""
        if self.lifecycle is Lifecycle.NEW and self.backlog is None:
            self.backlog = Backlog()
            self.wake()

    def begin_stop(self) -> None:
        """Ask for an orderly stop and return at once; a handler may stop its own actor like this.

        The handler that runs may finish, within the shutdown timeout; what waits becomes dead letters, and
        asks fail with `ActorStopped`. Then `stopped` runs. Idempotent.
        """
        self.setup.scheduler.supervisor.begin_stop(self)

    async def stop(self) -> None:
        """Stop in order, and return when the actor has stopped or is faulted. Idempotent.

        Cancelling the wait does not take the stop back.

        Raises:
            MailboxDeadlock: called from a handler that could then never end; use `begin_stop` there.
        """
        asker = asking_actor()
        if asker is not None:
            refuse_deadlock(asker, self)
        self.begin_stop()
        if self.backlog is None:
            await trio.lowlevel.checkpoint()
            return
        busy = self.carry()
        if busy.ended is None:
            busy.ended = trio.Event()
        if asker is None:
            await busy.ended.wait()
            return
        waits_for = asker.carry().waits_for
        waits_for.append(self)
        try:
            await busy.ended.wait()
        finally:
            waits_for.remove(self)

    def wake(self) -> None:
        """Put the actor on the ready list; the runtime's own."""
        self.setup.scheduler.make_ready(self)

    async def _send_ask(self, message: Any, *, system: bool) -> Any:
        asker = asking_actor()
        if asker is not None:
            refuse_deadlock(asker, self)
        ask = Ask(message, self, None if asker is None else asker.carry().waits_for)
        if system:
            self.offer_system(ask)
        else:
            self.offer(ask)
        return await ask.answer()

    async def _send_ask_until(self, deadline: float, message: Any, *, system: bool) -> Any:
        with trio.move_on_after(deadline):
            return await self._send_ask(message, system=system)
        raise AskTimeout(f"{self.name!r} gave no answer within {deadline} s")
