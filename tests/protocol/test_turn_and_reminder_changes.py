from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from whenidle_protocol import reminder_changes, turn_changes
from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.events import (
    Event,
    Lane,
    Message,
    MessageReplaced,
    MessagesRemoved,
    Outcome,
    ScheduleChanged,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
)
from whenidle_protocol.reminders import Batch, OneShot, Wait
from whenidle_protocol.session_state import SessionState
from whenidle_protocol.tools import After, CreateRequest, DeleteRequest, Every
from whenidle_protocol.turn_changes import NotPending, TurnOver

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def session(*events: Event) -> SessionState:
    """Return the state of a session after these events."""
    state = SessionState()
    for event in events:
        state.apply(event)
    return state


def committed(state: SessionState, decided: tuple[tuple[Event, ...], Any]) -> Any:
    """Apply the events of a decision, as after their commit, and return its answer."""
    for event in decided[0]:
        state.apply(event)
    return decided[1]


def followup(state: SessionState, text: str = "hi") -> Message:
    """Put a waking next-turn message into the inbox."""
    message = committed(state, turn_changes.insert(state, Lane.NEXT_TURN, text, Source.USER, wake=True))
    assert isinstance(message, Message)
    return message


def running() -> SessionState:
    """Return a session whose turn 1 runs, with one message waiting in each lane."""
    state = session()
    followup(state)
    committed(state, turn_changes.begin_turn(state))
    followup(state, "later")
    committed(state, turn_changes.insert(state, Lane.NEXT_STEP, "now", Source.USER, wake=False))
    return state


# The inbox --------------------------------------------------------------------------------


def test_a_message_is_named_by_its_place_in_the_log() -> None:
    """So no two messages of a log share an id."""
    state = session()
    assert followup(state) == Message("m0", Lane.NEXT_TURN, True, "hi", Source.USER)
    assert followup(state).id == "m1"


def test_pending_messages_can_be_removed_and_replaced() -> None:
    """One event each."""
    state = session()
    followup(state)
    assert turn_changes.replace(state, "m0", "ho") == ((MessageReplaced("m0", "ho"),), None)
    assert turn_changes.remove(state, "m0") == ((MessagesRemoved(("m0",)),), None)


@pytest.mark.parametrize(
    "decide",
    [
        lambda state: turn_changes.remove(state, "m9"),
        lambda state: turn_changes.replace(state, "m9", "x"),
        lambda state: turn_changes.remove(state, "m0"),
    ],
)
def test_what_is_not_pending_cannot_be_changed(decide: Callable[[SessionState], Any]) -> None:
    """Neither an id that never was nor a message that a turn has taken."""
    with pytest.raises(NotPending, match=r"no pending message has the id 'm[09]'"):
        decide(running())


# Turns ------------------------------------------------------------------------------------


def test_a_turn_begins_when_there_is_a_reason() -> None:
    """Not without one, and not while one runs."""
    state = session()
    committed(state, turn_changes.insert(state, Lane.NEXT_STEP, "hint", Source.USER, wake=False))
    assert turn_changes.begin_turn(state) == ((), None)
    followup(state)
    assert turn_changes.begin_turn(state) == ((TurnStarted(1, ("m0", "m1"), 1),), None)
    committed(state, turn_changes.begin_turn(state))
    followup(state)
    assert turn_changes.begin_turn(state) == ((), None)


def test_a_running_turn_claims_next_step_and_keeps_notes() -> None:
    """With nothing in next-step it gets nothing and writes nothing."""
    state = running()
    events, messages = turn_changes.claim_step(state, 1, 1)
    assert events == (StepClaimed(1, ("m3",)),)
    assert [message.text for message in messages] == ["now"]
    committed(state, (events, messages))
    assert turn_changes.claim_step(state, 1, 2) == ((), ())
    assert turn_changes.note(state, 1, {"exit": 0}) == ((TurnNoted(1, {"exit": 0}),), None)


def test_a_turn_that_is_over_claims_and_notes_nothing() -> None:
    """A cancelled one may still keep a note, until its end."""
    state = running()
    with pytest.raises(TurnOver, match="turn 2 has ended"):
        turn_changes.claim_step(state, 2, 1)
    with pytest.raises(TurnOver, match="turn 2 has ended"):
        turn_changes.note(state, 2, None)
    committed(state, turn_changes.abort_turn(state, "user", keep_inbox=True))
    with pytest.raises(TurnOver, match="turn 1 was cancelled: user"):
        turn_changes.claim_step(state, 1, 1)
    assert turn_changes.note(state, 1, None) == ((TurnNoted(1, None),), None)


def test_a_cancel_empties_the_inbox_unless_told_to_keep_it() -> None:
    """In the same event as the abort; without a turn there is only the inbox to empty."""
    state = running()
    assert turn_changes.abort_turn(state, "user", keep_inbox=True) == ((TurnAborted(1, "user", ()),), None)
    abort = turn_changes.abort_turn(state, "user", keep_inbox=False)
    assert abort == ((TurnAborted(1, "user", ("m3", "m2")),), None)
    idle = session()
    assert turn_changes.abort_turn(idle, "user", keep_inbox=False) == ((), None)
    followup(idle)
    assert turn_changes.abort_turn(idle, "user", keep_inbox=False) == ((MessagesRemoved(("m0",)),), None)


def test_a_turn_gets_its_outcome_once() -> None:
    """An accepted cancel decides it; asked again, nothing is written."""
    state = running()
    completed = TurnEnded(1, Outcome.COMPLETED)
    assert turn_changes.end_turn(state, completed) == ((completed,), completed)
    committed(state, turn_changes.abort_turn(state, "user", keep_inbox=True))
    aborted = TurnEnded(1, Outcome.ABORTED, "user")
    assert turn_changes.end_turn(state, completed) == ((aborted,), aborted)
    committed(state, turn_changes.end_turn(state, completed))
    assert turn_changes.end_turn(state, completed) == ((), completed)


def test_a_turn_found_open_is_interrupted_or_was_cancelled() -> None:
    """A cancel that was durable is not undone by a crash; with no turn open nothing is written."""
    state = running()
    for redeliver in (True, False):
        interrupted = TurnEnded(1, Outcome.INTERRUPTED, redeliver=redeliver)
        assert turn_changes.close_orphan(state, redeliver=redeliver) == ((interrupted,), interrupted)
    committed(state, turn_changes.abort_turn(state, "user", keep_inbox=True))
    aborted = TurnEnded(1, Outcome.ABORTED, "user")
    assert turn_changes.close_orphan(state, redeliver=True) == ((aborted,), aborted)
    committed(state, turn_changes.close_orphan(state, redeliver=True))
    assert turn_changes.close_orphan(state, redeliver=True) == ((), None)


# Reminders --------------------------------------------------------------------------------


def test_a_reminder_is_created_and_deleted() -> None:
    """The answers are the tools'; deleting again finds none and writes nothing."""
    state = session()
    answer = committed(state, reminder_changes.create(state, CreateRequest("p", After(5)), NOW))
    assert answer["id"] == "schedule-1"
    assert answer["scheduledAt"] == "2026-01-01T00:00:05.000Z"
    deleted = committed(state, reminder_changes.delete(state, DeleteRequest("schedule-1")))
    assert deleted == {"id": "schedule-1", "deleted": True}
    assert reminder_changes.delete(state, DeleteRequest("schedule-1")) == (
        (),
        {"id": "schedule-1", "deleted": False, "code": "schedule_not_found"},
    )


def test_a_corrupt_log_takes_no_change() -> None:
    """The tools answer corrupt_schedule_log and nothing is rewritten."""
    state = session(ScheduleChanged({"version": 2}))
    with pytest.raises(ToolError) as created:
        reminder_changes.create(state, CreateRequest("p", After(5)), NOW)
    with pytest.raises(ToolError) as deleted:
        reminder_changes.delete(state, DeleteRequest("schedule-1"))
    codes = {created.value.code, deleted.value.code}
    assert codes == {ReminderCode.CORRUPT_SCHEDULE_LOG}


def test_what_is_due_enters_the_inbox_with_its_dispatch() -> None:
    """One message and the changes that record it, together (SPEC 4); afterwards there is only to wait."""
    state = session()
    for rule in (After(5), Every(300), Every(300)):
        committed(state, reminder_changes.create(state, CreateRequest("p", rule), NOW))
    assert reminder_changes.deliver(state, NOW) == ((), Wait(NOW + timedelta(seconds=5)))
    later = NOW + timedelta(seconds=300)
    for kind, texts, changes in ((OneShot, "[SCHEDULE REMINDER]", 1), (Batch, "[SCHEDULE REMINDER BATCH]", 2)):
        length = state.length
        (message, *dispatches), decision = reminder_changes.deliver(state, later)
        assert isinstance(decision, kind)
        assert isinstance(message, Message)
        assert message.text.startswith(f"{texts}\n")
        assert (message.id, message.lane, message.wake, message.source) == (
            f"m{length}",
            Lane.NEXT_TURN,
            True,
            Source.SCHEDULE,
        )
        assert len(dispatches) == changes
        committed(state, ((message, *dispatches), None))
    assert reminder_changes.deliver(state, later) == ((), Wait(NOW + timedelta(seconds=600)))
