"""Ticks of the trio run on the asyncio loop, and what waits between them.

In guest mode trio waits for its files and deadlines in a thread, so each call from asyncio wakes that thread, which
wakes the loop: on a busy machine four times the cost of a trio run in a thread of its own. But trio's epoll instance is
a file too, and the loop can watch it. The driver does so: it makes the ticks that `start_guest_run` asks for itself, as
trio's `GuestState.guest_tick` does, but for the wait. Then a call costs no system call on its way, and there is one
thread less.

That needs parts of trio which have no public name. Where one is missing (another system, another version) trio's own
ticks are used, with their thread.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import sniffio
import trio
from outcome import Error, Value

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_PARTS = ("runner", "unrolled_run_gen", "unrolled_run_next_send", "done_callback")
_RUNNER_PARTS = ("guest_tick_scheduled", "io_manager", "main_task_outcome")


class Driver:
    """Makes the ticks of one trio run on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._state: Any = None
        """Trio's `GuestState`; None before the first tick, and where trio makes its own."""
        self._watched: int | None = None
        self._is_waiting = False
        self._timer: asyncio.TimerHandle | None = None

    def soon(self, tick: Callable[[], object]) -> None:
        """Have trio's tick made in the next pass of the loop: `run_sync_soon_not_threadsafe` of a guest run."""
        if self._watched is None:
            self._adopt(tick)
        self._loop.call_soon(tick if self._watched is None else self._tick)

    def wake(self) -> None:
        """Have a tick made if none is to come, because something is about to become runnable."""
        if self._is_waiting:
            self._stop_waiting()
            self._loop.call_soon(self._tick)

    def _adopt(self, tick: Callable[[], object]) -> None:
        """Take the ticks over if trio has all the parts it takes."""
        state = getattr(tick, "__self__", None)
        runner = getattr(state, "runner", None)
        epoll = getattr(getattr(runner, "io_manager", None), "_epoll", None)
        has_all = all(hasattr(state, part) for part in _PARTS) and all(hasattr(runner, part) for part in _RUNNER_PARTS)
        if epoll is not None and has_all:
            self._state = state
            # A descriptor of our own: it outlives the run, which closes trio's.
            self._watched = os.dup(epoll.fileno())
            self._loop.add_reader(self._watched, self._readable)

    def _tick(self) -> None:
        """Run all that trio can run now, and wait if there is no more; see trio's `GuestState.guest_tick`."""
        state = self._state
        library, sniffio.thread_local.name = sniffio.thread_local.name, "trio"
        try:
            timeout = state.unrolled_run_next_send.send(state.unrolled_run_gen)
        except StopIteration:
            self._end(state.runner.main_task_outcome)
            return
        except trio.TrioInternalError as error:
            self._end(Error(error))
            return
        finally:
            sniffio.thread_local.name = library
        if self._look() or timeout <= 0:
            state.runner.guest_tick_scheduled = True
            self._loop.call_soon(self._tick)
        else:
            state.runner.guest_tick_scheduled = False
            self._is_waiting = True
            if timeout < math.inf:
                self._timer = self._loop.call_later(timeout, self.wake)

    def _look(self) -> bool:
        """Take the events of trio's files for the next tick, and return whether there is anything to tell it."""
        try:
            events = self._state.runner.io_manager.get_events(0)
        except BaseException as error:  # noqa: BLE001 - it is the run's
            self._state.unrolled_run_next_send = Error(error)
            return True
        self._state.unrolled_run_next_send = Value(events)
        return bool(events)

    def _readable(self) -> None:
        """Make a tick, as there is an event, unless one is to come."""
        if self._is_waiting:
            self._look()
            self.wake()

    def _stop_waiting(self) -> None:
        self._is_waiting = False
        self._state.runner.guest_tick_scheduled = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, outcome: object) -> None:
        """Leave the loop, and pass on how the run ended."""
        assert self._watched is not None  # noqa: S101 - there were ticks
        self._loop.remove_reader(self._watched)
        os.close(self._watched)
        state, self._state = self._state, None
        state.done_callback(outcome)
