from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from whenidle_actors.errors import (
    InvalidArgument,
    SessionExists,
    StoreDamaged,
    UnknownSession,
)
from whenidle_actors.stores.base import Append, Batch
from whenidle_protocol.events import EventRecord

from .worlds import Script, assert_replays, hosted, log, settled

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore


async def test_a_fork_inherits_a_log_and_owns_nothing_of_it(store: FaultyStore, script: Script) -> None:
    """Messages and reminders of the prefix stay with the original; both sessions go on by themselves."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a", cwd="/home")
        await agent.followup("x")
        await agent.when_idle()
        await agent.inject("mine")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        fork = await host.fork("a", new_id="f")
        assert (fork.header.seed_length, fork.header.forked_from, fork.header.cwd) == (5, "a", "/home")
        assert (await fork.inbox()).next_step == ()
        assert await fork.call_tool("schedule_list", {}) == []
        assert log(store, "f") == log(store, "a")
        assert script.taken == [["x"]]
        await fork.followup("y")
        await fork.when_idle()
        await assert_replays(fork)
        assert [turn.number for turn in script.turns] == [1, 2]
        assert script.taken[1] == ["y"]
        await trio.sleep(61)
        await settled()
        assert [turn.agent.id for turn in script.turns] == ["a", "f", "a"]
    async with hosted(store, script) as host:
        await settled()
        await assert_replays(await host.agent("f"))


async def test_a_fork_is_cut_outside_of_turns(store: FaultyStore, script: Script) -> None:
    """Each cut inside a turn is refused and creates nothing; the others work."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")

        async def work(turn: Any) -> None:
            await turn.note("n")

        script.on("x", work)
        await agent.followup("x")
        await agent.followup("y")
        await agent.when_idle()
        lines = log(store)
        for cut in range(len(lines) + 1):
            inside = sum(line.startswith("start") for line in lines[:cut]) > sum(
                line.startswith("end") for line in lines[:cut]
            )
            if inside:
                with pytest.raises(InvalidArgument, match="cut outside of turns"):
                    await host.fork("a", upto=cut, new_id=f"f{cut}")
                with pytest.raises(UnknownSession):
                    await host.agent(f"f{cut}")
            else:
                fork = await host.fork("a", upto=cut, new_id=f"f{cut}")
                assert log(store, fork.id) == lines[:cut]


@pytest.mark.parametrize("cut", [-1, 2, 10**9])
async def test_a_cut_outside_the_log_is_refused(store: FaultyStore, script: Script, cut: int) -> None:
    """InvalidArgument says how many events there are."""
    async with hosted(store, script) as host:
        await (await host.create_agent("a")).inject("x")
        with pytest.raises(InvalidArgument, match="has 1 events"):
            await host.fork("a", upto=cut)


async def test_a_fork_of_a_fork_may_be_cut_in_what_that_inherited(store: FaultyStore, script: Script) -> None:
    """A fork can be forked again, before and behind the end of its own seed."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        for text in "xyz":
            await agent.inject(text)
        fork = await host.fork("a", new_id="f")
        await fork.inject("w")
        for cut in range(5):
            again = await host.fork("f", upto=cut, new_id=f"g{cut}")
            assert (again.header.seed_length, again.header.forked_from) == (cut, "f")
            assert (await again.inbox()).next_step == ()


async def test_a_fork_onto_a_session_that_exists_is_refused(store: FaultyStore, script: Script) -> None:
    """SessionExists, and both sessions are as they were."""
    async with hosted(store, script) as host:
        await (await host.create_agent("a")).inject("x")
        await host.create_agent("b")
        with pytest.raises(SessionExists):
            await host.fork("a", new_id="b")
        assert log(store, "b") == []


async def test_a_session_that_cannot_be_folded_is_not_forked(store: FaultyStore, script: Script) -> None:
    """The fork would be damaged as well; it is not created."""
    async with hosted(store, script) as host:
        await host.create_agent("a")
        await store.commit(Batch((Append("a", 0, (EventRecord("future/event", 0, "{}"),)),)))
        with pytest.raises(StoreDamaged, match="future/event"):
            await host.fork("a", new_id="b")
        assert [header.id for header in await store.sessions()] == ["a"]
