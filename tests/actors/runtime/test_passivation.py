from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.errors import AgentDisposed
from whenidle_actors.observation import EventKind

from .worlds import Script, hosted, log, settled, sleeping, stubborn

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.host import Host


def count(host: Host) -> int:
    """Return how many agents are live."""
    return len(host.agents)


async def test_a_quiet_agent_is_dropped_from_memory(store: FaultyStore, script: Script) -> None:
    """After the quiet period an agent is not live, and nothing of it is left in memory."""
    seen: list[EventKind] = []
    async with hosted(store, script, passivate_after=60) as host:
        agent = await host.create_agent("a")
        host.subscribe(lambda event: seen.append(event.kind))
        await agent.followup("x")
        await agent.when_idle()
        script.turns.clear()
        ghost = weakref.ref(agent)
        del agent
        await trio.sleep(59)
        assert count(host) == 1
        await trio.sleep(2)
        gc.collect()
        assert (count(host), host.statistics().passivated) == (0, 1)
        assert ghost() is None
        assert seen[-1] is EventKind.AGENT_PASSIVATED


async def test_sums_of_times_that_are_not_exact_do_not_stop_time(store: FaultyStore, script: Script) -> None:
    """A quiet period that ends a rounding error behind the instant of the virtual clock has ended."""
    async with hosted(store, script, passivate_after=1.024) as host:
        await trio.sleep(34.2)
        await host.create_agent("a")
        await trio.sleep(2)
        assert (count(host), host.statistics().passivated) == (0, 1)


async def test_every_use_begins_the_quiet_period_anew(store: FaultyStore, script: Script) -> None:
    """Messages, tools, maintenance and turns all count as use, until they end."""
    async with hosted(store, script, passivate_after=60) as host:
        agent = await host.create_agent("a")
        script.on("x", sleeping(100))
        for use in (
            lambda: agent.inject("y"),
            agent.inbox,
            lambda: agent.call_tool("schedule_list", {}),
            lambda: agent.run_maintenance(partial(trio.sleep, 100)),
            lambda: agent.followup("x"),
        ):
            await trio.sleep(50)
            await use()
            await agent.when_idle()
            assert list(host.agents) == [agent]
        await trio.sleep(59)
        assert list(host.agents) == [agent]
        await trio.sleep(2)
        assert count(host) == 0


async def test_a_slow_operation_does_not_keep_an_agent_for_ever(store: FaultyStore, script: Script) -> None:
    """An agent whose store took longer than the quiet period is passivated a period after that."""
    async with hosted(store, script, passivate_after=60) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        with store.held():
            nursery.start_soon(agent.inject, "slow")
            await trio.sleep(100)
            assert list(host.agents) == [agent]
        await trio.sleep(61)
        assert count(host) == 0


async def test_an_old_handle_works_and_is_the_one_agent(store: FaultyStore, script: Script) -> None:
    """A handle kept over passivation is what host.agent gives, and every use makes it live again."""
    async with hosted(store, script, passivate_after=60) as host:
        agent = await host.create_agent("a")
        await agent.inject("kept")
        await trio.sleep(100)
        assert count(host) == 0
        assert await host.agent("a") is agent
        await trio.sleep(100)
        assert count(host) == 0
        await agent.followup("x")
        assert list(host.agents) == [agent]
        await agent.when_idle()
        assert await host.agent("a") is agent
        await trio.sleep(100)
        assert await agent.run_maintenance(agent.inbox) == await agent.inbox()
    assert script.taken == [["kept", "x"]]


async def test_an_agent_nobody_holds_is_restored_from_its_log(store: FaultyStore, script: Script) -> None:
    """The next use of the session finds its inbox as it was."""
    async with hosted(store, script, passivate_after=60) as host:
        await (await host.create_agent("a")).inject("kept")
        await trio.sleep(100)
        gc.collect()
        assert count(host) == 0
        agent = await host.agent("a")
        await agent.followup("x")
        await agent.when_idle()
    assert script.taken == [["kept", "x"]]


async def test_asked_for_by_many_a_session_has_one_agent(store: FaultyStore, script: Script) -> None:
    """However many ask for a cold session at once, they get the same agent."""
    found: list[object] = []
    async with hosted(store, script, passivate_after=60) as host:
        await host.create_agent("a")
        await trio.sleep(100)
        gc.collect()

        async def ask() -> None:
            found.append(await host.agent("a"))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        assert len(set(found)) == 1
        assert host.agents == (found[0],)


async def test_a_session_that_is_being_created_has_one_agent(store: FaultyStore, script: Script) -> None:
    """Whoever finds the new session in the store before its creator returns gets the same agent."""
    async with hosted(store, script) as host, trio.open_nursery() as nursery:
        found: list[object] = []

        async def create() -> None:
            found.append(await host.create_agent("a"))

        slow = store.slow = trio.Event()
        nursery.start_soon(create)
        await settled()
        found.append(await host.agent("a"))
        store.slow = None
        slow.set()
        await settled()
        assert found[0] is found[1]
        assert host.agents == (found[0],)


@pytest.mark.parametrize("held", [True, False])
async def test_a_reminder_of_a_passivated_agent_is_delivered(store: FaultyStore, script: Script, held: bool) -> None:
    """The alarm outlives the agent in memory, whether or not somebody still holds it."""
    async with hosted(store, script, passivate_after=60) as host:
        agent = await host.create_agent("a")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 1000})
        holders = [agent] if held else []
        del agent
        await trio.sleep(900)
        gc.collect()
        assert count(host) == 0
        await trio.sleep(101)
        await settled()
        assert len(script.turns) == 1
        assert held == (script.turns[0].agent in holders)
    assert log(store)[-1] == "end 1 completed"


async def test_a_reminder_of_a_cold_session_restores_it(store: FaultyStore, script: Script) -> None:
    """A session that no agent of this process has touched is restored when its reminder comes due."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 1000})
    async with hosted(store, script) as host:
        await trio.sleep(900)
        assert (count(host), host.statistics().alarm.armed) == (0, 1)
        await trio.sleep(101)
        await settled()
    assert len(script.turns) == 1


async def test_an_agent_that_is_busy_is_not_passivated(store: FaultyStore, script: Script) -> None:
    """Neither a long turn nor a long claim counts as quiet."""
    async with hosted(store, script, passivate_after=60) as host, trio.open_nursery() as nursery:
        turning, claimed = await host.create_agent("a"), await host.create_agent("b")
        script.on("x", sleeping(1000))
        await turning.followup("x")
        nursery.start_soon(claimed.run_maintenance, partial(trio.sleep, 1000))
        await trio.sleep(990)
        assert count(host) == 2
        await trio.sleep(80)
        assert count(host) == 0


@pytest.mark.parametrize("by", ["handle", "host"])
async def test_a_passivated_agent_can_be_disposed(store: FaultyStore, script: Script, by: str) -> None:
    """By its handle or by the host: the handle is ended, the end announced, the session gets a new agent."""
    seen: list[EventKind] = []
    async with hosted(store, script, passivate_after=60) as host:
        agent = await host.create_agent("a")
        await trio.sleep(100)
        assert count(host) == 0
        host.subscribe(lambda event: seen.append(event.kind))
        await (agent.dispose() if by == "handle" else host.dispose("a"))
        assert seen == [EventKind.AGENT_DISPOSED]
        with pytest.raises(AgentDisposed):
            await agent.inject("x")
        assert await host.agent("a") is not agent


async def test_no_quiet_at_all_passivates_at_once(store: FaultyStore, script: Script) -> None:
    """With a period of nothing an agent is dropped as soon as it is idle, and all still works."""
    async with hosted(store, script, passivate_after=0) as host:
        agent = await host.create_agent("a")
        script.on("x", stubborn(5))
        await agent.followup("x")
        await agent.followup("y")
        await agent.when_idle()
        await settled()
        assert (count(host), script.taken) == (0, [["x"], ["y"]])


async def test_without_a_period_agents_stay(store: FaultyStore, script: Script) -> None:
    """By default nothing is passivated."""
    async with hosted(store, script) as host:
        await host.create_agent("a")
        await trio.sleep(80_000)
        assert count(host) == 1
