"""The arguments of the tools: each call is a request, or a refusal with a declared code."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target, check_refusal, joined
from whenidle_actors import reminder_calls
from whenidle_protocol import task_tools
from whenidle_protocol.errors import ReminderCode, TaskCode, ToolError
from whenidle_protocol.schedule_change import Create, decode_change, encode_change
from whenidle_protocol.task_changes import create
from whenidle_protocol.task_codec import decode_task, encode_task
from whenidle_protocol.task_requests import MAX_TITLE, CreateTask, ListTasks, UpdateTask
from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings
from whenidle_protocol.tools import MAX_PROMPT_BYTES, CreateRequest, make_reminder, reminder_answer
from whenidle_protocol.white_space import trim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)

_REMINDER_NAMES: Final = ("prompt", "after_seconds", "at", "every_seconds", "id", "date", "time", "time_zone")
_TASK_NAMES: Final = (
    *("title", "prompt", "rrule", "target", "id", "action"),
    *("active", "limit", "offset", "expectedUpdatedAt"),
)
_RRULE: Final = "DTSTART;TZID=Europe/Paris:20300131T090000\nRRULE:FREQ=DAILY"


def _arguments(choices: Choices, names: Sequence[str]) -> Any:
    """Return what a call may be given, mostly an object with the right names."""
    if choices.below(16) == 1:
        return choices.value()
    given = {
        choices.of(names) if choices.below(8) else choices.text(): choices.value() for _ in range(choices.below(6))
    }
    if "at" in given and choices.flag():
        given["at"] = {name: choices.text() for name in ("date", "time", "time_zone")}
    return given


def _reminder_tools(data: bytes) -> None:
    choices = Choices(data)
    tool, fixed_rate = choices.of(("schedule_create", "schedule_list", "schedule_delete")), not choices.below(4)
    given = _arguments(choices, _REMINDER_NAMES)
    before = repr(given)
    try:
        request = reminder_calls.read(tool, given, fixed_rate=fixed_rate)
    except ToolError as error:
        check_refusal(error, set(ReminderCode))
        return
    finally:
        assert repr(given) == before, "the arguments were changed"
    if isinstance(request, CreateRequest):
        _check_prompt(request.prompt)
        _make_reminder(request)


def _make_reminder(request: CreateRequest) -> None:
    try:
        reminder = make_reminder(request, "schedule-1", NOW)
    except ToolError as error:
        check_refusal(error, {ReminderCode.NOT_FUTURE, ReminderCode.TIME_OUT_OF_RANGE})
        return
    assert reminder.scheduled_at > NOW
    assert decode_change(encode_change(Create(reminder))) == Create(reminder)
    assert reminder_answer(reminder, NOW)["state"] == "scheduled"


def _check_prompt(prompt: str) -> None:
    assert prompt == trim(prompt) != ""
    assert len(prompt.encode("utf-8", "surrogatepass")) <= MAX_PROMPT_BYTES


_READERS: Final[Sequence[Callable[[Any], Any]]] = (
    task_tools.read_create,
    task_tools.read_list,
    task_tools.read_view,
    task_tools.read_edit,
)


def _task_tools(data: bytes) -> None:
    choices = Choices(data)
    read, given = choices.of(_READERS), _arguments(choices, _TASK_NAMES)
    if choices.flag() and isinstance(given, dict):
        given = {"title": "x", "prompt": "y", "rrule": _RRULE, "target": "new", **given}
    before = repr(given)
    try:
        request = read(given)
    except ToolError as error:
        check_refusal(error, set(TaskCode))
        return
    finally:
        assert repr(given) == before, "the arguments were changed"
    match request:
        case CreateTask():
            _make_task(request)
        case ListTasks():
            assert 1 <= request.limit <= 500
            assert request.offset >= 0
        case UpdateTask(title=str() as title):
            assert title == trim(title)
        case _:
            pass


def _make_task(request: CreateTask) -> None:
    _check_prompt(request.prompt)
    assert 1 <= len(request.title) <= MAX_TITLE
    try:
        task = create(request, Caller("s-1"), NOW, "task-1", TaskSettings(), ActiveCounts())
    except ToolError as error:
        check_refusal(error, set(TaskCode))
        return
    text = encode_task(task)
    assert decode_task(text) == attrs.evolve(task, title=joined(task.title), prompt=joined(task.prompt))
    text.encode()


_PROMPT: Final = b"\1\0\0\0\5"
_WITH_SPACE: Final = b"\1\0\0\1\3"
REMINDER_TOOLS: Final = Target(
    "reminder-tools",
    _reminder_tools,
    (
        b"\0\0\0\2" + _WITH_SPACE + b"\1\1\2\3\5",
        b"\0\0\0\2" + _PROMPT + b"\1\3\2\0\14",
        b"\0\0\0\2" + _PROMPT + b"\1\2\0\0\13",
        b"\0\0\0\2" + _PROMPT + b"\1\2\0\0\0\1\0\17\0\20\0\22",
        b"\0\0\0\1\0\1\2",
        b"\1\0\0\0",
        b"\2\0\0\1\1\4\0\0\3",
        b"\0\0\1\7\377",
    ),
)
_ID: Final = b"\1\4\0\0\4"
TASK_TOOLS: Final = Target(
    "task-tools",
    _task_tools,
    (
        b"\0\0\0\1",
        b"\0\0\1\1\2\0\0\26\1",
        b"\0\0\1\0\1\2\0\0\0\1",
        b"\1\0\1\1\7\2\0\12",
        b"\2\0\1" + _ID,
        b"\3\0\2" + _ID + b"\1\5\0\0\12",
        b"\3\0\3" + _ID + b"\1\5\0\0\11" + _WITH_SPACE,
    ),
)
