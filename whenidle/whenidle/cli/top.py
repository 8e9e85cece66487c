"""`whenidle top`: what a host does, or what its store says, as it changes."""

import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import isfinite
from typing import Annotated

import trio
from cyclopts import Parameter
from rich.console import ConsoleDimensions, Group
from rich.live import Live

from whenidle.cli.arguments import DEFAULT_STORE, Json, Store, existing_store
from whenidle.cli.exits import UsageError
from whenidle.cli.output import Output
from whenidle.cli.top_keys import pressed, unseen
from whenidle.cli.top_screen import everything, last_first, screen
from whenidle.status.reading import StoreReader
from whenidle.status.socket import NoHost, ask_status
from whenidle.status.view import View, document
from whenidle_actors.errors import StoreError
from whenidle_actors.stores.base import Role
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_clock import Clock, SystemClock

Look = Callable[[], Awaitable[View]]

_SCROLLS = {"j": 1, "down": 1, "k": -1, "up": -1, "page-down": 10, "page-up": -10}


def top(
    *,
    interval: Annotated[float, Parameter(metavar="SECONDS", help="How often to look.")] = 1.0,
    once: Annotated[bool, Parameter(negative=(), help="Look once, show everything and end.")] = False,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Show what a host does: agents, what comes next, what was delivered how late, and steps of the clock.

    The host of the store is asked, if one runs and answers. Otherwise the store is read, and phases are what
    its logs say. q quits, p pauses, j and k or the arrows scroll.

    Where standard output is no terminal, it looks once. With --json it writes a document for each look.
    """
    if not (isfinite(interval) and interval > 0):
        raise UsageError(f"--interval takes a number above 0, not {interval}")
    trio.run(_top, interval, once, existing_store(store), Output.standard(json=json), SystemClock())


async def _top(interval: float, once: bool, store: str, output: Output, clock: Clock) -> None:  # noqa: FBT001 - the option
    async with _looking(store, clock) as look:
        if once or not (output.terminal or output.json):
            view = await look()
            output.answer(document(view), *everything(view))
        elif output.json:
            while True:
                output.document(document(await look()))
                await trio.sleep(interval)
        else:
            await _Display(output, look, interval).run()


@asynccontextmanager
async def _looking(path: str, clock: Clock) -> AsyncGenerator[Look]:
    """Yield what looks at the host of a store if one answers, else at the store."""
    async with SqliteStore(path).opened(Role.MANAGER) as store:
        reader = StoreReader(store, clock)

        async def look() -> View:
            try:
                return await ask_status(path)
            except NoHost:
                return await reader.look()

        yield look


class _Display:
    """The live picture, and what the keys do to it."""

    def __init__(self, output: Output, look: Look, interval: float) -> None:
        self._console = output.console
        self._look = look
        self._interval = interval
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._view: View | None = None
        self._first = 0
        self._paused = False
        self._notice = ""

    async def run(self) -> None:
        """Show the picture until q is pressed or the terminal is gone; without keys, until Ctrl-C."""
        descriptor = sys.stdin.fileno()
        with unseen(descriptor), self._live:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._refresh)
                nursery.start_soon(self._resize)
                await self._obey(descriptor)
                nursery.cancel_scope.cancel()

    async def _obey(self, descriptor: int) -> None:
        while keys := await pressed(descriptor):
            for key in keys:
                if key == "q":
                    return
                self._press(key)

    async def _refresh(self) -> None:
        while True:
            if not self._paused:
                try:
                    self._view, self._notice = await self._look(), ""
                except StoreError as error:
                    self._notice = str(error)
                self._draw()
            await trio.sleep(self._interval)

    async def _resize(self) -> None:
        with trio.open_signal_receiver(signal.SIGWINCH) as resizes:
            async for _ in resizes:
                self._draw()

    def _press(self, key: str) -> None:
        if key == "p":
            self._paused = not self._paused
        elif self._view is not None:
            self._first = min(max(self._first + _SCROLLS.get(key, 0), 0), last_first(self._view))
        self._draw()

    def _draw(self) -> None:
        if self._view is None:
            return
        # COLUMNS and LINES, where somebody has set them, do not change with the terminal.
        width, height = os.get_terminal_size(sys.stdout.fileno())
        self._console.size = ConsoleDimensions(width, height)
        notice = self._notice or ("paused" if self._paused else "")
        lines = screen(self._view, width, height, first=self._first, notice=notice)
        self._live.update(Group(*lines), refresh=True)
