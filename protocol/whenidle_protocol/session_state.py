"""What a session's log says: the fold of all its events (SPEC 2.2, 2.5, 3.1, 5.3).

A `SessionState` is owned by one actor and changed in place by `apply`, which either does all an
event says or raises and leaves the state as it was. Events before `seed_length` were inherited
by a fork: they count turns, and own no message and no reminder.

The rules a log must keep:

- A turn starts when none is open, with the number after the last. It takes all of next-step and
  the first of next-turn, or, if an interrupted turn is to be redelivered, exactly that turn's
  messages with the next attempt number.
- Between steps the open turn takes all of next-step.
- `awake` is the wake latch: a waking message sets it, an accepted cancel clears it. What a cancel
  was told to leave in the inbox thus waits for the next waking message, and a waking message that
  lands after the cancel is remembered and runs (SPEC 2.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from whenidle_protocol import inbox as inboxes
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import (
    Ignored,
    Message,
    MessageReplaced,
    MessagesRemoved,
    ScheduleChanged,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
    decode,
)
from whenidle_protocol.inbox import Inbox
from whenidle_protocol.open_turn import OpenTurn, Redelivery
from whenidle_protocol.reminder_state import NO_REMINDERS, ReminderState, fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whenidle_protocol.events import Event, EventRecord


class SessionState:
    """The state of one session after the events applied so far."""

    __slots__ = (
        "awake",
        "fixed_rate",
        "inbox",
        "length",
        "redelivery",
        "reminders",
        "seed_length",
        "turn",
        "turns",
    )

    def __init__(self, *, seed_length: int = 0, fixed_rate: bool = True) -> None:
        self.length: int = 0
        """Number of events applied: the sequence number of the next."""
        self.seed_length: int = seed_length
        self.fixed_rate: bool = fixed_rate
        """Whether `every` reminders are part of the protocol (SPEC 5.4)."""
        self.turns: int = 0
        """Number of the last turn that started, 0 before the first."""
        self.turn: OpenTurn | None = None
        self.redelivery: Redelivery | None = None
        self.awake: bool = False
        self.inbox: Inbox = inboxes.EMPTY
        """To be read only: it changes through `apply`."""
        self.reminders: ReminderState = NO_REMINDERS
        """To be read only: it changes through `apply`."""

    @classmethod
    def blank(cls, *, length: int, turns: int, seed_length: int, fixed_rate: bool) -> SessionState:
        """Return a state that holds nothing after `length` events and `turns` turns; see `is_blank`."""
        state = cls(seed_length=seed_length, fixed_rate=fixed_rate)
        state.length, state.turns = length, turns
        return state

    @property
    def is_blank(self) -> bool:
        """Whether the two counters are all there is to know: no message, turn or reminder, then or ever."""
        return (
            self.turn is None
            and self.redelivery is None
            and self.inbox is inboxes.EMPTY
            and self.reminders is NO_REMINDERS
        )

    @property
    def has_reason_to_run(self) -> bool:
        """Whether a turn should start once the agent is idle."""
        return self.redelivery is not None or (self.awake and self.inbox.waking > 0)

    def next_claim(self) -> TurnStarted | None:
        """Return the event that starts the turn which may start now, None with nothing to take.

        It does not ask whether there is a reason to run; `has_reason_to_run` says that.
        """
        claimed = self._claim()
        attempt = self.redelivery.attempt if self.redelivery else 1
        return TurnStarted(self.turns + 1, _ids(claimed), attempt) if claimed else None

    def apply(self, event: Event) -> None:
        """Change this state by `event`, the next of the log.

        Raises:
            CorruptLog: the event cannot follow what came before; the state is as it was.
        """
        try:
            if self.length < self.seed_length:
                self._inherit(event)
            else:
                self._HANDLERS[type(event)](self, event)
        except CorruptLog as error:
            raise error.at(self.length) from None
        self.length += 1

    def _claim(self) -> tuple[Message, ...]:
        return self.redelivery.messages if self.redelivery else self.inbox.turn_claim()

    def _open(self, number: int, what: str) -> OpenTurn:
        if self.turn is None or self.turn.number != number:
            raise CorruptLog(f"{what}: turn {number} is not open")
        return self.turn

    def _insert(self, event: Message) -> None:
        taken = (
            *(self.turn.claimed if self.turn else ()),
            *(self.redelivery.messages if self.redelivery else ()),
        )
        if any(message.id == event.id for message in taken):
            raise CorruptLog(f"inbox/insert: a turn has taken {event.id!r} and not ended")
        inbox = Inbox() if self.inbox is inboxes.EMPTY else self.inbox
        inbox.insert(event)
        self.inbox = inbox
        self.awake = self.awake or event.wake

    def _take(self, ids: tuple[str, ...], what: str) -> None:
        self.inbox.remove(ids, what)
        if not self.inbox:
            self.inbox = inboxes.EMPTY

    def _remove(self, event: MessagesRemoved) -> None:
        self._take(event.ids, "inbox/remove")

    def _replace(self, event: MessageReplaced) -> None:
        self.inbox.replace(event.id, event.text)

    def _may_start(self, event: TurnStarted) -> None:
        if self.turn is not None:
            raise CorruptLog(f"turn/start: turn {self.turn.number} is still open")
        if event.turn != self.turns + 1:
            raise CorruptLog(f"turn/start: number {event.turn} follows turn {self.turns}")

    def _start(self, event: TurnStarted) -> None:
        self._may_start(event)
        claimed = self._claim()
        attempt = self.redelivery.attempt if self.redelivery else 1
        if event.claimed != _ids(claimed) or event.attempt != attempt:
            raise CorruptLog(
                f"turn/start: takes {list(event.claimed)} as attempt {event.attempt}; "
                f"due are {list(_ids(claimed))} as attempt {attempt}"
            )
        if self.redelivery is None:
            self._take(event.claimed, "turn/start")
        self.redelivery = None
        self.turns = event.turn
        self.turn = OpenTurn(event.turn, claimed, event.attempt)

    def _step(self, event: StepClaimed) -> None:
        turn = self._open(event.turn, "turn/claim")
        taken = self.inbox.next_step
        if event.ids != _ids(taken):
            raise CorruptLog(f"turn/claim: takes {list(event.ids)}; next-step holds {list(_ids(taken))}")
        self._take(event.ids, "turn/claim")
        self.turn = attrs.evolve(turn, claimed=(*turn.claimed, *taken))

    def _abort(self, event: TurnAborted) -> None:
        turn = self._open(event.turn, "turn/abort")
        self._take(event.removed, "turn/abort")
        if turn.abort_cause is None:
            self.turn = attrs.evolve(turn, abort_cause=event.cause)
        self.awake = False

    def _end(self, event: TurnEnded) -> None:
        turn = self._open(event.turn, "turn/end")
        if event.redeliver and turn.abort_cause is not None:
            raise CorruptLog("turn/end: a turn that was cancelled is not redelivered")
        if event.redeliver:
            self.redelivery = Redelivery(turn.claimed, turn.attempt + 1)
        self.turn = None

    def _note(self, event: TurnNoted) -> None:
        self._open(event.turn, "turn/note")

    def _schedule(self, event: ScheduleChanged) -> None:
        self.reminders = fold(
            self.reminders, event.payload, seq=self.length, change=event.change, fixed_rate=self.fixed_rate
        )

    def _pass(self, _: Ignored) -> None:
        """Change nothing."""

    def _inherit(self, event: Event) -> None:
        turn = self.turn
        if isinstance(event, TurnStarted):
            self._may_start(event)
            turn = OpenTurn(event.turn, ())
        elif isinstance(event, TurnEnded):
            self._open(event.turn, "turn/end")
            turn = None
        if turn is not None and self.length + 1 == self.seed_length:
            raise CorruptLog("the inherited prefix ends inside an open turn; a fork is cut outside one")
        self.turn = turn
        self.turns = turn.number if turn else self.turns

    _HANDLERS: ClassVar[dict[type[Any], Callable[[SessionState, Any], None]]] = {
        Message: _insert,
        MessagesRemoved: _remove,
        MessageReplaced: _replace,
        TurnStarted: _start,
        StepClaimed: _step,
        TurnAborted: _abort,
        TurnEnded: _end,
        TurnNoted: _note,
        ScheduleChanged: _schedule,
        Ignored: _pass,
    }


def replay(records: Iterable[EventRecord], *, seed_length: int = 0, fixed_rate: bool = True) -> SessionState:
    """Return the state of a session whose whole log is `records`.

    Raises:
        CorruptLog: an event cannot be read, or cannot follow those before it; `seq` says which. Or there are
            fewer than `seed_length`.
    """
    state = SessionState(seed_length=seed_length, fixed_rate=fixed_rate)
    for record in records:
        apply_record(state, record)
    check_inherited(state)
    return state


def check_inherited(state: SessionState) -> None:
    """Return if the log has all the events it was made with.

    Raises:
        CorruptLog: it ends before.
    """
    if state.length < state.seed_length:
        raise CorruptLog(f"the log ends before the {state.seed_length} events it inherited", state.length)


def apply_record(state: SessionState, record: EventRecord) -> Event:
    """Apply the next event of the log, given as a store keeps it, and return it.

    Raises:
        CorruptLog: it cannot be read or cannot follow; the state is as it was.
    """
    try:
        event = decode(record)
    except CorruptLog as error:
        raise error.at(state.length) from error
    state.apply(event)
    return event


def index_of(state: SessionState) -> tuple[int | None, bool]:
    """Return what a host must know to wake the session: `(due_millis, runnable)`.

    `due_millis` is the earliest target of an active reminder, in milliseconds since the epoch, None
    without one; `runnable` is True while a turn is open or the inbox is a reason to run.
    """
    return state.reminders.earliest_millis(), state.turn is not None or state.has_reason_to_run


def _ids(messages: tuple[Message, ...]) -> tuple[str, ...]:
    return tuple(message.id for message in messages)


__all__ = ["OpenTurn", "Redelivery", "SessionState", "apply_record", "index_of", "replay"]
