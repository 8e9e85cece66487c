from __future__ import annotations

from typing import Any

import pytest

from whenidle_actors.tasks import Tasks
from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.task_settings import TaskSettings

from .tales import START, breaks, text_of
from .task_tales import DAY, HOUR, TaskTale, after, at, changed, daily, delivered, every, row

NAME = "as-planned"
NINE = START + 9 * HOUR


def hourly(**options: Any) -> tuple[TaskTale, dict[str, Any]]:
    """Return the tale of a task that comes due every hour, from one o'clock on."""
    tale = TaskTale(**options)
    return tale, tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))


def within(seconds: int) -> dict[str, Any]:
    """Return options for a host with a catch-up window."""
    return {"suites": [Tasks(TaskSettings(catch_up_seconds=seconds))]}


# First occurrences ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        (after(60), START + 60_000),
        (at(START + 60_000), START + 60_000),
        (every(3600, START + HOUR), START + HOUR),
        (every(3600, START - 7 * HOUR // 2), START + HOUR // 2),
        (daily(9), NINE),
        (daily(0), START + DAY),
        ({"kind": "weekly", "time": "09:00", "timeZone": "UTC", "weekdays": [5]}, NINE + DAY),
        ({"kind": "cron", "expression": "30 9 * * *", "timeZone": "UTC"}, NINE + HOUR // 2),
    ],
)
def test_a_task_begins_with_its_first_occurrence(rule: dict[str, Any], first: int) -> None:
    """The first occurrence is the first one that is planned after the task was made; any other is noticed."""
    TaskTale().make(row("task-1", rule, first))
    with breaks(NAME):
        TaskTale().make(row("task-1", rule, first + DAY))


def test_a_while_is_counted_from_the_making() -> None:
    """An `after` task counts from the moment at which its commit was handed in."""
    with breaks(NAME, "counts from"):
        TaskTale().make(row("task-1", after(60, START - 1), START + 59_999))


# Decisions ------------------------------------------------------------------------------------


def test_each_decision_takes_all_that_is_due() -> None:
    """The latest occurrence stands for those before it, and the next lies in the future."""
    tale, task = hourly()
    tale.wait(3.5 * 3600)
    task = tale.deliver_task(task, START + 3 * HOUR, START + 4 * HOUR, missed=2)
    tale.wait(3600)
    tale.deliver_task(task, START + 4 * HOUR, START + 5 * HOUR)


@pytest.mark.parametrize(
    ("occurrence", "next_at", "missed", "why"),
    [
        (3, 4, 1, "it says 1 were missed"),
        (3, 4, 3, "it says 3 were missed"),
        (2, 3, 1, "is right from"),
        (3, 5, 2, "after 1767236400000 is planned"),
        (2.5, 3, 1, "is decided about for"),
    ],
)
def test_numbers_that_cannot_be_matched_are_noticed(occurrence: float, next_at: int, missed: int, why: str) -> None:
    """A wrong occurrence, a wrong number of missed ones, and a wrong next one have no matching."""
    tale, task = hourly()
    tale.wait(3.5 * 3600)
    with breaks(NAME, why):
        tale.deliver_task(task, START + int(occurrence * HOUR), START + next_at * HOUR, missed=missed)


def test_a_one_shot_has_ended_when_it_is_delivered() -> None:
    """A task that comes due once has no next occurrence; one that goes on is noticed."""
    tale = TaskTale()
    task = tale.make(row("task-1", at(NINE)))
    tale.wait(DAY)
    tale.deliver_task(task, NINE, None)
    tale = TaskTale()
    task = tale.make(row("task-1", at(NINE)))
    tale.wait(DAY)
    with breaks(NAME, "is planned None"):
        tale.deliver_task(task, NINE, NINE + DAY)


def test_a_receipt_and_its_task_count_alike() -> None:
    """What the receipt says was missed is what the task adds."""
    tale, task = hourly()
    tale.wait(2 * 3600)
    two = START + 2 * HOUR
    told = delivered(task, two, START + 3 * HOUR, decided=tale.wall, missed=0)
    with breaks(NAME, "the receipt of task"):
        tale.deliver_tasks([(task, told, two, 1, 0)])


def test_a_paused_task_does_not_come_due() -> None:
    """Nothing is delivered of a task that is paused."""
    tale, task = hourly()
    task = tale.edit(task, changed(task, status="paused"))
    tale.wait(3600)
    told = changed(task, START + 2 * HOUR, status="active")
    resumed = delivered(task | {"data": told["data"]}, START + HOUR, START + 2 * HOUR, decided=tale.wall)
    with breaks(NAME, "though it is paused"):
        tale.deliver_tasks([(task, resumed, START + HOUR, 0, 0)])


# The catch-up window --------------------------------------------------------------------------


def test_what_is_too_late_is_skipped() -> None:
    """Occurrences older than the window are skipped, the others are missed but for the latest."""
    tale, task = hourly(**within(5400))
    tale.wait(4.5 * 3600)
    tale.deliver_task(task, START + 4 * HOUR, START + 5 * HOUR, missed=1, skipped=2)


@pytest.mark.parametrize(("missed", "skipped"), [(2, 1), (0, 3), (3, 0)])
def test_a_wrong_edge_of_the_window_is_noticed(missed: int, skipped: int) -> None:
    """One more or one less that is skipped is noticed, though their sum is right."""
    tale, task = hourly(**within(5400))
    tale.wait(4.5 * 3600)
    with breaks(NAME, "is right from"):
        tale.deliver_task(task, START + 4 * HOUR, START + 5 * HOUR, missed=missed, skipped=skipped)


def test_all_can_be_too_late() -> None:
    """A task of which everything is too late moves on without a delivery."""
    tale, task = hourly(**within(600))
    tale.wait(2.5 * 3600)
    tale.edit(task, changed(task, START + 3 * HOUR, skipped=2, coveredAt=text_of(START + 2 * HOUR)))


def test_what_is_in_time_is_not_skipped() -> None:
    """A task that moves on without a delivery although its latest occurrence is in time is noticed."""
    tale, task = hourly(**within(1800))
    tale.wait(2.5 * 3600)
    with breaks(NAME, "is right from"):
        tale.edit(task, changed(task, START + 3 * HOUR, skipped=2, coveredAt=text_of(START + 2 * HOUR)))


def test_the_window_of_a_task_goes_before_that_of_the_host() -> None:
    """A task may say itself how late is too late."""
    tale = TaskTale(**within(60))
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR, catchUpSeconds=36_000))
    tale.wait(4.5 * 3600)
    tale.deliver_task(task, START + 4 * HOUR, START + 5 * HOUR, missed=3)


def test_what_happens_once_is_never_too_late() -> None:
    """The window does not hold for a task that comes due once."""
    tale = TaskTale(**within(60))
    task = tale.make(row("task-1", at(NINE)))
    tale.wait(DAY)
    tale.deliver_task(task, NINE, None)


# Failures and runs by hand --------------------------------------------------------------------


def failed(task: dict[str, Any], occurrence: int, next_at: int | None, decided: int) -> dict[str, Any]:
    """Return a task after a delivery that could not be made; its plan stays if there is no next occurrence."""
    failure = {
        "scheduledAt": text_of(occurrence),
        "failedAt": text_of(decided),
        "targetSessionId": "nobody",
        "reason": "It is gone.",
    }
    more: dict[str, Any] = {"failures": 1, "lastFailure": failure}
    if next_at is None:
        return changed(task, **more)
    return changed(task, next_at, coveredAt=text_of(occurrence), **more)


def test_a_failed_delivery_takes_its_occurrence() -> None:
    """A task whose session does not exist goes on with its next occurrence."""
    tale = TaskTale()
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR, session="nobody"))
    tale.wait(3600)
    tale.edit(task, failed(task, START + HOUR, START + 2 * HOUR, tale.wall))


def test_a_failure_is_held_to_the_plan() -> None:
    """A failure for another occurrence than is due is noticed."""
    tale = TaskTale()
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR, session="nobody"))
    tale.wait(3600)
    with breaks(NAME):
        tale.edit(task, failed(task, START + 2 * HOUR, START + 3 * HOUR, tale.wall))


def test_a_run_by_hand_that_fails_leaves_the_plan() -> None:
    """If somebody runs a task whose session is gone, its next occurrence stays."""
    tale = TaskTale()
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR, session="nobody"))
    tale.edit(task, failed(task, START, None, START))


# Edits ----------------------------------------------------------------------------------------


def test_an_edit_leaves_the_plan() -> None:
    """Another title does not move the next occurrence; an edit that does is noticed, and one that counts."""
    tale, task = hourly()
    task = tale.edit(task, changed(task, title="Coffee"))
    with breaks(NAME, "without a reason"):
        tale.edit(task, changed(task, START + 2 * HOUR, title="Tea"))
    tale, task = hourly()
    with breaks(NAME, "without a delivery"):
        tale.edit(task, changed(task, deliveries=1))


def test_a_resumed_task_goes_on_with_the_first_occurrence_after_that() -> None:
    """While a task is paused nothing accumulates."""
    tale, task = hourly()
    task = tale.edit(task, changed(task, status="paused"))
    tale.wait(5.5 * 3600)
    task = tale.edit(task, changed(task, START + 6 * HOUR, status="active"))
    tale.wait(1800)
    tale.deliver_task(task, START + 6 * HOUR, START + 7 * HOUR)


def test_a_resumed_task_that_catches_up_is_noticed() -> None:
    """What was due while a task was paused does not come due again."""
    tale, task = hourly()
    task = tale.edit(task, changed(task, status="paused"))
    tale.wait(5.5 * 3600)
    with breaks(NAME, "is resumed for"):
        tale.edit(task, changed(task, START + 5 * HOUR, status="active"))


def test_a_resumed_task_repeats_nothing() -> None:
    """Resumed after the wall was set back, a task goes on behind what it has delivered."""
    tale, task = hourly()
    tale.wait(2 * 3600)
    task = tale.deliver_task(task, START + 2 * HOUR, START + 3 * HOUR, missed=1)
    task = tale.edit(task, changed(task, status="paused"))
    tale.step_wall(-5400)
    with breaks(NAME, "is resumed for"):
        tale.edit(task, changed(task, START + HOUR, status="active"))
    tale, task = hourly()
    tale.wait(2 * 3600)
    task = tale.deliver_task(task, START + 2 * HOUR, START + 3 * HOUR, missed=1)
    task = tale.edit(task, changed(task, status="paused"))
    tale.step_wall(-5400)
    tale.edit(task, changed(task, START + 3 * HOUR, status="active"))


def test_another_rule_begins_when_it_is_given() -> None:
    """A new rule has its first occurrence after the edit."""
    tale, task = hourly()
    tale.wait(2.5 * 3600)
    with breaks(NAME, "begins with"):
        tale.edit(task, changed(task, START + HOUR, rule=every(1800, START + HOUR)))


def test_a_deleted_task_plans_nothing() -> None:
    """After a deletion there is nothing to match."""
    tale, task = hourly()
    tale.wait(2 * 3600)
    deletion = {"id": "task-1", "expected": task["version"], "task": None}
    tale.commit(tasks=[deletion | {"version": None, "next": None, "session": None}])
    tale.settle()


# Company --------------------------------------------------------------------------------------


def two(first: dict[str, Any], second: dict[str, Any], firsts: tuple[int, int]) -> TaskTale:
    """Return the tale of two tasks that are delivered in one message, the first one first, at noon."""
    tale = TaskTale()
    tasks = [
        tale.make(row(f"task-{number}", rule, at_first))
        for number, (rule, at_first) in enumerate(zip((first, second), firsts, strict=True))
    ]
    tale.wait(10 * 3600)
    told = []
    for task, at_first in zip(tasks, firsts, strict=True):
        once = task["data"]["rule"]["kind"] == "at"
        told.append(
            (task, delivered(task, at_first, None if once else at_first + DAY, decided=tale.wall), at_first, 0, 0)
        )
    tale.deliver_tasks(told)
    return tale


def test_what_recurs_for_one_session_may_share_a_message() -> None:
    """Recurring tasks come together, in the order in which they are due."""
    two(daily(8), daily(9), (NINE - HOUR, NINE))
    two(daily(9), daily(9), (NINE, NINE))


def test_another_order_of_a_batch_is_noticed() -> None:
    """A batch of tasks is in the order of their next occurrences."""
    with breaks(NAME, "another order"):
        two(daily(9), daily(8), (NINE, NINE - HOUR))


def test_what_happens_once_has_a_message_of_its_own() -> None:
    """A task that comes due once shares its message with no other."""
    with breaks(NAME, "share a message"):
        two(daily(8), at(NINE), (NINE - HOUR, NINE))


# What is not judged ---------------------------------------------------------------------------


def test_a_rule_that_the_oracle_does_not_cover_is_not_judged() -> None:
    """Local times that shift out of a gap have no plan, so that any numbers pass."""
    tale = TaskTale(suites=[Tasks(TaskSettings(gap=Gap.SHIFT, overlap=Overlap.FIRST))])
    task = tale.make(row("task-1", daily(9, "Europe/Paris"), START + 5 * HOUR))
    tale.wait(6 * 3600)
    tale.deliver_task(task, START + 5 * HOUR, START + 7 * HOUR)


def test_of_a_run_that_is_too_long_the_end_is_judged() -> None:
    """After more than 400 days what was missed of a rule in local time is not counted, but the latest must be right."""
    for days, is_right in ((500, True), (499, False), (499.5, False)):
        tale = TaskTale()
        task = tale.make(row("task-1", daily(9)))
        tale.wait(500 * 86_400 + 36_000)
        occurrence = NINE + int(days * DAY)
        if is_right:
            tale.deliver_task(task, occurrence, NINE + 501 * DAY, missed=7)
        else:
            following = NINE + 500 * DAY
            with breaks(NAME):
                tale.deliver_task(task, occurrence, following, missed=7)


def test_a_rule_that_seldom_comes_due_is_not_judged() -> None:
    """If the next occurrence is too far away to be found, any passes."""
    tale = TaskTale()
    leap = {"kind": "cron", "expression": "0 0 29 2 *", "timeZone": "UTC"}
    tale.make(row("task-1", leap, START + DAY))
