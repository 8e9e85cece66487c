"""Hosts that share a loop, and loops that share a process."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from whenidle import MemoryStore, VirtualClock, aio, errors

from .loops import LoopFactory, Run, host, runner


def test_a_locked_store_is_refused(run: Run, tmp_path: Path) -> None:
    """Two hosts of one loop cannot have one file."""

    async def main() -> None:
        async with host(store=tmp_path / "test.db"):
            with pytest.raises(errors.StoreLocked):
                async with host(store=tmp_path / "test.db"):
                    raise AssertionError

    run(main())


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
