"""Opening hosts on an asyncio loop, and what is in the way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import trio

from whenidle import SqliteStore, aio, errors

from .loops import LoopFactory, Run, host, no_work


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
