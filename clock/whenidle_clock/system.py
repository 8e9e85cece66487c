"""`SystemClock`: the wall clock of the machine and the monotonic time of trio (SPEC 1.3)."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime

import trio

from whenidle_clock import waiting
from whenidle_clock.clock import DEFAULT_SLICE_SECONDS, StepWatch
from whenidle_clock.instants import from_millis
from whenidle_clock.timerfd import open_step_timer, take_step


class SystemClock:
    """The real `Clock`.

    The wall is the system's real-time clock. Monotonic time is that of the trio run, so that it can be
    compared with trio's deadlines; it is read inside `trio.run` only. On Linux a step of the wall
    clock, and a resume from suspend, is noticed at once; elsewhere, and where the system refuses the
    timer, within a slice.

    Args:
        slice_seconds: see `Clock`.
        timer_descriptor: opens the descriptor that becomes readable at a step, or gives None where
            there is none; each watch opens one and closes it. For tests: a real step is not theirs
            to make.
    """

    def __init__(
        self,
        *,
        slice_seconds: float = DEFAULT_SLICE_SECONDS,
        timer_descriptor: Callable[[], int | None] = open_step_timer,
    ) -> None:
        self._slice_seconds = waiting.check_slice(slice_seconds)
        self._timer_descriptor = timer_descriptor

    @property
    def slice_seconds(self) -> float:
        """See `Clock.slice_seconds`."""
        return self._slice_seconds

    def now(self) -> datetime:
        """See `Clock.now`."""
        return from_millis(self.now_millis())

    def now_millis(self) -> int:
        """See `Clock.now_millis`."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See `Clock.monotonic`.

        Raises:
            RuntimeError: not inside `trio.run`.
        """
        return trio.current_time()

    async def sleep_until(self, instant: datetime) -> None:
        """See `Clock.sleep_until`."""
        await waiting.sleep_until(self, instant)

    def wait_slice(self, seconds: float) -> trio.CancelScope:
        """See `Clock.wait_slice`."""
        return trio.move_on_after(min(seconds, self._slice_seconds))

    @contextmanager
    def watch_steps(self) -> Generator[StepWatch, None, None]:
        """See `Clock.watch_steps`. On Linux a watch holds one file descriptor."""
        descriptor = self._timer_descriptor()
        if descriptor is None:
            yield _Blind()
            return
        try:
            yield _TimerWatch(descriptor)
        finally:
            os.close(descriptor)


class _TimerWatch:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def wait(self) -> None:
        await trio.lowlevel.wait_readable(self._descriptor)
        while not take_step(self._descriptor):
            await trio.lowlevel.wait_readable(self._descriptor)


class _Blind:
    """Sees no steps: slices alone notice them."""

    async def wait(self) -> None:
        await trio.sleep_forever()
