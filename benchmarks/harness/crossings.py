"""The cheapest ways from asyncio into trio, without answers to cancellation, exceptions or context.

Each gives a function that has trio run an async function and returns its answer to asyncio.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

Work: TypeAlias = "Callable[[], Awaitable[Any]]"
Cross: TypeAlias = "Callable[[Work], Awaitable[Any]]"


@asynccontextmanager
async def guest_mode() -> AsyncGenerator[Cross]:
    """Cross to a trio run that is a guest of the loop: one trio task a call, and a future."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    stop = trio.Event()
    trio.lowlevel.start_guest_run(
        stop.wait,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        run_sync_soon_not_threadsafe=loop.call_soon,
        done_callback=lambda _: ended.set_result(None),
        host_uses_signal_set_wakeup_fd=True,
    )

    async def run(work: Work, answer: asyncio.Future[Any]) -> None:
        answer.set_result(await work())

    async def cross(work: Work) -> Any:
        answer: asyncio.Future[Any] = loop.create_future()
        trio.lowlevel.spawn_system_task(run, work, answer)
        return await answer

    try:
        yield cross
    finally:
        stop.set()
        await ended


@asynccontextmanager
async def own_thread() -> AsyncGenerator[Cross]:
    """Cross to a trio run in a thread of its own: a callback there, a trio task, a callback back."""
    loop = asyncio.get_running_loop()
    token: asyncio.Future[trio.lowlevel.TrioToken] = loop.create_future()
    stop = trio.Event()

    async def main() -> None:
        loop.call_soon_threadsafe(token.set_result, trio.lowlevel.current_trio_token())
        await stop.wait()

    async def run(work: Work, answer: asyncio.Future[Any]) -> None:
        loop.call_soon_threadsafe(answer.set_result, await work())

    async def cross(work: Work) -> Any:
        answer: asyncio.Future[Any] = loop.create_future()
        enter(trio.lowlevel.spawn_system_task, run, work, answer)
        return await answer

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    enter = (await token).run_sync_soon
    try:
        yield cross
    finally:
        enter(stop.set)
        await asyncio.to_thread(thread.join)


@asynccontextmanager
async def worker_threads() -> AsyncGenerator[Cross]:
    """Cross by what both libraries document: `asyncio.to_thread` around `trio.from_thread.run`."""
    loop = asyncio.get_running_loop()
    token: asyncio.Future[trio.lowlevel.TrioToken] = loop.create_future()
    stop = trio.Event()

    async def main() -> None:
        loop.call_soon_threadsafe(token.set_result, trio.lowlevel.current_trio_token())
        await stop.wait()

    async def cross(work: Work) -> Any:
        return await asyncio.to_thread(lambda: trio.from_thread.run(work, trio_token=there))

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    there = await token
    try:
        yield cross
    finally:
        there.run_sync_soon(stop.set)
        await asyncio.to_thread(thread.join)
