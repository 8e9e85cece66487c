"""Deliveries and runs by hand that are withdrawn in the middle: nothing enters a log outside its own claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.errors import AgentBusy

from .worlds import TaskWorld, once, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_protocol.task_record import Task


def sleeping(seconds: float) -> Callable[[], Awaitable[None]]:
    """Return what sleeps."""

    async def sleep() -> None:
        await trio.sleep(seconds)

    return sleep


async def _length(agent: Agent) -> int:
    return (await agent.services.journal.store.read(agent.id)).length


async def _give_up_a_run(world: TaskWorld, task: Task) -> None:
    """Run a task by hand, and give up while it is read for the second time, in the claim."""
    world.store.after_tasks = sleeping(20)
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            with trio.move_on_after(30) as scope:
                await world.tasks.run(task.id)
            assert scope.cancelled_caught

        nursery.start_soon(run)
        await settled()
        await world.wait(20)
        await world.wait(10)
        await world.wait(10)  # the read in the claim ends


async def test_a_run_by_hand_that_is_given_up_while_it_reads_delivers_nothing(world: TaskWorld) -> None:
    """The agent is idle afterwards, with nothing in its inbox that no turn takes."""
    async with world.root() as agent:
        task = await world.make(once(10_000))
        await _give_up_a_run(world, task)
        await world.wait(1000)
        world.store.after_tasks = sleeping(0)
        await agent.when_idle()
        assert (await agent.inbox()).next_turn == ()
        assert (world.runs, await _length(agent)) == ([], 0)
        assert (await world.view(task)).deliveries == 0


async def test_a_run_by_hand_that_was_given_up_changes_nothing_in_the_claim_of_another(world: TaskWorld) -> None:
    """Whoever claims the agent next has its log alone."""
    lengths: list[int] = []
    async with world.root() as agent:
        task = await world.make(once(10_000))
        await _give_up_a_run(world, task)

        async def mine() -> None:
            lengths.append(await _length(agent))
            await trio.sleep(100)
            lengths.append(await _length(agent))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.run_maintenance, mine)
            await settled()
            await world.wait(100)
    assert lengths == [0, 0]


async def test_a_delivery_whose_claim_is_cancelled_is_made_in_the_next(world: TaskWorld) -> None:
    """It is cancelled while it reads what is due: until that ends the agent is busy, and then it starts anew."""
    async with world.root() as agent:
        task = await world.make(once(10))

        async def slow_in_the_claim() -> None:
            if agent.phase.value == "maintenance":
                await trio.sleep(20)

        world.store.after_tasks = slow_in_the_claim
        await world.wait(10)
        assert agent.phase.value == "maintenance"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.cancel, "stop it")
            await world.wait(5)
            with pytest.raises(AgentBusy):
                await agent.run_maintenance(settled)
            await world.wait(15)
            assert await _length(agent) == 0
            await world.wait(20)
        assert await world.delivered() == [(50, "title", 10, 0)]
        assert (await world.view(task)).deliveries == 1
