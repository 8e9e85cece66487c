"""Turn functions on the asyncio side."""

import asyncio
import contextvars
import logging
import sys
import traceback
from typing import Any

import pytest
import trio

from whenidle import CommandAgent, Redelivery, Turn, aio, errors
from whenidle.aio.guest import Guest
from whenidle.aio.work import Work
from whenidle_actors.stores.memory import MemoryStore

from .loops import Gate, Run, host, told, until


async def ended(there: aio.Host) -> list[tuple[str, str | None]]:
    """Return how the turns of `ada` ended: outcome and cause."""
    return [(end["outcome"], end.get("cause")) for end in await told(there, "ada", "turn/end")]


def test_a_turn_is_an_asyncio_task(run: Run) -> None:
    """It may use whatever asyncio offers: timeouts, task groups, a task name that says whose turn it is."""
    names = list[str]()

    async def turn(turn: aio.Turn) -> None:
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(turn.note({"step": 1}))
            group.create_task(turn.call_tool("schedule_create", {"prompt": "x", "after_seconds": 60}))

    async def main() -> None:
        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
            assert names == ["turn 1 of ada"]
            assert len(await ada.call_tool("schedule_list", {})) == 1
            assert [note["data"] for note in await told(there, "ada", "turn/note")] == [{"step": 1}]

    run(main())


def test_a_turn_sees_its_messages(run: Run) -> None:
    """Number, messages, attempt, history and agent are those of the trio turn; between steps it takes more."""
    seen: list[Any] = []

    async def turn(turn: aio.Turn) -> None:
        seen.append((turn.number, [m.text for m in turn.messages], turn.attempt, turn.redelivered, turn.agent.id))
        await turn.agent.steer("more")
        seen.append([m.text for m in await turn.next_step()])
        assert await turn.next_step() == ()
        history = await turn.history()
        assert history is not None
        with pytest.raises(errors.WouldWaitForItself):
            await turn.agent.when_idle()

    async def main() -> None:
        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
            assert there.agents == (ada,)

    run(main())
    assert seen == [(1, ["x"], 1, False, "ada"), ["more"]]


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
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()

    run(main())
    assert seen == ["more"]


def test_what_a_turn_raises_ends_it_as_an_error(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """The outcome is durable, the traceback is in the log, and the agent goes on."""

    async def turn(turn: aio.Turn) -> None:
        if turn.number == 1:
            raise ValueError("no")

    async def main() -> None:
        async with host(turn) as there:
            ada = await there.create_agent("ada")
            for text in ("x", "y"):
                await ada.followup(text)
                await ada.when_idle()
            assert await ended(there) == [("error", "ValueError: no"), ("completed", None)]

    with caplog.at_level(logging.ERROR, "whenidle.turns"):
        run(main())
    [record] = caplog.records
    assert record.exc_info is not None
    assert traceback.extract_tb(record.exc_info[2])[-1].name == "turn"


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
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
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
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
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
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
            assert [outcome for outcome, _ in await ended(there)] == ["error"]

    run(main())


def test_context_variables_of_who_opened_the_host_reach_turns(run: Run) -> None:
    """Whoever sends the message, the turn sees what was set around `open_host`."""
    variable = contextvars.ContextVar("variable", default="unset")
    seen = list[str]()

    async def turn(_: aio.Turn) -> None:
        seen.append(variable.get())
        variable.set("the turn's")

    async def main() -> None:
        variable.set("the opener's")
        async with host(turn) as there:
            ada = await there.create_agent("ada")
            variable.set("the sender's")
            for text in ("x", "y"):
                await ada.followup(text)
                await ada.when_idle()

    run(main())
    assert seen == ["the opener's"] * 2


def test_a_trio_turn_is_marked(run: Run) -> None:
    """`TrioTurn` runs its function in trio with the trio turn, a `CommandAgent` for example."""
    seen = list[str]()

    async def turn(turn: Turn) -> None:
        assert trio.lowlevel.in_trio_task()
        await trio.lowlevel.checkpoint()
        seen.extend(message.text for message in turn.messages)

    async def main() -> None:
        async with host(aio.TrioTurn(turn)) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
        script = "import sys; print(sys.stdin.read().upper())"
        command = CommandAgent(argv=(sys.executable, "-c", script))
        async with host(aio.TrioTurn(command)) as there:
            ada = await there.create_agent("ada")
            await ada.followup("shout")
            await ada.when_idle()
            [note] = await told(there, "ada", "turn/note")
            assert note["data"]["stdout"] == "SHOUT\n"

    run(main())
    assert seen == ["x"]


def test_a_turn_function_may_return_any_awaitable(run: Run) -> None:
    """A future or an object with `__await__` will do, as anything that asyncio can await."""

    class Function:
        def __call__(self, _: aio.Turn) -> "asyncio.Future[None]":
            return asyncio.ensure_future(asyncio.sleep(0))

    async def main() -> None:
        async with host(Function()) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
            assert await ended(there) == [("completed", None)]

    run(main())


def test_at_most_once_is_passed_on(run: Run) -> None:
    """An interrupted turn is not redelivered on a host that asks for that."""
    attempts = list[int]()

    async def main() -> None:
        store = MemoryStore()
        gate = Gate()

        async def turn(turn: aio.Turn) -> None:
            attempts.append(turn.attempt)
            await gate.pass_through()

        for _ in range(2):
            async with host(turn, store=store, redelivery=Redelivery.AT_MOST_ONCE) as there:
                if not attempts:
                    ada = await there.create_agent("ada")
                    await ada.followup("x")
                    await gate.entered.wait()
                else:
                    await (await there.agent("ada")).when_idle()

    run(main())
    assert attempts == [1]


def test_eager_tasks_and_debug_mode_change_nothing() -> None:
    """A task factory, an eager one where Python has it, and the loop's debug mode are no obstacle."""
    seen = list[str]()

    async def turn(turn: aio.Turn) -> None:
        assert not trio.lowlevel.in_trio_task()
        await turn.note(1)
        seen.extend(message.text for message in turn.messages)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        eager = getattr(asyncio, "eager_task_factory", None)
        loop.set_task_factory(eager or (lambda loop, coro, **options: asyncio.Task(coro, loop=loop, **options)))
        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await asyncio.gather(ada.followup("x"), ada.inject("y"))
            await ada.when_idle()

    asyncio.run(main(), debug=True)
    assert sorted(seen) == ["x", "y"]


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
