"""Reminders under a wall clock that is set back, jumps, sleeps and drifts (SPEC 1.3, 5.8)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from .worlds import T0, World, create, seconds, settled

HOUR = 3600


async def test_every_five_minutes_over_a_wall_set_back_one_hour(world: World) -> None:
    """No early firing and no repeat: it goes on at its aligned targets when their time comes (CASES 7)."""
    async with world.root() as agent:
        await create(agent, every_seconds=300)
        await world.wait(1000)
        world.step(seconds(-HOUR))
        await world.wait(HOUR + 199)
        before = await world.ledger()
        assert [delivery.occurrence - T0 for delivery in before.deliveries] == [300_000, 600_000, 900_000]
        await world.wait(601)
        after = await world.ledger()
        assert [delivery.occurrence - T0 for delivery in after.deliveries[3:]] == [1_200_000, 1_500_000, 1_800_000]
        assert [delivery.at - delivery.occurrence for delivery in after.deliveries] == [0] * 6


@pytest.mark.parametrize("announce", [True, False])
async def test_a_one_shot_that_passes_while_the_machine_sleeps(world: World, announce: bool) -> None:
    """It fires on resume, at once if the resume is announced, within one slice if not, and once (CASES 10)."""
    async with world.root() as agent:
        await create(agent, after_seconds=HOUR)
        await world.wait(10)
        world.suspend(seconds(10 * HOUR), announce=announce)
        await settled()
        assert len(world.runs) == int(announce)
        await world.wait(world.slice_seconds)
        assert len(world.runs) == 1
        await world.wait(24 * HOUR)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + HOUR * 1000)]


@pytest.mark.parametrize("announce", [True, False])
async def test_a_wall_set_back_puts_a_one_shot_off(world: World, announce: bool) -> None:
    """It fires when the wall shows its target, not when so many seconds have passed."""
    async with world.root() as agent:
        await create(agent, after_seconds=100)
        await world.wait(99)
        world.step(seconds(-50), announce=announce)
        await world.wait(50.999)
        assert world.runs == []
        await world.wait(0.001)
        assert [at for at, _, _ in world.runs] == [T0 + 100_000]


async def test_a_rollback_while_it_waits_for_idle_makes_it_wait_for_the_wall(world: World) -> None:
    """What was due when a turn ran, and is not when the turn ends, comes at its time."""
    world.turn_seconds = 60
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await agent.followup("work")
        await world.wait(20)
        world.step(seconds(-HOUR))
        await world.wait(HOUR - 10.001)
        assert len(world.runs) == 1
        await world.wait(0.001)
        assert [at for at, _, _ in world.runs] == [T0, T0 + 10_000]


async def test_a_jump_to_the_year_2200_is_one_delivery_each(world: World) -> None:
    """A forward jump fires what it passed at once, and once, and the next target lies beyond it."""
    async with world.root() as agent:
        await create(agent, "again", every_seconds=300)
        await create(agent, "once", after_seconds=60)
        world.set_wall(datetime(2200, 1, 1, 0, 1, tzinfo=UTC))
        await world.wait(239)
        ledger = await world.ledger()
        assert [delivery.prompt for delivery in ledger.deliveries] == ["once", "again"]
        await world.wait(1)
        assert [delivery.prompt for delivery in (await world.ledger()).deliveries] == ["once", "again", "again"]


@pytest.mark.parametrize("ppm", [50_000, -50_000])
async def test_a_wall_that_drifts_is_followed_to_the_millisecond(world: World, ppm: int) -> None:
    """Wall time decides, however long that is in monotonic seconds; never a millisecond early."""
    async with world.root() as agent:
        world.drift_ppm = ppm
        await create(agent, after_seconds=HOUR)
        await world.wait(HOUR / (1 + ppm / 1e6) + 1)
        (delivery,) = (await world.ledger()).deliveries
        assert 0 <= delivery.at - delivery.occurrence < 1000


async def test_a_wall_that_swings_to_and_fro_repeats_nothing(world: World) -> None:
    """Fifty steps over the same targets deliver each occurrence once."""
    async with world.root() as agent:
        await create(agent, every_seconds=300)
        await create(agent, after_seconds=1000)
        for swing in range(50):
            world.step(seconds(700 if swing % 2 else -650), announce=swing % 3 != 0)
            await world.wait(61)
        ledger = await world.ledger()
        occurrences = [when for name, when in ledger.delivered if name == "schedule-1"]
        assert occurrences == sorted(occurrences)
        assert len(ledger.delivered) - len(occurrences) == 1
