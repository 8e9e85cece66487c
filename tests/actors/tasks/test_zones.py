"""Tasks in local time, through the service and around clock changes (SPEC 1.6, 6.6; CASES 1, 2, 4, 6, 26, 28)."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from whenidle_actors.tasks import Tasks
from whenidle_clock import Gap
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.task_record import TaskStatus
from whenidle_protocol.task_settings import TaskSettings

from .worlds import NEW, TaskWorld, call, create, ical

LOCAL = datetime


async def _delivered(world: TaskWorld, *, start: datetime, for_: timedelta, by: timedelta) -> list[str]:
    """Let the wall run from `start` in steps, and return the occurrences that were delivered."""
    end = start + for_
    while world.now() < end:
        world.suspend(by)
        await world.wait(0)
    return [
        datetime.fromtimestamp(each.occurrence / 1000, UTC).strftime("%m-%dT%H:%MZ")
        for each in (await world.account()).deliveries
    ]


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (Gap.SKIP, ["03-07T07:30Z", "03-09T06:30Z"]),
        (Gap.SHIFT, ["03-07T07:30Z", "03-08T07:30Z", "03-09T06:30Z"]),
    ],
)
async def test_a_daily_task_in_a_gap(world: TaskWorld, gap: Gap, expected: list[str]) -> None:
    """02:30 in New York on the day clocks go forward: none, or one at 07:30Z (CASES 1)."""
    start = datetime(2026, 3, 7, tzinfo=UTC)
    world.set_wall(start)
    async with world.root(suite=Tasks(TaskSettings(gap=gap))) as agent:
        await create(agent, rrule=ical(LOCAL(2026, 3, 1, 2, 30), "FREQ=DAILY", "America/New_York"))
        found = await _delivered(world, start=start, for_=timedelta(days=3), by=timedelta(minutes=30))
        assert found == expected


async def test_an_hourly_task_when_clocks_go_back(world: TaskWorld) -> None:
    """All gaps are exactly one hour (CASES 2)."""
    start = datetime(2026, 11, 1, 3, tzinfo=UTC)
    world.set_wall(start)
    async with world.root() as agent:
        await create(agent, rrule=ical(LOCAL(2026, 11, 1), "FREQ=HOURLY", "America/New_York"))
        found = await _delivered(world, start=start, for_=timedelta(hours=6), by=timedelta(minutes=30))
        assert found == [f"11-01T{hour:02}:00Z" for hour in range(4, 10)]


@pytest.mark.parametrize(("zone", "change"), [("Europe/Dublin", (10, 25)), ("Africa/Casablanca", (2, 15))])
async def test_instants_increase_over_awkward_changes(world: TaskWorld, zone: str, change: tuple[int, int]) -> None:
    """Every half hour over the change: strictly increasing, none twice (CASES 6)."""
    start = datetime(2026, *change, tzinfo=UTC)
    world.set_wall(start)
    async with world.root() as agent:
        rule = ical(LOCAL(2026, 1, 1), "FREQ=MINUTELY;INTERVAL=30", zone)
        assert (await create(agent, rrule=rule))["kind"] == "rrule"
        found = await _delivered(world, start=start, for_=timedelta(hours=8), by=timedelta(minutes=10))
        assert found == sorted(set(found))
        assert len(found) == 16


async def test_all_hours_of_a_rule_are_used(world: TaskWorld) -> None:
    """Several BYHOUR values (CASES 26)."""
    start = datetime(2026, 6, 1, tzinfo=UTC)
    world.set_wall(start)
    async with world.root() as agent:
        await create(agent, rrule=ical(LOCAL(2026, 6, 1, 9), "FREQ=DAILY;BYHOUR=9,11,17", "Europe/Paris"))
        found = await _delivered(world, start=start, for_=timedelta(days=2), by=timedelta(minutes=30))
        assert found == [f"06-0{day}T{hour}:00Z" for day in (1, 2) for hour in ("07", "09", "15")]


async def test_an_alias_of_a_zone_means_the_same(world: TaskWorld) -> None:
    """Asia/Calcutta is Asia/Kolkata (CASES 28)."""
    async with world.root() as agent:
        one, other = [
            await create(agent, rrule=ical(LOCAL(2026, 6, 1, 9), "FREQ=DAILY", zone))
            for zone in ("Asia/Calcutta", "Asia/Kolkata")
        ]
        assert one["scheduledAt"] == other["scheduledAt"] == "2026-06-01T03:30:00.000Z"
        assert one["scheduledAtLocal"] == "2026-06-01T09:00:00.000+05:30[Asia/Calcutta]"


async def test_a_rule_that_reaches_the_end_of_time_ends(world: TaskWorld) -> None:
    """Weekly on Saturdays and Sundays up to 9999-12-31 (CASES 4)."""
    start = datetime(9999, 12, 24, tzinfo=UTC)
    world.set_wall(start)
    async with world.root() as agent:
        made = await create(agent, rrule=ical(datetime(2026, 1, 1, tzinfo=UTC), "FREQ=WEEKLY;BYDAY=SA,SU"))
        found = await _delivered(world, start=start, for_=timedelta(days=7), by=timedelta(hours=12))
        assert found == ["12-25T00:00Z", "12-26T00:00Z"]
        assert (await call(agent, "view", id=made["id"]))["status"] == "ended"


async def test_a_committed_target_is_not_recomputed(world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart under other policies the target stays; later ones are computed anew (SPEC 1.6)."""
    world.set_wall(datetime(2026, 3, 8, tzinfo=UTC))
    rule = DailyRule(time=time(2, 30), time_zone="America/New_York")
    async with world.root(suite=Tasks(TaskSettings(gap=Gap.SHIFT))):
        task = await world.make(rule)
        assert task.scheduled_at == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)
    async with world.host():
        found = await _delivered(world, start=world.now(), for_=timedelta(days=2), by=timedelta(minutes=30))
        assert found == ["03-08T07:30Z", "03-09T06:30Z"]


async def test_a_task_keeps_policies_of_its_own(world: TaskWorld) -> None:
    """The host skips gaps; this task shifts over them."""
    start = datetime(2026, 3, 7, 12, tzinfo=UTC)
    world.set_wall(start)
    async with world.host():
        rule = DailyRule(time=time(2, 30), time_zone="America/New_York")
        shifts, skips = await world.make(rule, NEW, by="", gap=Gap.SHIFT), await world.make(rule, NEW, by="")
        await _delivered(world, start=start, for_=timedelta(days=1), by=timedelta(hours=1))
        assert ((await world.view(shifts)).deliveries, (await world.view(skips)).deliveries) == (1, 0)
        assert (await world.view(skips)).status is TaskStatus.ACTIVE
