from __future__ import annotations

import sys

import attrs
import pytest

from whenidle_clock.instants import parse_instant, to_millis
from whenidle_protocol import inbox as inboxes
from whenidle_protocol.errors import CorruptLog, UnknownEvent
from whenidle_protocol.events import (
    Event,
    EventRecord,
    Ignored,
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
    encode,
)
from whenidle_protocol.reminder_state import NO_REMINDERS
from whenidle_protocol.schedule_change import AtReminder, Create, EveryReminder, encode_change
from whenidle_protocol.session_state import OpenTurn, Redelivery, SessionState, apply_record, index_of, replay

from .observing import seen

DUE = parse_instant("2026-01-01T00:00:00.000Z")


def turn(id_: str, *, wake: bool = True) -> Message:
    """Return a next-turn message."""
    return Message(id_, Lane.NEXT_TURN, wake, f"text of {id_}", Source.USER)


def step(id_: str, *, wake: bool = True) -> Message:
    """Return a next-step message."""
    return Message(id_, Lane.NEXT_STEP, wake, f"text of {id_}", Source.USER)


def after(*events: Event, seed_length: int = 0) -> SessionState:
    """Return the state of a session whose log these events are."""
    return replay([encode(event, 0) for event in events], seed_length=seed_length)


# The inbox --------------------------------------------------------------------------------


def test_messages_wait_in_order_lane_by_lane() -> None:
    """Followups in one list, steers and injections in the other (SPEC 2.2)."""
    state = after(turn("a"), step("b", wake=False), turn("c"), step("d"))
    assert state.inbox.next_turn == (turn("a"), turn("c"))
    assert state.inbox.next_step == (step("b", wake=False), step("d"))
    assert [message.id for message in state.inbox] == ["b", "d", "a", "c"]
    assert len(state.inbox) == 4
    assert "a" in state.inbox
    assert "x" not in state.inbox


def test_an_injection_does_not_wake() -> None:
    """It waits for the next turn or step, whoever causes that."""
    state = after(step("a", wake=False))
    assert not state.has_reason_to_run
    assert index_of(state) == (None, False)
    state.apply(turn("b"))
    assert state.has_reason_to_run
    assert index_of(state) == (None, True)


def test_a_waking_message_that_is_removed_is_no_reason_to_run() -> None:
    """The latch alone wakes nobody."""
    state = after(step("a", wake=False), turn("b"), MessagesRemoved(("b",)))
    assert state.awake
    assert not state.has_reason_to_run


def test_a_replaced_message_keeps_its_place() -> None:
    """Only its text is new."""
    state = after(turn("a"), turn("b"), step("c"), MessageReplaced("a", "new"), MessageReplaced("c", "newer"))
    assert [message.text for message in state.inbox.next_turn] == ["new", "text of b"]
    assert state.inbox.next_step == (attrs.evolve(step("c"), text="newer"),)


def test_an_empty_inbox_is_the_shared_one() -> None:
    """An agent with nothing to do holds no lists, before and after it had messages."""
    assert SessionState().inbox is inboxes.EMPTY
    state = after(turn("a"), MessagesRemoved(("a",)))
    assert state.inbox is inboxes.EMPTY
    assert len(inboxes.EMPTY) == 0


def test_a_fresh_state_is_small() -> None:
    """Idle agents are data: a state of their own takes less than 150 bytes."""
    state = SessionState()
    assert sys.getsizeof(state) < 150
    assert state.reminders is NO_REMINDERS


def test_a_state_that_holds_nothing_is_its_two_counters() -> None:
    """So that an idle agent may keep those alone; anything pending, open or ever reminded of is more."""
    reminder = ScheduleChanged(encode_change(Create(AtReminder("schedule-1", "p", DUE))))
    state = after(turn("a"), TurnStarted(1, ("a",), 1), TurnEnded(1, Outcome.COMPLETED))
    assert state.is_blank
    again = SessionState.blank(length=3, turns=1, seed_length=0, fixed_rate=True)
    again.apply(turn("b"))
    state.apply(turn("b"))
    assert seen(again) == seen(state)
    assert not state.is_blank
    state.apply(TurnStarted(2, ("b",), 1))
    assert not state.is_blank
    state.apply(TurnEnded(2, Outcome.INTERRUPTED, redeliver=True))
    assert not state.is_blank
    assert not after(reminder).is_blank
    assert not after(ScheduleChanged(None)).is_blank


# Turns ------------------------------------------------------------------------------------


def test_a_turn_takes_next_step_and_one_next_turn_message() -> None:
    """Exactly one of next-turn, after everything in next-step."""
    state = after(turn("a"), step("b"), turn("c"), step("d", wake=False))
    start = TurnStarted(1, ("b", "d", "a"), 1)
    assert state.next_claim() == start
    state.apply(start)
    assert state.turn == OpenTurn(1, (step("b"), step("d", wake=False), turn("a")))
    assert state.inbox.next_turn == (turn("c"),)
    assert (state.turns, index_of(state)) == (1, (None, True))


def test_a_turn_without_next_turn_messages_takes_next_step_alone() -> None:
    """A steer is a reason of its own."""
    state = after(step("a"))
    assert state.next_claim() == TurnStarted(1, ("a",), 1)


def test_with_nothing_to_take_no_turn_starts() -> None:
    """There is no claim, and none is accepted."""
    state = SessionState()
    assert state.next_claim() is None
    with pytest.raises(CorruptLog, match="takes"):
        state.apply(TurnStarted(1, ("a",), 1))


def test_between_steps_a_turn_takes_next_step_only() -> None:
    """What it takes is part of the turn; next-turn messages wait for the next."""
    state = after(turn("a"), TurnStarted(1, ("a",), 1), turn("b"), step("c"), StepClaimed(1, ("c",)))
    assert state.turn == OpenTurn(1, (turn("a"), step("c")))
    assert state.inbox.next_turn == (turn("b"),)
    assert state.inbox.next_step == ()


def test_a_finished_turn_leaves_what_waits_as_the_next_reason() -> None:
    """Turn after turn until no waking message is left."""
    state = after(
        turn("a"),
        turn("b"),
        TurnStarted(1, ("a",), 1),
        TurnNoted(1, {"exit": 0}),
        TurnEnded(1, Outcome.COMPLETED),
    )
    assert state.turn is None
    assert state.has_reason_to_run
    state.apply(TurnStarted(2, ("b",), 1))
    state.apply(TurnEnded(2, Outcome.ERROR, "boom"))
    assert index_of(state) == (None, False)
    assert state.turns == 2


def test_an_interrupted_turn_is_given_again_with_its_messages() -> None:
    """All it had taken, first and exactly, with the attempt counted; others wait (SPEC 4)."""
    state = after(
        turn("a"),
        TurnStarted(1, ("a",), 1),
        step("b"),
        StepClaimed(1, ("b",)),
        TurnEnded(1, Outcome.INTERRUPTED, redeliver=True),
        step("c"),
    )
    assert state.redelivery == Redelivery((turn("a"), step("b")), 2)
    assert state.next_claim() == TurnStarted(2, ("a", "b"), 2)
    state.apply(TurnStarted(2, ("a", "b"), 2))
    assert state.turn == OpenTurn(2, (turn("a"), step("b")), 2)
    assert state.redelivery is None
    assert state.inbox.next_step == (step("c"),)
    state.apply(TurnEnded(2, Outcome.INTERRUPTED, redeliver=True))
    assert state.next_claim() == TurnStarted(3, ("a", "b"), 3)


def test_an_interrupted_turn_that_is_not_redelivered_is_over() -> None:
    """At most once: its messages are gone."""
    state = after(turn("a"), TurnStarted(1, ("a",), 1), TurnEnded(1, Outcome.INTERRUPTED))
    assert index_of(state) == (None, False)


def test_a_redelivery_is_a_reason_to_run_even_after_the_latch_was_cleared() -> None:
    """Its messages were taken before; nothing else has to wake the agent."""
    state = after(turn("a", wake=False), TurnStarted(1, ("a",), 1), TurnEnded(1, Outcome.INTERRUPTED, redeliver=True))
    assert not state.awake
    assert state.has_reason_to_run


def test_a_cancel_empties_the_inbox_and_clears_the_latch() -> None:
    """The turn stays open until its outcome; what caused the end is kept with it (SPEC 2.5)."""
    state = after(turn("a"), turn("b"), step("c"), TurnStarted(1, ("c", "a"), 1), TurnAborted(1, "user", ("b",)))
    assert state.turn == OpenTurn(1, (step("c"), turn("a")), 1, "user")
    assert not state.awake
    assert state.inbox is inboxes.EMPTY
    state.apply(TurnAborted(1, "disposed", ()))
    assert state.turn == OpenTurn(1, (step("c"), turn("a")), 1, "user")
    state.apply(TurnEnded(1, Outcome.ABORTED, "user"))
    assert index_of(state) == (None, False)


def test_what_a_cancel_keeps_waits_for_the_next_waking_message() -> None:
    """And waking input that lands after the cancel is remembered and runs (SPEC 2.5)."""
    state = after(turn("a"), turn("b"), TurnStarted(1, ("a",), 1), TurnAborted(1, "user", ()))
    assert not state.has_reason_to_run
    state.apply(turn("c"))
    state.apply(TurnEnded(1, Outcome.ABORTED, "user"))
    assert state.has_reason_to_run
    assert state.next_claim() == TurnStarted(2, ("b",), 1)


BASE: tuple[Event, ...] = (turn("a"), turn("b"), step("c"), TurnStarted(1, ("c", "a"), 1))


@pytest.mark.parametrize(
    ("before", "event", "why"),
    [
        ((turn("a"),), turn("a"), "inbox/insert: 'a' is pending already"),
        ((turn("a"),), step("a"), "inbox/insert: 'a' is pending already"),
        (BASE, turn("a"), "inbox/insert: a turn has taken 'a' and not ended"),
        (
            (*BASE, TurnEnded(1, Outcome.INTERRUPTED, redeliver=True)),
            turn("a"),
            "inbox/insert: a turn has taken 'a' and not ended",
        ),
        (BASE, MessagesRemoved(("b", "x")), "inbox/remove: no message 'x' is pending"),
        (BASE, MessagesRemoved(("a",)), "inbox/remove: no message 'a' is pending"),
        (BASE, MessageReplaced("a", "x"), "inbox/replace: no message 'a' is pending"),
        (BASE, TurnStarted(2, ("b",), 1), "turn/start: turn 1 is still open"),
        ((turn("a"),), TurnStarted(2, ("a",), 1), "turn/start: number 2 follows turn 0"),
        (
            (turn("a"), turn("b")),
            TurnStarted(1, ("b",), 1),
            r"takes \['b'\] as attempt 1; due are \['a'\] as",
        ),
        ((turn("a"), step("b")), TurnStarted(1, ("a", "b"), 1), r"due are \['b', 'a'\] as attempt 1"),
        ((turn("a"),), TurnStarted(1, ("a",), 2), r"as attempt 2; due are \['a'\] as attempt 1"),
        (
            (*BASE, TurnEnded(1, Outcome.INTERRUPTED, redeliver=True)),
            TurnStarted(2, ("b",), 1),
            r"due are \['c', 'a'\] as attempt 2",
        ),
        ((), StepClaimed(1, ("a",)), "turn/claim: turn 1 is not open"),
        (BASE, StepClaimed(2, ("a",)), "turn/claim: turn 2 is not open"),
        (BASE, StepClaimed(1, ("b",)), r"turn/claim: takes \['b'\]; next-step holds \[\]"),
        ((*BASE, step("d"), step("e")), StepClaimed(1, ("e", "d")), r"next-step holds \['d', 'e'\]"),
        (BASE, TurnAborted(2, "user", ()), "turn/abort: turn 2 is not open"),
        (BASE, TurnAborted(1, "user", ("a",)), "turn/abort: no message 'a' is pending"),
        (BASE, TurnEnded(2, Outcome.COMPLETED), "turn/end: turn 2 is not open"),
        ((turn("a"),), TurnEnded(1, Outcome.COMPLETED), "turn/end: turn 1 is not open"),
        (
            (*BASE, TurnAborted(1, "user", ())),
            TurnEnded(1, Outcome.INTERRUPTED, redeliver=True),
            "turn/end: a turn that was cancelled is not redelivered",
        ),
        (BASE, TurnNoted(2, 0), "turn/note: turn 2 is not open"),
    ],
)
def test_an_event_that_cannot_follow_raises_and_changes_nothing(
    before: tuple[Event, ...], event: Event, why: str
) -> None:
    """The complaint names the event's number, type and what was due instead."""
    state = after(*before)
    told = seen(state)
    with pytest.raises(CorruptLog, match=why) as caught:
        state.apply(event)
    assert caught.value.seq == len(before)
    assert seen(state) == told


# Reminders and other events ---------------------------------------------------------------


def test_reminders_are_folded_with_the_rest() -> None:
    """The index holds their earliest target."""
    state = after(ScheduleChanged(encode_change(Create(AtReminder("schedule-1", "p", DUE)))))
    assert index_of(state) == (to_millis(DUE), False)
    assert len(state.reminders) == 1


def test_a_corrupt_schedule_change_stops_the_reminders_alone() -> None:
    """The agent keeps working: its inbox and turns go on (SPEC 5.3)."""
    good = ScheduleChanged(encode_change(Create(AtReminder("schedule-1", "p", DUE))))
    state = after(turn("a"), good, ScheduleChanged({"version": 2}), turn("b"))
    assert state.reminders.corrupt is not None
    assert state.reminders.corrupt.seq == 2
    assert index_of(state) == (None, True)
    assert state.length == 4


def test_without_fixed_rates_an_every_reminder_corrupts_the_schedule() -> None:
    """The host's choice of protocol goes into the fold."""
    record = encode(ScheduleChanged(encode_change(Create(EveryReminder("schedule-1", "p", 300, DUE)))), 0)
    assert replay([record]).reminders.corrupt is None
    assert replay([record], fixed_rate=False).reminders.corrupt is not None


def test_ignorable_events_of_other_writers_count_and_do_nothing() -> None:
    """They keep their place in the numbering."""
    assert after(Ignored("x/y", {}), turn("a")).length == 2


def test_a_record_that_cannot_be_read_is_named_by_number() -> None:
    """Both damage and events of a newer version, and the state is as it was."""
    state = after(turn("a"))
    told = seen(state)
    with pytest.raises(CorruptLog, match=r"^event 1: inbox/remove: required field missing"):
        apply_record(state, EventRecord("inbox/remove", 0, "{}"))
    with pytest.raises(UnknownEvent, match=r"^event 1: type 'task/create' is not known"):
        apply_record(state, EventRecord("task/create", 0, "{}"))
    assert seen(state) == told
    assert apply_record(state, encode(turn("b"), 0)) == turn("b")


# Forks ------------------------------------------------------------------------------------

PARENT: tuple[Event, ...] = (
    turn("a"),
    turn("b"),
    TurnStarted(1, ("a",), 1),
    ScheduleChanged(encode_change(Create(AtReminder("schedule-1", "p", DUE)))),
    TurnEnded(1, Outcome.INTERRUPTED, redeliver=True),
)


def test_a_fork_owns_nothing_of_its_prefix() -> None:
    """No message, no reminder, no redelivery; turns go on counting (SPEC 3.1)."""
    state = after(*PARENT, seed_length=len(PARENT))
    assert index_of(state) == (None, False)
    assert state.reminders is NO_REMINDERS
    assert (state.turns, state.length) == (1, 5)
    state.apply(turn("a"))
    state.apply(TurnStarted(2, ("a",), 1))
    assert state.turn == OpenTurn(2, (turn("a"),))


def test_after_its_prefix_a_fork_owns_what_it_does() -> None:
    """Ids of the prefix are free again, its reminders are not there to change."""
    own = ScheduleChanged(encode_change(Create(AtReminder("schedule-1", "q", DUE))))
    state = after(*PARENT, own, seed_length=len(PARENT))
    assert [record.prompt for record in state.reminders] == ["q"]


@pytest.mark.parametrize("cut", [3, 4])
def test_a_fork_inside_an_open_turn_is_refused(cut: int) -> None:
    """Whether the last inherited event opens the turn or lies inside it."""
    with pytest.raises(CorruptLog, match="inherited prefix ends inside an open turn") as caught:
        after(*PARENT, seed_length=cut)
    assert caught.value.seq == cut - 1


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ((TurnStarted(2, ("a",), 1),), "number 2 follows turn 0"),
        ((TurnStarted(1, ("a",), 1), TurnStarted(2, ("b",), 1)), "turn 1 is still open"),
        ((TurnEnded(1, Outcome.COMPLETED),), "turn 1 is not open"),
    ],
)
def test_turns_of_a_prefix_must_follow_each_other(prefix: tuple[Event, ...], why: str) -> None:
    """Because numbering goes on from them."""
    with pytest.raises(CorruptLog, match=why):
        after(*prefix, turn("a"), seed_length=9)


def test_a_log_shorter_than_its_prefix_is_corrupt() -> None:
    """Something was lost."""
    with pytest.raises(CorruptLog, match=r"^event 2: the log ends before the 3 events it inherited"):
        after(turn("a"), turn("b"), seed_length=3)
