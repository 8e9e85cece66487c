from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from whenidle_actors.errors import AgentBusy, AgentDisposed
from whenidle_actors.observation import EventKind

from .worlds import Script, hosted, living, log, settled, sleeping, stubborn, tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.agent import Agent
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.turn import Turn


async def test_disposal_takes_the_agent_from_the_registry_and_then_tells(store: FaultyStore, script: Script) -> None:
    """When the end is announced the agent is not live any more, and its session is all there."""
    live: list[object] = []
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.inject("kept")

        def observe(event: HostEvent) -> None:
            if event.kind is EventKind.AGENT_DISPOSED:
                live.append((host.agents, event.session_id))

        host.subscribe(observe)
        await agent.dispose()
        assert live == [((), "a")]
        again = await host.agent("a")
        assert again is not agent
        assert [message.text for message in (await again.inbox()).next_step] == ["kept"]
    assert log(store) == ["insert m0 kept"]


async def test_disposal_aborts_the_turn_and_waits_for_it(store: FaultyStore, script: Script) -> None:
    """The turn in flight is cancelled with cause disposed, and dispose returns when it has unwound."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", stubborn(3))
        await agent.dispose()
        assert (trio.current_time(), agent.status.value) == (3, "idle")
    assert log(store)[2:] == ["end 1 completed"]


async def test_a_disposed_turn_is_aborted(store: FaultyStore, script: Script) -> None:
    """A turn that lets itself be cancelled has the outcome aborted, cause disposed; its inbox is kept."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", sleeping(60))
        await agent.followup("y")
        await agent.dispose()
        assert trio.current_time() == 0
        assert log(store)[-1] == "end 1 aborted (disposed)"
        await (await host.agent("a")).when_idle()
    assert script.taken == [["x"], ["y"]]


async def test_disposal_is_idempotent_and_may_be_asked_for_by_many(store: FaultyStore, script: Script) -> None:
    """Every caller returns when the agent is gone; the end is announced once."""
    ended: list[EventKind] = []
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        host.subscribe(lambda event: ended.append(event.kind))
        await script.begin(agent, "x", stubborn(3))
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(agent.dispose)
            nursery.start_soon(host.dispose, "a")
        assert (trio.current_time(), host.agents) == (3, ())
        await agent.dispose()
        await host.dispose("a")
        await host.dispose("nobody")
    assert ended.count(EventKind.AGENT_DISPOSED) == 1


async def test_cancelling_the_wait_does_not_take_the_disposal_back(store: FaultyStore, script: Script) -> None:
    """A caller that gives up has still disposed the agent."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", stubborn(3))
        with trio.move_on_after(1) as scope:
            await agent.dispose()
        assert scope.cancelled_caught
        with pytest.raises(AgentDisposed):
            await agent.followup("y")
        await trio.sleep(3)
        assert host.agents == ()


async def test_an_agent_may_dispose_itself_in_its_turn(store: FaultyStore, script: Script) -> None:
    """From inside the own turn dispose returns at once, and the turn is cancelled at its next checkpoint."""
    reached: list[str] = []

    async def work(turn: Turn) -> None:
        with trio.CancelScope(shield=True):
            await turn.agent.dispose()
        reached.append("after")
        await trio.sleep(1)
        reached.append("never")

    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", work)
        assert (reached, host.agents) == (["after"], ())
    assert log(store)[-1] == "end 1 aborted (disposed)"


async def test_an_agent_may_dispose_itself_in_maintenance_and_in_a_tool(store: FaultyStore, script: Script) -> None:
    """Inside a maintenance task or the mailbox dispose returns at once, too."""
    async with hosted(store, script) as host:
        first, second = await host.create_agent("a"), await host.create_agent("b")
        with pytest.raises(AgentDisposed):
            await first.run_maintenance(lambda: dispose_and_sleep(first))
        await second.in_queue(second.dispose)
        await settled()
        assert host.agents == ()


async def dispose_and_sleep(agent: Agent) -> None:
    """Be a task that disposes its own agent and does not end by itself."""
    with trio.CancelScope(shield=True):
        await agent.dispose()
    await trio.sleep_forever()


async def test_every_waiter_of_a_disposed_agent_is_told(store: FaultyStore, script: Script) -> None:
    """Waiting for idleness, asks that queue, a maintenance task: all end with AgentDisposed."""
    ended: list[str] = []

    async def wait(name: str, call: Callable[[], Awaitable[Any]]) -> None:
        with pytest.raises(AgentDisposed, match="disposed"):
            await call()
        ended.append(name)

    async with living(store, script) as agent, trio.open_nursery() as nursery:
        nursery.start_soon(wait, "maintenance", lambda: agent.run_maintenance(trio.sleep_forever))
        await settled()
        with store.held():
            nursery.start_soon(wait, "idle", agent.when_idle)
            nursery.start_soon(agent.inject, "in the store already")
            await settled()
            nursery.start_soon(wait, "inject", lambda: agent.inject("queued"))
            nursery.start_soon(wait, "inbox", agent.inbox)
            nursery.start_soon(wait, "tool", lambda: agent.call_tool("schedule_list", {}))
            await settled()
            nursery.start_soon(agent.dispose)
            await settled()
        await settled()
    assert sorted(ended) == ["idle", "inbox", "inject", "maintenance", "tool"]
    assert log(store) == ["insert m0 in the store already"]


CALLS: dict[str, Callable[[Agent], Awaitable[Any]]] = {
    "followup": lambda agent: agent.followup("x"),
    "steer": lambda agent: agent.steer("x"),
    "inject": lambda agent: agent.inject("x"),
    "remove": lambda agent: agent.remove("m0"),
    "replace": lambda agent: agent.replace("m0", "x"),
    "inbox": lambda agent: agent.inbox(),
    "cancel": lambda agent: agent.cancel("x"),
    "when_idle": lambda agent: agent.when_idle(),
    "run_maintenance": lambda agent: agent.run_maintenance(agent.inbox),
    "call_tool": lambda agent: agent.call_tool("schedule_list", {}),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_a_disposed_agent_takes_nothing(
    store: FaultyStore, script: Script, call: Callable[[Agent], Awaitable[Any]]
) -> None:
    """Everything asked of a disposed agent is AgentDisposed, at once, and changes nothing."""
    async with living(store, script) as agent:
        await agent.inject("kept")
        await agent.dispose()
        with pytest.raises(AgentDisposed, match="its session is kept"):
            await call(agent)
    assert log(store) == ["insert m0 kept"]


async def test_nothing_of_a_disposed_agent_is_left(store: FaultyStore, script: Script) -> None:
    """No task, no alarm entry, no place in the registry, whatever it was doing."""
    async with hosted(store, script) as host:
        for text in ("warm", "up"):
            await (await host.create_agent(text)).followup(text)
        await settled()
        before = tasks()
        script.on("x", sleeping(60))
        agent = await host.create_agent("a")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        await agent.followup("x")
        await settled()
        assert (tasks(), host.statistics().alarm.armed) == (before + 1, 1)
        await agent.dispose()
        await settled()
        assert (tasks(), host.statistics().alarm.armed, len(host.agents)) == (before, 0, 2)


async def test_a_due_delivery_that_waits_for_idle_ends_with_the_agent(store: FaultyStore, script: Script) -> None:
    """CASE 30: nothing is delivered, the waiter is gone, and the record is kept for the next host."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        script.on("x", sleeping(1000))
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        await agent.followup("x")
        await trio.sleep(100)
        before = tasks()
        await agent.dispose()
        await settled()
        assert tasks() <= before - 2
        await trio.sleep(1000)
        assert [line for line in log(store) if line.startswith("insert")] == ["insert m1 x"]
        restored = await host.agent("a")
        await settled()
        await restored.when_idle()
    assert len(script.turns) == 2
    assert "SCHEDULE REMINDER" in script.taken[1][0]


async def test_a_message_in_the_store_already_is_kept(store: FaultyStore, script: Script) -> None:
    """A followup whose commit has begun when the agent is disposed is durable and runs in the next life."""
    async with hosted(store, script) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        with store.held():
            nursery.start_soon(agent.followup, "x")
            await settled()
            nursery.start_soon(agent.dispose)
            await settled()
        await settled()
        assert (host.agents, script.turns) == ((), [])
        await (await host.agent("a")).when_idle()
    assert script.taken == [["x"]]


async def test_disposal_while_the_turn_is_being_claimed_records_an_outcome(store: FaultyStore, script: Script) -> None:
    """A turn whose claim is under way when the agent is disposed never runs, and ends aborted."""
    async with hosted(store, script) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        await agent.followup("x")
        with store.held():
            await settled()
            nursery.start_soon(agent.dispose)
            await settled()
        await settled()
        assert (host.agents, script.turns) == ((), [])
    assert log(store) == ["insert m0 x", "start 1: m0", "end 1 aborted (disposed)"]


async def test_a_disposing_agent_cannot_be_claimed(store: FaultyStore, script: Script) -> None:
    """While its turn unwinds an agent that is being disposed refuses claims as disposed, not as busy."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        await script.begin(agent, "x", stubborn(3))
        nursery.start_soon(agent.dispose)
        await settled()
        assert agent.status.value == "running"
        with pytest.raises(AgentDisposed):
            await agent.run_maintenance(agent.inbox)


async def test_a_session_never_has_two_agents_while_one_is_being_disposed(store: FaultyStore, script: Script) -> None:
    """Asked for while its agent unwinds, a session gives the one agent there is; a new one only afterwards."""
    async with hosted(store, script) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", stubborn(3))
        nursery.start_soon(agent.dispose)
        await settled()
        found = await host.agent("a")
        assert found is agent or agent not in host.agents
        assert script.running <= 1


async def test_an_agent_busy_error_names_the_phase(store: FaultyStore, script: Script) -> None:
    """The message of AgentBusy says which agent is in which phase."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        nursery.start_soon(agent.run_maintenance, trio.sleep_forever)
        await settled()
        with pytest.raises(AgentBusy, match="'a' is not idle: maintenance"):
            await agent.run_maintenance(agent.inbox)
        nursery.cancel_scope.cancel()


async def test_an_agent_asked_for_while_it_is_disposed_is_restored_when_it_is_gone(
    store: FaultyStore, script: Script
) -> None:
    """Nobody is handed an agent that is about to end: the next one takes over after it."""
    async with hosted(store, script) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", stubborn(3))
        nursery.start_soon(agent.dispose)
        await settled()
        again = await host.agent("a")
        assert (trio.current_time(), again is agent, again.ending) == (3, False, False)
