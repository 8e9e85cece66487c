from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from .worlds import Script, hosted, settled, sleeping

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_turns_run_at_once_than_allowed(store: FaultyStore, script: Script, limit: int) -> None:
    """With a limit the turns of all agents share its slots; each waits its turn and all run."""
    async with hosted(store, script, max_concurrent_turns=limit) as host:
        script.on("x", sleeping(10))
        agents = [await host.create_agent(f"a{number}") for number in range(6)]
        for agent in agents:
            await agent.followup("x")
        await settled()
        assert (script.running, host.statistics().running) == (limit, 6)
        assert host.statistics().turn_slots == limit
        for agent in agents:
            await agent.when_idle()
        assert (script.most_running, trio.current_time()) == (limit, 60 / limit)


async def test_without_a_limit_all_turns_run_at_once(store: FaultyStore, script: Script) -> None:
    """By default nothing is paced."""
    async with hosted(store, script) as host:
        script.on("x", sleeping(10))
        for number in range(50):
            await (await host.create_agent(f"a{number}")).followup("x")
        await settled()
        assert (script.running, host.statistics().turn_slots) == (50, float("inf"))


async def test_a_slot_is_given_up_between_two_turns(store: FaultyStore, script: Script) -> None:
    """An agent with much to do does not keep the others waiting for all of it."""
    async with hosted(store, script, max_concurrent_turns=1) as host:
        greedy, patient = await host.create_agent("greedy"), await host.create_agent("patient")
        for text in ("x", "p"):
            script.on(text, sleeping(10))
        for _ in range(3):
            await greedy.followup("x")
        await settled()
        await patient.followup("p")
        await greedy.when_idle()
        await patient.when_idle()
    assert script.taken == [["x"], ["p"], ["x"], ["x"]]


async def test_a_failed_turn_gives_its_slot_back(store: FaultyStore, script: Script) -> None:
    """Neither errors nor cancels use slots up."""

    async def fail(_: object) -> None:
        raise ValueError

    async with hosted(store, script, max_concurrent_turns=1) as host:
        agent = await host.create_agent("a")
        script.on("fail", fail)
        script.on("long", sleeping(1000))
        for _ in range(3):
            await agent.followup("fail")
            await agent.when_idle()
            await agent.followup("long")
            await settled()
            await agent.cancel("stop")
            await agent.when_idle()
        assert (len(script.turns), trio.current_time()) == (6, 0)


async def test_a_thousand_agents_due_after_a_night_are_paced(store: FaultyStore, script: Script) -> None:
    """CASE 18: after ten hours of suspend each agent gets one coalesced message, ten turns at a time."""
    async with hosted(store, script, max_concurrent_turns=10) as host:
        script.every_turn = sleeping(1)
        agents = [await host.create_agent(f"a{number}") for number in range(1000)]
        for agent in agents:
            for _ in range(2):
                await agent.call_tool("schedule_create", {"prompt": "check", "every_seconds": 3600})
        script.suspend(timedelta(hours=10))
        await settled()
        before = trio.current_time()
        for agent in agents:
            await agent.when_idle()
        assert trio.current_time() - before == 100
        assert (script.most_running, len(script.turns)) == (10, 1000)
        assert {turn.agent.id for turn in script.turns} == {agent.id for agent in agents}
        assert all(turn.messages[0].text.count('"schedule_id"') == 2 for turn in script.turns)


async def test_the_order_of_each_agent_holds_under_pacing(store: FaultyStore, script: Script) -> None:
    """However turns of many agents are paced, each agent takes its messages in order."""
    async with hosted(store, script, max_concurrent_turns=2) as host:
        agents = [await host.create_agent(f"a{number}") for number in range(10)]
        for text in "abcde":
            script.on(text, sleeping(1))
            for agent in agents:
                await agent.followup(text)
        for agent in agents:
            await agent.when_idle()
        for agent in agents:
            texts = [turn.messages[0].text for turn in script.turns if turn.agent is agent]
            assert texts == list("abcde")
    assert script.most_running == 2
