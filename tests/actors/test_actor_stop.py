from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import ActorStopped, MailboxDeadlock
from whenidle_actors.mailbox import Lifecycle, MailboxPolicy, Overflow, Undelivered
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.supervision import Supervision

from .doubles import Doer, plain_seen, sleeping

if TYPE_CHECKING:
    from trio.testing import MockClock

    from whenidle_actors.actor import Actor
    from whenidle_actors.mailbox import DeadLetter


async def test_stop_lets_the_handler_finish_and_then_runs_stopped(autojump_clock: MockClock) -> None:
    """An orderly stop: the running handler ends, what waits does not run, `stopped` runs last."""
    letters: list[DeadLetter] = []
    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        actor = Doer("a", scheduler)
        results: list[object] = []

        async def ask(message: object) -> None:
            try:
                results.append(await actor.ask(message))
            except ActorStopped as error:
                results.append(str(error))

        async def slow(_: Actor) -> str:
            await trio.sleep(2)
            return "finished"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, slow)
            await wait_all_tasks_blocked()
            nursery.start_soon(ask, "waiting ask")
            await wait_all_tasks_blocked()
            actor.tell("waiting tell")
            actor.tell_system("waiting system tell")
            await actor.stop()
            assert trio.current_time() == 2
        assert results == ["'a' is stopped and takes no more messages", "finished"]
        assert plain_seen(actor) == ["started", "stopped"]
        assert [(letter.message, letter.reason, letter.asked) for letter in letters] == [
            ("waiting system tell", Undelivered.STOPPED, False),
            ("waiting ask", Undelivered.STOPPED, True),
            ("waiting tell", Undelivered.STOPPED, False),
        ]
        assert actor.lifecycle is Lifecycle.STOPPED


async def test_stop_is_idempotent_and_everybody_may_wait_for_it(autojump_clock: MockClock) -> None:
    """Two that stop at once, and one that stops later, all return; `stopped` runs once."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        actor.tell(sleeping(1))
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.stop)
            nursery.start_soon(actor.stop)
        await actor.stop()
        assert plain_seen(actor) == ["started", "stopped"]


async def test_stopping_an_idle_actor_runs_stopped() -> None:
    """An actor that has state releases it."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        await actor.ask(1)
        await actor.stop()
        assert actor.seen == ["started", 1, "stopped"]


async def test_stopping_an_actor_that_never_started_runs_no_hook() -> None:
    """Without `started` there is nothing for `stopped` to release."""
    letters: list[DeadLetter] = []
    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        idle, ready = Doer("idle", scheduler), Doer("ready", scheduler)
        ready.tell(1)
        await ready.stop()
        await idle.stop()
        await wait_all_tasks_blocked()
        assert (idle.seen, ready.seen) == ([], [])
        assert [letter.message for letter in letters] == [1]


async def test_stop_during_start_runs_stopped_after_it(autojump_clock: MockClock) -> None:
    """A start that runs may finish; then the actor stops."""

    class Slow(Doer):
        async def started(self) -> None:
            await trio.sleep(1)
            await super().started()

    async with open_scheduler() as scheduler:
        actor = Slow("a", scheduler)
        actor.start()
        await wait_all_tasks_blocked()
        await actor.stop()
        assert actor.seen == ["started", "stopped"]
        assert trio.current_time() == 1


async def test_cancelling_the_wait_for_a_stop_does_not_take_it_back(autojump_clock: MockClock) -> None:
    """The actor stops though nobody waits for it any more."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        actor.tell(sleeping(2))
        await wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await actor.stop()
        assert plain_seen(actor) == ["started"]
        await trio.sleep(2)
        assert plain_seen(actor) == ["started", "stopped"]
        assert actor.lifecycle is Lifecycle.STOPPED


async def test_a_stopped_actor_buries_tells_and_refuses_asks() -> None:
    """A tell becomes a dead letter without an exception, an ask raises `ActorStopped`."""
    letters: list[DeadLetter] = []
    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        actor = Doer("a", scheduler)
        await actor.stop()
        actor.tell(1)
        actor.tell_system(2)
        with pytest.raises(ActorStopped, match="'a' is stopped"):
            await actor.ask(3)
        with pytest.raises(ActorStopped, match="'a' is stopped"):
            await actor.ask_system(4)
        assert [(letter.actor, letter.message, letter.reason) for letter in letters] == [
            ("a", 1, Undelivered.STOPPED),
            ("a", 2, Undelivered.STOPPED),
        ]
        assert actor.statistics().accepted == 2


async def test_a_handler_may_begin_the_stop_of_its_own_actor(autojump_clock: MockClock) -> None:
    """`begin_stop` does not wait, so the handler can finish and be answered."""

    async def work(actor: Actor) -> str:
        actor.begin_stop()
        await trio.sleep(1)
        return "answered"

    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        assert await actor.ask(work) == "answered"
        await actor.stop()
        assert plain_seen(actor) == ["started", "stopped"]


async def test_waiting_in_a_handler_for_the_stop_of_its_own_actor_is_a_deadlock() -> None:
    """It raises at once and names the cycle."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        with pytest.raises(MailboxDeadlock) as caught:
            await actor.ask(lambda actor: actor.stop())
        assert caught.value.cycle == ("a", "a")


async def test_an_actor_may_stop_another_and_asks_from_it_are_a_deadlock(autojump_clock: MockClock) -> None:
    """Waiting for a stop is an edge like an ask, and is gone when the stop is done."""
    async with open_scheduler() as scheduler:
        parent, child = Doer("parent", scheduler), Doer("child", scheduler)
        cycles: list[tuple[str, ...]] = []

        async def ask_parent(_: Actor) -> None:
            await trio.sleep(1)
            try:
                await parent.ask("help")
            except MailboxDeadlock as error:
                cycles.append(error.cycle)

        child.tell(ask_parent)
        await wait_all_tasks_blocked()
        await parent.ask(lambda _: child.stop())
        assert cycles == [("child", "parent", "child")]
        assert await parent.ask("free") == "free"


async def test_a_wait_for_a_stop_that_was_given_up_is_no_deadlock(autojump_clock: MockClock) -> None:
    """The parent's handler goes on without waiting, so the child may ask the parent."""
    async with open_scheduler() as scheduler:
        parent, child = Doer("parent", scheduler), Doer("child", scheduler)
        replies: list[object] = []

        async def ask_parent(_: Actor) -> None:
            await trio.sleep(2)
            replies.append(await parent.ask("help"))

        async def give_up(_: Actor) -> None:
            with trio.move_on_after(1):
                await child.stop()
            await trio.sleep(3)

        child.tell(ask_parent)
        await wait_all_tasks_blocked()
        await parent.ask(give_up)
        await child.stop()
        assert replies == ["help"]
        assert trio.current_time() == 4


async def test_a_dead_letter_hook_that_stops_the_actor_ends_the_ask_being_queued() -> None:
    """The ask that made the letter is answered though it had not begun to wait."""
    async with open_scheduler(on_dead_letter=lambda _: actor.begin_stop()) as scheduler:
        actor = Doer("a", scheduler, mailbox=MailboxPolicy(1, Overflow.DROP_OLDEST))
        actor.tell(1)
        with pytest.raises(ActorStopped):
            await actor.ask(2)
        assert actor.statistics().dead_letters == 2


async def test_shutdown_timeout_may_be_infinite(autojump_clock: MockClock) -> None:
    """With `inf` a handler may take as long as it likes."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler, supervision=Supervision(shutdown_timeout=math.inf))
        actor.tell(sleeping(80_000))
        await wait_all_tasks_blocked()
        await actor.stop()
        assert trio.current_time() == 80_000
