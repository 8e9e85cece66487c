"""Turns on the asyncio side that are cancelled: whoever does it, and whenever."""

import asyncio
from typing import Any

import pytest
import trio

from whenidle import aio, errors
from whenidle.aio.guest import Guest
from whenidle.aio.work import Work

from .loops import Gate, Run, ended, host, take_a_turn, until


def test_messages_claimed_for_a_cancelled_call_come_with_the_next(run: Run) -> None:
    """A `next_step` that a timeout ends loses nothing."""
    seen = list[str]()

    async def turn(turn: aio.Turn) -> None:
        await turn.agent.steer("more")
        call = asyncio.create_task(turn.next_step())
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        seen.extend(message.text for message in await turn.next_step())

    async def main() -> None:
        async with host(turn) as there:
            await take_a_turn(there, "x")

    run(main())
    assert seen == ["more"]


def test_cancelling_a_turn_cancels_its_task(run: Run) -> None:
    """`Agent.cancel` is `CancelledError` in the turn; the agent is idle when the task has unwound."""
    steps = list[str]()

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                steps.append("unwound")
                raise

        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await gate.entered.wait()
            assert ada.status == "running"
            await ada.cancel("because")
            await ada.when_idle()
            assert steps == ["unwound"]
            assert await ended(there) == [("aborted", "because")]

    run(main())


def test_a_turn_that_cancels_itself(run: Run) -> None:
    """It is cancelled from there on, and its log says so."""

    async def turn(turn: aio.Turn) -> None:
        await turn.agent.cancel("enough")
        raise AssertionError

    async def main() -> None:
        async with host(turn) as there:
            await take_a_turn(there, "x")
            assert await ended(there) == [("aborted", "enough")]

    run(main())


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_a_turn_may_answer_its_cancellation(run: Run, how: str) -> None:
    """Whether it suppresses it and returns, or raises something else: the turn was aborted all the same."""

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                if how == "raises":
                    raise ValueError("on the way out") from None

        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await gate.entered.wait()
            await ada.cancel("because")
            await ada.when_idle()
            assert await ended(there) == [("aborted", "because")]

    run(main())


def test_a_turn_that_went_on_is_cancelled_again_when_the_host_stops(run: Run) -> None:
    """A suppressed cancellation cannot keep a host from stopping for ever."""
    cancelled = list[int]()

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            for number in (1, 2):
                try:
                    await gate.pass_through()
                except asyncio.CancelledError:
                    cancelled.append(number)

        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await gate.entered.wait()
            await ada.cancel("because")
            await until(lambda: cancelled == [1])

    run(main())
    assert cancelled == [1, 2]


def test_a_turn_cancelled_before_its_first_step_never_runs(run: Run) -> None:
    """A cancel that comes between the claim and the task withdraws the task."""
    ran = list[int]()

    async def turn(turn: aio.Turn) -> None:
        ran.append(turn.number)

    async def main() -> None:
        async with host(turn) as there:
            ada = await there.create_agent("ada")

            def interrupt(event: Any) -> None:
                if event.kind == "turn-started":
                    leave()
                    there.interrupt()

            leave = there.subscribe(interrupt)
            await ada.followup("x")
            with pytest.raises(errors.AgentDisposed):
                await ada.when_idle()
            await until(lambda: not there.agents)
            assert ran == []
            again = await there.agent("ada")
            await again.when_idle()
            assert ran == [2]

    run(main())


def test_a_turn_withdrawn_while_its_task_is_about_to_start() -> None:
    """Trio may cancel the wait before the loop has come to start the task: the coroutine is never made."""

    async def main() -> None:
        guest = await Guest.join(None)
        called = list[str]()

        async def function() -> None:
            called.append("function")

        async def work() -> None:
            with trio.CancelScope() as scope:
                scope.cancel()
                await Work(guest, function, "work").run()
            assert scope.cancelled_caught

        await guest.call(work)
        await asyncio.sleep(0)
        assert called == []
        await guest.leave()

    asyncio.run(main())


def test_a_stray_cancellation_is_an_error_of_the_turn(run: Run) -> None:
    """A turn that ends as cancelled, because of a task it awaited, has failed: nobody cancelled it."""

    async def turn(_: aio.Turn) -> None:
        inner = asyncio.ensure_future(asyncio.sleep(10))
        await asyncio.sleep(0)
        inner.cancel()
        await inner

    async def main() -> None:
        async with host(turn) as there:
            await take_a_turn(there, "x")
            [(outcome, cause)] = await ended(there)
            assert outcome == "error"
            assert cause is not None
            assert cause.startswith("WorkCancelled: turn 1 of ada ended as cancelled")

    run(main())


def test_a_turn_whose_task_is_cancelled_by_itself_has_failed(run: Run) -> None:
    """Somebody who cancels the task, and not the turn, makes it an error."""

    async def turn(_: aio.Turn) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def main() -> None:
        async with host(turn) as there:
            await take_a_turn(there, "x")
            assert [outcome for outcome, _ in await ended(there)] == ["error"]

    run(main())


def test_a_turn_can_be_cancelled_in_its_first_step(run: Run) -> None:
    """An eager task takes that step before anybody has the task; it is cancelled then, and its end is waited for."""
    steps = list[str]()

    def eager(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        coroutine.send(None)
        return asyncio.Task(coroutine, loop=loop, **options)

    async def main() -> None:
        async def turn(_: aio.Turn) -> None:
            there.interrupt()
            try:
                await asyncio.sleep(0)
                steps.append("went on")
            finally:
                steps.append("ended")

        async with host(turn) as there:
            ada = await there.create_agent("ada")
            asyncio.get_running_loop().set_task_factory(eager)
            await ada.followup("x")
            await until(lambda: not there.agents)
            asyncio.get_running_loop().set_task_factory(None)
            steps.append("disposed")

    run(main())
    assert steps == ["ended", "disposed"]
