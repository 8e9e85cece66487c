"""How hosts on an asyncio loop are closed, and what becomes of their turns."""

import asyncio

import pytest
import trio

from whenidle import MemoryStore, aio

from .loops import Gate, LoopFactory, Run, host, runner


def test_an_exception_leaves_the_block_as_it_was_raised(run: Run) -> None:
    """The same object, in no group; turns that ran are interrupted."""
    error = ValueError("mine")
    interrupted = list[str]()

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                interrupted.append("turn")
                raise

        async with host(turn, shutdown_timeout=3600) as there:
            await (await there.create_agent("ada")).followup("x")
            await gate.entered.wait()
            raise error

    with pytest.raises(ValueError, match="mine") as caught:
        run(main())
    assert caught.value is error
    assert interrupted == ["turn"]


def test_a_turn_may_finish_when_the_block_is_left_normally(run: Run) -> None:
    """Within the shutdown timeout."""
    finished = list[str]()

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            await gate.pass_through()
            await asyncio.sleep(0.01)
            finished.append("turn")

        async with host(turn, shutdown_timeout=3600) as there:
            await (await there.create_agent("ada")).followup("x")
            await gate.entered.wait()
            gate.opened.set()

    run(main())
    assert finished == ["turn"]


def test_cancelling_the_block_stops_the_host_in_order(run: Run) -> None:
    """Turns are interrupted, the store is closed, and then the task is cancelled; the messages come again."""
    attempts = list[int]()

    async def main() -> None:
        store = MemoryStore()
        gate = Gate()

        async def turn(turn: aio.Turn) -> None:
            attempts.append(turn.attempt)
            if turn.attempt == 1:
                await gate.pass_through()

        async def serve() -> None:
            async with host(turn, store=store, shutdown_timeout=3600) as there:
                await (await there.create_agent("ada")).followup("x")
                await asyncio.Event().wait()

        task = asyncio.create_task(serve())
        await gate.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not trio.lowlevel.in_trio_run()
        async with host(turn, store=store) as there:
            await (await there.agent("ada")).when_idle()

    run(main())
    assert attempts == [1, 2]


def test_a_cancelled_close_is_finished(run: Run) -> None:
    """A turn that is given its time keeps it, and the task is cancelled when the host has stopped."""
    finished = list[str]()

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            await gate.pass_through()
            finished.append("turn")

        closing = asyncio.Event()

        async def serve() -> None:
            async with host(turn, shutdown_timeout=3600) as there:
                await (await there.create_agent("ada")).followup("x")
                await gate.entered.wait()
                closing.set()

        task = asyncio.create_task(serve())
        await closing.wait()
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not trio.lowlevel.in_trio_run()

    run(main())
    assert finished == ["turn"]


def test_a_loop_that_shuts_down_stops_its_hosts(loop_factory: LoopFactory) -> None:
    """All tasks are cancelled, the turn's too: it is interrupted, not failed, and its messages come again."""
    store = MemoryStore()
    attempts = list[int]()
    gates = list[Gate]()

    async def turn(turn: aio.Turn) -> None:
        attempts.append(turn.attempt)
        if turn.attempt == 1:
            await gates[0].pass_through()

    async def serve() -> None:
        async with host(turn, store=store) as there:
            await (await there.create_agent("ada")).followup("x")
            await asyncio.sleep(3600)

    async def main() -> asyncio.Task[None]:
        gates.append(Gate())
        task = asyncio.create_task(serve())
        await gates[0].entered.wait()
        return task

    with asyncio.Runner(loop_factory=loop_factory) as started:
        left = started.run(main())
    assert left.cancelled()
    assert not trio.lowlevel.in_trio_run()

    async def again() -> None:
        async with host(turn, store=store) as there:
            await (await there.agent("ada")).when_idle()

    runner(loop_factory)(again())
    assert attempts == [1, 2]


@pytest.mark.parametrize("how", ["waits", "has left", "raises"])
def test_a_host_that_fails_ends_its_block(run: Run, how: str) -> None:
    """The block is cancelled and raises what the host failed with; the task itself is not cancelled."""
    failure = SystemExit("turn")

    async def turn(_: object) -> None:
        raise failure

    async def main() -> None:
        with pytest.raises(SystemExit) as caught:  # noqa: PT012 - it is about the block
            async with host(aio.TrioTurn(turn)) as there:
                await (await there.create_agent("ada")).followup("x")
                if how == "has left":
                    await until_dead(there)
                elif how == "raises":
                    try:
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        raise ValueError("mine") from None
                else:
                    await asyncio.sleep(3600)
        assert caught.value is failure
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        assert not trio.lowlevel.in_trio_run()

    run(main())


async def until_dead(there: aio.Host) -> None:
    """Return when the host has failed, and suppress the cancellation."""
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return
