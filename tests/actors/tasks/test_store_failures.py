"""Stores that fail or do not answer while something is due (SPEC 3.2, 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actors.reminders.faults import Fate
from whenidle_actors.observation import EventKind

from .worlds import NEW, ONCE, TaskWorld, every, once

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Batch, TaskRow


async def dues(world: TaskWorld) -> list[float]:
    """Return the occurrences that were delivered, in seconds from the start."""
    return [due for _, _, due, _ in await world.delivered()]


def lose_connection_at_the_next_commit(world: TaskWorld) -> None:
    """Let nothing be read any more from the next commit on, until the test says so."""
    lost = False

    async def lose_connection(_: Batch) -> None:
        nonlocal lost
        if not lost:
            lost = world.store.unreadable_tasks = world.store.unreadable = True

    world.store.before = lose_connection


async def test_a_store_that_cannot_be_read_when_something_is_due_is_asked_again(world: TaskWorld) -> None:
    """With backoff, and what became due meanwhile arrives once."""
    async with world.root():
        await world.make(every(60, 10))
        world.store.unreadable_tasks = True
        await world.wait(100)
        world.store.unreadable_tasks = False
        await world.wait(30)
        assert [(due, missed) for _, _, due, missed in await world.delivered()] in ([(70, 1)], [(70, 1), (130, 0)])
        await world.wait(60)
        assert (await dues(world))[-1] == 190


async def test_a_defect_of_the_store_while_sweeping_does_not_end_the_host(world: TaskWorld) -> None:
    """An exception that no store should raise is borne like any other failure."""
    async with world.root():
        await world.make(once(10))
        fail, real = True, world.store.due_tasks

        async def due_tasks(*arguments: object, **options: object) -> tuple[TaskRow, ...]:
            if fail:
                raise ZeroDivisionError("a defect")
            return await real(*arguments, **options)  # type: ignore[arg-type]

        world.store.due_tasks = due_tasks  # type: ignore[method-assign]
        await world.wait(20)
        fail = False
        await world.wait(30)
        assert await dues(world) == [10]


@pytest.mark.parametrize("target", [NEW, ONCE])
@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.LOST, Fate.KEPT, Fate.FULL])
async def test_a_session_whose_creation_fails_or_may_have_failed_is_made_once(
    world: TaskWorld, fate: Fate, target: str
) -> None:
    """Session, message and receipt are one commit: tried again or read back, there is one, and it runs."""
    async with world.root():
        await world.make(every(300, 10), target)  # type: ignore[arg-type]
        world.store.fail(fate)
        await world.wait(20)
        assert await dues(world) == [10]
        assert len(world.runs) == 1
        await world.wait(300)
        assert await dues(world) == [10, 310]
        assert len(world.runs) == 2


@pytest.mark.parametrize("target", [NEW, ONCE])
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
async def test_a_doubt_about_a_new_session_that_lasts_is_resolved_in_the_end(
    world: TaskWorld, fate: Fate, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The store answers nothing for a while: then there is one session, its agent runs, and the next one comes."""
    async with world.root():
        await world.make(every(300, 10), target)  # type: ignore[arg-type]
        world.store.fail(fate)
        await world.wait(9)
        lose_connection_at_the_next_commit(world)
        await world.wait(100)
        world.store.unreadable_tasks = world.store.unreadable = False
        await world.wait(60)
        assert await dues(world) == [10]
        assert len(world.runs) == 1
        await world.wait(300)
        assert await dues(world) == [10, 310]
        assert len(world.runs) == 2


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
async def test_a_doubt_about_a_delivery_that_lasts_is_resolved_in_the_end(world: TaskWorld, fate: Fate) -> None:
    """The same for a session that is there: one message, one turn, and the next occurrence comes due."""
    async with world.root():
        await world.make(every(300, 10))
        world.store.fail(fate)
        lose_connection_at_the_next_commit(world)
        await world.wait(100)
        world.store.unreadable_tasks = world.store.unreadable = False
        await world.wait(60)
        assert await dues(world) == [10]
        await world.wait(300)
        assert await dues(world) == [10, 310]
        assert len(world.runs) == 2


async def test_a_full_disk_puts_deliveries_off(world: TaskWorld) -> None:
    """For an hour nothing can be written: announced at most twice a minute, then one delivery (CASES 34)."""
    async with world.root():
        await world.make(every(60, 10))
        world.store.judge = lambda _: Fate.FULL
        await world.wait(3600)
        assert 3600 / 30 <= world.count(EventKind.DELIVERY_FAILED) <= 3600 / 30 + 20
        assert world.runs == []
        world.store.judge = lambda _: Fate.GOES_WELL
        await world.wait(30)
        _, _, due, missed = (await world.delivered())[0]
        assert (due, missed) in {(3610, 60), (3550, 59)}


async def test_a_session_that_cannot_be_read_is_tried_again(world: TaskWorld) -> None:
    """Its store does not answer when it is due; later it does."""
    async with world.root():
        await world.make(once(10))
    async with world.host():
        world.store.unreadable = True
        await world.wait(600)
        world.store.unreadable = False
        await world.wait(30)
        assert await dues(world) == [10]
