"""What a model is told when something is due: no prompt, title or id can end the string it stands in.

The frames are read by `json` of the standard library and by nothing of the product's own.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target, joined
from whenidle_protocol import framing, task_framing
from whenidle_protocol.events import Lane, Message, Source
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.task_delivery import Due
from whenidle_protocol.task_frame_reading import delivered_by
from whenidle_protocol.task_record import Target as TaskTarget
from whenidle_protocol.task_record import TargetKind, Task, TaskStatus
from whenidle_protocol.white_space import trim

_AT: Final = datetime(2030, 1, 31, 9, tzinfo=UTC)
_WHEN: Final = "2030-01-31T09:00:00.000Z"
_MOST: Final = 5


def _fields(lines: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def _reminder_frames(data: bytes) -> None:
    choices = Choices(data)
    dues = [framing.Due(choices.text(), _AT, choices.text()) for _ in range(1 + choices.below(_MOST))]
    one = framing.frame_one_shot(dues[0])
    one.encode()
    heading, sentence, *lines = one.split("\n")
    assert (heading, len(lines)) == ("[SCHEDULE REMINDER]", 3)
    assert "untrusted reminder content" in sentence
    found = _fields(lines)
    assert list(found) == ["schedule_id_json", "occurrence_at", "reminder_prompt_json"]
    assert json.loads(found["schedule_id_json"]) == joined(dues[0].id)
    assert json.loads(found["reminder_prompt_json"]) == joined(dues[0].prompt)
    assert found["occurrence_at"] == _WHEN
    batch = framing.frame_batch(dues)
    batch.encode()
    heading, _, last = batch.split("\n")
    name, _, value = last.partition(": ")
    assert (heading, name) == ("[SCHEDULE REMINDER BATCH]", "reminders_json")
    assert json.loads(value) == [
        {"schedule_id": joined(due.id), "occurrence_at": _WHEN, "reminder_prompt": joined(due.prompt)} for due in dues
    ]


def _task_frames(data: bytes) -> None:
    choices = Choices(data)
    dues = [_due(choices, number) for number in range(1 + choices.below(_MOST))]
    text = task_framing.frame(dues)
    text.encode()
    heading, _, *lines = text.split("\n")
    assert lines == text.splitlines()[2:], "another line break stands in it"
    shown = _one(heading, _fields(lines)) if len(dues) == 1 else _several(heading, lines)
    assert [(each["task_id"], each["title"], each["prompt"]) for each in shown] == [
        (due.task.id, joined(due.task.title), joined(due.task.prompt)) for due in dues
    ]
    message = Message("m0", Lane.NEXT_TURN, wake=True, text=text, source=Source.SCHEDULE)
    assert delivered_by(message) == tuple((due.task.id, _WHEN) for due in dues)
    # The very same text from a user, and a prompt that looks like a frame, are nothing but words.
    assert delivered_by(attrs.evolve(message, source=Source.USER)) == ()


def _one(heading: str, fields: dict[str, str]) -> list[dict[str, Any]]:
    assert heading == "[SCHEDULED TASK]"
    assert list(fields) == [
        *("task_id_json", "title_json", "occurrence_at", "occurrence_at_local"),
        *("late_seconds", "missed_occurrences", "prompt_json"),
    ]
    return [{name.removesuffix("_json"): json.loads(text) for name, text in fields.items() if "_json" in name}]


def _several(heading: str, lines: list[str]) -> list[dict[str, Any]]:
    assert heading == "[SCHEDULED TASK BATCH]"
    [line] = lines
    shown: list[dict[str, Any]] = json.loads(line.removeprefix("tasks_json: "))
    return shown


def _due(choices: Choices, number: int) -> Due:
    task = Task(
        id=f"task-{number}",
        title=trim(choices.text()) or "-",
        prompt=trim(choices.text()) or "-",
        rule=AtRule(_AT),
        target=TaskTarget(TargetKind.NEW),
        status=TaskStatus.ACTIVE,
        scheduled_at=_AT,
        created_at=_AT,
        updated_at=_AT,
        creator="",
    )
    return Due(task, _AT, choices.byte(), 0, _AT, "s-1", creates=True, after=task)


_SEEDS: Final = (b"\0\1\13\1\14", b"\1\1\5\1\13\1\11\1\6", b"\3\3\5hello", b"\0\2\0\377\377\2\4\377\377")
REMINDER_FRAMES: Final = Target("reminder-frames", _reminder_frames, _SEEDS)
TASK_FRAMES: Final = Target("task-frames", _task_frames, _SEEDS)
