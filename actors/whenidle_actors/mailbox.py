"""The serial queue of one actor: order, capacity, asks, and the account of every message (SPEC 2.9).

A `Mailbox` is data while it is idle: it has no queue, no task and nothing else that only a message
needs. The queue is made when a message comes and dropped when the last one was taken.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_actors.backlog import Ask, Backlog
from whenidle_actors.deadlock import serving
from whenidle_actors.errors import ActorRestarted, ActorStopped, AgentFaulted, InvalidArgument, MailboxFull

if TYPE_CHECKING:
    import trio

    from whenidle_actors.scheduler import Scheduler
    from whenidle_actors.supervisor import Supervision
    from whenidle_actors.worker import Worker


class Overflow(enum.Enum):
    """What a full mailbox does with one more user message."""

    REJECT = "reject"
    """Raise `MailboxFull` to the sender."""

    DROP_OLDEST = "drop_oldest"
    """Take it, and make the oldest user message a dead letter; an ask fails with `MailboxFull`."""

    DROP_NEWEST = "drop_newest"
    """Make it a dead letter; an ask raises `MailboxFull`."""


def _capacity(_: object, __: object, value: int | None) -> None:
    if value is not None and value < 1:
        raise InvalidArgument(f"a mailbox capacity of {value} could hold nothing; write 1 or more, or None")


@attrs.frozen
class MailboxPolicy:
    """How many user messages may wait, and what happens to one more.

    System messages use no capacity. Neither does what an actor tells itself while its `started` runs:
    an actor must be able to start whatever its queue holds.

    Raises:
        InvalidArgument: the capacity is below 1.
    """

    capacity: int | None = attrs.field(default=None, validator=_capacity)
    """Most user messages in the queue, not counting the one being handled; None is unbounded."""
    overflow: Overflow = Overflow.REJECT


UNBOUNDED = MailboxPolicy()


class Undelivered(enum.Enum):
    """Why a message that was accepted never reached its handler."""

    OVERFLOW = "overflow"
    STOPPED = "stopped"
    FAULTED = "faulted"
    RESTARTED = "restarted"
    """An ask that waited while its actor was restarted; tells survive that."""


@attrs.frozen
class DeadLetter:
    """A message that never reached its handler."""

    actor: str
    """Name of the actor it was sent to."""
    message: Any
    reason: Undelivered
    asked: bool
    """True for an ask: its caller got the matching exception as well."""


@attrs.frozen
class MailboxStatistics:
    """Counters of one mailbox since its actor was made (SPEC 2.12).

    Always `accepted == processed + withdrawn + dead_letters + depth + system_depth`.
    """

    depth: int
    """User messages that wait."""
    system_depth: int
    """System messages that wait."""
    capacity: int | None
    """Most user messages that may wait; None is unbounded."""
    accepted: int
    """Messages taken from senders without an exception."""
    processed: int
    """Messages handed to `receive`, whether it returned or raised, the one being handled included."""
    withdrawn: int
    """Asks whose caller was cancelled or timed out before their turn; they changed nothing."""
    dead_letters: int
    """Messages given to the dead-letter hook."""
    restarts: int
    """Times the actor was restarted."""


class Lifecycle(enum.Enum):
    """Where an actor is between being made and being gone."""

    NEW = "new"
    """`started` must run before the next message: freshly made, or restarted and done with its backoff."""
    STARTING = "starting"
    SERVING = "serving"
    RESTARTING = "restarting"
    """Waits for its backoff."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAULTED = "faulted"


_SERVING = Lifecycle.SERVING  # asked for first, and by this name, because hashing and looking up are slow
NO_MORE_MESSAGES = frozenset({Lifecycle.STOPPING, Lifecycle.STOPPED, Lifecycle.FAULTED})


class Busy:
    """What an actor needs only while it has something to do, beyond its queue."""

    __slots__ = ("backoff", "ended", "system", "waits_for", "worker")

    def __init__(self) -> None:
        self.system: Backlog | None = None
        self.waits_for: list[Mailbox] = []
        """Actors that the running handler waits for, one entry an ask."""
        self.worker: Worker | None = None
        """The worker whose task is held by this actor's blocked handler."""
        self.backoff: trio.CancelScope | None = None
        """Ends the wait before a restart."""
        self.ended: trio.Event | None = None
        """Set when the actor has stopped or is faulted; made by the first that waits for it."""


class Record:
    """The rare part of an actor's account, made when the first such thing happens."""

    __slots__ = ("dead_letters", "restarts", "restarts_at", "withdrawn")

    def __init__(self) -> None:
        self.withdrawn: int = 0
        self.dead_letters: int = 0
        self.restarts: int = 0
        self.restarts_at: list[float] = []
        """When the restarts within the window happened, on a scale that stands still during backoff."""


class Setup:
    """What many actors share; never changed once made."""

    __slots__ = ("__weakref__", "capacity", "overflow", "scheduler", "supervision")

    def __init__(self, scheduler: Scheduler, policy: MailboxPolicy, supervision: Supervision) -> None:
        self.scheduler: Scheduler = scheduler
        self.capacity: int | None = policy.capacity
        self.overflow: Overflow = policy.overflow
        self.supervision: Supervision = supervision


class Mailbox(ABC):
    """Base of `Actor`: the queue and its account. The attributes belong to the runtime.

    `backlog` is None exactly while the actor is idle. Otherwise somebody (the ready list, a worker, a
    backoff) has the actor in hand, and a message needs only to be queued.
    """

    __slots__ = ("__weakref__", "backlog", "busy", "lifecycle", "name", "record", "served", "setup")

    def __init__(self, name: str, setup: Setup) -> None:
        self.name: str = name
        self.setup: Setup = setup
        self.lifecycle: Lifecycle = Lifecycle.NEW
        self.backlog: Backlog | None = None
        self.busy: Busy | None = None
        self.record: Record | None = None
        self.served: int = 0
        """Messages handed to `receive` so far."""

    def carry(self) -> Busy:
        """Return the busy part, made if need be."""
        busy = self.busy
        if busy is None:
            busy = self.busy = Busy()
        return busy

    def account(self) -> Record:
        """Return the rare part of the account, made if need be."""
        record = self.record
        if record is None:
            record = self.record = Record()
        return record

    @abstractmethod
    def wake(self) -> None:
        """Put the actor, idle until now, on the ready list."""

    def take_in_hand(self) -> bool:
        """Take the actor in hand if it is idle, and return whether it was: what is sent to it waits until `let_go`.

        An actor that must look at its state anew, because it was restarted, is not to be had.
        """
        fresh = self.lifecycle is Lifecycle.NEW and self.record is None
        if self.backlog is not None or not (fresh or self.lifecycle is _SERVING):
            return False
        self.backlog = Backlog()
        return True

    def let_go(self) -> None:
        """Make the actor idle, or have it continued in its turn."""
        if self.has_work():
            self.wake()
        elif self.lifecycle is _SERVING:
            self.backlog = self.busy = None

    def has_work(self) -> bool:
        """Tell whether a worker must still run this actor."""
        if self.lifecycle is Lifecycle.SERVING:
            return bool(self.backlog) or (self.busy is not None and bool(self.busy.system))
        return self.lifecycle is Lifecycle.NEW or self.lifecycle is Lifecycle.STOPPING

    def offer(self, entry: Any) -> None:
        """Queue a tell or an ask of a user, as lifecycle and capacity allow."""
        backlog = self.backlog
        if self.lifecycle is not _SERVING and self.lifecycle in NO_MORE_MESSAGES:
            self._refuse(entry)
        elif backlog is None:
            backlog = self.backlog = Backlog()
            self._put(backlog, entry)
            self.wake()
        elif self._is_full(backlog):
            self._overflow(backlog, entry)
        else:
            self._put(backlog, entry)

    def offer_system(self, entry: Any) -> None:
        """Queue a system message: before all user messages, after earlier system messages."""
        if self.lifecycle is not _SERVING and self.lifecycle in NO_MORE_MESSAGES:
            self._refuse(entry)
            return
        busy = self.carry()
        if busy.system is None:
            busy.system = Backlog()
        self._put(busy.system, entry)
        if self.backlog is None:
            self.backlog = Backlog()
            self.wake()

    @staticmethod
    def _put(backlog: Backlog, entry: Any) -> None:
        if type(entry) is Ask:
            entry.backlog = backlog
        backlog.append(entry)

    def _is_full(self, backlog: Backlog) -> bool:
        capacity = self.setup.capacity
        if capacity is None or backlog.depth < capacity:
            return False
        # What an actor tells itself while it starts is always taken, or it might never start.
        return not (self.lifecycle is Lifecycle.STARTING and serving.get() is self)

    def _refuse(self, entry: Any) -> None:
        """Take a tell as a dead letter, because it may race with the stop; tell an ask why."""
        if type(entry) is Ask:
            raise self.end_error()
        faulted = self.lifecycle is Lifecycle.FAULTED
        self._bury(entry, Undelivered.FAULTED if faulted else Undelivered.STOPPED)

    def _overflow(self, backlog: Backlog, entry: Any) -> None:
        overflow = self.setup.overflow
        full = MailboxFull(f"the mailbox of {self.name!r} already holds {self.setup.capacity} messages")
        if overflow is Overflow.DROP_OLDEST:
            oldest = backlog.pop_live()
            self._put(backlog, entry)
            self._bury(oldest, Undelivered.OVERFLOW, full)
        elif overflow is Overflow.REJECT or type(entry) is Ask:
            raise full
        else:
            self._bury(entry, Undelivered.OVERFLOW)

    def end_error(self) -> ActorStopped | AgentFaulted:
        """Return what an ask to an actor that takes no more messages fails with."""
        if self.lifecycle is Lifecycle.FAULTED:
            return AgentFaulted(f"{self.name!r} is faulted: its own code failed more often than allowed")
        return ActorStopped(f"{self.name!r} is stopped and takes no more messages")

    def discard(self) -> None:
        """Make everything that waits a dead letter; asks fail with `end_error`."""
        faulted = self.lifecycle is Lifecycle.FAULTED
        reason = Undelivered.FAULTED if faulted else Undelivered.STOPPED
        queues = (self.busy.system if self.busy else None, self.backlog)
        entries = [entry for queue in queues if queue is not None for entry in queue.take_all()]
        for entry in entries:
            self._bury(entry, reason, self.end_error())

    def fail_waiting_asks(self) -> None:
        """Fail the users' asks that wait; their tells and all system messages stay (SPEC 2.9)."""
        for ask in self.backlog.take_asks() if self.backlog else ():
            self._bury(ask, Undelivered.RESTARTED, self.restart_error())

    def restart_error(self) -> ActorRestarted:
        """Return what an ask that waited over a restart fails with."""
        return ActorRestarted(f"{self.name!r} was restarted while this ask waited; ask again")

    def _bury(self, entry: Any, reason: Undelivered, error: Exception | None = None) -> None:
        self.account().dead_letters += 1
        asked = type(entry) is Ask
        if asked:
            entry.settle(None, error)
        message = entry.message if asked else entry
        self.setup.scheduler.bury(DeadLetter(self.name, message, reason, asked))

    def statistics(self) -> MailboxStatistics:
        """Return the account of the mailbox."""
        record = self.record or Record()
        depth = self.backlog.depth if self.backlog else 0
        system = self.busy.system if self.busy else None
        system_depth = system.depth if system else 0
        return MailboxStatistics(
            depth=depth,
            system_depth=system_depth,
            capacity=self.setup.capacity,
            accepted=self.served + record.withdrawn + record.dead_letters + depth + system_depth,
            processed=self.served,
            withdrawn=record.withdrawn,
            dead_letters=record.dead_letters,
            restarts=record.restarts,
        )
