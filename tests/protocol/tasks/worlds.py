"""Tasks, callers and refusals for the tests of the task protocol."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from whenidle_protocol.errors import ToolError
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_changes import create
from whenidle_protocol.task_record import Target, TargetKind, Task, TaskStatus
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY, MILLISECOND = timedelta(hours=1), timedelta(days=1), timedelta(milliseconds=1)
CALLER = Caller("s-1", cwd="/home/ada", preset="work")
SETTINGS = TaskSettings()
NONE_YET = ActiveCounts()

HOURLY = EveryRule(3600)
EVENING = "DTSTART;TZID=Europe/Paris:20260101T190000\nRRULE:FREQ=DAILY"
ODD_HOURS = "DTSTART;TZID=America/New_York:20260101T090000\nRRULE:FREQ=DAILY;BYHOUR=9,15"
TWICE = "DTSTART:20260102T000000Z\nRRULE:FREQ=DAILY;COUNT=2"

RULES = {
    "after": AfterRule(90),
    "at": AtRule(NOW + DAY),
    "every": HOURLY,
    "daily": DailyRule("09:00", "America/New_York"),
    "weekly": WeeklyRule("18:30:15", "Asia/Tokyo", (1, 5)),
    "cron": CronRule("30 6 * * 1-5", "Europe/Paris"),
    "rrule": read_rrule(ODD_HOURS),
}


def made(rule: Any = HOURLY, target: TargetKind = TargetKind.THIS_SESSION, now: datetime = NOW, **more: Any) -> Task:
    """Return a task as `schedule_create` makes it."""
    settings = more.pop("settings", SETTINGS)
    request = CreateTask(more.pop("title", "Title"), more.pop("prompt", "Do it."), rule, target, **more)
    return create(request, CALLER, now, "task-1", settings, NONE_YET)


def kept(**fields: Any) -> Task:
    """Return a task of whatever state."""
    values: dict[str, Any] = {
        "id": "task-1",
        "title": "Title",
        "prompt": "Do it.",
        "rule": HOURLY,
        "target": Target(TargetKind.THIS_SESSION, "s-1"),
        "status": TaskStatus.ACTIVE,
        "scheduled_at": NOW + HOUR,
        "created_at": NOW,
        "updated_at": NOW,
        "creator": "s-1",
    }
    return Task(**{**values, **fields})


def refused(call: Any, *arguments: Any, **options: Any) -> ToolError:
    """Return the error of a call that is refused; its message is a sentence."""
    with pytest.raises(ToolError) as caught:
        call(*arguments, **options)
    assert caught.value.message.endswith(".")
    return caught.value
