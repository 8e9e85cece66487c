"""The text of a stored task: read as what it is by both readers, or refused by both."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.choices import Choices, free_text
from tests.fuzz.target import Target, check_line
from whenidle_actors.errors import StoreDamaged
from whenidle_actors.stores.task_rows import TaskRow
from whenidle_actors.task_rows import from_row, to_row
from whenidle_protocol import task_codec
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_codec import CorruptTask, encode_task
from whenidle_protocol.task_delivery import deliver
from whenidle_protocol.task_record import LastDelivery, LastFailure, TargetKind, Task, TaskStatus
from whenidle_protocol.task_record import Target as TaskTarget
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_settings import TaskSettings
from whenidle_protocol.task_text import read_task

if TYPE_CHECKING:
    from whenidle_protocol.rules.kinds import Rule

_AT: Final = datetime(2030, 1, 31, 9, tzinfo=UTC)
_RULES: Final[tuple[Rule, ...]] = (
    EveryRule(3600, anchor=_AT),
    AtRule(_AT),
    DailyRule("09:00", "Europe/Paris"),
    WeeklyRule("18:30:15", "Asia/Tokyo", (1, 5), start=_AT),
    CronRule("30 6 * * 1-5", "America/New_York"),
    read_rrule("DTSTART;TZID=Europe/Paris:20300131T090000\nRRULE:FREQ=MONTHLY;BYDAY=-1SU"),
)


def _stored_tasks(data: bytes) -> None:
    choices = Choices(data)
    text = free_text(choices.rest()) if choices.below(8) == 1 else _text(choices)
    text = text.encode("utf-8", "replace").decode()  # a store holds no other
    fast = read_task(text)
    try:
        task = task_codec._read_slowly(text)
    except CorruptTask as refusal:
        check_line(str(refusal))
        _check_refused(text, fast)
        return
    assert fast in {None, task}, "the two readers differ"
    assert task_codec.decode_task(encode_task(task)) == task
    assert encode_task(task_codec.decode_task(encode_task(task))) == encode_task(task)
    assert from_row(to_row(task)) == task
    deliver(task, _AT, TaskSettings())
    deliver(task, datetime(2031, 12, 31, 23, 59, 59, tzinfo=UTC), TaskSettings(catch_up_seconds=60))


def _check_refused(text: str, fast: Task | None) -> None:
    assert fast is None, "the quick reader took what the careful one refuses"
    try:
        from_row(TaskRow("task-1", text, 0))
    except StoreDamaged as damage:
        check_line(str(damage))
    else:
        raise AssertionError("a store's row took it")


def _text(choices: Choices) -> str:
    """Return the text of a task in which some values are others."""
    value: dict[str, Any] = json.loads(encode_task(_task(choices)))
    for _ in range(choices.below(4)):
        inside = value[choices.of(("rule", "target"))] if choices.below(3) == 1 else value
        if not isinstance(inside, dict):
            continue
        name = choices.of(tuple(inside)) if choices.below(4) and inside else choices.text()
        if choices.below(4) == 1:
            inside.pop(name, None)
            value.setdefault("rule", {})
            value.setdefault("target", {})
        else:
            inside[name] = choices.value()
    try:
        return json.dumps(value, ensure_ascii=choices.flag())
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _task(choices: Choices) -> Task:
    kind = choices.of(tuple(TargetKind))
    return Task(
        id="task-1",
        title=choices.of(("Digest", "a\u2028b", "\U0001f600")),
        prompt="Sum up.",
        rule=choices.of(_RULES),
        target=TaskTarget(kind, None if kind is TargetKind.NEW else "s-1", "/home" if kind is TargetKind.NEW else ""),
        status=choices.of(tuple(TaskStatus)),
        scheduled_at=_AT,
        created_at=_AT,
        updated_at=_AT,
        creator="s-1",
        deliveries=choices.below(3),
        last_delivery=LastDelivery(_AT, _AT, "s-1") if choices.flag() else None,
        last_failure=LastFailure(_AT, _AT, "s-1", "gone") if choices.flag() else None,
    )


STORED_TASKS: Final = Target(
    "stored-tasks",
    _stored_tasks,
    (
        b"",
        *(bytes([0, number % 3, number % 3, number, number % 3, 1, number % 2, number % 2]) for number in range(6)),
        b"\0\0\0\0\0\0\0\0\1\0\1\4\2\0\5",
        b"\0\1\1\2\1\0\1\1\2\1\0\1\1\2\0\6\1\1\0\1\0\1\3",
        b"\1" + encode_task(_task(Choices(b""))).encode(),
    ),
)
