"""Other processes beside the host of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.stores.helpers import appends, creates, puts, task
from whenidle_actors.errors import SequenceConflict, StoreClosed
from whenidle_actors.stores.base import Changes, Role
from whenidle_clock import VirtualClock
from whenidle_lab.choices import Choice, Chooser, Quiet, Topic
from whenidle_lab.engines import MemoryEngine
from whenidle_lab.managers import News
from whenidle_lab.trace import What

from .worlds import FaultyWorld

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@pytest.fixture
def world() -> FaultyWorld:
    """A world in which nothing goes wrong."""
    return FaultyWorld("memory")


def play(world: FaultyWorld, story: Callable[[], Awaitable[None]]) -> None:
    """Run a story on the open store of a world, on its clock."""

    async def main() -> None:
        async with world.store.opened(Role.HOST):
            await story()

    world.clock = VirtualClock(autojump=True)
    trio.run(main, clock=world.clock)


def test_a_manager_and_a_host_share_a_store(world: FaultyWorld) -> None:
    """Each sees what the other has committed, and who comes second is told so."""

    async def story() -> None:
        async with world.store.beside().opened(Role.MANAGER) as manager:
            await world.store.commit(creates("a"))
            await manager.commit(appends("a", 0))
            with pytest.raises(SequenceConflict):
                await world.store.commit(appends("a", 0))
            with pytest.raises(SequenceConflict):
                await manager.commit(appends("a", 0))

    play(world, story)
    assert [detail.get("elsewhere", False) for detail in world.those(What.COMMIT_DURABLE)] == [False, True]
    assert [detail["commit"] for detail in world.those(What.COMMIT_ENDED)] == [0, 1, 2, 3]


def test_a_host_is_told_one_change_after_the_other(world: FaultyWorld) -> None:
    """Sessions and tasks that a manager has changed are each reported, once, in the order of the changes."""
    told: list[Changes] = []

    async def story() -> None:
        async def watch() -> None:
            while True:
                told.append(await world.store.changed_elsewhere())

        manager = world.store.beside()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await trio.sleep(1)
            await manager.commit(creates("b", "a"))
            await manager.commit(puts(task("t", 5)))
            await trio.sleep(1)
            await manager.commit(appends("a", 0))
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    play(world, story)
    b, a = Changes(frozenset({"b"})), Changes(frozenset({"a"}))
    assert told == [b, a, Changes(tasks=True), a]


def test_what_a_host_did_not_deal_with_is_told_to_the_next(world: FaultyWorld) -> None:
    """A host that dies before it asks for the next report gets, as another process, the same one again."""
    told: list[Changes] = []

    async def first() -> None:
        await world.store.beside().commit(creates("a"))
        told.append(await world.store.changed_elsewhere())
        world.die()
        with pytest.raises(StoreClosed):
            await world.store.beside().commit(creates("b"))

    async def second() -> None:
        told.append(await world.store.changed_elsewhere())

    play(world, first)
    world.begin_life(0.0)
    play(world, second)
    assert told == [Changes(frozenset({"a"}))] * 2


def test_a_report_may_come_late() -> None:
    """Whether a host is told at once, or as late as a real one is, is a choice."""
    at: list[float] = []

    async def main() -> None:
        engine = MemoryEngine()
        async with engine.opened(Role.HOST):
            for picked in (0, 1):
                news = News(Chooser(Quiet(), [Choice(Topic.READ, 2, picked)]))
                news.add(creates("a"))
                await news.wait(engine)
                at.append(trio.current_time())

    trio.run(main, clock=VirtualClock(autojump=True))
    assert at == [0.0, 0.9]


def test_a_manager_is_told_nothing(world: FaultyWorld) -> None:
    """A manager that asks for changes waits until it is cancelled."""

    async def story() -> None:
        with trio.move_on_after(3600) as limit:
            await world.store.beside().changed_elsewhere()
        assert limit.cancelled_caught

    play(world, story)
