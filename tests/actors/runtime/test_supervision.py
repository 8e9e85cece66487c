from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.errors import ActorRestarted, AgentFaulted
from whenidle_actors.observation import EventKind
from whenidle_actors.supervision import Restart, Supervision

from .worlds import Script, assert_replays, expecting, hosted, living, log, settled, sleeping, stubborn

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent

STRICT = Supervision(intensity=0)


async def meet_a_defect(agent: Agent, store: FaultyStore) -> None:
    """Have the agent's actor break in the commit of a message, which is lost; the sender is told."""
    store.will(Fault.BROKEN)
    with pytest.raises(ZeroDivisionError):
        await agent.inject("lost")


async def test_a_defect_restarts_the_actor_from_its_log(store: FaultyStore, script: Script) -> None:
    """An unexpected exception goes to the caller; after the backoff the agent is as its log says."""
    seen: list[EventKind] = []
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.inject("kept")
        host.subscribe(lambda event: seen.append(event.kind))
        await meet_a_defect(agent, store)
        assert seen == [EventKind.COMMIT_FAILED, EventKind.AGENT_RESTARTED]
        view = await agent.inbox()
        assert [message.text for message in view.next_step] == ["kept"]
        assert (agent.statistics().restarts, agent.is_faulted) == (1, False)
        assert 0.05 <= trio.current_time() <= 0.1
        await assert_replays(agent)


async def test_asks_that_wait_fail_over_a_restart(store: FaultyStore, script: Script) -> None:
    """What users asked for and was queued behind the fault is ActorRestarted, and did not happen."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        with store.held():
            store.will(Fault.BROKEN)
            nursery.start_soon(expecting, pytest.raises(ZeroDivisionError), agent.inject, "broken")
            await settled()
            nursery.start_soon(expecting, pytest.raises(ActorRestarted), agent.inject, "queued")
            await settled()
        await trio.sleep(1)
    assert log(store) == []


async def test_a_turn_that_runs_survives_the_restart(store: FaultyStore, script: Script) -> None:
    """A fault of the actor is none of the turn's: it goes on, its tools work again, its outcome is recorded."""
    answers: list[object] = []

    async def work(turn: object) -> None:
        await trio.sleep(10)
        answers.append(await script.turns[0].call_tool("schedule_list", {}))

    async with living(store, script) as agent:
        await script.begin(agent, "x", work)
        await meet_a_defect(agent, store)
        await agent.when_idle()
        await assert_replays(agent)
    assert answers == [[]]
    assert log(store) == ["insert m0 x", "start 1: m0", "end 1 completed"]


@pytest.mark.parametrize("nth", [0, 1, 2])
async def test_a_defect_while_a_turn_is_recorded_is_tried_again(store: FaultyStore, script: Script, nth: int) -> None:
    """A fault in the commit of a turn's beginning or end delays the turn and does not lose it."""
    async with living(store, script) as agent:
        await agent.followup("x")
        store.will(*[None] * nth, Fault.BROKEN)
        await agent.when_idle()
        await assert_replays(agent)
    assert log(store) == ["insert m0 x", "start 1: m0", "end 1 completed"]
    assert script.taken == [["x"]]


class Kept(FaultyStore):
    """Breaks after the commit: the defect of a store that has done its work."""

    breaks = False

    async def commit(self, batch: object) -> None:
        await super().commit(batch)  # type: ignore[arg-type]  # whatever it is, it is passed on
        if self.breaks:
            self.breaks = False
            raise ZeroDivisionError("after the commit")


async def test_what_a_defect_left_in_the_log_runs_after_the_restart(script: Script) -> None:
    """A followup that became durable although its operation failed is taken without anybody asking again."""
    store = Kept()
    async with living(store, script) as agent:
        store.breaks = True
        with pytest.raises(ZeroDivisionError):
            await agent.followup("x")
        await trio.sleep(1)
        assert script.taken == [["x"]]


async def test_a_reminder_that_a_defect_left_in_the_log_is_delivered(script: Script) -> None:
    """A reminder that became durable although its operation failed is delivered when it is due."""
    store = Kept()
    async with living(store, script) as agent:
        store.breaks = True
        answer = await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        assert answer["code"] == "internal_error"
        await trio.sleep(61)
        assert "SCHEDULE REMINDER" in script.taken[0][0]


async def test_too_many_faults_mark_the_agent_faulted_and_tell_the_host(store: FaultyStore, script: Script) -> None:
    """Beyond its intensity the agent is faulted, once, visibly; everything asked of it says so."""
    seen: list[tuple[EventKind, str]] = []
    supervision = Supervision(intensity=2, window=1000)
    async with hosted(store, script, supervision=supervision) as host:
        agent, sibling = await host.create_agent("a"), await host.create_agent("b")
        host.subscribe(lambda event: seen.append((event.kind, event.session_id)))
        for _ in range(3):
            await meet_a_defect(agent, store)
        assert seen == [
            (EventKind.COMMIT_FAILED, "a"),
            (EventKind.AGENT_RESTARTED, "a"),
            (EventKind.COMMIT_FAILED, "a"),
            (EventKind.AGENT_RESTARTED, "a"),
            (EventKind.COMMIT_FAILED, "a"),
            (EventKind.AGENT_FAULTED, "a"),
        ]
        assert agent.is_faulted
        assert await host.agent("a") is agent
        for call in (agent.inbox, agent.when_idle, lambda: agent.run_maintenance(agent.inbox)):
            with pytest.raises(AgentFaulted, match="dispose it to start anew"):
                await call()
        await sibling.followup("hello")
        await sibling.when_idle()
        assert (script.taken, sibling.statistics().restarts) == ([["hello"]], 0)


async def test_a_faulted_agent_starts_anew_when_it_was_disposed(store: FaultyStore, script: Script) -> None:
    """Dispose takes it from the registry; the next agent has the same log."""
    seen: list[EventKind] = []
    async with hosted(store, script, supervision=STRICT) as host:
        agent = await host.create_agent("a")
        await agent.inject("kept")
        await meet_a_defect(agent, store)
        host.subscribe(lambda event: seen.append(event.kind))
        await agent.dispose()
        assert seen == [EventKind.AGENT_DISPOSED]
        again = await host.agent("a")
        assert again is not agent
        await again.followup("y")
        await again.when_idle()
    assert script.taken == [["kept", "y"]]


async def test_waiters_of_an_agent_that_faults_are_told(store: FaultyStore, script: Script) -> None:
    """Who waits for idleness, or holds a claim, when the agent is given up gets AgentFaulted."""
    ended: list[str] = []
    async with living(store, script, supervision=STRICT) as agent, trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(AgentFaulted):
                await agent.when_idle()
            ended.append("idle")

        async def claim() -> None:
            with pytest.raises(AgentFaulted):
                await agent.run_maintenance(trio.sleep_forever)
            ended.append("maintenance")

        nursery.start_soon(claim)
        await settled()
        nursery.start_soon(wait)
        await settled()
        await meet_a_defect(agent, store)
    assert sorted(ended) == ["idle", "maintenance"]


async def test_the_turn_of_an_agent_that_faults_is_cancelled(store: FaultyStore, script: Script) -> None:
    """Its turn cannot be recorded any more: it is found open, and its messages come again."""
    async with hosted(store, script, supervision=STRICT) as host:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", sleeping(60))
        await meet_a_defect(agent, store)
        await settled()
        assert script.running == 0
        await agent.dispose()
        await (await host.agent("a")).when_idle()
    assert [turn.attempt for turn in script.turns] == [1, 2]


async def test_a_faulted_agent_is_replaced_only_when_its_turn_has_unwound(store: FaultyStore, script: Script) -> None:
    """Turns of one session never overlap, not even over a fault and a disposal."""
    async with hosted(store, script, supervision=STRICT) as host:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", stubborn(60))
        await meet_a_defect(agent, store)
        await agent.dispose()
        await (await host.agent("a")).when_idle()
        assert trio.current_time() == 120
    assert script.most_running == 1


@pytest.mark.parametrize("policy", list(Restart))
async def test_the_restart_policy_decides_about_the_first_fault(
    store: FaultyStore, script: Script, policy: Restart
) -> None:
    """A temporary agent is faulted by its first fault, the others are restarted."""
    async with living(store, script, supervision=Supervision(policy=policy)) as agent:
        await meet_a_defect(agent, store)
        assert agent.is_faulted == (policy is Restart.TEMPORARY)


async def test_a_host_with_a_faulted_agent_closes(store: FaultyStore, script: Script) -> None:
    """Nobody waits for an agent that was given up, whatever its turn does."""
    async with living(store, script, supervision=STRICT, shutdown_timeout=1000) as agent:
        await script.begin(agent, "x", sleeping(60))
        await meet_a_defect(agent, store)
    assert trio.current_time() == 0


async def test_disposal_of_an_agent_that_faults_meanwhile_returns(store: FaultyStore, script: Script) -> None:
    """A fault while the turn unwinds does not leave the disposer waiting, nor the agent registered."""
    async with hosted(store, script, supervision=STRICT) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        await script.begin(agent, "x", stubborn(60))
        nursery.start_soon(agent.dispose)
        await settled()

        async def defect() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await agent.in_mailbox(defect)
        await agent.dispose()
        assert (host.agents, trio.current_time()) == ((), 60)
