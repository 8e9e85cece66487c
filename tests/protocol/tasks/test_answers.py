from __future__ import annotations

from datetime import UTC, datetime

import pytest

from whenidle_protocol.errors import ReminderCode, TaskCode, ToolError
from whenidle_protocol.recurrence.failures import invalid
from whenidle_protocol.task_answers import (
    conflict,
    delete_answer,
    entry_answer,
    error_answer,
    internal_error,
    limit_reached,
    list_answer,
    not_found,
    persistence_uncertain,
    subagent_session,
    task_answer,
)
from whenidle_protocol.task_delivery import Due, deliver, fail
from whenidle_protocol.task_listing import DamagedTask, TaskListing
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import ListTasks
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_schemas import CREATE, DECLARED, EDIT, LIST, VIEW

from .worlds import HOUR, NOW, ODD_HOURS, RULES, SETTINGS, made

INTERNAL = {
    "code": "internal_error",
    "message": "The scheduled task tool failed unexpectedly. List the tasks to see whether anything changed.",
}

UNCERTAIN = (
    "It could not be confirmed that the scheduled tasks are saved. List them before you try again: the change may "
    "have been made."
)


@pytest.mark.parametrize(
    ("kind", "timing", "scheduled_at", "local"),
    [
        ("after", {"afterSeconds": 90}, "2026-01-01T00:01:30.000Z", "2026-01-01T00:01:30.000+00:00[UTC]"),
        ("at", {}, "2026-01-02T00:00:00.000Z", "2026-01-02T00:00:00.000+00:00[UTC]"),
        ("every", {"everySeconds": 3600}, "2026-01-01T01:00:00.000Z", "2026-01-01T01:00:00.000+00:00[UTC]"),
        (
            "daily",
            {"time": "09:00", "timeZone": "America/New_York"},
            "2026-01-01T14:00:00.000Z",
            "2026-01-01T09:00:00.000-05:00[America/New_York]",
        ),
        (
            "weekly",
            {"time": "18:30:15", "timeZone": "Asia/Tokyo", "weekdays": [1, 5]},
            "2026-01-02T09:30:15.000Z",
            "2026-01-02T18:30:15.000+09:00[Asia/Tokyo]",
        ),
        (
            "cron",
            {"expression": "30 6 * * 1-5", "timeZone": "Europe/Paris"},
            "2026-01-01T05:30:00.000Z",
            "2026-01-01T06:30:00.000+01:00[Europe/Paris]",
        ),
        (
            "rrule",
            {"rrule": ODD_HOURS, "timeZone": "America/New_York"},
            "2026-01-01T14:00:00.000Z",
            "2026-01-01T09:00:00.000-05:00[America/New_York]",
        ),
    ],
)
def test_a_task_is_answered_with_the_fields_of_its_kind(
    kind: str, timing: dict[str, object], scheduled_at: str, local: str
) -> None:
    """In one order, whatever the kind (SPEC 6.3)."""
    assert list(task_answer(made(RULES[kind])).items()) == [
        ("id", "task-1"),
        ("title", "Title"),
        ("prompt", "Do it."),
        ("kind", kind),
        *timing.items(),
        ("scheduledAt", scheduled_at),
        ("scheduledAtLocal", local),
        ("target", "this_session"),
        ("status", "active"),
        ("updatedAt", "2026-01-01T00:00:00.000Z"),
        ("targetSessionId", "s-1"),
    ]


def test_a_delivery_shows_from_the_first_on() -> None:
    """And a failure too."""
    task = made(RULES["every"], TargetKind.NEW)
    assert not {"lastDelivery", "lastFailure", "targetSessionId"} & task_answer(task).keys()
    due = deliver(task, NOW + 1.5 * HOUR, SETTINGS)
    assert isinstance(due, Due)
    assert task_answer(due.after)["lastDelivery"] == {
        "scheduledAt": "2026-01-01T01:00:00.000Z",
        "deliveredAt": "2026-01-01T01:30:00.000Z",
        "targetSessionId": "task-1.at.20260101T010000000Z",
    }
    assert task_answer(fail(due, "Gone."))["lastFailure"] == {
        "scheduledAt": "2026-01-01T01:00:00.000Z",
        "failedAt": "2026-01-01T01:30:00.000Z",
        "targetSessionId": "task-1.at.20260101T010000000Z",
        "reason": "Gone.",
    }


def test_an_ended_task_shows_its_last_occurrence() -> None:
    """In `scheduledAt`, and the same in local time."""
    task = made(read_rrule("DTSTART;TZID=Asia/Tokyo:20260101T170000\nRRULE:FREQ=DAILY;BYHOUR=17,18;COUNT=2"))
    due = deliver(task, datetime(2026, 1, 1, 9, tzinfo=UTC), SETTINGS)
    assert isinstance(due, Due)
    answer = task_answer(due.after)
    assert (answer["status"], answer["scheduledAt"]) == ("ended", "2026-01-01T09:00:00.000Z")
    assert answer["scheduledAtLocal"] == "2026-01-01T18:00:00.000+09:00[Asia/Tokyo]"


def test_a_page_says_how_much_there_is() -> None:
    """What is shown of how many, and for which request; past the end it is empty (SPEC 6.4)."""
    task = made()
    assert list_answer([task], 41, ListTasks(None, 1, 40)) == {
        "items": [task_answer(task)],
        "shown": 1,
        "total": 41,
        "limit": 1,
        "offset": 40,
    }
    empty = {"items": [], "shown": 0, "total": 41, "limit": 100, "offset": 500}
    assert list_answer([], 41, ListTasks(offset=500)) == empty


def test_a_damaged_task_has_its_place_on_a_page() -> None:
    """By its id, with a code of the closed set; why is not for models. It is told from the tasks in Python too."""
    task, damaged = made(), DamagedTask("task-2", "its title is 5")
    listing = TaskListing((task, damaged), 2)
    assert (listing.tasks, listing.damaged) == ((task,), (damaged,))
    answer = list_answer(listing.entries, listing.total, ListTasks())
    assert (answer["shown"], answer["total"]) == (2, 2)
    assert answer["items"] == [
        task_answer(task),
        {
            "id": "task-2",
            "code": "internal_error",
            "message": "This task is damaged and cannot be read. It does not come due, and can only be deleted; "
            "tell the user.",
        },
    ]
    assert entry_answer(damaged) == answer["items"][1]


def test_a_deletion_is_confirmed() -> None:
    """With the id."""
    assert delete_answer("task-1") == {"id": "task-1", "deleted": True}


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (not_found("x"), {"id": "x", "code": "schedule_not_found"}),
        (conflict("x"), {"id": "x", "code": "schedule_conflict"}),
        (
            subagent_session(),
            {
                "code": "subagent_session",
                "message": "Scheduled tasks are managed by the main agent; tell it what to schedule instead of calling "
                "this tool.",
            },
        ),
        (
            limit_reached(5, of_session=False),
            {
                "code": "limit_reached",
                "message": "At most 5 scheduled tasks on this host may be active; pause or delete one first.",
            },
        ),
        (
            persistence_uncertain("list"),
            {
                "code": "persistence_uncertain",
                "message": UNCERTAIN,
                "operation": "list",
            },
        ),
        (
            persistence_uncertain("update", "x"),
            {
                "code": "persistence_uncertain",
                "message": UNCERTAIN,
                "operation": "update",
                "id": "x",
            },
        ),
        (internal_error(), INTERNAL),
    ],
)
def test_a_refusal_word_for_word(error: ToolError, answer: dict[str, str]) -> None:
    """Stable, and a tool that declares the code answers it."""
    assert error.answer() == answer
    assert error.message.endswith(".")
    assert error_answer(error, EDIT) == answer


def test_not_found_and_conflict_tell_people_more() -> None:
    """The host's own API shows their messages."""
    assert not_found("x").message == "There is no scheduled task with that id; list the tasks for theirs."
    assert conflict("x").message == "The task has changed since it was read; view it and decide again."


@pytest.mark.parametrize("tool", [CREATE, LIST, VIEW, EDIT])
@pytest.mark.parametrize("code", [*TaskCode, *ReminderCode])
def test_a_code_that_a_tool_does_not_declare_is_an_internal_error(tool: str, code: TaskCode | ReminderCode) -> None:
    """Its message does not get out either (SPEC 6.9)."""
    error = ToolError(code, "Secret.")
    declared = code.value in {each.value for each in DECLARED[tool]}
    assert error_answer(error, tool) == (error.answer() if declared else INTERNAL)


def test_any_other_failure_is_an_internal_error() -> None:
    """Nothing of it is told; a rule's own refusal is told as it is."""
    assert error_answer(RuntimeError("secret"), CREATE) == INTERNAL
    assert error_answer(invalid("Write another."), CREATE) == {"code": "invalid_rule", "message": "Write another."}
    assert error_answer(invalid("Write another."), LIST) == INTERNAL


def test_the_declared_codes() -> None:
    """Together they are the closed set; only an edit can be a conflict, only a list never misses a task."""
    every = {"subagent_session", "persistence_uncertain", "internal_error"}
    assert set(DECLARED[LIST]) == every
    assert set(DECLARED[VIEW]) == every | {"schedule_not_found"}
    assert set(DECLARED[CREATE]) == set(TaskCode) - {"schedule_not_found", "schedule_conflict"}
    assert set(DECLARED[EDIT]) == set(TaskCode)
