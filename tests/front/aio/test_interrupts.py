"""Ctrl-C, and what else ends a program."""

import asyncio
import signal
import threading

import pytest
import trio

from whenidle import MemoryStore, aio

from .loops import Gate, LoopFactory, host, runner, until


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_passes_from_a_turn_out_of_the_loop(
    loop_factory: LoopFactory, error: type[BaseException]
) -> None:
    """As from any asyncio task. The host stops in order, and the turn's messages are delivered again."""
    store = MemoryStore()
    attempts = list[int]()
    steps = list[str]()

    async def turn(turn: aio.Turn) -> None:
        attempts.append(turn.attempt)
        if turn.attempt == 1:
            raise error

    async def main() -> None:
        try:
            async with host(turn, store=store) as there:
                await (await there.create_agent("ada")).followup("x")
                await asyncio.sleep(3600)
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise

    with pytest.raises(error), asyncio.Runner(loop_factory=loop_factory) as started:
        started.run(main())
    assert steps == ["cancelled"]
    assert not trio.lowlevel.in_trio_run()

    async def again() -> None:
        async with host(turn, store=store) as there:
            await (await there.agent("ada")).when_idle()

    runner(loop_factory)(again())
    assert attempts == [1, 2]


def test_a_loop_that_goes_on_after_an_interrupt_keeps_its_host(loop_factory: LoopFactory) -> None:
    """The agent of the turn is disposed, the others are as they were."""

    async def turn(turn: aio.Turn) -> None:
        if turn.attempt == 1:
            raise KeyboardInterrupt

    with asyncio.Runner(loop_factory=loop_factory) as started:
        opening = host(turn)
        there = started.run(opening.__aenter__())
        ada = started.run(there.create_agent("ada"))
        with pytest.raises(KeyboardInterrupt):
            started.run(sent_and_idle(ada))
        started.run(until(lambda: there.agents == ()))
        again = started.run(there.agent("ada"))
        started.run(again.when_idle())
        assert again.statistics().turns == 2
        started.run(opening.__aexit__(None, None, None))


async def sent_and_idle(agent: aio.Agent) -> None:
    """Send a message and wait."""
    await agent.followup("x")
    await asyncio.sleep(3600)


def test_an_interrupt_in_maintenance_is_its_callers(loop_factory: LoopFactory) -> None:
    """It leaves the loop, and the caller, which is cancelled as the loop shuts down, is told just that."""
    ended = list[str]()

    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            try:
                await ada.run_maintenance(interrupted)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=loop_factory) as started:
        started.run(main())
    assert ended == ["cancelled"]


def interrupt_soon(entered: threading.Event) -> threading.Thread:
    """Send this process a SIGINT once the event is set."""

    def work() -> None:
        entered.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("plain", [False, True], ids=["runner", "plain loop"])
def test_ctrl_c_stops_the_host_in_order(loop_factory: LoopFactory, plain: bool) -> None:
    """Whether asyncio's runner took SIGINT or, on a loop that left it alone, trio has it; turns are interrupted."""
    interrupted = list[str]()
    entered = threading.Event()

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            entered.set()
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                interrupted.append("turn")
                raise

        async with host(turn) as there:
            await (await there.create_agent("ada")).followup("x")
            # Asyncio overlooks a signal that comes as it goes to sleep, until it wakes.
            while True:  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.01)

    thread = interrupt_soon(entered)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - two ways of one statement
        if plain:
            run_plainly(loop_factory, main())
        else:
            with asyncio.Runner(loop_factory=loop_factory) as started:
                started.run(main())
    thread.join()
    assert interrupted == ["turn"]
    assert not trio.lowlevel.in_trio_run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def run_plainly(loop_factory: LoopFactory, coroutine: object) -> None:
    """Run a coroutine as programs did before there was a runner, and cancel it when it is interrupted."""
    loop = loop_factory()
    try:
        task = loop.create_task(coroutine)  # type: ignore[arg-type, var-annotated]
        try:
            loop.run_until_complete(task)
        except KeyboardInterrupt:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                loop.run_until_complete(task)
            raise
    finally:
        loop.close()


def test_an_interrupt_while_the_last_host_is_left_lets_it_be_left(loop_factory: LoopFactory) -> None:
    """Where SIGINT is trio's it can come when there is no main task any more; the block is left all the same."""
    steps = list[str]()

    async def stubborn() -> None:
        try:
            await trio.sleep_forever()
        finally:
            signal.raise_signal(signal.SIGINT)

    async def main() -> None:
        async with host():
            call = asyncio.create_task(aio.run_trio(stubborn))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        steps.append("left")
        with pytest.raises(aio.HostClosed):
            await call

    loop = loop_factory()
    try:
        running = loop.create_task(main())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(running)
        loop.run_until_complete(asyncio.wait_for(running, 5))
    finally:
        loop.close()
    assert steps == ["left"]
