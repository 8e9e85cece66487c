"""Operations that deliver in a claim: the claim outlasts them, however it ends (SPEC 5.5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.errors import AgentBusy, AgentDisposed, MaintenanceAborted

from .worlds import Script, living, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.agent import Agent


class Operation:
    """Something that takes ten seconds in the mailbox, and tells whether it was withdrawn meanwhile."""

    def __init__(self) -> None:
        self.told: list[bool] = []

    async def __call__(self, withdrawn: Callable[[], bool]) -> str:
        self.told.append(withdrawn())
        await trio.sleep(10)
        self.told.append(withdrawn())
        return "done"


async def nothing() -> None:
    """Hold a claim for a moment."""


async def held_until(agent: Agent) -> float:
    """Return when the agent can be claimed again."""
    while True:
        try:
            await agent.run_maintenance(nothing)
        except AgentBusy:
            await agent.when_idle()
        else:
            return trio.current_time()


async def test_an_operation_is_served_in_the_claim(store: FaultyStore, script: Script) -> None:
    """Its answer is returned, and the claim is held as long as it takes."""
    operation = Operation()
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        nursery.start_soon(agent.admit, operation)
        await settled()
        assert await held_until(agent) == 10
        assert await agent.admit(operation) == "done"
    assert operation.told == [False] * 4


async def test_an_operation_withdrawn_before_its_turn_never_runs(store: FaultyStore, script: Script) -> None:
    """The mailbox is busy with something else, and the caller gives up: nothing is to wait for."""
    operation = Operation()
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        nursery.start_soon(agent.in_queue, partial(trio.sleep, 60))
        await settled()
        with trio.move_on_after(1) as scope:
            await agent.admit(operation)
        assert (scope.cancelled_caught, await held_until(agent)) == (True, 1)
        await trio.sleep(100)
    assert operation.told == []


async def test_a_claim_lasts_until_a_withdrawn_operation_has_ended(store: FaultyStore, script: Script) -> None:
    """The caller gives up while it runs: it is told, and nobody else has the agent before its end."""
    operation = Operation()
    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def give_up() -> None:
            with trio.move_on_after(1):
                await agent.admit(operation)

        nursery.start_soon(give_up)
        await trio.sleep(2)
        with pytest.raises(AgentBusy):
            await agent.run_maintenance(nothing)
        assert await held_until(agent) == 10
    assert operation.told == [False, True]


async def test_a_claim_that_is_cancelled_lasts_until_its_operation_has_ended(
    store: FaultyStore, script: Script
) -> None:
    """`cancel` withdraws the operation, and the caller is told that the claim was aborted."""
    operation = Operation()
    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def deliver() -> None:
            with pytest.raises(MaintenanceAborted, match="stop it"):
                await agent.admit(operation)

        nursery.start_soon(deliver)
        await trio.sleep(1)
        nursery.start_soon(agent.cancel, "stop it")
        await settled()
        assert (agent.phase.value, await held_until(agent)) == ("maintenance", 10)
    assert operation.told == [False, True]


async def test_a_disposal_waits_for_the_operation_of_a_claim(store: FaultyStore, script: Script) -> None:
    """`dispose` withdraws it, and the agent leaves when it has ended."""
    operation = Operation()
    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def deliver() -> None:
            with pytest.raises(AgentDisposed):
                await agent.admit(operation)

        nursery.start_soon(deliver)
        await trio.sleep(1)
        await agent.dispose()
        assert trio.current_time() == 10
    assert operation.told == [False, True]
