"""What other processes append beside a host: nothing of it is overlooked, and nothing of it hangs (SPEC 3.4)."""

from __future__ import annotations

import gc
import logging
import weakref
from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.faulty_store import SharedStore
from whenidle_actors.errors import AgentDisposed, StoreDamaged
from whenidle_actors.observation import EventKind
from whenidle_actors.stores.base import Append, Batch
from whenidle_protocol.events import EventRecord

from .worlds import Script, foreign, hosted, log, settled, sleeping, stubborn

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.stores.base import SessionSlice


@pytest.fixture
def shared() -> SharedStore:
    """Return a store that other processes write to."""
    return SharedStore()


async def newer(store: SharedStore, session_id: str = "a", *, report: bool = True) -> None:
    """Append what only a newer version of the program can read, and report it."""
    length = (await store.read(session_id)).length
    await store.commit(Batch((Append(session_id, length, (EventRecord("future/event", 0, "{}"),)),)))
    if report:
        store.tell(session_id)


async def test_what_is_appended_while_an_agent_is_being_restored_is_taken_up(
    shared: SharedStore, script: Script
) -> None:
    """Its log was read before, and the report came before it was live: it looks again."""
    first, second = trio.Event(), trio.Event()
    async with hosted(shared, script) as host:
        agent = await host.create_agent("a")
        await agent.dispose()
        async with trio.open_nursery() as nursery:
            shared.slow_read = first
            nursery.start_soon(host.agent, "a")
            await settled()
            shared.slow_read = None
            await foreign(agent, "theirs", wake=True)
            shared.slow_read = second
            shared.tell("a")
            await settled()
            first.set()
            await settled()
            second.set()
        shared.slow_read = None
        await (await host.agent("a")).when_idle()
        await settled()
        assert script.taken == [["theirs"]]


async def test_an_agent_whose_log_was_appended_to_is_not_kept_in_memory_by_that(
    shared: SharedStore, script: Script
) -> None:
    """When it has ended, the host does not hold on to it until something else changes."""
    async with hosted(shared, script) as host:
        agent = await host.create_agent("a")
        await foreign(agent, "theirs", wake=True)
        shared.tell("a")
        await settled()
        await agent.dispose()
        await settled()
        script.turns.clear()
        ghost = weakref.ref(agent)
        del agent
        gc.collect()
        assert ghost() is None


@pytest.mark.parametrize("found_by", ["a turn", "a delivery", "both"])
async def test_an_agent_whose_log_cannot_be_read_any_more_ends(
    shared: SharedStore, script: Script, caplog: pytest.LogCaptureFixture, found_by: str
) -> None:
    """It is disposed and told of at once, rather than tried for ever; whoever waits for it is told, too."""
    told: list[EventKind] = []
    async with hosted(shared, script, suites=() if found_by == "a turn" else None) as host:
        agent = await host.create_agent("a")
        host.subscribe(lambda event: told.append(event.kind))
        with caplog.at_level(logging.CRITICAL, "whenidle"):
            await newer(shared, report=found_by != "a delivery")
            if found_by == "a delivery":
                agent.session.drop()
                agent.recompute()
            await settled()
        assert (trio.current_time(), host.agents) == (0, ())
        with pytest.raises(AgentDisposed):
            await agent.when_idle()
        with pytest.raises(AgentDisposed):
            await agent.followup("x")
        await agent.dispose()
        with pytest.raises(StoreDamaged, match="future/event"):
            await host.agent("a")
    assert [kind for kind in told if kind in {EventKind.RESTORE_FAILED, EventKind.AGENT_DISPOSED}] == [
        EventKind.RESTORE_FAILED,
        EventKind.AGENT_DISPOSED,
    ]


async def test_a_turn_that_cannot_be_recorded_any_more_gives_its_slot_to_others(
    shared: SharedStore, script: Script
) -> None:
    """The log of the agent that runs becomes unreadable: it ends with its turn, and the next agent runs."""
    script.every_turn = sleeping(5)
    async with hosted(shared, script, max_concurrent_turns=1, suites=()) as host:
        a, b = await host.create_agent("a"), await host.create_agent("b")
        await a.followup("go")
        await settled()
        await newer(shared)
        await b.followup("my turn")
        await trio.sleep(60)
        assert (script.taken, host.agents) == ([["go"], ["my turn"]], (b,))
        assert log(shared, "b")[-1] == "end 1 completed"


class Broken(SharedStore):
    """A store whose next reads meet a defect."""

    defects = 0

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        if self.defects:
            self.defects -= 1
            await trio.lowlevel.checkpoint()
            raise OSError("a defect of the store")
        return await super().read(session_id, start)


@pytest.mark.parametrize("live", [True, False])
async def test_a_defect_while_a_session_is_read_does_not_end_the_host(script: Script, *, live: bool) -> None:
    """Of a live agent and of a cold session: it is told, and what was appended is taken up later."""
    store = Broken()
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await foreign(agent, "theirs", wake=True)
        if not live:
            await agent.dispose()
        store.defects = 1
        store.tell("a")
        await trio.sleep(60)
        assert script.taken == [["theirs"]]


async def _sent_while_disposing(store: SharedStore, agent: Agent) -> None:
    """Append to the session of an agent that is ending, and have its host look."""
    await agent.followup("go")
    await settled()
    agent.begin_disposal("disposed")
    await foreign(agent, "theirs", wake=True)
    store.tell("a")
    await settled()


async def test_what_is_sent_to_an_agent_that_is_ending_runs_in_the_next(shared: SharedStore, script: Script) -> None:
    """The turn takes a while to unwind; when the agent is gone, its successor takes up the message."""
    script.on("go", stubborn(2))
    async with hosted(shared, script) as host:
        agent = await host.create_agent("a")
        await _sent_while_disposing(shared, agent)
        assert host.agents == (agent,)
        await trio.sleep(3)
        (successor,) = host.agents
        assert (successor is agent, script.taken) == (False, [["go"], ["theirs"]])


async def test_what_is_sent_to_an_agent_that_ends_with_its_host_is_kept(shared: SharedStore, script: Script) -> None:
    """No successor is made while the host stops; the next host runs it."""
    script.on("go", stubborn(2))
    async with hosted(shared, script, shutdown_timeout=0) as host:
        await _sent_while_disposing(shared, await host.create_agent("a"))
    assert (trio.current_time(), script.taken) == (2, [["go"]])
    async with hosted(shared, script) as host:
        await (await host.agent("a")).when_idle()
    assert script.taken == [["go"], ["theirs"]]
