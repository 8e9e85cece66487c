"""What came of deliveries, joined to their receipts when somebody asks (SPEC 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest

from whenidle_actors import message_fates
from whenidle_actors.errors import StoreDamaged, UnknownSession
from whenidle_actors.message_fates import delivery_outcomes, history_of
from whenidle_actors.stores.base import Append, Batch
from whenidle_protocol.events import EventRecord
from whenidle_protocol.message_history import Fate, MessageHistory

from .worlds import NEW, TaskWorld, every, once

if TYPE_CHECKING:
    from whenidle_actors.stores.base import SessionSlice, Store


async def outcomes(world: TaskWorld, task_id: str) -> list[MessageHistory | None]:
    """Return what came of a task's deliveries, the newest first."""
    page = await world.desk.receipts(task_id)
    return list(await delivery_outcomes(world.store, page.receipts))


async def test_each_delivery_has_the_outcome_of_its_turn(world: TaskWorld) -> None:
    """One that is done, one that runs; the receipts are as they were."""
    world.turn_seconds = 30
    async with world.root():
        task = await world.make(every(60, 10))
        await world.wait(75)
        running, done = await outcomes(world, task.id)
        assert done is not None
        assert running == MessageHistory(Fate.RUNNING, 1, 2)
        assert (done.fate, done.attempts, done.turn) == (Fate.COMPLETED, 1, 1)
        assert done.ended_millis is not None


async def test_a_batch_has_one_outcome_for_all_its_tasks(world: TaskWorld) -> None:
    """Each of the tasks that came as one message shows what came of it; a one-shot beside them has its own."""
    async with world.root():
        tasks = [await world.make(rule) for rule in (every(60, 10), every(60, 10), once(10))]
        await world.wait(15)
        first, second, alone = [(await outcomes(world, task.id))[0] for task in tasks]
        assert first == second
        assert first is not None
        assert alone is not None
        assert alone.turn != first.turn


async def test_sessions_of_their_own_are_each_read(world: TaskWorld) -> None:
    """Deliveries to many sessions come back in the order they were asked for."""
    async with world.root():
        task = await world.make(every(60, 10), NEW)
        await world.wait(200)
        found = await outcomes(world, task.id)
        assert [history and history.turn for history in found] == [1, 1, 1, 1]


async def test_after_a_crash_the_next_host_s_turn_tells(world: TaskWorld) -> None:
    """Nothing was kept beside the log: what was found open is interrupted, and given again."""
    world.turn_seconds = 30
    async with world.root():
        task = await world.make(once(10))
        await world.wait(15)
    async with world.root():
        await world.wait(1)
        assert await outcomes(world, task.id) == [MessageHistory(Fate.RUNNING, 2, 2)]
        await world.wait(30)
        (history,) = await outcomes(world, task.id)
        assert history is not None
        assert history.fate is Fate.COMPLETED


async def test_what_cannot_be_found_has_no_outcome(world: TaskWorld) -> None:
    """A session that is gone, or one whose log is damaged, hides what came of its own deliveries only."""
    async with world.root() as agent:
        task = await world.make(once(10))
        await world.wait(15)
        (receipt,) = (await world.desk.receipts(task.id)).receipts
        gone = attrs.evolve(receipt, data=receipt.data.replace('"root"', '"gone"'))
        odd = attrs.evolve(receipt, data=receipt.data.replace('"root"', '"a/b"'))
        none, neither, found = await delivery_outcomes(world.store, (gone, odd, receipt))
        assert (none, neither, found is None) == (None, None, False)
        message = (await world.store.read("root")).records[0]
        length = (await world.store.read("root")).length
        await world.store.commit(Batch((Append("root", length, (EventRecord("turn/end", 1, "{}"),)),)))
        assert await delivery_outcomes(world.store, (receipt,)) == (None,)
        assert message.type == "inbox/insert"
        with pytest.raises(StoreDamaged, match="session 'root': turn/end"):
            await history_of(world.store, agent.id, "m0")
        with pytest.raises(UnknownSession):
            await history_of(world.store, "gone", "m0")


async def test_a_long_log_is_looked_through(world: TaskWorld) -> None:
    """A message before thousands of others is found; one that never was is not."""
    async with world.root() as agent:
        for _ in range(300):
            await agent.followup("x")
        await world.wait(1)
        history = await history_of(world.store, "root", "m0")
        assert history is not None
        assert history.fate is Fate.COMPLETED
        assert await history_of(world.store, "root", "m9999") is None


@pytest.mark.parametrize("first_end", [1, 3, 10, 10_000])
async def test_the_end_of_a_log_tells_what_the_whole_does(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, first_end: int
) -> None:
    """However much of the log is read at first, outcomes are the same; and no more is read than what holds them."""
    monkeypatch.setattr(message_fates, "_FIRST_END", first_end)
    async with world.root() as agent:
        for _ in range(50):
            await agent.followup("x")
        await world.wait(1)
        task = await world.make(every(60, 10))
        await world.wait(200)
        found = await outcomes(world, task.id)
        assert [history and history.turn for history in found] == [54, 53, 52, 51]
        store = CountingReads(world.store)
        (receipt, *_) = (await world.desk.receipts(task.id)).receipts
        assert await delivery_outcomes(cast("Any", store), (receipt,)) == (found[0],)
        assert max(store.lengths) <= max(first_end, 4 * 10)


class CountingReads:
    """Reads of a store, with how much they gave."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lengths: list[int] = []

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """Read as the store does."""
        part = await self.store.read(session_id, start)
        self.lengths.append(len(part.records))
        return part


async def test_what_a_fork_inherited_is_not_its_own(world: TaskWorld) -> None:
    """The message was the other session's, and so is what came of it."""
    async with world.host() as host:
        agent = await host.create_agent("root")
        await agent.followup("x")
        await world.wait(1)
        await host.fork("root", new_id="fork")
        assert await history_of(world.store, "root", "m0") is not None
        assert await history_of(world.store, "fork", "m0") is None
