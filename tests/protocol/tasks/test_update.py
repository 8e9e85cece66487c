from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from whenidle_clock.zones import Gap
from whenidle_protocol.errors import TaskCode
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.task_changes import check_delete, update
from whenidle_protocol.task_delivery import Due, deliver
from whenidle_protocol.task_record import LastDelivery, Target, TargetKind, Task, TaskStatus
from whenidle_protocol.task_requests import DeleteTask, UpdateTask
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings

from .worlds import (
    CALLER,
    DAY,
    EVENING,
    HOUR,
    HOURLY,
    MILLISECOND,
    NONE_YET,
    NOW,
    RULES,
    SETTINGS,
    TWICE,
    made,
    refused,
)

LATER = NOW + 0.5 * HOUR
EDITOR = Caller("s-2", cwd="/home/eve", preset="play")


def edit(task: Task, now: datetime = LATER, caller: Caller = CALLER, **fields: Any) -> Task:
    """Return the task after an update with these fields."""
    settings, counts = fields.pop("settings", SETTINGS), fields.pop("counts", NONE_YET)
    return update(task, UpdateTask("task-1", **fields), caller, now, settings, counts)


def ended() -> Task:
    """Return a task whose only occurrence was delivered an hour after `NOW`."""
    due = deliver(made(AtRule(NOW + HOUR)), NOW + HOUR, SETTINGS)
    assert isinstance(due, Due)
    return due.after


@pytest.mark.parametrize("kind", list(RULES))
def test_a_new_title_leaves_all_else_as_it_was(kind: str) -> None:
    """Zone, rule, target and next occurrence (CASE 25)."""
    task = made(RULES[kind], TargetKind.NEW_ONCE)
    assert edit(task, title="Other") == attrs.evolve(task, title="Other", updated_at=LATER)


def test_a_new_prompt_does_not_take_back_what_is_due() -> None:
    """An overdue occurrence stays due, and goes out with the new prompt."""
    task = edit(made(), NOW + 2 * HOUR, prompt="Do that.")
    assert (task.prompt, task.scheduled_at) == ("Do that.", NOW + HOUR)
    assert isinstance(deliver(task, NOW + 2 * HOUR, SETTINGS), Due)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"title": "Title"},
        {"title": "Title", "prompt": "Do it.", "active": True},
        {"rule": read_rrule(EVENING)},
        {"target": TargetKind.THIS_SESSION},
        {"rule": read_rrule(EVENING), "target": TargetKind.THIS_SESSION, "active": True, "expected_updated_at": NOW},
    ],
)
def test_an_edit_that_changes_nothing_writes_nothing(fields: dict[str, Any]) -> None:
    """The very same task comes back, its `updated_at` and next occurrence too."""
    task = made(read_rrule(EVENING))
    assert edit(task, **fields) is task


def test_pausing_twice_and_resuming_twice_change_nothing() -> None:
    """`active` says how the task is to be, not what to do."""
    task = made()
    paused = edit(task, active=False)
    assert edit(paused, active=False) is paused
    assert edit(task, active=True) is task


def test_an_interval_given_again_keeps_its_phase() -> None:
    """It need not say from when again; another length begins at the decision."""
    task = made(HOURLY)
    assert edit(task, rule=EveryRule(3600)) is task
    assert edit(task, rule=EveryRule(7200)).scheduled_at == LATER + 2 * HOUR
    assert edit(task, rule=EveryRule(3600, LATER)).scheduled_at == LATER + HOUR


def test_a_delay_given_again_begins_again() -> None:
    """`after` means from now on, whenever it is said."""
    task = edit(made(AfterRule(3600)), rule=AfterRule(3600))
    assert task.scheduled_at == LATER + HOUR
    assert task.rule == AfterRule(3600, LATER + HOUR)


def test_a_new_rule_begins_at_the_decision() -> None:
    """It takes the place of what was due and not delivered yet."""
    task = edit(made(), NOW + 5 * HOUR, rule=read_rrule(EVENING))
    assert task.rule == DailyRule("19:00", "Europe/Paris", start=datetime(2026, 1, 1, 18, tzinfo=UTC))
    assert task.scheduled_at == datetime(2026, 1, 1, 18, tzinfo=UTC)
    assert task.status is TaskStatus.ACTIVE


def test_a_new_rule_is_under_the_policies_of_the_task() -> None:
    """As it was created with, not the host's."""
    text = read_rrule("DTSTART;TZID=America/New_York:20260301T023000\nRRULE:FREQ=DAILY")
    task = made(HOURLY, gap=Gap.SHIFT)
    eve = datetime(2026, 3, 7, 12, tzinfo=UTC)
    assert edit(task, eve, rule=text).scheduled_at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    assert edit(made(HOURLY), eve, rule=text).scheduled_at == datetime(2026, 3, 9, 6, 30, tzinfo=UTC)


def test_a_new_rule_that_is_over_is_not_future() -> None:
    """Whatever else the edit says."""
    over = read_rrule("DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=30")
    for active in (None, True, False):
        assert refused(edit, made(), title="Other", rule=over, active=active).code is TaskCode.NOT_FUTURE


def test_a_paused_task_comes_to_nothing_and_accumulates_nothing() -> None:
    """After 200 periods it resumes with the next one that is in the future (CASE 15)."""
    paused = edit(made(), active=False)
    assert (paused.status, paused.next_at, paused.scheduled_at) == (TaskStatus.PAUSED, None, NOW + HOUR)
    later = NOW + 200 * HOUR + MILLISECOND
    assert not isinstance(deliver(paused, later, SETTINGS), Due)
    resumed = edit(paused, later, active=True)
    assert resumed.next_at == NOW + 201 * HOUR
    due = deliver(resumed, NOW + 201 * HOUR, SETTINGS)
    assert isinstance(due, Due)
    assert (due.missed, due.after.missed, due.after.skipped, due.after.deliveries) == (0, 0, 0, 1)


def test_resuming_at_the_instant_of_an_occurrence_waits_for_the_next() -> None:
    """The first one after the decision is strictly later."""
    paused = edit(made(), active=False)
    assert edit(paused, NOW + 2 * HOUR, active=True).next_at == NOW + 3 * HOUR


def test_resuming_after_the_clock_went_back_repeats_nothing() -> None:
    """What was delivered, coalesced or skipped does not come again (SPEC 6.7)."""
    due = deliver(made(), NOW + 5 * HOUR, SETTINGS)
    assert isinstance(due, Due)
    paused = edit(due.after, NOW + 5 * HOUR, active=False)
    assert edit(paused, NOW + 2 * HOUR, active=True).next_at == NOW + 6 * HOUR


def test_a_new_rule_is_not_held_back_by_what_the_old_one_delivered() -> None:
    """It begins at the decision even after the clock went back; so a clock that was wrong can be recovered from."""
    due = deliver(made(), NOW + 5 * HOUR, SETTINGS)
    assert isinstance(due, Due)
    task = edit(due.after, NOW + 2 * HOUR, rule=CronRule("0 * * * *", "UTC"))
    assert (task.next_at, task.covered_at) == (NOW + 3 * HOUR, None)
    assert edit(edit(task, NOW, active=False), NOW, active=True).next_at == NOW + HOUR


@pytest.mark.parametrize("rule", [AtRule(NOW + HOUR), read_rrule(TWICE)])
def test_a_paused_task_whose_occurrences_passed_cannot_resume(rule: Any) -> None:
    """It needs a new rule in the same call."""
    paused = edit(made(rule), active=False)
    error = refused(edit, paused, NOW + 9 * DAY, active=True)
    assert error.code is TaskCode.NOT_FUTURE
    assert error.message == (
        "The task has no occurrence left; to make it active again, give a new rrule in the same call."
    )
    assert edit(paused, NOW + 9 * DAY, active=True, rule=HOURLY).next_at == NOW + 9 * DAY + HOUR


def test_an_ended_task_needs_a_new_rule() -> None:
    """The one it has does not help, even if the clock went back before its occurrence."""
    assert ended().status is TaskStatus.ENDED
    for now in (NOW + 2 * HOUR, NOW):
        assert refused(edit, ended(), now, active=True).code is TaskCode.NOT_FUTURE
        assert refused(edit, ended(), now, active=True, rule=AtRule(NOW + HOUR)).code is TaskCode.NOT_FUTURE


@pytest.mark.parametrize(
    ("active", "status"), [(True, TaskStatus.ACTIVE), (None, TaskStatus.ACTIVE), (False, TaskStatus.PAUSED)]
)
def test_a_new_rule_revives_an_ended_task(active: Any, status: TaskStatus) -> None:
    """Unless it is to be paused; what it delivered stays on record."""
    task = edit(ended(), NOW + DAY, active=active, rule=HOURLY)
    assert (task.status, task.scheduled_at) == (status, NOW + DAY + HOUR)
    assert task.last_delivery == LastDelivery(NOW + HOUR, NOW + HOUR, "s-1")


def test_an_ended_task_stays_ended() -> None:
    """Pausing it, or giving it another title, does not change that."""
    task = ended()
    assert edit(task, active=False) is task
    assert edit(task, title="Other").status is TaskStatus.ENDED


@pytest.mark.parametrize(
    ("active", "status"), [(True, TaskStatus.ACTIVE), (None, TaskStatus.PAUSED), (False, TaskStatus.PAUSED)]
)
def test_a_new_rule_does_not_wake_a_paused_task(active: Any, status: TaskStatus) -> None:
    """Unless it is to be active; it shows the occurrence it would have next."""
    task = edit(edit(made(), active=False), active=active, rule=EveryRule(7200))
    assert (task.status, task.scheduled_at) == (status, LATER + 2 * HOUR)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (TargetKind.THIS_SESSION, Target(TargetKind.THIS_SESSION, "s-2")),
        (TargetKind.NEW_ONCE, Target(TargetKind.NEW_ONCE, "task-1.once.20260101T003000000Z", "/home/eve", "play")),
        (TargetKind.NEW, Target(TargetKind.NEW, None, "/home/eve", "play")),
    ],
)
def test_a_given_target_replaces_the_one_before(kind: TargetKind, target: Target) -> None:
    """With what it needs of the editor; the next occurrence stays."""
    task = made(HOURLY, TargetKind.NEW_ONCE)
    assert edit(task, caller=EDITOR, target=kind) == attrs.evolve(task, target=target, updated_at=LATER)


def test_new_once_given_again_reserves_another_session() -> None:
    """Even at once, by the same editor, whatever the clock says."""
    task = made(HOURLY, TargetKind.NEW_ONCE)
    again = edit(task, NOW, target=TargetKind.NEW_ONCE)
    assert task.target.session_id == "task-1.once.20260101T000000000Z"
    assert again.target.session_id == "task-1.once.20260101T000000001Z"
    assert again.updated_at == NOW + MILLISECOND


def test_new_given_again_by_the_same_editor_changes_nothing() -> None:
    """By another one it captures theirs."""
    task = made(HOURLY, TargetKind.NEW)
    assert edit(task, target=TargetKind.NEW) is task
    assert edit(task, caller=EDITOR, target=TargetKind.NEW).target.preset == "play"


def test_the_host_itself_cannot_move_a_task_to_this_session() -> None:
    """There is none."""
    assert refused(edit, made(), caller=Caller(""), target=TargetKind.THIS_SESSION).code is TaskCode.INVALID_TARGET


@pytest.mark.parametrize("fields", [{"target": TargetKind.NEW}, {"rule": EveryRule(120)}])
def test_the_spacing_of_new_sessions_holds_for_edits(fields: dict[str, Any]) -> None:
    """Whether the target changes or the rule; other fields of such a task may be edited."""
    spaced = TaskSettings(spacing_seconds=3600)
    task = made(EveryRule(60)) if "target" in fields else made(HOURLY, TargetKind.NEW)
    assert refused(edit, task, settings=spaced, **fields).code is TaskCode.FREQUENCY_TOO_HIGH
    old = made(EveryRule(60), TargetKind.NEW)
    assert edit(old, settings=spaced, title="Other", active=False).title == "Other"


def test_resuming_counts_against_the_caps() -> None:
    """Of the host and of the session that created the task; what is active already does not."""
    capped: dict[str, Any] = {"settings": TaskSettings(max_active_per_session=2), "counts": ActiveCounts(9, 2)}
    paused = edit(made(), active=False)
    assert refused(edit, paused, active=True, **capped).code is TaskCode.LIMIT_REACHED
    assert refused(edit, ended(), rule=HOURLY, **capped).code is TaskCode.LIMIT_REACHED
    assert edit(paused, rule=EveryRule(60), **capped).status is TaskStatus.PAUSED
    assert edit(made(), title="Other", **capped).title == "Other"


def test_an_edit_of_a_task_that_changed_meanwhile_is_a_conflict() -> None:
    """Whatever changed it; nothing is done, even if the edit would change nothing (CASE 31)."""
    task = made()
    due = deliver(task, NOW + HOUR, SETTINGS)
    assert isinstance(due, Due)
    for changed in (due.after, edit(task, title="Other"), edit(task, active=False)):
        error = refused(edit, changed, title=changed.title, expected_updated_at=NOW)
        assert error.answer() == {"id": "task-1", "code": "schedule_conflict"}
        assert refused(check_delete, changed, DeleteTask("task-1", NOW)).answer() == error.answer()
        assert edit(changed, prompt="P", expected_updated_at=changed.updated_at).prompt == "P"
        check_delete(changed, DeleteTask("task-1", changed.updated_at))
        check_delete(changed, DeleteTask("task-1"))


def test_edits_are_stamped_in_order_though_the_clock_goes_back() -> None:
    """`updated_at` serves as a version."""
    task = edit(made(), NOW - DAY, title="A")
    assert task.updated_at == NOW + MILLISECOND
    assert edit(task, NOW - DAY, title="B").updated_at == NOW + 2 * MILLISECOND
