"""What the runtime asks of a clock, and what a clock promises (SPEC 1.2, 1.3)."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

import trio

DEFAULT_SLICE_SECONDS = 60.0
"""How long a step that nobody announced can stay unnoticed (SPEC 1.3)."""


class StepWatch(Protocol):
    """An open watch for steps of the wall clock."""

    async def wait(self) -> None:
        """Return once the wall clock was stepped since the watch was opened or since the last return.

        Several steps before a call are one. A clock that cannot see steps waits for ever; so does
        this watch for a step that nobody announces. Never busy, always a checkpoint; cancelling it
        loses no step.
        """
        ...


@runtime_checkable
class Clock(Protocol):
    """Two clocks that are never mixed: wall time says what is due, monotonic time how long to wait.

    `SystemClock` and `VirtualClock` keep these promises and pass one test suite.
    """

    @property
    def slice_seconds(self) -> float:
        """The longest wait, in seconds of monotonic time, between two looks at the wall clock."""
        ...

    def now(self) -> datetime:
        """Read the wall clock: an aware UTC instant of whole milliseconds, floored.

        It may be set back, jump forward, or run on while the process does not.

        Raises:
            InstantOutOfRange: the wall clock stands outside years 0001-9999.
        """
        ...

    def now_millis(self) -> int:
        """Read the wall clock in whole milliseconds since the epoch, floored."""
        ...

    def monotonic(self) -> float:
        """Read monotonic time in seconds, on the scale of `trio.current_time` and trio's deadlines."""
        ...

    async def sleep_until(self, instant: datetime) -> None:
        """Wait until the wall clock shows `instant` or later; never return before (SPEC 1.3).

        The wall clock is read again after every wake, and at least once in each slice. Set back, it
        is waited for again; stepped forward past `instant`, it ends the wait at once. An instant
        that has passed returns after one checkpoint. Cancellation leaves nothing behind.

        Raises:
            ValueError: `instant` is naive.
            InstantOutOfRange: its offset carries it outside years 0001-9999 UTC.
        """
        ...

    def wait_slice(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """Open a scope around one wait for a wall instant that seems `seconds` away.

        It ends the wait when they have gone by in monotonic time, and earlier, at the end of a slice, if the
        wall clock may have been stepped without notice. Whoever waits reads the wall again then.
        """
        ...

    def watch_steps(self) -> AbstractContextManager[StepWatch]:
        """Open a watch for steps; read the wall clock after opening and no step goes unnoticed.

        One task at a time may wait on a watch. Open as many watches as there are waiters.
        """
        ...
