"""A process that waits on the system clock for an instant, run by `test_faketime` under libfaketime.

Arguments: the instant in milliseconds and the slice in seconds. It prints the wall in milliseconds
when it starts to wait and when the wait has ended.
"""

import sys

import trio

from whenidle_clock import SystemClock, from_millis


async def main(target: int, slice_seconds: float) -> None:
    """Wait for the instant between two readings of the wall."""
    clock = SystemClock(slice_seconds=slice_seconds)
    print(clock.now_millis(), flush=True)  # noqa: T201 - this is what the test reads
    await clock.sleep_until(from_millis(target))
    print(clock.now_millis(), flush=True)  # noqa: T201 - the same


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), float(sys.argv[2]))
