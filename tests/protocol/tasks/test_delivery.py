from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle_clock.instants import MAX_INSTANT, MAX_MILLIS, from_millis, to_millis
from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.task_delivery import Due, NotDue, Skipped, deliver, fail, run_now
from whenidle_protocol.task_record import LastDelivery, LastFailure, Target, TargetKind, Task, TaskStatus
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_settings import TaskSettings

from .strategies import tasks
from .worlds import DAY, HOUR, HOURLY, MILLISECOND, NOW, ODD_HOURS, RULES, SETTINGS, TWICE, kept, made

WINDOW = TaskSettings(catch_up_seconds=2 * 3600)


def due(task: Task, now: datetime, settings: TaskSettings = SETTINGS) -> Due:
    """Return what is due of a task of which something is."""
    decision = deliver(task, now, settings)
    assert isinstance(decision, Due)
    return decision


@pytest.mark.parametrize("kind", list(RULES))
def test_an_occurrence_is_due_from_its_instant_on(kind: str) -> None:
    """Not a millisecond before; and at the very instant of a restart (CASE 12)."""
    task = made(RULES[kind])
    assert deliver(task, task.scheduled_at - MILLISECOND, SETTINGS) == NotDue()
    decision = due(task, task.scheduled_at)
    assert (decision.occurrence, decision.missed, decision.skipped) == (task.scheduled_at, 0, 0)
    assert (decision.late_millis, decision.session_id, decision.creates) == (0, "s-1", False)


@pytest.mark.parametrize("status", [TaskStatus.PAUSED, TaskStatus.ENDED])
def test_nothing_is_due_of_a_task_that_is_not_active(status: TaskStatus) -> None:
    """However late it is."""
    assert deliver(kept(status=status), NOW + 9 * DAY, SETTINGS) == NotDue()


@pytest.mark.parametrize("rule", [AfterRule(3600), AtRule(NOW + HOUR)])
def test_a_one_shot_is_delivered_however_late(rule: Any) -> None:
    """The catch-up window is not for one-shots; afterwards the task has ended and shows its last occurrence."""
    now = NOW + 400 * DAY
    decision = due(made(rule), now, WINDOW)
    assert (decision.occurrence, decision.missed, decision.skipped) == (NOW + HOUR, 0, 0)
    assert decision.late_millis == (400 * 24 - 1) * 3_600_000
    after = decision.after
    assert (after.status, after.scheduled_at, after.next_at) == (TaskStatus.ENDED, NOW + HOUR, None)
    assert after.last_delivery == LastDelivery(NOW + HOUR, now, "s-1")
    assert (after.deliveries, after.missed, after.skipped, after.updated_at) == (1, 0, 0, now)


def test_the_latest_missed_occurrence_stands_for_all() -> None:
    """With their number; the next target lies strictly in the future (SPEC 6.7)."""
    decision = due(made(), NOW + 5 * HOUR)
    assert (decision.occurrence, decision.missed, decision.late_millis) == (NOW + 5 * HOUR, 4, 0)
    after = decision.after
    assert (after.next_at, after.deliveries, after.missed) == (NOW + 6 * HOUR, 1, 4)
    again = due(after, NOW + 8 * HOUR + MILLISECOND)
    assert (again.occurrence, again.missed, again.late_millis) == (NOW + 8 * HOUR, 2, 1)
    assert (again.after.next_at, again.after.deliveries, again.after.missed) == (NOW + 9 * HOUR, 2, 6)


@pytest.mark.parametrize("rule", [EveryRule(60), CronRule("* * * * *", "UTC")])
def test_a_jump_of_centuries_is_one_delivery(rule: Any) -> None:
    """With the right number, and at once (CASE 8)."""
    task, now = made(rule), datetime(2200, 1, 1, 0, 0, 30, tzinfo=UTC)
    begun = time.perf_counter()
    decision = due(task, now)
    assert time.perf_counter() - begun < 0.1
    minutes = (now - task.scheduled_at) // timedelta(minutes=1)
    assert (decision.missed, decision.occurrence) == (minutes, task.scheduled_at + minutes * timedelta(minutes=1))
    assert decision.after.next_at == datetime(2200, 1, 1, 0, 1, tzinfo=UTC)


def test_a_clock_set_back_fires_nothing_early_and_repeats_nothing() -> None:
    """It goes on at its own targets (CASE 7)."""
    after = due(made(), NOW + HOUR).after
    for minutes in range(0, 60, 7):
        assert deliver(after, NOW + timedelta(minutes=minutes), SETTINGS) == NotDue()
    assert due(after, NOW + 2 * HOUR).occurrence == NOW + 2 * HOUR
    assert due(after, NOW + 2 * HOUR).after.updated_at == NOW + 2 * HOUR


def test_a_one_shot_never_comes_again() -> None:
    """Though the clock goes back before its time (CASE 11)."""
    after = due(made(AtRule(NOW + HOUR)), NOW + HOUR).after
    assert deliver(after, NOW, SETTINGS) == NotDue()
    assert deliver(after, NOW + HOUR, SETTINGS) == NotDue()


def test_a_decision_after_the_clock_went_back_is_stamped_later() -> None:
    """So that whoever read the task before sees a conflict."""
    task = kept(updated_at=NOW + DAY)
    assert due(task, NOW + HOUR).after.updated_at == NOW + DAY + MILLISECOND


def test_a_committed_target_counts_as_it_was_committed() -> None:
    """Though the rule would put it elsewhere now, for other zone data or policies (SPEC 1.6)."""
    rule, committed = DailyRule("09:00", "Europe/Paris"), datetime(2026, 1, 1, 7, 30, tzinfo=UTC)
    decision = due(kept(rule=rule, scheduled_at=committed), committed)
    assert (decision.occurrence, decision.missed) == (committed, 0)
    assert decision.after.next_at == datetime(2026, 1, 1, 8, tzinfo=UTC)


def test_a_rule_that_runs_out_ends_the_task() -> None:
    """After the last of COUNT, missed ones included."""
    task = made(read_rrule(TWICE))
    first = due(task, NOW + DAY).after
    assert (first.status, first.next_at) == (TaskStatus.ACTIVE, NOW + 2 * DAY)
    for decision in (due(first, NOW + 2 * DAY), due(task, NOW + 9 * DAY)):
        after = decision.after
        assert (after.status, after.scheduled_at) == (TaskStatus.ENDED, NOW + 2 * DAY)
        assert after.deliveries + after.missed == 2


def test_a_rule_that_reaches_the_end_of_time_ends_cleanly() -> None:
    """The last Sunday of the year 9999 (CASE 4)."""
    rule = read_rrule("DTSTART:99991204T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU")
    after = due(made(rule), MAX_INSTANT).after
    assert (after.status, after.scheduled_at) == (TaskStatus.ENDED, datetime(9999, 12, 26, 9, tzinfo=UTC))
    assert after.missed == 7


def test_policies_decide_what_comes_next() -> None:
    """A local time that clocks skip is left out, or shifted if the task says so (CASE 1)."""
    rule = DailyRule("02:30", "America/New_York")
    eve = datetime(2026, 3, 7, 7, 30, tzinfo=UTC)
    assert due(kept(rule=rule, scheduled_at=eve), eve).after.next_at == datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
    shifted = due(kept(rule=rule, scheduled_at=eve, gap=Gap.SHIFT), eve).after
    assert shifted.next_at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("own", "hosts", "hours"),
    [
        (None, None, 25),
        (Overlap.BOTH, None, 1),
        (None, Overlap.BOTH, 1),
        (Overlap.FIRST, Overlap.BOTH, 25),
        (Overlap.BOTH, Overlap.FIRST, 1),
    ],
)
def test_a_local_time_shown_twice_is_one_occurrence_or_two(own: Any, hosts: Any, hours: int) -> None:
    """As the task says, or else the host, or else the kind; 01:30 comes back an hour later in New York."""
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    task = kept(rule=DailyRule("01:30", "America/New_York"), scheduled_at=first, overlap=own)
    assert due(task, first, TaskSettings(overlap=hosts)).after.next_at == first + hours * HOUR


# The catch-up window ----------------------------------------------------------------------


def test_what_is_too_late_is_skipped() -> None:
    """The task goes on with the first future occurrence, and nothing is delivered."""
    task = made(EveryRule(86_400))
    decision = deliver(task, NOW + 5.5 * DAY, WINDOW)
    assert isinstance(decision, Skipped)
    assert (decision.task, decision.skipped) == (task, 5)
    after = decision.after
    assert (after.next_at, after.covered_at) == (NOW + 6 * DAY, NOW + 5 * DAY)
    assert (after.skipped, after.missed, after.deliveries, after.last_delivery) == (5, 0, 0, None)
    assert after.updated_at == NOW + 5.5 * DAY


def test_what_is_exactly_as_late_as_allowed_is_delivered() -> None:
    """One millisecond more is too late."""
    task = made(EveryRule(86_400))
    assert due(task, NOW + DAY + 2 * HOUR, WINDOW).occurrence == NOW + DAY
    assert isinstance(deliver(task, NOW + DAY + 2 * HOUR + MILLISECOND, WINDOW), Skipped)


def test_of_several_only_those_within_the_window_are_stood_for() -> None:
    """The others are skipped."""
    decision = due(made(), NOW + 5.5 * HOUR, WINDOW)
    assert (decision.occurrence, decision.missed, decision.skipped) == (NOW + 5 * HOUR, 1, 3)
    assert (decision.after.deliveries, decision.after.missed, decision.after.skipped) == (1, 1, 3)


def test_a_committed_target_that_is_just_in_time_is_delivered() -> None:
    """Though the rule would not have it any more."""
    task = kept(rule=DailyRule("09:00", "Europe/Paris"), scheduled_at=NOW + HOUR)
    assert due(task, NOW + 3 * HOUR, WINDOW).occurrence == NOW + HOUR


def test_a_rule_that_ends_while_nothing_looks_is_skipped_to_its_end() -> None:
    """It has ended, at its last occurrence."""
    decision = deliver(made(read_rrule(TWICE)), NOW + 9 * DAY, WINDOW)
    assert isinstance(decision, Skipped)
    assert (decision.after.status, decision.after.scheduled_at) == (TaskStatus.ENDED, NOW + 2 * DAY)
    assert decision.skipped == 2


def test_the_window_of_a_task_comes_before_that_of_the_host() -> None:
    """Wider or narrower; 0 is a window too."""
    now = NOW + DAY + HOUR
    narrow = made(EveryRule(86_400), catch_up_seconds=0)
    assert isinstance(deliver(narrow, now, SETTINGS), Skipped)
    assert due(narrow, NOW + DAY).skipped == 0
    wide = made(EveryRule(86_400), catch_up_seconds=2**53 - 1)
    assert due(wide, NOW + 900 * DAY, WINDOW).missed == 899


@given(
    st.sampled_from(["every", "daily", "weekly", "cron", "rrule"]),
    st.integers(0, 40 * 24 * 3600),
    st.none() | st.integers(0, 40 * 24 * 3600),
)
def test_each_occurrence_is_counted_once(kind: str, wait: int, window: int | None) -> None:
    """Delivered, stood for, or skipped: together they are what brute force finds, and so is each number."""
    task = made(RULES[kind], catch_up_seconds=window)
    now = task.scheduled_at + timedelta(seconds=wait)
    occurrences = [task.scheduled_at]
    while (following := task.rule.next(occurrences[-1])) and following <= now:
        occurrences.append(following)
    in_time = [at for at in occurrences if window is None or (now - at).total_seconds() <= window]
    decision = deliver(task, now, SETTINGS)
    assert not isinstance(decision, NotDue)
    after = decision.after
    assert after.deliveries == (1 if in_time else 0)
    assert after.missed == max(len(in_time) - 1, 0)
    assert after.skipped == len(occurrences) - len(in_time)
    assert after.next_at == following
    assert isinstance(decision, Skipped) or decision.occurrence == in_time[-1]


# Where it goes ----------------------------------------------------------------------------


def test_new_makes_a_session_for_each_occurrence() -> None:
    """Named after it, so that a retry, however late, finds it."""
    task = made(HOURLY, TargetKind.NEW)
    decision = due(task, NOW + HOUR + MILLISECOND)
    assert (decision.session_id, decision.creates) == ("task-1.at.20260101T010000000Z", True)
    assert due(task, NOW + 1.5 * HOUR).session_id == decision.session_id
    assert decision.after.target == task.target
    assert decision.after.last_delivery == LastDelivery(NOW + HOUR, NOW + HOUR + MILLISECOND, decision.session_id)
    assert due(decision.after, NOW + 2 * HOUR).session_id == "task-1.at.20260101T020000000Z"


def test_new_once_creates_its_session_at_the_first_delivery_only() -> None:
    """If it is gone later, that is a failure as with any session."""
    first = due(made(HOURLY, TargetKind.NEW_ONCE), NOW + HOUR)
    assert (first.session_id, first.creates) == ("task-1.once.20260101T000000000Z", True)
    second = due(first.after, NOW + 2 * HOUR)
    assert (second.session_id, second.creates) == (first.session_id, False)


# Runs by hand -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(TaskStatus))
def test_a_task_can_be_run_now_in_any_state(status: TaskStatus) -> None:
    """Its status and next occurrence stay as they are."""
    task, now = kept(status=status), NOW + 0.5 * HOUR
    decision = run_now(task, now)
    assert (decision.occurrence, decision.missed, decision.skipped) == (now, 0, 0)
    assert (decision.late_millis, decision.session_id, decision.creates) == (0, "s-1", False)
    delivered = LastDelivery(now, now, "s-1")
    assert decision.after == attrs.evolve(task, updated_at=now, deliveries=1, last_delivery=delivered)


def test_a_run_now_has_a_session_of_its_own_or_the_reserved_one() -> None:
    """As the target says."""
    assert run_now(made(HOURLY, TargetKind.NEW), NOW + HOUR).session_id == "task-1.run.20260101T010000000Z"
    decision = run_now(made(HOURLY, TargetKind.NEW_ONCE), NOW)
    assert (decision.session_id, decision.creates, decision.after.target.created) == (
        "task-1.once.20260101T000000000Z",
        True,
        True,
    )


# Failures ---------------------------------------------------------------------------------


def test_a_failed_delivery_shows_and_the_task_goes_on() -> None:
    """With its next occurrence; what it delivered before stays on record."""
    task = due(made(), NOW + HOUR).after
    decision = due(task, NOW + 3 * HOUR)
    failed = fail(decision, "The session s-1 does not exist any more.")
    failure = LastFailure(NOW + 3 * HOUR, NOW + 3 * HOUR, "s-1", "The session s-1 does not exist any more.")
    assert failed.last_failure == failure
    assert failed.last_delivery == LastDelivery(NOW + HOUR, NOW + HOUR, "s-1")
    assert (failed.deliveries, failed.failures, failed.missed) == (1, 1, 1)
    assert (failed.next_at, failed.updated_at) == (NOW + 4 * HOUR, NOW + 3 * HOUR)
    assert due(failed, NOW + 4 * HOUR).after.last_failure == failure


def test_a_failed_one_shot_has_ended() -> None:
    """It shows why."""
    failed = fail(due(made(AtRule(NOW + HOUR)), NOW + HOUR), "Gone.")
    assert (failed.status, failed.deliveries, failed.failures, failed.last_delivery) == (TaskStatus.ENDED, 0, 1, None)
    assert deliver(failed, NOW + DAY, SETTINGS) == NotDue()


def test_a_failed_run_now_changes_nothing_but_the_record_of_it() -> None:
    """A session that was to be created has not been."""
    task = made(read_rrule(ODD_HOURS), TargetKind.NEW_ONCE)
    failed = fail(run_now(task, NOW), "Gone.")
    session_id = "task-1.once.20260101T000000000Z"
    assert failed.target == Target(TargetKind.NEW_ONCE, session_id, "/home/ada", "work")
    assert failed == attrs.evolve(
        task, updated_at=NOW + MILLISECOND, failures=1, last_failure=LastFailure(NOW, NOW, session_id, "Gone.")
    )


@given(tasks, st.integers(0, 10**10))
def test_a_delivery_changes_what_a_delivery_changes(task: Task, later: int) -> None:
    """Whatever a task holds besides stays as it is."""
    now = from_millis(min(to_millis(task.scheduled_at) + later, MAX_MILLIS))
    decided = deliver(task, now, SETTINGS)
    if isinstance(decided, NotDue):
        return
    after = decided.after
    moved = {
        name: getattr(after, name)
        for name in ("status", "scheduled_at", "updated_at", "missed", "skipped", "covered_at")
    }
    if isinstance(decided, Due):
        moved |= {name: getattr(after, name) for name in ("deliveries", "last_delivery", "target")}
        assert attrs.evolve(after.target, created=task.target.created) == task.target
    assert after == attrs.evolve(task, **moved)
