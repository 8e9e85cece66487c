from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.strategies import json_values
from whenidle_protocol.errors import TaskCode, ToolError
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask, DeleteTask, ListTasks, UpdateTask, ViewTask
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_schemas import DECLARED
from whenidle_protocol.task_settings import Caller
from whenidle_protocol.task_tools import check_caller, check_visible, read_create, read_edit, read_list, read_view
from whenidle_protocol.tools import MAX_PROMPT_BYTES

from .worlds import CALLER, EVENING, kept, refused

CREATE = {"title": "T", "prompt": "P", "rrule": EVENING, "target": "new"}

INTERNAL = TaskCode.INTERNAL_ERROR
TITLE = (TaskCode.INVALID_TITLE, "title must be a string that is not blank.")
LONG_TITLE = (TaskCode.INVALID_TITLE, "title is too long; it may have at most 120 characters. Shorten it.")
PROMPT = (TaskCode.INVALID_PROMPT, "prompt must be a string that is not blank.")
LONG_PROMPT = (
    TaskCode.INVALID_PROMPT,
    "prompt is too long; it may have at most 65536 bytes of UTF-8. Save a shorter one.",
)
TARGET = (TaskCode.INVALID_TARGET, "target must be this_session, new_once or new.")
RRULE = (
    TaskCode.INVALID_RULE,
    'rrule must be a string of two lines like "DTSTART;TZID=Europe/Paris:20300131T090000" and "RRULE:FREQ=DAILY".',
)
FIELDS = [
    ("title", None, TITLE),
    ("title", 5, TITLE),
    ("title", " \ufeff\n", TITLE),
    ("title", "x" * 121, LONG_TITLE),
    ("prompt", None, PROMPT),
    ("prompt", ["p"], PROMPT),
    ("prompt", "\u3000", PROMPT),
    ("prompt", "x" * (MAX_PROMPT_BYTES + 1), LONG_PROMPT),
    ("prompt", "é" * (MAX_PROMPT_BYTES // 2 + 1), LONG_PROMPT),
    ("prompt", "\ud800" * (MAX_PROMPT_BYTES // 3 + 1), LONG_PROMPT),
    ("target", None, TARGET),
    ("target", "NEW", TARGET),
    ("target", "somewhere", TARGET),
    ("target", ["new"], TARGET),
    ("rrule", None, RRULE),
    ("rrule", {"freq": "daily"}, RRULE),
]


def told(call: Any, arguments: Any, **options: Any) -> tuple[Any, str]:
    """Return code and message of a refusal."""
    error = refused(call, arguments, **options)
    return error.code, error.message


# Who calls --------------------------------------------------------------------------------


def test_a_root_agent_may_call() -> None:
    """It is the caller of what follows."""
    assert check_caller(CALLER) is CALLER


def test_without_a_calling_agent_there_is_no_answer_but_an_internal_error() -> None:
    """SPEC 6.1."""
    assert refused(check_caller, None).answer() == {
        "code": "internal_error",
        "message": "The scheduled task tool failed unexpectedly. List the tasks to see whether anything changed.",
    }


def test_a_delegated_agent_is_sent_to_the_main_one() -> None:
    """Whatever it asks: nothing else is looked at before."""
    assert refused(check_caller, Caller("s-1", delegation_depth=1)).answer() == {
        "code": "subagent_session",
        "message": "Scheduled tasks are managed by the main agent; tell it what to schedule instead of calling this "
        "tool.",
    }


def test_what_the_host_hides_is_not_found() -> None:
    """It cannot be told from what does not exist (SPEC 6.1)."""
    task = kept()
    assert check_visible(task, "task-1") is task
    hidden = refused(check_visible, task, "task-1", allowed=False).answer()
    assert hidden == refused(check_visible, None, "task-1").answer()
    assert hidden == {"id": "task-1", "code": "schedule_not_found"}


# schedule_create --------------------------------------------------------------------------


def test_a_create_call_is_read() -> None:
    """Title and prompt without white space around them, the rule as it says, the target by name."""
    call = {"title": "\ufeff T t\n", "prompt": "\u3000a\n\ud800 ", "rrule": EVENING, "target": "new_once"}
    assert read_create(call) == CreateTask("T t", "a\n\ud800", read_rrule(EVENING), TargetKind.NEW_ONCE)


def test_the_longest_title_and_prompt_are_taken() -> None:
    """Counted after trimming: 120 characters, whatever their width, and 64 KiB."""
    request = read_create({**CREATE, "title": " " + "𝄞" * 120, "prompt": "é" * (MAX_PROMPT_BYTES // 2) + " "})
    assert (len(request.title), len(request.prompt)) == (120, MAX_PROMPT_BYTES // 2)


@pytest.mark.parametrize(("name", "value", "answer"), FIELDS)
def test_a_create_call_with_a_wrong_field_is_told_what_to_write(name: str, value: Any, answer: Any) -> None:
    """Word for word, with the field's own code; null and a missing field are wrong too."""
    assert told(read_create, {**CREATE, name: value}) == answer
    if value is None:
        assert told(read_create, {key: each for key, each in CREATE.items() if key != name}) == answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (None, "Give the arguments as an object; the arguments are title, prompt, rrule and target."),
        ([], "Give the arguments as an object; the arguments are title, prompt, rrule and target."),
        ("x", "Give the arguments as an object; the arguments are title, prompt, rrule and target."),
        (
            {**CREATE, "every": 5},
            'There is no argument "every"; the arguments are title, prompt, rrule and target.',
        ),
        (
            {"\ud800" + "x" * 100_000: 1},
            f'There is no argument "\\ud800{"x" * 39}"; the arguments are title, prompt, rrule and target.',
        ),
    ],
)
def test_a_malformed_create_call_is_told_what_to_write(arguments: Any, message: str) -> None:
    """The closed set has no code for it, so it is an internal error; a huge name is not echoed whole."""
    assert told(read_create, arguments) == (INTERNAL, message)


def test_fields_are_looked_at_in_order() -> None:
    """Title, prompt, rule, target: the first that is wrong is told."""
    assert told(read_create, {}) == TITLE
    assert told(read_create, {"title": "T"}) == PROMPT
    assert told(read_create, {"title": "T", "prompt": "P"}) == RRULE
    assert told(read_create, {"title": "T", "prompt": "P", "rrule": EVENING}) == TARGET


def test_the_host_may_want_shorter_prompts() -> None:
    """For new tasks and for edits."""
    message = "prompt is too long; it may have at most 3 bytes of UTF-8. Save a shorter one."
    assert told(read_create, {**CREATE, "prompt": "four"}, max_prompt_bytes=3)[1] == message
    call = {"id": "a", "action": "update", "prompt": "four"}
    assert told(read_edit, call, max_prompt_bytes=3)[1] == message


@pytest.mark.parametrize(
    ("rrule", "code"),
    [
        ("", "invalid_rule"),
        ("RRULE:FREQ=DAILY", "invalid_rule"),
        (f"{EVENING}\nRRULE:FREQ=DAILY", "invalid_rule"),
        ("DTSTART:20260101T090000\nRRULE:FREQ=DAILY", "invalid_rule"),
        ("DTSTART;TZID=EST5:20260101T090000\nRRULE:FREQ=DAILY", "invalid_time_zone"),
        ("DTSTART:20260101T090000Z\nRRULE:FREQ=SECONDLY", "frequency_too_high"),
        ("x" * 100_000, "invalid_rule"),
    ],
)
def test_a_rule_that_is_refused_keeps_its_code(rrule: str, code: str) -> None:
    """What the rules say is what the tool answers, and every such code is declared (CASE 27)."""
    error = refused(read_create, {**CREATE, "rrule": rrule})
    assert error.code.value == code
    assert code in DECLARED["schedule_create"]
    assert len(error.message) < 500


# schedule_list ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "request_"),
    [
        ({}, ListTasks(None, 100, 0)),
        ({"active": True}, ListTasks(True, 100, 0)),
        ({"active": False, "limit": 500, "offset": 7}, ListTasks(False, 500, 7)),
        ({"limit": 1.0, "offset": 0.0}, ListTasks(None, 1, 0)),
        ({"offset": 2**53 - 1}, ListTasks(None, 100, 2**53 - 1)),
    ],
)
def test_a_list_call_is_read(arguments: Any, request_: ListTasks) -> None:
    """All arguments are optional."""
    assert read_list(arguments) == request_


LIMIT, OFFSET = "limit must be a whole number from 1 to 500.", "offset must be a whole number from 0 on."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (None, "Give the arguments as an object; the arguments are active, limit and offset."),
        ({"page": 2}, 'There is no argument "page"; the arguments are active, limit and offset.'),
        ({"limit": 0}, LIMIT),
        ({"limit": 501}, LIMIT),
        ({"limit": "5"}, LIMIT),
        ({"limit": True}, LIMIT),
        ({"limit": None}, LIMIT),
        ({"offset": -1}, OFFSET),
        ({"offset": 0.5}, OFFSET),
        ({"offset": 2**53}, OFFSET),
        ({"offset": None}, OFFSET),
        ({"active": "true"}, "active must be true or false."),
        ({"active": None}, "active must be true or false."),
    ],
)
def test_a_malformed_list_call_is_told_what_to_write(arguments: Any, message: str) -> None:
    """Null is not a way to leave an argument out."""
    assert told(read_list, arguments) == (INTERNAL, message)


# schedule_view ----------------------------------------------------------------------------


def test_a_view_call_is_read() -> None:
    """It names one task."""
    assert read_view({"id": "task-1"}) == ViewTask("task-1")


ID = "id must be the string that schedule_create or schedule_list gave."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give the arguments as an object; the argument is id."),
        ({"id": "a", "x": 1}, 'There is no argument "x"; the argument is id.'),
        ({}, ID),
        ({"id": 5}, ID),
        ({"id": None}, ID),
    ],
)
def test_a_malformed_view_call_is_told_what_to_write(arguments: Any, message: str) -> None:
    """Without an id, or with one that is no string."""
    assert told(read_view, arguments) == (INTERNAL, message)


@pytest.mark.parametrize("value", ["", " task-1", "../etc", "a" * 65, "ä", "'; DROP TABLE tasks; --"])
def test_an_id_that_cannot_be_one_names_no_task(value: str) -> None:
    """It is not looked up, and answered as any id that is not there."""
    for call, arguments in (
        (read_view, {"id": value}),
        (read_edit, {"id": value, "action": "update", "title": "T"}),
        (read_edit, {"id": value, "action": "delete"}),
    ):
        assert refused(call, arguments).answer() == {"id": value, "code": "schedule_not_found"}


def test_a_huge_id_is_not_echoed_whole() -> None:
    """Its beginning is enough to tell which one was meant."""
    assert refused(read_view, {"id": "x" * 10_000}).answer() == {"id": "x" * 128, "code": "schedule_not_found"}


# schedule_edit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"title": " T "}, {"title": "T"}),
        ({"prompt": " P "}, {"prompt": "P"}),
        ({"rrule": EVENING}, {"rule": read_rrule(EVENING)}),
        ({"target": "this_session"}, {"target": TargetKind.THIS_SESSION}),
        ({"active": False}, {"active": False}),
        (
            {"active": True, "expectedUpdatedAt": "2026-01-01T00:00:00.001Z"},
            {"active": True, "expected_updated_at": datetime(2026, 1, 1, 0, 0, 0, 1000, UTC)},
        ),
    ],
)
def test_an_update_call_is_read(arguments: Any, fields: dict[str, Any]) -> None:
    """What it leaves out stays as it is."""
    assert read_edit({"id": "task-1", "action": "update", **arguments}) == UpdateTask("task-1", **fields)


def test_a_delete_call_is_read() -> None:
    """With or without the version it is meant for."""
    call = {"id": "task-1", "action": "delete"}
    assert read_edit(call) == DeleteTask("task-1")
    call["expectedUpdatedAt"] = "2026-01-01T00:00:00.000Z"
    assert read_edit(call) == DeleteTask("task-1", datetime(2026, 1, 1, tzinfo=UTC))


TAKES = "the arguments are id, action, title, prompt, rrule, target, active and expectedUpdatedAt."
VERSION = 'expectedUpdatedAt must be the updatedAt of the task as you read it, like "2030-01-31T09:00:00.000Z".'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (None, f"Give the arguments as an object; {TAKES}"),
        ({"id": "a", "action": "update", "rule": 5}, f'There is no argument "rule"; {TAKES}'),
        ({"id": "a"}, "action must be update or delete."),
        ({"id": "a", "action": "remove"}, "action must be update or delete."),
        ({"id": "a", "action": ["delete"]}, "action must be update or delete."),
        (
            {"id": "a", "action": "update"},
            "action update needs at least one of title, prompt, rrule, target and active.",
        ),
        (
            {"id": "a", "action": "update", "expectedUpdatedAt": "2026-01-01T00:00:00.000Z"},
            "action update needs at least one of title, prompt, rrule, target and active.",
        ),
        (
            {"id": "a", "action": "delete", "title": "T"},
            "action delete takes no title, prompt, rrule, target or active; title given.",
        ),
        (
            {"id": "a", "action": "delete", "active": None, "prompt": 5},
            "action delete takes no title, prompt, rrule, target or active; prompt and active given.",
        ),
        ({"action": "delete"}, ID),
        ({"id": 5, "action": "update", "title": "T"}, ID),
        ({"id": "a", "action": "update", "active": "no"}, "active must be true or false."),
        ({"id": "a", "action": "update", "active": None}, "active must be true or false."),
        ({"id": "a", "action": "delete", "expectedUpdatedAt": None}, VERSION),
        ({"id": "a", "action": "delete", "expectedUpdatedAt": 5}, VERSION),
        ({"id": "a", "action": "update", "title": "T", "expectedUpdatedAt": "2026-01-01T00:00:00Z"}, VERSION),
    ],
)
def test_a_malformed_edit_call_is_told_what_to_write(arguments: Any, message: str) -> None:
    """Unknown fields, none to change, and a delete that also changes something."""
    assert told(read_edit, arguments) == (INTERNAL, message)


@pytest.mark.parametrize(("name", "value", "answer"), FIELDS)
def test_an_edit_call_with_a_wrong_field_is_told_what_to_write(name: str, value: Any, answer: Any) -> None:
    """As in a create call; null is not a way to leave a field out."""
    assert told(read_edit, {"id": "a", "action": "update", name: value}) == answer


names = st.sampled_from(
    ["id", "action", "title", "prompt", "rrule", "target", "active", "limit", "offset", "expectedUpdatedAt"]
)


@given(
    st.sampled_from([read_create, read_list, read_view, read_edit]), json_values | st.dictionaries(names, json_values)
)
def test_any_json_is_read_or_refused(read: Any, arguments: Any) -> None:
    """No input makes a reader fail in another way."""
    message = "Read."
    try:
        read(arguments)
    except ToolError as error:
        message = error.message
    assert message.endswith(".")
