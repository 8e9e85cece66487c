"""Reminders over the end of one process and the start of the next (SPEC 4)."""

from __future__ import annotations

import gc

import pytest

from whenidle_actors.turn import Redelivery

from .worlds import T0, World, create, delete, listed, seconds

DAY = 86_400


@pytest.mark.parametrize("offset", [-0.001, 0, 0.001])
async def test_a_restart_around_the_due_instant_fires_once(world: World, offset: float) -> None:
    """One millisecond before, at the very instant, and one after: one firing, and no period is lost (CASES 12)."""
    async with world.root() as agent:
        await create(agent, "once", after_seconds=300)
        await create(agent, "again", every_seconds=300)
        await world.wait(1)
    world.step(seconds(299 + offset))
    async with world.root():
        await world.wait(0.001)
    async with world.root():
        await world.wait(300.5)
        ledger = await world.ledger()
        assert ledger.delivered == [
            ("schedule-1", T0 + 300_000),
            ("schedule-2", T0 + 300_000),
            ("schedule-2", T0 + 600_000),
        ]


async def test_what_fired_stays_fired_when_the_wall_goes_back_and_the_host_restarts(world: World) -> None:
    """A one-shot that was delivered is never delivered again, whatever the wall shows (CASES 11)."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await world.wait(10)
    world.step(seconds(-DAY))
    async with world.root() as agent:
        assert await listed(agent) == []
        await world.wait(2 * DAY)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_four_hundred_days_with_restarts_and_a_missed_minute(world: World) -> None:
    """Restarted on day 399 and down over the minute it is due, it fires once, late (CASES 13)."""
    async with world.root() as agent:
        await create(agent, after_seconds=400 * DAY)
        await world.wait(5)
    world.step(seconds(399 * DAY))
    async with world.root():
        await world.wait(3600)
    world.step(seconds(2 * DAY))
    for _ in range(2):
        async with world.root():
            await world.wait(10)
            ledger = await world.ledger()
            assert ledger.delivered == [("schedule-1", T0 + 400 * DAY * 1000)]
            assert ledger.deliveries[0].at == T0 + (401 * DAY + 3605) * 1000


async def test_four_hundred_days_of_waiting_take_no_real_time(world: World) -> None:
    """The wait is cut into slices and is exact to the millisecond."""
    world._slice_seconds = 3600
    async with world.root() as agent:
        await create(agent, after_seconds=400 * DAY)
        await world.wait(400 * DAY)
        assert [delivery.at for delivery in (await world.ledger()).deliveries] == [T0 + 400 * DAY * 1000]


async def test_what_was_deleted_does_not_come_back(world: World) -> None:
    """Deleted, restarted, and long past its time: nothing (CASES 24)."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await create(agent, every_seconds=300)
        await delete(agent, "schedule-1")
        await delete(agent, "schedule-2")
    async with world.root() as agent:
        await world.wait(DAY)
        assert await listed(agent) == []
        assert (await world.ledger()).delivered == []


async def test_a_cold_session_is_restored_when_it_comes_due(world: World) -> None:
    """A host that was opened on a store arms what lies in it and makes no agent live before its time."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
    async with world.host() as host:
        assert len(host.agents) == 0
        await world.wait(9)
        assert len(host.agents) == 0
        await world.wait(1)
        assert (await host.agent("root")) in host.agents
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


@pytest.mark.parametrize("promise", Redelivery)
async def test_an_admitted_reminder_whose_turn_was_interrupted_is_not_admitted_again(
    world: World, promise: Redelivery
) -> None:
    """Its message is given to a turn again, marked as redelivered, or not, as the host chose; it is one message."""
    world.turn_seconds = 60
    async with world.root(redelivery=promise) as agent:
        await create(agent, after_seconds=10)
        await world.wait(20)
    async with world.root(redelivery=promise):
        await world.wait(100)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
    again = [(T0 + 20_000, ("m1",), True)] if promise is Redelivery.AT_LEAST_ONCE else []
    assert world.runs == [(T0 + 10_000, ("m1",), False), *again]


@pytest.mark.parametrize("passivate_after", [None, 5])
async def test_a_session_that_is_disposed_gets_no_reminder_until_it_is_restored(
    world: World, passivate_after: float | None
) -> None:
    """Whether its agent is live or was dropped from memory and collected: what came due meanwhile comes then."""
    async with world.host(passivate_after=passivate_after) as host:
        await create(await host.create_agent("root"), after_seconds=100)
        for _ in range(5):
            await world.wait(10)
        gc.collect()
        assert len(host.agents) == (1 if passivate_after is None else 0)
        await host.dispose("root")
        assert host.statistics().alarm.armed == 0
        await world.wait(1000)
        assert (world.runs, host.agents) == ([], ())
        await host.agent("root")
        await world.wait(0)
        assert [at for at, _, _ in world.runs] == [T0 + 1_050_000]
