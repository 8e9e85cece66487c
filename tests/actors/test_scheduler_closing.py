from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import ActorStopped
from whenidle_actors.mailbox import Lifecycle, Undelivered
from whenidle_actors.scheduler import SchedulerStatistics, open_scheduler

from .doubles import Scribe, sleeping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock

    from whenidle_actors.actor import Actor
    from whenidle_actors.mailbox import DeadLetter


async def test_closing_ends_everything_and_tells_everybody(autojump_clock: MockClock) -> None:
    """Running handlers are cancelled, what waits fails or becomes a dead letter, and no task is left."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    letters: list[DeadLetter] = []
    stopped: list[str] = []

    async def ask(actor: Actor, message: object) -> None:
        with pytest.raises(ActorStopped):
            await actor.ask(message)
        stopped.append(actor.name)

    def fail(_: Actor) -> None:
        raise ValueError

    async with trio.open_nursery() as nursery:
        async with open_scheduler(on_dead_letter=letters.append) as scheduler:
            idle, blocked, stopping, restarting, ready = (
                Scribe(name, scheduler) for name in ("idle", "blocked", "stopping", "restarting", "ready")
            )
            await idle.ask("works")
            for actor in (blocked, stopping):
                nursery.start_soon(ask, actor, sleeping(math.inf))
            restarting.tell(fail)
            await wait_all_tasks_blocked()
            nursery.start_soon(ask, blocked, "waiting")
            nursery.start_soon(ask, restarting, "waiting")
            nursery.start_soon(stopping.stop)
            await wait_all_tasks_blocked()
            for actor in (restarting, blocked, ready):
                actor.tell(f"for {actor.name}")
        assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=0, idle_workers=0)
        assert scheduler.supervisor.statistics().restarting == 0
    assert sorted(stopped) == ["blocked", "blocked", "restarting", "stopping"]
    assert sorted(letter.message for letter in letters if not letter.asked) == [
        *("for blocked", "for ready", "for restarting"),
    ]
    assert {letter.reason for letter in letters} == {Undelivered.STOPPED}
    assert ready.seen == []
    lifecycles = {actor.lifecycle for actor in (blocked, stopping, restarting, ready)}
    assert lifecycles == {Lifecycle.STOPPED}
    assert trio.current_time() == 0
    assert trio.lowlevel.current_statistics().tasks_living == tasks


async def test_after_closing_an_idle_actor_takes_nothing_more() -> None:
    """Tells become dead letters, asks raise `ActorStopped`, and stopping it returns."""
    letters: list[DeadLetter] = []
    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        actors = [Scribe(name, scheduler) for name in "abcd"]
        for actor in actors:
            await actor.ask(1)
    a, b, c, d = actors
    a.tell(2)
    a.tell(3)
    b.tell_system(4)
    with pytest.raises(ActorStopped):
        await c.ask(5)
    await d.stop()
    assert [(letter.actor, letter.message) for letter in letters] == [("a", 2), ("a", 3), ("b", 4), ("c", 5)]
    assert all(actor.lifecycle is Lifecycle.STOPPED for actor in actors)


async def test_a_handler_that_survives_the_closing_is_the_last_to_run(autojump_clock: MockClock) -> None:
    """It may clean up and is answered; its actor handles nothing after it."""
    answers: list[str] = []

    async def clean_up(_: Actor) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
            return "cleaned up"

    async def ask() -> None:
        answers.append(await actor.ask(clean_up))

    async with trio.open_nursery() as nursery, open_scheduler() as scheduler:
        actor = Scribe("a", scheduler)
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        actor.tell("never")
    assert (answers, actor.seen) == (["cleaned up"], [])
    assert actor.lifecycle is Lifecycle.STOPPED
    assert trio.current_time() == 2


async def test_a_fault_in_response_to_the_closing_leaves_no_restart_behind(autojump_clock: MockClock) -> None:
    """There is nobody left to restart it."""

    async def fail_when_cancelled(_: Actor) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ValueError from None

    async with open_scheduler() as scheduler:
        actor = Scribe("a", scheduler)
        actor.tell(fail_when_cancelled)
        await wait_all_tasks_blocked()
    assert trio.current_time() == 0
    assert actor.lifecycle is Lifecycle.STOPPED
    assert scheduler.supervisor.statistics().restarting == 0


async def test_a_cancelled_block_can_still_use_its_actors_to_clean_up(autojump_clock: MockClock) -> None:
    """Cancellation from outside reaches the block, not the actors, until the block has been left."""
    diary: list[object] = []

    class Careful(Scribe):
        async def stopped(self) -> None:
            await trio.sleep(1)
            diary.append("stopped")

    async def slow(_: Actor) -> None:
        await trio.sleep(5)
        diary.append("finished")

    with trio.move_on_after(2) as scope:
        async with open_scheduler() as scheduler:
            actor = Careful("a", scheduler)
            actor.tell(slow)
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    diary.append(await actor.ask("reply"))
                    await actor.stop()
    assert scope.cancelled_caught
    assert diary == ["finished", "reply", "stopped"]
    assert trio.current_time() == 6


async def test_an_error_in_the_block_leaves_it_as_it_was_raised() -> None:
    """No exception group appears because there is a nursery inside."""
    error = ValueError("mine")
    cause = KeyError()
    with pytest.raises(ValueError, match="mine") as caught:
        async with open_scheduler():
            raise error from cause
    assert caught.value is error
    assert error.__cause__ is cause


async def test_an_error_in_the_block_and_a_broken_chooser_are_both_reported() -> None:
    """Two errors at once stay a group."""

    def broken(ready: Sequence[Actor]) -> int:
        raise KeyError(len(ready))

    with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - the block is what it is raised from
        async with open_scheduler(choose=broken) as scheduler:
            Scribe("a", scheduler).tell(1)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError
    assert caught.group_contains(ValueError)
    assert caught.group_contains(KeyError)
