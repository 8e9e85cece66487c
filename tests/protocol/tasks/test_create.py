from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from whenidle_clock.instants import MAX_INSTANT
from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.errors import TaskCode
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_changes import create
from whenidle_protocol.task_record import Target, TargetKind, TaskStatus
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings

from .worlds import CALLER, DAY, HOUR, HOURLY, NONE_YET, NOW, ODD_HOURS, RULES, SETTINGS, TWICE, kept, made, refused


def test_a_new_task_is_active_until_its_first_occurrence() -> None:
    """It keeps who made it and when; nothing is counted yet."""
    task = made()
    assert (task.deliveries, task.missed, task.skipped, task.failures) == (0, 0, 0, 0)
    assert made(RULES["daily"], title="T", prompt="P") == kept(
        title="T",
        prompt="P",
        rule=DailyRule("09:00", "America/New_York"),
        scheduled_at=datetime(2026, 1, 1, 14, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("rule", "stored", "first"),
    [
        (AfterRule(90), AfterRule(90, NOW + timedelta(seconds=90)), NOW + timedelta(seconds=90)),
        (AtRule(NOW + DAY), AtRule(NOW + DAY), NOW + DAY),
        (EveryRule(3600), EveryRule(3600, NOW + HOUR), NOW + HOUR),
        (EveryRule(3600, NOW - 90 * DAY + 0.5 * HOUR), EveryRule(3600, NOW - 90 * DAY + 0.5 * HOUR), NOW + 0.5 * HOUR),
        (EveryRule(3600, NOW + DAY), EveryRule(3600, NOW + DAY), NOW + DAY),
    ],
)
def test_rules_that_count_from_their_making_say_from_when(rule: Any, stored: Any, first: datetime) -> None:
    """An interval without an anchor and a delay count from the decision; what is settled already stays."""
    task = made(rule)
    assert (task.rule, task.scheduled_at) == (stored, first)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("DTSTART;TZID=America/New_York:20260308T090000\nRRULE:FREQ=DAILY;COUNT=1", AtRule),
        ("DTSTART;TZID=Europe/Paris:20260101T190000\nRRULE:FREQ=DAILY", DailyRule),
        ("DTSTART;TZID=Europe/Paris:20260101T190000\nRRULE:FREQ=WEEKLY;BYDAY=MO,FR", WeeklyRule),
        ("DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY;INTERVAL=6", EveryRule),
        (ODD_HOURS, RRuleRule),
    ],
)
def test_a_text_is_stored_as_the_simplest_kind(text: str, stored: type[Any]) -> None:
    """One that means a simpler kind is that kind (SPEC 6.3)."""
    assert type(made(read_rrule(text)).rule) is stored


def test_a_started_rule_begins_with_its_first_future_occurrence() -> None:
    """A DTSTART years ago does not make anything overdue."""
    task = made(read_rrule("DTSTART;TZID=Europe/Paris:20100601T190000\nRRULE:FREQ=DAILY"))
    assert task.scheduled_at == datetime(2026, 1, 1, 18, tzinfo=UTC)


def test_an_occurrence_at_the_moment_of_creation_is_not_future() -> None:
    """The first one is strictly later."""
    task = made(read_rrule("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;COUNT=2"))
    assert task.scheduled_at == NOW + DAY


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (AtRule(NOW), "The time of the task is not in the future; choose a later one."),
        (
            read_rrule("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;COUNT=1"),
            "The time of the task is not in the future; choose a later one.",
        ),
        (
            read_rrule("DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=30"),
            "The rule has no occurrence in the future; give a later UNTIL, a higher COUNT or a later DTSTART.",
        ),
    ],
)
def test_a_rule_that_is_over_is_not_future(rule: Any, message: str) -> None:
    """For one-shots and for rules that ended."""
    error = refused(made, rule)
    assert (error.code.value, error.message) == ("not_future", message)


def test_a_delay_beyond_the_year_9999_is_out_of_range() -> None:
    """As for reminders."""
    assert refused(made, AfterRule(90), now=MAX_INSTANT).code.value == "time_out_of_range"


def test_policies_of_the_task_come_before_those_of_the_host() -> None:
    """02:30 on the day clocks go forward in New York: skipped, or shifted to 03:30 (SPEC 1.6)."""
    rule, eve = DailyRule("02:30", "America/New_York"), datetime(2026, 3, 7, 12, tzinfo=UTC)
    shift = TaskSettings(gap=Gap.SHIFT)
    assert made(rule, now=eve).scheduled_at == datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
    assert made(rule, now=eve, settings=shift).scheduled_at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    assert made(rule, now=eve, gap=Gap.SHIFT).scheduled_at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    assert made(rule, now=eve, settings=shift, gap=Gap.SKIP).scheduled_at == datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
    task = made(rule, gap=Gap.SHIFT, overlap=Overlap.BOTH, catch_up_seconds=60)
    assert (task.gap, task.overlap, task.catch_up_seconds) == (Gap.SHIFT, Overlap.BOTH, 60)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (TargetKind.THIS_SESSION, Target(TargetKind.THIS_SESSION, "s-1")),
        (
            TargetKind.NEW_ONCE,
            Target(TargetKind.NEW_ONCE, "task-1.once.20260101T000000000Z", "/home/ada", "work", created=False),
        ),
        (TargetKind.NEW, Target(TargetKind.NEW, None, "/home/ada", "work")),
    ],
)
def test_a_target_keeps_what_it_needs_of_the_caller(kind: TargetKind, target: Target) -> None:
    """Its session, or the directory and preset for the sessions to be created."""
    assert made(HOURLY, kind).target == target


def test_the_host_itself_has_no_session_to_be_this_one() -> None:
    """It may use the other targets."""
    request = CreateTask("T", "P", HOURLY, TargetKind.THIS_SESSION)
    error = refused(create, request, Caller(""), NOW, "task-1", SETTINGS, NONE_YET)
    assert error.code is TaskCode.INVALID_TARGET
    assert error.message == "There is no calling session to be this_session; choose new_once or new."
    request = attrs.evolve(request, target=TargetKind.NEW)
    task = create(request, Caller("", cwd="/srv"), NOW, "task-1", SETTINGS, NONE_YET)
    assert (task.creator, task.target.cwd) == ("", "/srv")


@pytest.mark.parametrize(
    ("settings", "counts", "message"),
    [
        (
            TaskSettings(max_active=3),
            ActiveCounts(3, 0),
            "At most 3 scheduled tasks on this host may be active; pause or delete one first.",
        ),
        (
            TaskSettings(max_active=9, max_active_per_session=2),
            ActiveCounts(5, 2),
            "At most 2 scheduled tasks created by one session may be active; pause or delete one first.",
        ),
    ],
)
def test_a_host_may_cap_active_tasks(settings: TaskSettings, counts: ActiveCounts, message: str) -> None:
    """In all, and for each creating session."""
    request = CreateTask("T", "P", HOURLY, TargetKind.NEW)
    error = refused(create, request, CALLER, NOW, "task-1", settings, counts)
    assert (error.code, error.message) == (TaskCode.LIMIT_REACHED, message)
    fewer = ActiveCounts(counts.host - 1, counts.creator - 1)
    assert create(request, CALLER, NOW, "task-1", settings, fewer).status is TaskStatus.ACTIVE


def test_the_host_itself_has_no_cap_of_its_own() -> None:
    """The cap of a session is for sessions."""
    request = CreateTask("T", "P", HOURLY, TargetKind.NEW)
    settings = TaskSettings(max_active_per_session=0)
    assert create(request, Caller(""), NOW, "task-1", settings, NONE_YET).active


HALF_HOURLY = "DTSTART;TZID=Europe/Paris:20260101T090000\nRRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0,30"


@pytest.mark.parametrize("rule", [EveryRule(3599), read_rrule(HALF_HOURLY)])
def test_new_sessions_come_at_the_hosts_spacing_at_most(rule: Any) -> None:
    """Other targets may come due more often."""
    spaced = TaskSettings(spacing_seconds=3600)
    error = refused(made, rule, TargetKind.NEW, settings=spaced)
    assert error.code is TaskCode.FREQUENCY_TOO_HIGH
    assert error.message == (
        "A task with the target new may come due at most every 3600 seconds; use a rule that comes due less often, "
        "or the target this_session or new_once."
    )
    assert made(rule, TargetKind.NEW_ONCE, settings=spaced).active
    assert made(rule, TargetKind.NEW).active


@pytest.mark.parametrize("month", [1, 3, 4, 11])
def test_a_daily_rule_keeps_a_spacing_of_one_day_at_any_season(month: int) -> None:
    """The day of 23 hours is one, too; what comes an hour earlier on every day is not."""
    spaced = TaskSettings(spacing_seconds=86_400)
    start = f"DTSTART;TZID=Europe/Paris:2026{month:02}20T090000\nRRULE:"
    for parts in ("FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SA,SU,MO", "FREQ=HOURLY;INTERVAL=24"):
        assert made(read_rrule(start + parts), TargetKind.NEW, settings=spaced).active
    error = refused(made, read_rrule(f"{start}FREQ=HOURLY;INTERVAL=23"), TargetKind.NEW, settings=spaced)
    assert error.code is TaskCode.FREQUENCY_TOO_HIGH


@pytest.mark.parametrize("rule", [EveryRule(3600), AtRule(NOW + DAY), read_rrule(TWICE)])
def test_what_keeps_the_spacing_is_taken(rule: Any) -> None:
    """Exactly the spacing is enough, and so is coming due once or a few times."""
    assert made(rule, TargetKind.NEW, settings=TaskSettings(spacing_seconds=3600)).active
