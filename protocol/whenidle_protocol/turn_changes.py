"""What an agent may do to its inbox and its turns, as decisions: state in, events and an answer out.

Each returns the events to commit, which may follow the state's log, and what to answer once they
are durable. No events means that nothing is to be written. Asked again after its events became
durable (a commit whose outcome was unknown, SPEC 3.2), a decision about a turn answers the same and
writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from whenidle_protocol.events import (
    Lane,
    Message,
    MessageReplaced,
    MessagesRemoved,
    Outcome,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
)

if TYPE_CHECKING:
    from typing import Any

    from whenidle_protocol.events import Event
    from whenidle_protocol.session_state import OpenTurn, SessionState

T = TypeVar("T")
Decided: TypeAlias = tuple[tuple["Event", ...], T]


class NotPending(LookupError):
    """No pending message has that id."""


class TurnOver(LookupError):
    """That turn does not run any more, or was cancelled."""


def insert(state: SessionState, lane: Lane, text: str, source: Source, *, wake: bool) -> Decided[Message]:
    """Put a message at the end of a lane, under an id no other message of the log has."""
    message = Message(f"m{state.length}", lane, wake, text, source)
    return (message,), message


def remove(state: SessionState, message_id: str) -> Decided[None]:
    """Take a pending message out.

    Raises:
        NotPending: there is none of that id.
    """
    _pending(state, message_id)
    return (MessagesRemoved((message_id,)),), None


def replace(state: SessionState, message_id: str, text: str) -> Decided[None]:
    """Give a pending message another text; it keeps its place.

    Raises:
        NotPending: there is none of that id.
    """
    _pending(state, message_id)
    return (MessageReplaced(message_id, text),), None


def close_orphan(state: SessionState, *, redeliver: bool) -> Decided[TurnEnded | None]:
    """End a turn that a log left open though nothing runs it: its process died (SPEC 2.5, 4); answer how, if any."""
    turn = state.turn
    if turn is None:
        return (), None
    if turn.abort_cause is not None:
        end = TurnEnded(turn.number, Outcome.ABORTED, turn.abort_cause)
    else:
        end = TurnEnded(turn.number, Outcome.INTERRUPTED, redeliver=redeliver)
    return (end,), end


def begin_turn(state: SessionState) -> Decided[None]:
    """Start a turn if there is a reason to; the state's open turn is then the one to run."""
    if state.turn is not None or not state.has_reason_to_run:
        return (), None
    claim = state.next_claim()
    return ((claim,) if claim else ()), None


def claim_step(state: SessionState, number: int, handed: int) -> Decided[tuple[Message, ...]]:
    """Let turn `number` take everything in next-step, and answer what it took beyond its first `handed` messages.

    Raises:
        TurnOver: it is not the turn that runs.
    """
    turn = _running(state, number)
    waiting = state.inbox.next_step
    events = (StepClaimed(number, tuple(message.id for message in waiting)),) if waiting else ()
    return events, (*turn.claimed[handed:], *waiting)


def note(state: SessionState, number: int, data: Any) -> Decided[None]:
    """Keep a record of turn `number`.

    Raises:
        TurnOver: it is not the turn that runs.
    """
    if state.turn is None or state.turn.number != number:
        raise TurnOver(f"turn {number} has ended")
    return (TurnNoted(number, data),), None


def abort_turn(state: SessionState, cause: str, *, keep_inbox: bool) -> Decided[None]:
    """Accept a cancel of what runs, a turn or not, and unless `keep_inbox` empty the inbox (SPEC 2.5)."""
    removed = () if keep_inbox else tuple(message.id for message in state.inbox)
    if state.turn is None:
        return ((MessagesRemoved(removed),) if removed else ()), None
    return (TurnAborted(state.turn.number, cause, removed),), None


def end_turn(state: SessionState, end: TurnEnded) -> Decided[TurnEnded]:
    """Give the turn its outcome; a cancel that was accepted for it decides it (SPEC 2.5)."""
    turn = state.turn
    if turn is None or turn.number != end.turn:
        return (), end
    if turn.abort_cause is not None:
        end = TurnEnded(end.turn, Outcome.ABORTED, turn.abort_cause)
    return (end,), end


def _pending(state: SessionState, message_id: object) -> None:
    # The caller may have passed anything: what names no message is that and nothing worse.
    if not isinstance(message_id, str) or message_id not in state.inbox:
        raise NotPending(f"no pending message has the id {str(message_id)[:100]!r}")


def _running(state: SessionState, number: int) -> OpenTurn:
    turn = state.turn
    if turn is None or turn.number != number:
        raise TurnOver(f"turn {number} has ended")
    if turn.abort_cause is not None:
        raise TurnOver(f"turn {number} was cancelled: {turn.abort_cause}")
    return turn
