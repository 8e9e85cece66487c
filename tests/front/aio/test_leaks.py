"""Starting and stopping, over and over: nothing is left.

`WHENIDLE_STARTS` sets how often; a thousand take a few minutes, most of them for accounts of memory.
"""

import asyncio
import gc
import os
import threading
import tracemalloc
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from whenidle import MemoryStore, VirtualClock, aio

from .loops import LoopFactory, host

STARTS = int(os.environ.get("WHENIDLE_STARTS", "60"))
WARM_UP = 20

LEAK = 256
"""Bytes: less than any object that a start could leave behind with what belongs to it."""

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


async def use(there: aio.Host) -> None:
    """Have a host do what a host does."""
    ada = await there.create_agent("ada")
    await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": 60})
    await ada.followup("x")
    await ada.when_idle()


async def note_turn(turn: aio.Turn) -> None:
    """Take a turn and leave a note."""
    await turn.note(turn.number)


async def start_and_stop() -> None:
    """Open, use and leave a host, always at the same instant: texts of instants are kept for a while."""
    async with host(note_turn, clock=VirtualClock(MIDNIGHT)) as there:
        await use(there)


async def leave_by_exception() -> None:
    """Leave by an exception, with a turn under way."""

    async def turn(_: aio.Turn) -> None:
        entered.set()
        await asyncio.Event().wait()

    entered = asyncio.Event()
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012 - it is about the block
        async with host(turn, clock=VirtualClock(MIDNIGHT)) as there:
            await (await there.create_agent("ada")).followup("x")
            await entered.wait()
            raise ValueError("mine")


async def cancel_the_start() -> None:
    """Be cancelled while the host opens."""
    starting = asyncio.ensure_future(start_and_stop())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait([starting])


async def share() -> None:
    """Have two hosts at once, and call through a portal and a stream."""
    clock = VirtualClock(MIDNIGHT)
    async with (
        host(note_turn, clock=clock) as one,
        host(note_turn, clock=clock) as two,
        aio.open_portal() as portal,
        one.events() as stream,
    ):
        await use(two)
        await asyncio.to_thread(lambda: portal.call(one.create_agent, "eve"))
        await stream.receive()


def descriptors() -> int:
    """Count the open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux shows them")
@pytest.mark.parametrize("once", [start_and_stop, leave_by_exception, cancel_the_start, share])
def test_starting_and_stopping_leaks_nothing(
    loop_factory: LoopFactory, once: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """No task, thread, descriptor, object or memory is left by hosts that come and go on one loop."""

    async def repeat(times: int) -> None:
        for _ in range(times):
            await once()
        gc.collect()

    async def main() -> None:
        await repeat(WARM_UP)
        tasks, threads, fds = len(asyncio.all_tasks()), threading.active_count(), descriptors()
        objects = len(gc.get_objects())
        await repeat(STARTS)
        assert len(asyncio.all_tasks()) == tasks
        assert descriptors() <= fds
        # Threads that have nothing to do wait ten seconds for more, in trio's cache and asyncio's pool.
        assert threading.active_count() <= threads + 4
        assert len(gc.get_objects()) - objects < STARTS
        tracemalloc.start()
        try:
            await repeat(WARM_UP)
            memory, _ = tracemalloc.get_traced_memory()
            await repeat(STARTS // 2)
            assert tracemalloc.get_traced_memory()[0] - memory < STARTS // 2 * LEAK
        finally:
            tracemalloc.stop()

    with asyncio.Runner(loop_factory=loop_factory) as started:
        started.run(main())


def test_calls_leave_nothing_behind(loop_factory: LoopFactory) -> None:
    """Answered, refused or cancelled: an open host does not grow by the calls that were made of it."""

    async def refuse() -> None:
        raise ValueError("no")

    async def calls(times: int) -> int:
        for _ in range(times):
            await aio.run_trio(trio.lowlevel.checkpoint)
            with pytest.raises(ValueError, match="no"):
                await aio.run_trio(refuse)
            cancelled = asyncio.ensure_future(aio.run_trio(trio.sleep_forever))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.wait([cancelled])
        del cancelled
        gc.collect()
        return len(gc.get_objects())

    async def main() -> None:
        async with host():
            before = await calls(WARM_UP)
            assert await calls(STARTS) - before < STARTS

    with asyncio.Runner(loop_factory=loop_factory) as started:
        started.run(main())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux shows them")
def test_loops_that_come_and_go_leak_nothing(loop_factory: LoopFactory, tmp_path: Path) -> None:
    """Nor does a loop for each host, with a store on disk or in memory."""

    async def main(number: int) -> None:
        store = tmp_path / f"{number}.db" if number % 10 == 0 else MemoryStore()
        async with host(note_turn, store=store) as there:
            await use(there)

    def once(number: int) -> None:
        with asyncio.Runner(loop_factory=loop_factory) as started:
            started.run(main(number))

    for number in range(WARM_UP):
        once(number)
    gc.collect()
    threads, fds, objects = threading.active_count(), descriptors(), len(gc.get_objects())
    for number in range(WARM_UP, WARM_UP + STARTS // 2):
        once(number)
    gc.collect()
    assert descriptors() <= fds
    assert threading.active_count() <= threads + 4
    assert len(gc.get_objects()) - objects < STARTS
