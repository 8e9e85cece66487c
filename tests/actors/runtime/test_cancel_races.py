from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from .worlds import Script, assert_replays, hosted, living, log, settled, sleeping

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore


RACES = range(14)


async def checkpoints(number: int) -> None:
    """Let others run so often."""
    for _ in range(number):
        await trio.lowlevel.cancel_shielded_checkpoint()


@pytest.mark.parametrize("after", RACES)
@pytest.mark.parametrize("keep", [False, True])
async def test_a_cancel_at_any_moment_of_a_drain_is_one_outcome(
    store: FaultyStore, script: Script, after: int, keep: bool
) -> None:
    """Wherever a cancel falls, each turn has one outcome, nothing kept is lost, and live state and log agree."""
    async with living(store, script) as agent:
        for text in "abc":
            await agent.followup(text)
        await checkpoints(after)
        running = agent.status.value == "running"
        await agent.cancel("stop", keep_inbox=keep)
        await agent.when_idle()
        await settled()
        await assert_replays(agent)
        pending = [message.text for message in (await agent.inbox()).next_turn]
    lines = log(store)
    starts = [line.split()[1].rstrip(":") for line in lines if line.startswith("start")]
    ends = [line.split()[1] for line in lines if line.startswith("end")]
    aborted = [line for line in lines if line.startswith("abort")]
    assert starts == ends
    assert sum(line.endswith("aborted (stop)") for line in lines if line.startswith("end")) == len(aborted)
    taken = [text for turn in script.taken for text in turn]
    if not running:
        assert (taken, pending, aborted) == (["a", "b", "c"], [], [])
    elif keep:
        assert (taken + pending == ["a", "b", "c"]) or len(aborted) == 1
    else:
        assert pending == []
        removed = sum(len(line.split(": ")[1].split(",")) for line in aborted if line.split(": ")[1])
        removed += sum(len(line.split()[1].split(",")) for line in lines if line.startswith("remove"))
        claimed = sum(len(line.split(": ")[1].split(",")) for line in lines if line.startswith("start"))
        assert claimed + removed == 3


@pytest.mark.parametrize("after", range(8))
async def test_a_cancel_before_the_turn_has_begun_to_run_is_not_lost(
    store: FaultyStore, script: Script, after: int
) -> None:
    """A cancel that falls between a message and its turn's first step ends that turn or prevents it."""
    async with living(store, script) as agent:
        script.on("long", sleeping(1000))
        await agent.followup("long")
        await checkpoints(after)
        await agent.cancel("stop")
        await agent.when_idle()
        assert trio.current_time() == 0
        await assert_replays(agent)


async def test_a_cancel_while_the_turn_is_being_claimed_ends_it(store: FaultyStore, script: Script) -> None:
    """A cancel that lands while the turn's first event is being committed aborts the turn before it runs."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        script.on("long", sleeping(1000))
        await agent.followup("long")
        with store.held():
            await settled()
            nursery.start_soon(agent.cancel, "stop")
            await settled()
        await agent.when_idle()
        assert trio.current_time() == 0
    assert log(store)[1:] == ["start 1: m0", "abort 1 (stop): ", "end 1 aborted (stop)"]


async def test_a_cancel_while_the_outcome_is_being_committed_leaves_it(store: FaultyStore, script: Script) -> None:
    """A turn that has ended is not aborted afterwards; what waits behind it is removed."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        script.on("x", sleeping(1))
        await agent.followup("x")
        await agent.followup("y")
        await settled()
        with store.held():
            await trio.sleep(2)
            nursery.start_soon(agent.cancel, "stop")
            await settled()
        await agent.when_idle()
        await assert_replays(agent)
    assert log(store)[-2:] == ["end 1 completed", "remove m2"]
    assert script.taken == [["x"]]


async def test_a_cancel_while_waiting_for_a_turn_slot_makes_the_agent_idle(store: FaultyStore, script: Script) -> None:
    """An agent that waits for others' turns to end is running; cancelled, it does not wait any longer."""
    async with hosted(store, script, max_concurrent_turns=1) as host:
        script.on("long", sleeping(1000))
        agent, other = await host.create_agent("a"), await host.create_agent("b")
        await other.followup("long")
        await settled()
        await agent.followup("x")
        await settled()
        assert agent.status.value == "running"
        await agent.cancel("stop")
        await agent.when_idle()
        assert trio.current_time() == 0
        await agent.followup("y")
        await agent.when_idle()
        assert (trio.current_time(), script.taken) == (1000, [["long"], ["y"]])
    assert log(store)[:2] == ["insert m0 x", "remove m0"]


async def test_disposal_does_not_wait_for_a_turn_slot(store: FaultyStore, script: Script) -> None:
    """An agent that waits for a slot has nothing in flight that its disposal would have to wait for."""
    async with hosted(store, script, max_concurrent_turns=1) as host:
        script.on("long", sleeping(1000))
        agent, other = await host.create_agent("a"), await host.create_agent("b")
        await other.followup("long")
        await settled()
        await agent.followup("x")
        await settled()
        await agent.dispose()
        assert trio.current_time() == 0
        await other.when_idle()
    assert log(store) == ["insert m0 x"]
