"""Generated tasks, for property tests."""

from __future__ import annotations

from datetime import time
from typing import Any

from hypothesis import strategies as st

from tests.protocol.strategies import instants, texts, trimmed
from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_record import LastDelivery, LastFailure, Target, TargetKind, Task, TaskStatus
from whenidle_protocol.task_rules import read_rrule

from .worlds import EVENING, ODD_HOURS, TWICE

zones = st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"])
times = st.builds(time, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
crons = st.sampled_from(["* * * * *", "30 6 * * 1-5", "0 0 29 2 *", "*/7 9-17 1,15 JAN-MAR MON"])
seconds = st.integers(60, 10_000_000)
rrules = st.sampled_from([EVENING, ODD_HOURS, TWICE]).map(read_rrule)

rules: st.SearchStrategy[Any] = st.one_of(
    st.builds(AfterRule, seconds, instants),
    st.builds(AtRule, instants),
    st.builds(EveryRule, seconds, instants),
    st.builds(DailyRule, times, zones, start=st.none() | instants),
    st.builds(WeeklyRule, times, zones, st.lists(st.integers(1, 7), min_size=1), start=st.none() | instants),
    st.builds(CronRule, crons, zones),
    rrules,
)
ids = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._:-]{0,63}", fullmatch=True)
targets = st.one_of(
    st.builds(Target, st.just(TargetKind.THIS_SESSION), ids),
    st.builds(Target, st.just(TargetKind.NEW_ONCE), ids, texts, texts, st.booleans()),
    st.builds(Target, st.just(TargetKind.NEW), st.none(), texts, texts),
)
counts = st.integers(0, 2**53 - 1)
tasks = st.builds(
    Task,
    id=ids,
    title=trimmed,
    prompt=trimmed,
    rule=rules,
    target=targets,
    status=st.sampled_from(TaskStatus),
    scheduled_at=instants,
    created_at=instants,
    updated_at=instants,
    creator=st.just("") | ids,
    gap=st.none() | st.sampled_from(Gap),
    overlap=st.none() | st.sampled_from(Overlap),
    catch_up_seconds=st.none() | counts,
    deliveries=counts,
    missed=counts,
    skipped=counts,
    failures=counts,
    covered_at=st.none() | instants,
    last_delivery=st.none() | st.builds(LastDelivery, instants, instants, ids),
    last_failure=st.none() | st.builds(LastFailure, instants, instants, ids, texts),
)
