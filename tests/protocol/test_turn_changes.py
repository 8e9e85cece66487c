"""Each decision about inbox and turns, as a value: what is to be written, what is answered, what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from whenidle_protocol import turn_changes
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
    TurnStarted,
)
from whenidle_protocol.session_state import SessionState
from whenidle_protocol.turn_changes import NotPending, TurnOver

if TYPE_CHECKING:
    from whenidle_protocol.turn_changes import Decided


def durable(state: SessionState, decided: Decided[Any]) -> Any:
    """Let the events of a decision be in the log, and return its answer."""
    events, answer = decided
    for event in events:
        state.apply(event)
    return answer


def insert(state: SessionState, text: str, lane: Lane = Lane.NEXT_TURN, *, wake: bool = True) -> Message:
    """Put a message into the log, and return it."""
    message = durable(state, turn_changes.insert(state, lane, text, Source.USER, wake=wake))
    assert isinstance(message, Message)
    return message


@pytest.fixture
def idle() -> SessionState:
    """Return a session without events."""
    return SessionState()


@pytest.fixture
def running() -> SessionState:
    """Return a session whose turn 1 runs with message m0; one message of each lane waits."""
    state = SessionState()
    insert(state, "x")
    durable(state, turn_changes.begin_turn(state))
    insert(state, "later")
    insert(state, "now", Lane.NEXT_STEP, wake=False)
    return state


def test_an_insertion_names_its_message_after_its_place(idle: SessionState) -> None:
    """The id is new to the log; the message is the event and the answer."""
    events, message = turn_changes.insert(idle, Lane.NEXT_STEP, "x", Source.SCHEDULE, wake=False)
    assert events == (message,) == (Message("m0", Lane.NEXT_STEP, False, "x", Source.SCHEDULE),)
    assert [insert(idle, "x").id for _ in range(3)] == ["m0", "m1", "m2"]


def test_a_pending_message_can_be_removed_or_replaced(running: SessionState) -> None:
    """One event each, and nothing to answer."""
    assert turn_changes.remove(running, "m2") == ((MessagesRemoved(("m2",)),), None)
    assert turn_changes.replace(running, "m3", "new") == ((MessageReplaced("m3", "new"),), None)


@pytest.mark.parametrize("name", ["m0", "m1", "", None, 5, [], "m" * 1000])
def test_what_is_not_pending_can_be_neither(running: SessionState, name: Any) -> None:
    """Taken, unknown, or no id at all: NotPending, in few words."""
    with pytest.raises(NotPending) as caught:
        turn_changes.remove(running, name)
    assert len(str(caught.value)) < 200
    with pytest.raises(NotPending):
        turn_changes.replace(running, name, "new")


def test_an_orphan_is_interrupted(running: SessionState) -> None:
    """A turn that nothing runs any more is interrupted, and redelivered if that is wanted."""
    for redeliver in (True, False):
        end = TurnEnded(1, Outcome.INTERRUPTED, redeliver=redeliver)
        assert turn_changes.close_orphan(running, redeliver=redeliver) == ((end,), end)


def test_an_orphan_that_was_cancelled_is_aborted(running: SessionState) -> None:
    """An accepted cancel outlives the process, and its messages are not delivered again."""
    durable(running, turn_changes.abort_turn(running, "stop", keep_inbox=True))
    assert turn_changes.close_orphan(running, redeliver=True)[0] == (TurnEnded(1, Outcome.ABORTED, "stop"),)


def test_without_an_open_turn_there_is_no_orphan(running: SessionState) -> None:
    """Asked again after it was closed, nothing is written."""
    durable(running, turn_changes.close_orphan(running, redeliver=True))
    assert turn_changes.close_orphan(running, redeliver=True) == ((), None)


def test_a_turn_begins_with_a_reason_only(idle: SessionState) -> None:
    """No message, or none that wakes, is none; then a turn takes all of next-step and one of next-turn."""
    assert turn_changes.begin_turn(idle) == ((), None)
    insert(idle, "fyi", Lane.NEXT_STEP, wake=False)
    assert turn_changes.begin_turn(idle) == ((), None)
    insert(idle, "a")
    insert(idle, "b")
    assert turn_changes.begin_turn(idle) == ((TurnStarted(1, ("m0", "m1"), 1),), None)


def test_a_turn_that_has_begun_is_not_begun_again(running: SessionState) -> None:
    """Asked again after an uncertain commit, nothing is written."""
    assert turn_changes.begin_turn(running) == ((), None)


def test_a_redelivery_begins_with_the_same_messages(running: SessionState) -> None:
    """The interrupted turn's messages, steps included, with the next attempt; what waits keeps waiting."""
    durable(running, turn_changes.claim_step(running, 1, 1))
    durable(running, turn_changes.close_orphan(running, redeliver=True))
    assert turn_changes.begin_turn(running) == ((TurnStarted(2, ("m0", "m3"), 2),), None)


def test_a_step_takes_next_step_and_answers_what_is_new(running: SessionState) -> None:
    """One event with all ids; the messages in order."""
    events, messages = turn_changes.claim_step(running, 1, 1)
    assert events == (StepClaimed(1, ("m3",)),)
    assert [message.text for message in messages] == ["now"]


def test_a_step_answers_again_what_was_never_handed_over(running: SessionState) -> None:
    """After an uncertain claim that was kept, the messages are answered without an event."""
    durable(running, turn_changes.claim_step(running, 1, 1))
    events, messages = turn_changes.claim_step(running, 1, 1)
    assert (events, [message.text for message in messages]) == ((), ["now"])
    assert turn_changes.claim_step(running, 1, 2) == ((), ())


def test_a_step_belongs_to_the_turn_that_runs(running: SessionState) -> None:
    """Another turn, a cancelled one and one that has ended take nothing."""
    with pytest.raises(TurnOver, match="turn 2 has ended"):
        turn_changes.claim_step(running, 2, 0)
    durable(running, turn_changes.abort_turn(running, "stop", keep_inbox=True))
    with pytest.raises(TurnOver, match="turn 1 was cancelled: stop"):
        turn_changes.claim_step(running, 1, 1)
    durable(running, turn_changes.end_turn(running, TurnEnded(1, Outcome.COMPLETED)))
    with pytest.raises(TurnOver, match="turn 1 has ended"):
        turn_changes.claim_step(running, 1, 1)


def test_a_note_belongs_to_the_turn_that_runs_or_unwinds(running: SessionState) -> None:
    """A cancelled turn may still say something; another or an ended one may not."""
    assert turn_changes.note(running, 1, {"a": 1}) == ((TurnNoted(1, {"a": 1}),), None)
    with pytest.raises(TurnOver):
        turn_changes.note(running, 2, None)
    durable(running, turn_changes.abort_turn(running, "stop", keep_inbox=True))
    durable(running, turn_changes.note(running, 1, "unwinding"))
    durable(running, turn_changes.end_turn(running, TurnEnded(1, Outcome.COMPLETED)))
    with pytest.raises(TurnOver):
        turn_changes.note(running, 1, None)


def test_a_cancel_of_a_turn_empties_the_inbox_in_the_same_event(running: SessionState) -> None:
    """Next-step first, as the inbox is read; kept, it is left alone."""
    assert turn_changes.abort_turn(running, "stop", keep_inbox=True)[0] == (TurnAborted(1, "stop", ()),)
    assert turn_changes.abort_turn(running, "stop", keep_inbox=False)[0] == (TurnAborted(1, "stop", ("m3", "m2")),)


def test_a_cancel_without_a_turn_only_empties_the_inbox(idle: SessionState) -> None:
    """Nothing is written if there is nothing to remove, or it is to be kept."""
    assert turn_changes.abort_turn(idle, "stop", keep_inbox=False) == ((), None)
    insert(idle, "x")
    assert turn_changes.abort_turn(idle, "stop", keep_inbox=True) == ((), None)
    assert turn_changes.abort_turn(idle, "stop", keep_inbox=False) == ((MessagesRemoved(("m0",)),), None)


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.ERROR, Outcome.INTERRUPTED])
def test_an_outcome_is_written_as_it_was(running: SessionState, outcome: Outcome) -> None:
    """Without a cancel the turn's own outcome counts, and is answered."""
    end = TurnEnded(1, outcome, "why")
    assert turn_changes.end_turn(running, end) == ((end,), end)


def test_a_cancel_that_was_accepted_decides_the_outcome(running: SessionState) -> None:
    """The cause is the cancel's, and nothing is redelivered."""
    durable(running, turn_changes.abort_turn(running, "stop", keep_inbox=False))
    end = TurnEnded(1, Outcome.ABORTED, "stop")
    interrupted = TurnEnded(1, Outcome.INTERRUPTED, "the host stops", redeliver=True)
    assert turn_changes.end_turn(running, interrupted) == ((end,), end)


def test_an_outcome_is_written_once(running: SessionState) -> None:
    """Asked again after an uncertain commit, also when the next turn has begun, nothing is written."""
    end = TurnEnded(1, Outcome.COMPLETED)
    durable(running, turn_changes.end_turn(running, end))
    assert turn_changes.end_turn(running, end) == ((), end)
    durable(running, turn_changes.begin_turn(running))
    assert turn_changes.end_turn(running, end) == ((), end)
