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
from whenidle_actors.stores.memory import MemoryStore

from .loops import Gate, Run, ended, host, take_a_turn, told


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
            ada = await take_a_turn(there, "x")
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
            ada = await take_a_turn(there, "x")
            assert there.agents == (ada,)

    run(main())
    assert seen == [(1, ["x"], 1, False, "ada"), ["more"]]


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
            await take_a_turn(there, "x")
        script = "import sys; print(sys.stdin.read().upper())"
        command = CommandAgent(argv=(sys.executable, "-c", script))
        async with host(aio.TrioTurn(command)) as there:
            await take_a_turn(there, "shout")
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
            await take_a_turn(there, "x")
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
