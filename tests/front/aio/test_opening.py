"""Opening and closing hosts on an asyncio loop."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from whenidle import MemoryStore, SqliteStore, VirtualClock, aio, errors
from whenidle_actors.stores.base import Role

from .loops import Gate, LoopFactory, Run, host, no_work, runner, until


class SlowToOpen(MemoryStore):
    """Opens when it is let go, unless it is cancelled first."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = trio.Event()
        self.steps = list[str]()

    async def open(self, role: Role) -> None:
        """Open when let go."""
        self.steps.append("opening")
        await self.let_go.wait()
        await super().open(role)
        self.steps.append("open")

    async def aclose(self) -> None:
        """Close."""
        self.steps.append("closed")
        await super().aclose()


def test_the_trio_run_lives_as_long_as_the_host(run: Run) -> None:
    """Neither before nor after it is there a trio run in the thread."""

    async def main() -> None:
        assert not trio.lowlevel.in_trio_run()
        async with host():
            assert trio.lowlevel.in_trio_run()
        assert not trio.lowlevel.in_trio_run()

    run(main())


def test_a_store_outlives_its_hosts(run: Run, tmp_path: Path) -> None:
    """What one host wrote to a file the next one reads, one after the other on one loop."""
    path = tmp_path / "test.db"

    async def main() -> None:
        async with host(store=path) as there:
            await (await there.create_agent("ada")).inject("kept")
        async with host(store=str(path)) as there:
            ada = await there.agent("ada")
            assert [message.text for message in (await ada.inbox()).next_step] == ["kept"]

    run(main())


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


def test_cancelled_at_any_moment_it_leaves_nothing(run: Run) -> None:
    """Each pass of the loop, from the start to the end of the trio run: it is cancelled, and all has stopped."""

    async def short() -> None:
        async with host() as there:
            await there.create_agent("ada")

    async def main() -> None:
        outcomes = set[str]()
        for passes in range(60):
            task = asyncio.create_task(short())
            for _ in range(passes):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            outcomes.add("cancelled" if task.cancelled() else repr(task.exception()))
            assert not trio.lowlevel.in_trio_run()
        assert outcomes <= {"cancelled", "None"}

    run(main())


@pytest.mark.parametrize("passes", range(6))
def test_cancelled_during_the_start_it_is_closed_again(run: Run, passes: int) -> None:
    """However far it has come; the store is closed if it was opened."""
    store = SlowToOpen()

    async def main() -> None:
        async def serve() -> None:
            async with host(store=store):
                raise AssertionError

        task = asyncio.create_task(serve())
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not trio.lowlevel.in_trio_run()

    run(main())
    assert store.steps in ([], ["opening"])


def test_cancelled_at_the_moment_it_is_open(run: Run) -> None:
    """A cancellation that meets the finished opening closes it in order."""
    store = SlowToOpen()

    async def main() -> None:
        async def serve() -> None:
            async with host(store=store):
                await asyncio.sleep(3600)

        task = asyncio.create_task(serve())
        await until(lambda: store.steps == ["opening"])
        store.let_go.set()
        await until(lambda: "open" in store.steps)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    assert store.steps == ["opening", "open", "closed"]


def test_what_cannot_be_opened_says_why(run: Run, tmp_path: Path) -> None:
    """The error of the opening leaves the block's head, and the trio run ends."""
    (tmp_path / "test.db").write_text("no database " * 100)

    async def main() -> None:
        with pytest.raises(errors.NotAStore):
            async with host(store=tmp_path / "test.db"):
                raise AssertionError
        impossible: list[dict[str, Any]] = [
            {"store": None, "suites": [aio.Tasks()]},
            {"suites": [aio.Tasks(), aio.Tasks()]},
        ]
        for options in impossible:
            with pytest.raises(errors.CompositionError):
                async with host(**options):
                    raise AssertionError
        wrong: list[dict[str, Any]] = [{"clock": 7}, {"suites": 7}, {"suites": [7]}, {"shutdown_timeout": -1}]
        for options in wrong:
            with pytest.raises(errors.InvalidArgument):
                async with host(**options):
                    raise AssertionError
        assert not trio.lowlevel.in_trio_run()

    run(main())


def test_a_locked_store_is_refused(run: Run, tmp_path: Path) -> None:
    """Two hosts of one loop cannot have one file."""

    async def main() -> None:
        async with host(store=tmp_path / "test.db"):
            with pytest.raises(errors.StoreLocked):
                async with host(store=tmp_path / "test.db"):
                    raise AssertionError

    run(main())


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


def test_a_host_entered_by_hand_is_closed_with_the_loop(loop_factory: LoopFactory) -> None:
    """Forgotten by who opened it, it is stopped when the loop shuts its asynchronous generators down."""
    store = SlowToOpen()
    store.let_go = trio.Event()
    left = list[object]()

    async def main() -> None:
        opening = host(store=store)
        left.append(opening)
        starting = asyncio.ensure_future(opening.__aenter__())
        await until(lambda: store.steps == ["opening"])
        store.let_go.set()
        await starting

    with asyncio.Runner(loop_factory=loop_factory) as started:
        started.run(main())
    assert store.steps == ["opening", "open", "closed"]
    assert not trio.lowlevel.in_trio_run()


def test_a_host_lives_over_several_runs_of_its_loop(loop_factory: LoopFactory) -> None:
    """As for fixtures, which open it in one run and close it in another."""
    with asyncio.Runner(loop_factory=loop_factory) as started:
        opening = host()
        there = started.run(opening.__aenter__())
        ada = started.run(there.create_agent("ada"))
        started.run(ada.followup("x"))
        started.run(ada.when_idle())
        assert ada.statistics().turns == 1
        started.run(opening.__aexit__(None, None, None))
        assert not trio.lowlevel.in_trio_run()


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


# Sharing the loop ------------------------------------------------------------------------------


def test_hosts_of_one_loop_share_a_trio_run(run: Run) -> None:
    """They come and go in any order; the last one out ends it."""

    async def main() -> None:
        async with AsyncExitStack() as others:
            first = host()
            one = await first.__aenter__()
            two = await others.enter_async_context(host())
            manager = await others.enter_async_context(aio.open_manager(MemoryStore()))
            ada, eve = await asyncio.gather(one.create_agent("ada"), two.create_agent("eve"))
            await first.__aexit__(None, None, None)
            with pytest.raises(errors.AgentDisposed):
                await ada.followup("x")
            await eve.followup("x")
            await manager.send("bob", "x")
            assert trio.lowlevel.in_trio_run()
        assert not trio.lowlevel.in_trio_run()

    run(main())


def test_a_host_that_fails_takes_no_other_with_it(run: Run) -> None:
    """Its neighbour on the loop goes on."""

    async def turn(_: object) -> None:
        raise SystemExit

    async def main() -> None:
        async with host() as there:
            with pytest.raises(SystemExit):  # noqa: PT012 - it is about the block
                async with host(aio.TrioTurn(turn)) as failing:
                    await (await failing.create_agent("ada")).followup("x")
                    await asyncio.sleep(3600)
            await (await there.create_agent("eve")).followup("x")

    run(main())


def test_a_host_opened_while_the_last_one_leaves_gets_a_run_of_its_own(run: Run) -> None:
    """It waits until the old one has ended."""

    async def short() -> None:
        async with host() as there:
            await there.create_agent("ada")

    async def main() -> None:
        for passes in range(40):
            first = asyncio.create_task(short())
            for _ in range(passes):
                await asyncio.sleep(0)
            await asyncio.gather(first, short())
            assert not trio.lowlevel.in_trio_run()

    run(main())


def test_hosts_of_one_loop_share_a_clock(run: Run) -> None:
    """A second clock is refused, with what to do; the same one is fine."""
    clock = VirtualClock()

    async def main() -> None:
        async with host(clock=clock), host(clock=clock), aio.open_manager(MemoryStore(), clock=clock):
            for other in (None, VirtualClock()):
                with pytest.raises(errors.CompositionError, match="the same clock"):
                    async with host(clock=other):
                        raise AssertionError

    run(main())


def test_a_loop_in_each_thread_has_its_own_run(loop_factory: LoopFactory) -> None:
    """Threads with loops of their own do not meet."""

    async def main() -> str:
        async with host() as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
            return ada.id

    def in_thread() -> str:
        return runner(loop_factory)(main())

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*(asyncio.to_thread(in_thread) for _ in range(4))))

    assert asyncio.run(all_of_them()) == ["ada"] * 4


def test_inside_trio_the_error_says_what_to_use() -> None:
    """A trio task is told of `whenidle.open_host`; a loop below a trio run, that it needs a thread of its own."""

    async def in_trio() -> None:
        with pytest.raises(errors.CompositionError, match=r"use `whenidle.open_host` here"):
            async with host():
                raise AssertionError

    def loop_inside() -> None:
        async def main() -> None:
            with pytest.raises(errors.CompositionError, match="a trio run owns this thread"):
                async with host():
                    raise AssertionError

        asyncio.run(main())

    async def outer() -> None:
        await in_trio()
        loop_inside()

    trio.run(outer)


def test_without_any_loop_python_says_so() -> None:
    """Neither asyncio nor trio: the error is asyncio's own."""
    opening = host().__aenter__()
    with pytest.raises(RuntimeError, match="no running event loop"):
        opening.send(None)


def test_a_guest_run_of_somebody_else_is_in_the_way(run: Run) -> None:
    """Another guest run in the thread is an error with words, not a crash."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        stop = trio.Event()
        trio.lowlevel.start_guest_run(
            stop.wait,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=lambda _: ended.set_result(None),
            host_uses_signal_set_wakeup_fd=True,
        )
        with pytest.raises(errors.CompositionError, match="a trio run owns this thread"):
            async with host():
                raise AssertionError
        stop.set()
        await ended

    run(main())


def test_a_loop_in_a_thread_whose_hosts_are_on_another_loop(loop_factory: LoopFactory) -> None:
    """A host that its loop left open bars the thread to other loops; the error says so."""
    with asyncio.Runner(loop_factory=loop_factory) as first:
        opening = host()
        first.run(opening.__aenter__())
        with asyncio.Runner(loop_factory=loop_factory) as second:

            async def main() -> None:
                with pytest.raises(errors.CompositionError, match="another event loop of this thread"):
                    async with host():
                        raise AssertionError

            second.run(main())
        first.run(opening.__aexit__(None, None, None))


def test_sqlite_is_the_same_on_every_loop(run: Run, tmp_path: Path) -> None:
    """A store object serves hosts one after the other."""
    store = SqliteStore(tmp_path / "test.db")

    async def main() -> None:
        for number in range(3):
            async with host(no_work, store=store) as there:
                agent = await there.create_agent(f"a{number}")
                assert await agent.call_tool("schedule_list", {}) == []
            assert await asyncio.to_thread(lambda: True)

    run(main())
