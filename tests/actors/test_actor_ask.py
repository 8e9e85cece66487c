from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import AskTimeout
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.worker import _drive

from .doubles import Doer, plain_seen, sleeping

if TYPE_CHECKING:
    from trio.testing import MockClock

    from whenidle_actors.actor import Actor


async def test_the_reply_is_what_a_plain_handler_returns() -> None:
    """An ask returns what `receive` returned."""
    async with open_scheduler() as scheduler:
        assert await Doer("a", scheduler).ask(41) == 41


async def test_the_reply_is_what_an_async_handler_returns() -> None:
    """An ask of an async handler, blocking or not, returns what the coroutine returned."""

    async def at_once(_: Actor) -> str:
        return "at once"

    async def later(_: Actor) -> str:
        for _n in range(3):
            await trio.lowlevel.checkpoint()
        return "later"

    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        assert await actor.ask(at_once) == "at once"
        assert await actor.ask(later) == "later"


async def test_a_handler_may_return_any_awaitable() -> None:
    """What has `__await__` is awaited, coroutine or not."""

    class Promise:
        def __await__(self) -> Any:
            yield from sleeping(0)(self).__await__()
            return "kept"

    async with open_scheduler() as scheduler:
        assert await Doer("a", scheduler).ask(lambda _: Promise()) == "kept"


async def test_none_is_a_message_and_a_reply() -> None:
    """None is nothing special."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        assert await actor.ask(None) is None
        assert actor.seen == ["started", None]


async def test_a_cancelled_ask_that_waits_changes_nothing(autojump_clock: MockClock) -> None:
    """SPEC 5.6: a caller that cancels before its turn in the queue changes nothing."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        actor.tell(sleeping(5))
        with trio.move_on_after(1) as scope:
            await actor.ask("withdrawn")
        assert scope.cancelled_caught
        assert trio.current_time() == 1
        assert actor.statistics().depth == 0
        assert await actor.ask("served") == "served"
        assert plain_seen(actor) == ["started", "served"]
        statistics = actor.statistics()
        assert (statistics.accepted, statistics.processed, statistics.withdrawn) == (3, 2, 1)


async def test_an_ask_in_a_cancelled_scope_changes_nothing() -> None:
    """An ask whose scope was cancelled before does not reach the handler."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        with trio.CancelScope() as scope:
            scope.cancel()
            await actor.ask("never")
        await wait_all_tasks_blocked()
        assert actor.seen == ["started"]


async def test_an_ask_cancelled_in_its_turn_is_handled_to_the_end(autojump_clock: MockClock) -> None:
    """Once the handler runs, the caller's cancellation only drops the reply."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        done: list[float] = []

        async def work(_: Actor) -> None:
            await trio.sleep(5)
            done.append(trio.current_time())

        with trio.move_on_after(1):
            await actor.ask(work)
        assert trio.current_time() == 1
        await actor.ask("next")
        assert done == [5]
        assert actor.statistics().withdrawn == 0


async def test_an_ask_past_its_deadline_is_a_timeout_and_withdraws(autojump_clock: MockClock) -> None:
    """The deadline is in seconds from the call; before its turn the message is withdrawn."""
    async with open_scheduler() as scheduler:
        actor = Doer("slow", scheduler)
        actor.tell(sleeping(10))
        await trio.sleep(2)
        with pytest.raises(AskTimeout, match=r"'slow' gave no answer within 3 s"):
            await actor.ask("late", deadline=3)
        assert trio.current_time() == 5
        with pytest.raises(AskTimeout):
            await actor.ask_system("late", deadline=1)
        await actor.ask("on time", deadline=30)
        assert plain_seen(actor) == ["started", "on time"]
        assert actor.statistics().withdrawn == 2


async def test_a_cancelled_caller_with_a_deadline_is_cancelled_not_timed_out(
    autojump_clock: MockClock,
) -> None:
    """Cancellation from outside stays cancellation."""
    async with open_scheduler() as scheduler:
        actor = Doer("slow", scheduler)
        actor.tell(sleeping(10))
        with trio.move_on_after(1) as scope:
            await actor.ask("late", deadline=3)
        assert scope.cancelled_caught


async def test_the_handlers_exception_reaches_the_caller_as_it_is(autojump_clock: MockClock) -> None:
    """The failing ask raises the very exception of the handler."""
    error = ValueError("mine")

    def fail(_: Actor) -> None:
        raise error

    async def fail_later(_: Actor) -> None:
        await trio.lowlevel.checkpoint()
        raise error

    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        for message in (fail, fail_later):
            with pytest.raises(ValueError, match="mine") as caught:
                await actor.ask(message)
            assert caught.value is error


async def test_a_stop_iteration_out_of_a_plain_handler_is_an_exception_like_any_other(
    autojump_clock: MockClock,
) -> None:
    """It is not mistaken for the end of a coroutine."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        actor.tell(lambda _: next(iter(())))
        await wait_all_tasks_blocked()
        assert await actor.ask(1) == 1
        assert actor.statistics().restarts == 1


async def test_a_cancellation_thrown_into_a_blocked_handler_can_be_handled_by_it(
    autojump_clock: MockClock,
) -> None:
    """Scopes inside a handler work: trio's exceptions reach the coroutine, which may go on after them."""

    async def work(_: Actor) -> list[float]:
        times: list[float] = []
        for _n in range(2):
            with trio.move_on_after(2):
                await trio.sleep_forever()
            times.append(trio.current_time())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 3)
        times.append(trio.current_time())
        return times

    async with open_scheduler() as scheduler:
        assert await Doer("a", scheduler).ask(work) == [2, 4, 7]


async def test_an_error_that_trio_throws_into_a_handler_reaches_it() -> None:
    """Awaiting what is not trio's is an error where it is awaited, and the handler may go on after it."""

    class Foreign:
        def __await__(self) -> Any:
            yield "not for trio"

    async def work(_: Actor) -> str:
        await trio.lowlevel.checkpoint()
        with pytest.raises(TypeError, match="not for trio"):
            await Foreign()
        await trio.lowlevel.checkpoint()
        return "went on"

    async with open_scheduler() as scheduler:
        assert await Doer("a", scheduler).ask(work) == "went on"


async def test_a_handler_that_is_closed_closes_its_coroutine() -> None:
    """If the event loop dies, `finally` blocks of a blocked handler still run."""
    closed: list[str] = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            closed.append("closed")

    coroutine = work()
    driven = _drive(coroutine, coroutine.send(None))
    driven.send(None)
    driven.close()
    assert closed == ["closed"]
