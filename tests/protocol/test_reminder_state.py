from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from whenidle_clock.instants import MAX_INSTANT, to_millis
from whenidle_protocol.errors import CorruptLog, ReminderCode, ToolError
from whenidle_protocol.reminder_state import NO_REMINDERS, ReminderState, apply, fold
from whenidle_protocol.reminders import Batch, BatchItem, Nothing, OneShot, Wait, decide, dispatches
from whenidle_protocol.rules import every
from whenidle_protocol.schedule_change import (
    AfterReminder,
    AtReminder,
    Change,
    Create,
    Delete,
    Dispatch,
    EveryReminder,
    Reminder,
    encode_change,
)
from whenidle_protocol.seen_ids import SeenIds

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def in_seconds(seconds: int) -> datetime:
    """Return the instant that many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def at(number: int, seconds: int) -> AtReminder:
    """Return the one-shot `schedule-<number>`, due that many seconds after NOW."""
    return AtReminder(f"schedule-{number}", "p", in_seconds(seconds))


def every_five(number: int, seconds: int) -> EveryReminder:
    """Return the five-minute reminder `schedule-<number>`, next due that many seconds after NOW."""
    return EveryReminder(f"schedule-{number}", "p", 300, in_seconds(seconds))


def folded(*changes: Change) -> ReminderState:
    """Return the state after these changes."""
    state = NO_REMINDERS
    for change in changes:
        state = apply(state, change)
    return state


# Ids --------------------------------------------------------------------------------------


def test_the_next_id_is_the_smallest_free_one_above_the_count() -> None:
    """A number that another id took is passed over, and never given again."""
    seen = SeenIds()
    assert seen.next() == "schedule-1"
    seen.add("schedule-5")
    assert seen.next() == "schedule-2"
    seen.add("schedule-2")
    seen.add("schedule-3")
    assert seen.next() == "schedule-4"
    seen.add("schedule-4")
    assert seen.next() == "schedule-6"
    assert len(seen) == 4
    seen.add("schedule-1")
    assert sorted(seen) == [f"schedule-{number}" for number in range(1, 6)]


@pytest.mark.parametrize(
    "id_", ["schedule-01", "schedule-", "schedule-x", "1", "schedule-²", "schedule-1 ", "schedule--1"]
)
def test_only_the_exact_spelling_is_the_same_id(id_: str) -> None:
    """An id that merely looks like a used number is another id."""
    seen = SeenIds()
    seen.add("schedule-1")
    assert id_ not in seen
    seen.add(id_)
    assert id_ in seen
    assert len(seen) == 2
    seen.add(id_)
    assert len(seen) == 2


def test_ids_in_order_cost_no_memory() -> None:
    """A hundred thousand reminders made and fired leave one number behind (CASES 38)."""
    seen = SeenIds()
    for _ in range(2_000):
        seen.add(seen.next())
    assert len(seen) == 2_000
    assert sys.getsizeof(seen._others) == sys.getsizeof({})


def test_a_hostile_id_is_looked_up_quickly() -> None:
    """Digits by the thousand are compared by length, not turned into a number."""
    seen = SeenIds()
    seen.add("schedule-1")
    assert "schedule-" + "9" * 100_000 not in seen


@given(st.lists(st.integers(1, 30) | st.sampled_from(["x", "schedule-007"]), max_size=40))
def test_seen_ids_are_a_plain_set(additions: list[Any]) -> None:
    """Compared with a set of strings, and the definition of the next id taken literally."""
    seen, model = SeenIds(), set[str]()
    for addition in additions:
        id_ = f"schedule-{addition}" if isinstance(addition, int) else addition
        assert (id_ in seen) == (id_ in model)
        seen.add(id_)
        model.add(id_)
        free = next(n for n in range(len(model) + 1, 100) if f"schedule-{n}" not in model)
        assert seen.next() == f"schedule-{free}"
        assert set(seen) == model
        assert len(seen) == len(model)


# The fold ---------------------------------------------------------------------------------


def test_active_reminders_are_listed_in_creation_order() -> None:
    """An every reminder keeps its place when it moves to its next target."""
    state = folded(Create(every_five(1, 10)), Create(at(2, 5)), Dispatch("schedule-1", in_seconds(700)))
    assert list(state) == [every_five(1, 910), at(2, 5)]
    assert len(state) == 2
    assert "schedule-1" in state
    assert "schedule-3" not in state
    assert state.next_id() == "schedule-3"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([Create(at(1, 5))], "creates 'schedule-1', an id that was used before"),
        ([Delete("schedule-9")], "deletes 'schedule-9', which is not active"),
        ([Dispatch("schedule-9")], "dispatches 'schedule-9', which is not active"),
        ([Dispatch("schedule-1", NOW)], "acceptedAt in a dispatch of 'schedule-1', a one-shot"),
        ([Dispatch("schedule-2")], "no acceptedAt in a dispatch of 'schedule-2'"),
        ([Dispatch("schedule-2", in_seconds(4))], "dispatch of 'schedule-2' was accepted before it was due"),
        ([Dispatch("schedule-1"), Create(at(1, 5))], "creates 'schedule-1', an id that was used before"),
        ([Delete("schedule-1"), Delete("schedule-1")], "deletes 'schedule-1', which is not active"),
    ],
)
def test_a_change_that_cannot_follow_raises_and_changes_nothing(changes: list[Change], why: str) -> None:
    """Reused ids, changes to what is not active, dispatches of the wrong shape (SPEC 5.3)."""
    state = folded(Create(at(1, 5)), Create(every_five(2, 5)), *changes[:-1])
    before = list(state), state.next_id(), state.earliest_millis()
    with pytest.raises(CorruptLog, match=why):
        apply(state, changes[-1])
    assert (list(state), state.next_id(), state.earliest_millis()) == before


def test_the_last_occurrence_of_all_ends_an_interval() -> None:
    """When no further target exists before year 10000 the reminder is over."""
    record = EveryReminder("schedule-1", "p", 300, MAX_INSTANT)
    assert list(folded(Create(record), Dispatch("schedule-1", MAX_INSTANT))) == []


def test_sessions_without_reminders_share_one_value() -> None:
    """Which no change ever touches, not even a bad one."""
    assert fold(NO_REMINDERS, encode_change(Create(at(1, 5))), seq=0) is not NO_REMINDERS
    with pytest.raises(CorruptLog):
        apply(NO_REMINDERS, Delete("schedule-1"))
    assert len(NO_REMINDERS) == 0
    assert len(NO_REMINDERS.seen) == 0
    assert NO_REMINDERS.next_id() == "schedule-1"
    NO_REMINDERS.check()


def test_a_corrupt_log_stays_corrupt_and_says_where() -> None:
    """Tools answer corrupt_schedule_log, nothing is due, later changes are not looked at."""
    state = fold(folded(Create(at(1, -5))), {"version": 2}, seq=4)
    assert str(state.corrupt) == "event 4: schedule/change: version is not 1 @ $.version"
    assert fold(state, encode_change(Create(at(2, 5))), seq=5) is state
    assert apply(state, Create(at(2, 5))) is state
    assert decide(state, NOW) == Nothing()
    assert list(state) == []
    with pytest.raises(ToolError) as error:
        state.check()
    assert error.value.code is ReminderCode.CORRUPT_SCHEDULE_LOG


@pytest.mark.parametrize("change", [Create(every_five(2, 5)), Dispatch("schedule-1", NOW)])
def test_the_one_shot_protocol_refuses_fixed_rates(change: Change) -> None:
    """With fixed_rate off an every record and an acceptedAt are corrupt (SPEC 5.4)."""
    state = folded(Create(at(1, 5)))
    with pytest.raises(CorruptLog, match="this host allows one-shots only"):
        apply(state, change, fixed_rate=False)
    assert fold(state, encode_change(change), seq=1, fixed_rate=False).corrupt is not None


def test_the_one_shot_protocol_allows_one_shots() -> None:
    """Everything without a fixed rate folds as before."""
    state = NO_REMINDERS
    for change in (Create(at(1, 5)), Create(at(2, 5)), Dispatch("schedule-1"), Delete("schedule-2")):
        state = apply(state, change, fixed_rate=False)
    assert list(state) == []


def test_outdated_heap_entries_do_not_pile_up() -> None:
    """Reminders made and deleted, or moved on, without ever being asked for leave flat memory (CASES 38)."""
    state = folded(Create(every_five(1, 0)))
    for number in range(2, 1_000):
        state = apply(state, Create(at(number, number)))
        state = apply(state, Delete(f"schedule-{number}"))
        state = apply(state, Dispatch("schedule-1", in_seconds(300 * number)))
    assert len(state._one_shots) < 40
    assert len(state._recurring) < 40
    assert state.earliest_millis() == to_millis(in_seconds(300 * 1_000))


# What is due ------------------------------------------------------------------------------


def test_without_reminders_there_is_nothing_to_wait_for() -> None:
    """No reminder, no target, no alarm."""
    assert decide(NO_REMINDERS, NOW) == Nothing()


def test_before_the_earliest_target_the_answer_is_to_wait_for_it() -> None:
    """One millisecond early is early."""
    state = folded(Create(at(1, 9)), Create(every_five(2, 7)))
    assert decide(state, in_seconds(7) - timedelta(milliseconds=1)) == Wait(in_seconds(7))


def test_one_shots_come_one_by_one_in_target_and_creation_order() -> None:
    """Also before an every reminder that is overdue for longer."""
    state = folded(Create(every_five(1, -100)), Create(at(2, 5)), Create(at(3, 4)), Create(at(4, 5)))
    order: list[str] = []
    while isinstance(decision := decide(state, in_seconds(6)), OneShot):
        order.append(decision.record.id)
        assert dispatches(decision) == (Dispatch(decision.record.id),)
        for change in dispatches(decision):
            state = apply(state, change)
    assert order == ["schedule-3", "schedule-2", "schedule-4"]
    assert decision == Batch((BatchItem(every_five(1, -100), in_seconds(-100)),), in_seconds(6))


def test_overdue_intervals_form_one_batch_in_target_and_creation_order() -> None:
    """Each with its latest due occurrence, all with one acceptedAt, floored to the millisecond."""
    state = folded(
        Create(every_five(1, 5)),
        Create(every_five(2, 1000)),
        Create(every_five(3, 4)),
        Create(every_five(4, 5)),
    )
    decision = decide(state, in_seconds(610) + timedelta(microseconds=1500))
    accepted = in_seconds(610) + timedelta(milliseconds=1)
    assert decision == Batch(
        (
            BatchItem(every_five(3, 4), in_seconds(604)),
            BatchItem(every_five(1, 5), in_seconds(605)),
            BatchItem(every_five(4, 5), in_seconds(605)),
        ),
        accepted,
    )
    assert dispatches(decision) == tuple(Dispatch(f"schedule-{n}", accepted) for n in (3, 1, 4))
    for change in dispatches(decision):
        state = apply(state, change)
    assert decide(state, in_seconds(610)) == Wait(in_seconds(904))


@given(st.lists(st.integers(-250, 250), min_size=1, max_size=40))
def test_a_batch_of_any_size_is_complete_and_in_order(targets: list[int]) -> None:
    """Whatever the order of creation, all that is due is in it and nothing else."""
    records = [every_five(number, seconds) for number, seconds in enumerate(targets, 1)]
    decision = decide(folded(*map(Create, records)), NOW)
    due = sorted((record for record in records if record.scheduled_at <= NOW), key=lambda record: record.scheduled_at)
    if due:
        assert decision == Batch(tuple(BatchItem(record, record.scheduled_at) for record in due), NOW)
    else:
        assert decision == Wait(min(record.scheduled_at for record in records))


def test_a_reminder_deleted_between_two_others_is_not_in_the_batch() -> None:
    """Though its target still lies among theirs (CASES 23)."""
    state = folded(*(Create(every_five(number, number - 9)) for number in (1, 2, 3)), Delete("schedule-2"))
    decision = decide(state, NOW)
    assert isinstance(decision, Batch)
    assert [item.record.id for item in decision.items] == ["schedule-1", "schedule-3"]


def test_a_wall_set_back_fires_nothing_early_and_repeats_nothing() -> None:
    """After a delivery the next target stands, wherever the clock goes (CASES 7)."""
    state = folded(Create(every_five(1, 300)), Dispatch("schedule-1", in_seconds(301)))
    assert decide(state, in_seconds(301 - 3600)) == Wait(in_seconds(600))
    assert decide(state, in_seconds(599)) == Wait(in_seconds(600))


class FoldMachine(RuleBasedStateMachine):
    """The fold against lists and a full search, on good and bad changes."""

    def __init__(self) -> None:
        super().__init__()
        self.state = NO_REMINDERS
        self.model: dict[str, Reminder] = {}
        self.seen: list[str] = []

    def attempt(self, change: Change, *, legal: bool) -> None:
        if legal:
            self.state = apply(self.state, change)
            return
        with pytest.raises(CorruptLog):
            apply(self.state, change)

    @rule(seconds=st.integers(-5000, 5000), kind=st.sampled_from(["after", "at", "every"]))
    def create(self, seconds: int, kind: str) -> None:
        id_ = self.state.next_id()
        records: dict[str, Reminder] = {
            "after": AfterReminder(id_, "p", 5, in_seconds(seconds)),
            "at": AtReminder(id_, "p", in_seconds(seconds)),
            "every": EveryReminder(id_, "p", 300, in_seconds(seconds)),
        }
        record = records[kind]
        self.attempt(Create(record), legal=True)
        self.model[id_] = record
        self.seen.append(id_)

    @precondition(lambda self: self.seen)
    @rule(data=st.data(), seconds=st.integers(-5000, 5000))
    def create_again(self, data: st.DataObject, seconds: int) -> None:
        id_ = data.draw(st.sampled_from(self.seen))
        self.attempt(Create(AtReminder(id_, "p", in_seconds(seconds))), legal=False)

    @precondition(lambda self: self.seen)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(self.seen))
        self.attempt(Delete(id_), legal=self.model.pop(id_, None) is not None)

    @precondition(lambda self: self.seen)
    @rule(data=st.data(), accepted=st.none() | st.integers(-5000, 9000).map(in_seconds))
    def dispatch(self, data: st.DataObject, accepted: datetime | None) -> None:
        id_ = data.draw(st.sampled_from(self.seen))
        record = self.model.get(id_)
        if isinstance(record, EveryReminder):
            legal = accepted is not None and accepted >= record.scheduled_at
        else:
            legal = record is not None and accepted is None
        self.attempt(Dispatch(id_, accepted), legal=legal)
        if legal and isinstance(record, EveryReminder) and accepted is not None:
            step = every.step(record.scheduled_at, record.every_seconds, accepted)
            assert step.next_at is not None
            self.model[id_] = attrs.evolve(record, scheduled_at=step.next_at)
        elif legal:
            del self.model[id_]

    @rule(seconds=st.integers(-5000, 9000))
    def deliver(self, seconds: int) -> None:
        now = in_seconds(seconds)
        decision = decide(self.state, now)
        by_target = sorted(self.model.values(), key=lambda record: record.scheduled_at)
        due = [record for record in by_target if record.scheduled_at <= now]
        one_shots = [record for record in due if not isinstance(record, EveryReminder)]
        if not by_target:
            assert decision == Nothing()
        elif not due:
            assert decision == Wait(by_target[0].scheduled_at)
        elif one_shots:
            assert decision == OneShot(one_shots[0])
        else:
            assert isinstance(decision, Batch)
            assert [item.record for item in decision.items] == due
            assert all(timedelta(0) <= now - item.occurrence_at < timedelta(seconds=300) for item in decision.items)
        for change in dispatches(decision) if isinstance(decision, OneShot | Batch) else ():
            self.state = apply(self.state, change)
            if change.accepted_at is None:
                del self.model[change.id]
            else:
                (self.model[change.id],) = [each for each in self.state if each.id == change.id]
                assert self.model[change.id].scheduled_at > now

    @invariant()
    def agrees(self) -> None:
        assert list(self.state) == list(self.model.values())
        assert set(self.state.seen) == set(self.seen)
        targets = [to_millis(record.scheduled_at) for record in self.model.values()]
        assert self.state.earliest_millis() == min(targets, default=None)


FoldMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestFold = FoldMachine.TestCase
