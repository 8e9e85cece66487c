"""How both clocks wait for a wall instant: in monotonic slices, with a look at the wall after each.

Wall decides, monotonic waits (SPEC 1.1, 1.3). This is the only place that does it.
"""

import math
from datetime import datetime

from whenidle_clock.clock import Clock, StepWatch
from whenidle_clock.instants import to_millis


async def sleep_until(clock: Clock, instant: datetime) -> None:
    """Keep the promise of `Clock.sleep_until` for any clock."""
    target = to_millis(instant)
    with clock.watch_steps() as watch:
        await rest(clock, watch, target)
        while clock.now_millis() < target:
            await rest(clock, watch, target)


async def rest(clock: Clock, watch: StepWatch, until_millis: float) -> bool:
    """Wait for one slice, a step, or the wall instant, whichever is first; tell if it was a step.

    `watch` must have been opened before this call, so that a step between the reading of the wall
    clock and the wait ends the wait. Always a checkpoint.

    Args:
        clock: whose wall and slices count.
        watch: an open watch of that clock.
        until_millis: wall milliseconds since the epoch, or `math.inf` to wait for a step alone.
    """
    seconds = math.inf if until_millis == math.inf else max(0.0, (until_millis - clock.now_millis()) / 1000)
    with clock.wait_slice(seconds) as slice_scope:
        await watch.wait()
    return not slice_scope.cancelled_caught


def check_slice(slice_seconds: float) -> float:
    """Pass on a slice that a wait can be cut into.

    Raises:
        ValueError: it is not a positive number of seconds.
    """
    if slice_seconds > 0:
        return slice_seconds
    raise ValueError(f"a slice is a positive number of seconds, not {slice_seconds!r}")
