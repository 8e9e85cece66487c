"""Deliveries whose commit fails, or whose outcome is not known (SPEC 3.2, 5.8)."""

from __future__ import annotations

import pytest
import trio
from trio.lowlevel import current_root_task

from whenidle_actors.observation import EventKind

from .faults import Fate, delivers
from .worlds import T0, World, create, listed, settled


def count_tasks() -> int:
    """Count the tasks of this run."""
    found, root = [current_root_task()], 0
    while root < len(found):
        task = found[root]
        root += 1
        if task is not None:
            found += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return root


async def test_a_refused_commit_leaves_the_reminder_active_and_is_tried_again(world: World) -> None:
    """Three refusals put a delivery off by 0.1, then 0.2, then 0.4 seconds; each is announced."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.fail(Fate.REFUSED, Fate.REFUSED, Fate.REFUSED, of=delivers)
        await world.wait(10)
        assert world.count(EventKind.DELIVERY_FAILED) == 1
        await world.wait(0.69)
        assert world.count(EventKind.DELIVERY_FAILED) == 3
        assert (await world.ledger()).delivered == []
        await world.wait(0.02)
        ledger = await world.ledger()
        assert [(delivery.at - T0, delivery.occurrence - T0) for delivery in ledger.deliveries] == [(10_700, 10_000)]
        assert agent.status == "idle"


async def test_a_call_that_finds_the_store_well_has_a_delivery_tried_at_once(world: World) -> None:
    """Whoever waits to try again is woken by a successful preflight (SPEC 5.6)."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.judge = lambda batch: Fate.REFUSED if delivers(batch) else Fate.GOES_WELL
        await world.wait(600)
        world.store.judge = lambda _: Fate.GOES_WELL
        assert [item["state"] for item in await listed(agent)] == ["overdue"]
        await settled()
        assert [delivery.at - T0 for delivery in (await world.ledger()).deliveries] == [600_000]


async def test_a_delivery_waits_at_most_half_a_minute_between_tries(world: World) -> None:
    """With the disk full for an hour, what is due arrives within thirty seconds of there being room (CASES 34)."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.judge = lambda _: Fate.FULL
        await world.wait(3600)
        full = world.count(EventKind.DELIVERY_FAILED)
        assert 3600 / 30 <= full <= 3600 / 30 + 20
        assert (await create(agent, after_seconds=10))["code"] == "persistence_uncertain"
        assert [item["state"] for item in await listed(agent)] == ["overdue"]
        world.store.judge = lambda _: Fate.GOES_WELL
        await world.wait(30)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
        assert (await create(agent, after_seconds=10))["id"] == "schedule-2"
        assert len(world.runs) == 1


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
async def test_a_delivery_of_unknown_outcome_is_read_back(world: World, fate: Fate) -> None:
    """Whether the commit happened or not, there is one message and one turn (CASES 33)."""
    async with world.root() as agent:
        await create(agent, "once", after_seconds=10)
        await create(agent, "again", every_seconds=300)
        world.store.fail(fate, of=delivers)
        await world.wait(20)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
        assert len(world.runs) == 1
        world.store.fail(fate, of=delivers)
        await world.wait(290)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000), ("schedule-2", T0 + 300_000)]
        assert len(world.runs) == 2


async def test_a_kept_delivery_runs_in_the_instant_it_is_read_back(world: World) -> None:
    """A message whose commit was uncertain and durable does not wait for anything else to happen."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.fail(Fate.KEPT, of=delivers)
        await world.wait(10)
        assert [at for at, _, _ in world.runs] == [T0 + 10_000]


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
async def test_a_doubt_lasts_until_the_log_can_be_read(world: World, fate: Fate) -> None:
    """While the store answers nothing, tools say so and nothing is delivered; then it is, once."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.fail(fate, of=delivers)
        world.store.unreadable = True
        await world.wait(1000)
        assert (await listed(agent))["code"] == "persistence_uncertain"
        assert world.runs == []
        world.store.unreadable = False
        await world.wait(30)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
        assert len(world.runs) == 1


async def test_a_preflight_takes_up_a_delivery_that_waits_for_its_next_try(world: World) -> None:
    """A list that succeeds ends a doubt at once, and what it finds due is delivered once, by one pursuit."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.fail(Fate.LOST, of=delivers)
        world.store.unreadable = True
        await world.wait(600)
        world.store.unreadable = False
        assert [item["state"] for item in await listed(agent)] == ["overdue"]
        await world.wait(30)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_disposal_ends_the_wait_for_the_next_try(world: World) -> None:
    """A disposed agent leaves no task behind, not even one that waits to try again (SPEC 2.6)."""
    async with world.host() as host:
        agent = await host.create_agent("root")
        await create(agent, after_seconds=10)
        await settled()
        before = count_tasks()
        world.store.judge = lambda _: Fate.FULL
        await world.wait(3600)
        await agent.dispose()
        await settled()
        assert count_tasks() <= before


async def test_an_agent_restored_during_the_wait_for_the_next_try_delivers_at_once(world: World) -> None:
    """The pursuit of a disposed agent does not stand in for that of the next one."""
    async with world.host() as host:
        agent = await host.create_agent("root")
        await create(agent, after_seconds=10)
        world.store.judge = lambda _: Fate.FULL
        await world.wait(3600)
        await agent.dispose()
        world.store.judge = lambda _: Fate.GOES_WELL
        await host.agent("root")
        await settled()
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
        await world.wait(3600)
        assert len(world.runs) == 1


async def test_a_session_that_cannot_be_read_when_it_is_due_is_tried_again(world: World) -> None:
    """An agent that is to be restored for what is due, while its store does not answer, is restored later."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
    async with world.host():
        world.store.unreadable = True
        await world.wait(600)
        assert world.count(EventKind.RESTORE_FAILED) >= 1
        world.store.unreadable = False
        await world.wait(30)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


@pytest.mark.parametrize("held", [True, False])
async def test_a_passivated_agent_gets_what_is_due(world: World, held: bool) -> None:
    """Whether somebody still holds the agent that was dropped from memory, or nobody does."""
    async with world.host(passivate_after=1) as host:
        holder = [await host.create_agent("root")]
        await create(holder[0], after_seconds=10)
        await world.wait(5)
        assert host.agents == ()
        if not held:
            holder.clear()
        await world.wait(5)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
        await world.wait(5)
        assert host.agents == ()


async def test_an_actor_that_is_restarted_loses_no_reminder(world: World) -> None:
    """After a fault of its own code the agent reads its log again, and what comes due is delivered."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)

        async def fail() -> None:
            raise RuntimeError("a defect")

        with pytest.raises(RuntimeError, match="a defect"):
            await agent.in_mailbox(fail)
        await world.wait(11)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]
        with trio.fail_after(1):
            await agent.when_idle()
