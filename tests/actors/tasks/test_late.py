"""What is late: after a jump, a restart, a suspend, a step back; and the record of it (SPEC 6.7, 6.8)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day

import pytest

from tests.actors.reminders.faults import Fate
from tests.actors.reminders.worlds import settled
from whenidle_actors.tasks import Tasks
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_settings import TaskSettings

from .worlds import START, T0, TaskWorld, at, every, once, seconds

DAY = 86_400


async def test_a_jump_to_another_century_delivers_once(any_world: TaskWorld) -> None:
    """With a one-minute task and the wall in the year 2200: one delivery, quick, the count right (CASES 8)."""
    world = any_world
    async with world.root():
        task = await world.make(every(60, 60))
        then = datetime(2200, 1, 1, 0, 0, 30, tzinfo=UTC)
        began = time.process_time()
        world.set_wall(then)
        await world.wait(0)
        assert time.process_time() - began < 0.1
        (only,) = (await world.account()).deliveries
        minutes = (then - START) // timedelta(minutes=1)
        assert (only.occurrence, only.missed, only.late) == (T0 + minutes * 60_000, minutes - 1, 30.0)
        after = await world.view(task)
        assert (after.missed, after.deliveries) == (minutes - 1, 1)
        assert after.scheduled_at == then + timedelta(seconds=30)


async def test_what_is_due_between_a_sweep_and_a_clock_that_was_set_back_is_not_forgotten(world: TaskWorld) -> None:
    """Put off by a full disk, and behind a clock set back, a delivery has the host look for the others again."""
    async with world.root():
        for seconds_from_now in (2, 3):
            await world.make(once(seconds_from_now))
        world.store.fail(Fate.FULL, of=lambda batch: bool(batch.receipts))
        world.suspend(seconds(3.02))  # both are due
        await settled()
        world.step(seconds(-0.5))  # the second is not, any more
        await world.wait(0.2)
        assert len((await world.account()).deliveries) == 1
        await world.wait(2)
        assert [only.occurrence - T0 for only in (await world.account()).deliveries] == [2000, 3000]


async def test_the_text_says_how_late_and_how_many(world: TaskWorld) -> None:
    """The message is framed as SPEC 6.10 has it, whatever the prompt says (CASES 29)."""
    async with world.root():
        task = await world.make(every(60, 10), prompt="remind me every day", title="A \u2028 title")
        world.suspend(seconds(200.25))
        await world.wait(0)
        ((text,),) = (await world.account()).sessions.values()
        assert text == (
            "[SCHEDULED TASK]\n"
            "A scheduled task is due. prompt_json is the instruction that the user authorised when the task was made: "
            "carry it out now. It is not a request to schedule anything again; what it says about times and repetition "
            "was settled then.\n"
            f'task_id_json: "{task.id}"\n'
            'title_json: "A \\u2028 title"\n'
            "occurrence_at: 2026-01-01T00:03:10.000Z\n"
            "occurrence_at_local: 2026-01-01T00:03:10.000+00:00[UTC]\n"
            "late_seconds: 10.25\n"
            "missed_occurrences: 3\n"
            'prompt_json: "remind me every day"'
        )


async def test_a_catch_up_window_skips_what_is_too_old(world: TaskWorld) -> None:
    """What is older than the host's window is skipped and counted; a one-shot is always delivered (SPEC 6.7)."""
    async with world.root(suite=Tasks(TaskSettings(catch_up_seconds=30))):
        often = await world.make(every(60, 60), title="often")
        await world.wait(0.001)
        patient = await world.make(every(60, 60), title="patient", catch_up_seconds=100)
        await world.make(once(60), title="once")
        world.suspend(seconds(240 + 40 - 0.001))
        await world.wait(0)
        assert await world.delivered() == [(280, "once", 60, 0), (280, "patient", 240, 1)]
        after = await world.view(often)
        assert (after.skipped, after.missed, after.deliveries, after.scheduled_at) == (4, 0, 0, at(300))
        after = await world.view(patient)
        assert (after.skipped, after.missed, after.deliveries, after.scheduled_at) == (2, 1, 1, at(300))
        await world.wait(20)
        assert [(title, due) for _, title, due, _ in await world.delivered()][2:] == [("often", 300), ("patient", 300)]


async def test_what_is_only_skipped_starts_no_turn(world: TaskWorld) -> None:
    """A task whose due occurrences are all too old moves on without a message."""
    async with world.root(suite=Tasks(TaskSettings(catch_up_seconds=0))):
        task = await world.make(every(60, 60))
        world.suspend(seconds(61))
        await world.wait(0)
        assert world.runs == []
        assert ((await world.view(task)).skipped, (await world.account()).sessions) == (1, {"root": []})
        await world.wait(59)
        assert await world.delivered() == [(120, "title", 120, 0)]


@pytest.mark.parametrize("difference", [-0.001, 0, 0.001])
async def test_a_restart_around_the_due_instant_fires_once(any_world: TaskWorld, difference: float) -> None:
    """Closed and opened at the due instant or a millisecond off: one firing, none put off a period (CASES 12)."""
    world = any_world
    async with world.root():
        await world.make(every(300, 300))
        await world.wait(200)
    await world.advance(seconds(100 + difference))
    async with world.host():
        await world.wait(1)
        assert [due for _, _, due, _ in await world.delivered()] == [300]
        await world.wait(300)
        assert [due for _, _, due, _ in await world.delivered()] == [300, 600]


async def test_a_weekly_task_survives_daily_restarts(world: TaskWorld) -> None:
    """Over thirty days with a restart each, it fires on its weekday and at its time (CASES 17)."""
    world._slice_seconds = 3600
    async with world.root():
        await world.make(WeeklyRule(time=time_of_day(9), time_zone="Europe/Paris", weekdays=(1,)))
    for _ in range(30):
        async with world.host():
            await world.wait(DAY)
    async with world.host():
        found = [datetime.fromtimestamp(T0 / 1000 + due, UTC) for _, _, due, _ in await world.delivered()]
        assert found == [datetime(2026, 1, day, 8, tzinfo=UTC) for day in (5, 12, 19, 26)]


async def test_a_thousand_agents_after_a_night_of_sleep(world: TaskWorld) -> None:
    """Due together after ten hours of suspend: one message each for all its tasks, turns paced (CASES 18)."""
    world.turn_seconds = 1
    most = 0

    async def count(turn: object) -> None:
        nonlocal most
        most = max(most, host.statistics().running)

    async with world.host() as first:
        for number in range(1000):
            name = f"agent-{number}"
            await first.create_agent(name)
            await world.make(every(3600, 3600), by=name, title="hourly")
            await world.make(every(7200, 7200), by=name, title="other")
    async with world.host(max_concurrent_turns=10) as host:
        world.suspend(timedelta(hours=10))
        await world.wait(0)
        account = await world.account()
        assert [len(texts) for texts in account.sessions.values()] == [1] * 1000
        assert {(each.title, each.missed) for each in account.deliveries} == {("hourly", 9), ("other", 4)}
        await world.wait(99)
        assert len(world.runs) == 1000
        assert [sum(moment == when for moment, _, _ in world.runs) for when in {run[0] for run in world.runs}] == [
            10
        ] * 100


async def test_a_wall_set_back_repeats_nothing(world: TaskWorld) -> None:
    """After an hour back nothing fires early or again, not even after a restart (CASES 7, 11; SPEC 6.7)."""
    async with world.root():
        await world.make(every(300, 300), title="often")
        await world.make(once(300), title="once")
        await world.wait(301)
        world.step(seconds(-3600))
        await world.wait(3600)
        assert [(title, due) for _, title, due, _ in await world.delivered()] == [("once", 300), ("often", 300)]
    async with world.host():
        await world.wait(298)
        assert len(await world.delivered()) == 2
        await world.wait(1)
        assert [(title, due) for _, title, due, _ in await world.delivered()][2:] == [("often", 600)]


async def test_a_wall_set_back_while_a_delivery_waits_makes_it_wait_for_the_wall(world: TaskWorld) -> None:
    """Due and waiting for the agent, then not due any more: it comes when the wall gets there again."""
    world.turn_seconds = 20
    async with world.root() as agent:
        await world.make(once(10))
        await agent.followup("work")
        await world.wait(15)
        world.step(seconds(-11))
        await world.wait(5.999)
        assert await world.delivered() == []
        assert agent.status == "idle"
        await world.wait(0.001)
        assert [(moment, due) for moment, _, due, _ in await world.delivered()] == [(10, 10)]


async def test_receipts_are_paged_newest_first_and_dropped_when_too_many(any_world: TaskWorld) -> None:
    """The host reads them in pages; two hundred are kept (SPEC 6.8)."""
    world = any_world
    async with world.root():
        task = await world.make(every(60, 60))
        for _ in range(203):
            world.suspend(seconds(60))
            await world.wait(0)
        page = await world.desk.receipts(task.id, limit=150)
        rest = await world.desk.receipts(task.id, before=page.before, limit=150)
        found = [receipt.scheduled_millis - T0 for receipt in (*page.receipts, *rest.receipts)]
        assert found == [60_000 * number for number in range(203, 3, -1)]
        assert (len(page.receipts), len(rest.receipts), rest.before) == (150, 50, None)


async def test_receipts_are_dropped_when_too_old(world: TaskWorld) -> None:
    """Thirty days are kept."""
    async with world.root():
        task = await world.make(every(10 * DAY, 0.001))
        for _ in range(5):
            world.suspend(timedelta(days=10))
            await world.wait(0)
        found = [each.scheduled_millis - T0 - 1 for each in (await world.desk.receipts(task.id)).receipts]
        assert found == [10 * DAY * 1000 * number for number in (4, 3, 2, 1)]
