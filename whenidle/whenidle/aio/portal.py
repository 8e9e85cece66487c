"""Into an asyncio loop from other threads."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from whenidle.portal import Portal, PortalCall, PortalClosed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_CLOSED: Final = "the portal was closed before the call was answered"


@asynccontextmanager
async def open_portal() -> AsyncGenerator[Portal]:
    """Let other threads call into this asyncio loop for as long as the block runs; see `whenidle.open_portal`.

    It is for hosts opened by `whenidle.aio.open_host`, and for any other coroutine function. Leaving the block cancels
    calls that are under way and waits for their end; each raises `PortalClosed` in its thread.
    """
    loop = asyncio.get_running_loop()
    calls: set[asyncio.Task[None]] = set()

    def start(call: PortalCall[Any]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            calls.discard(task)
            if task.cancelled():
                call.fail(PortalClosed(_CLOSED))  # before its first step
            else:
                task.exception()  # a KeyboardInterrupt, which has left the loop already

        task = call.context.run(loop.create_task, _serve(call))
        call.cancel = task.cancel
        calls.add(task)
        task.add_done_callback(ended)

    portal = Portal(loop.call_soon_threadsafe, start)
    try:
        yield portal
    finally:
        portal.close()
        for task in calls:
            task.cancel("the portal was closed")
        await _all_done(calls)


async def _all_done(calls: set[asyncio.Task[None]]) -> None:
    """Wait for the end of every call, cancelled or not."""
    cancelled: asyncio.CancelledError | None = None
    try:
        while calls:
            try:
                await asyncio.wait(calls)
            except asyncio.CancelledError as request:
                cancelled = cancelled or request
        if cancelled is not None:
            raise cancelled
    finally:
        del cancelled


async def _serve(call: PortalCall[Any]) -> None:
    """Serve a call in an asyncio task of its own; what it raises is the caller's, and Ctrl-C the program's too."""
    try:
        await call.serve()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        asked = task is not None and task.cancelling() > 0
        call.fail(PortalClosed(_CLOSED) if asked else error)
    except KeyboardInterrupt as error:
        call.fail(error)
        raise
    except BaseException as error:  # noqa: BLE001 - whatever else it is, it belongs to the caller
        call.fail(error)
