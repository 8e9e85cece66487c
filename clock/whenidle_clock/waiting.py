"""How both clocks wait for a wall instant: in monotonic slices, with a look at the wall after each.

Wall decides, monotonic waits (SPEC 1.1, 1.3). This is the only place that does it.
"""

import math
from contextlib import AbstractContextManager
from datetime import datetime

import trio

from whenidle_clock.clock import Clock
from whenidle_clock.instants import to_millis


async def sleep_until(clock: Clock, instant: datetime) -> None:
    """Keep the promise of `Clock.sleep_until` for any clock."""
    target = to_millis(instant)
    with clock.watch_steps() as watch:
        while True:
            with rest(clock, target):
                await watch.wait()
            if clock.now_millis() >= target:
                return


def rest(clock: Clock, until_millis: float) -> AbstractContextManager[trio.CancelScope]:
    """Open a scope around one wait for a step, which ends with the slice, or at the wall instant if that is earlier.

    What is waited on in it is a watch that was opened before this call, so that a step between the reading of the
    wall clock and the wait ends the wait. The scope has caught a cancellation unless it was a step that ended it.

    Args:
        clock: whose wall and slices count.
        until_millis: wall milliseconds since the epoch, or `math.inf` to wait for a step alone.
    """
    seconds = math.inf if until_millis == math.inf else max(0.0, (until_millis - clock.now_millis()) / 1000)
    return clock.wait_slice(seconds)


def check_slice(slice_seconds: float) -> float:
    """Pass on a slice that a wait can be cut into.

    Raises:
        ValueError: it is not a positive number of seconds.
    """
    if slice_seconds > 0:
        return slice_seconds
    raise ValueError(f"a slice is a positive number of seconds, not {slice_seconds!r}")
