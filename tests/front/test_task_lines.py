"""Tasks in words."""

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from whenidle import (
    AfterRule,
    AtRule,
    CronRule,
    DailyRule,
    EveryRule,
    RRuleRule,
    Rule,
    TargetKind,
    Task,
    TaskStatus,
    WeeklyRule,
)
from whenidle.cli.task_lines import RULE_LIMIT, columns, details, rule_words, state_line, table
from whenidle_protocol.task_record import LastFailure, Target

NOW = datetime(2026, 3, 8, 10, 0, tzinfo=UTC)
TASK = Task(
    "task-1",
    "Digest",
    "Sum up.",
    DailyRule("09:00", "Europe/Paris"),
    Target(TargetKind.NEW),
    TaskStatus.ACTIVE,
    scheduled_at=NOW + timedelta(hours=3),
    created_at=NOW,
    updated_at=NOW,
    creator="",
)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (AfterRule(90), "once, after 90 s"),
        (AtRule(NOW), "once"),
        (EveryRule(600), "every 600 s"),
        (DailyRule("09:00:30", "Europe/Paris"), "daily 09:00:30 Europe/Paris"),
        (DailyRule("09:00", "UTC"), "daily 09:00 UTC"),
        (WeeklyRule("09:00", "UTC", [7, 1]), "weekly mon,sun 09:00 UTC"),
        (CronRule("*/5 * * * *", "UTC"), "cron */5 * * * * UTC"),
        (RRuleRule.parse("DTSTART:20260307T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=53"), "FREQ=YEARLY;BYWEEKNO=53 UTC"),
    ],
)
def test_a_rule_is_told_in_few_words(rule: Rule, words: str) -> None:
    """Each kind has its own; the zone is named where the rule has one."""
    assert rule_words(rule) == words


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (TaskStatus.ACTIVE, "task-1 is due 2026-03-08T13:00:00.000Z (in 3h 00m)"),
        (TaskStatus.PAUSED, "task-1 is paused"),
        (TaskStatus.ENDED, "task-1 has ended"),
    ],
)
def test_what_becomes_of_a_task_is_one_line(status: TaskStatus, line: str) -> None:
    """It is due, paused or over."""
    assert state_line(attrs.evolve(TASK, status=status), NOW) == line


def test_a_failure_shows_on_its_task() -> None:
    """When it was, whom it was for and why; and an ended task has a last occurrence instead of a next one."""
    failure = LastFailure(NOW, NOW, "bob", "there is no session 'bob'\x1b")
    lines = details(attrs.evolve(TASK, status=TaskStatus.ENDED, failures=1, last_failure=failure), NOW)
    assert r"last failure       2026-03-08T10:00:00.000Z, to session bob: there is no session 'bob'\x1b" in lines
    assert "occurrences        delivered 0, missed 0, skipped 0, failed 1" in lines
    assert "last               2026-03-08T13:00:00.000Z" in lines
    assert "local              2026-03-08T14:00:00.000+01:00[Europe/Paris]" in lines


def test_a_long_rule_is_cut_in_a_table() -> None:
    """The table stays readable; `view` has all of the rule."""
    rule = CronRule(",".join(map(str, range(1, 60, 2))) + " * * * *", "UTC")
    task = attrs.evolve(TASK, rule=rule)
    row = table([task], NOW)[1].plain
    assert f"{rule_words(rule)[:RULE_LIMIT]}…  new sessions  Digest" in row
    assert any(rule_words(rule) in line for line in details(task, NOW))


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """Cells are counted as a terminal shows them, and nothing trails."""
    lines = [line.plain for line in columns(("a", "b", ""), [("日本", "x", ""), ("\x1b", "yy", "z")])]
    assert lines == ["a     b", "日本  x", r"\x1b  yy  z"]
