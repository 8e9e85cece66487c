"""Moving virtual time, and only when nothing else can move.

Trio asks its clock how long it may sleep whenever no task can run, and tells an instrument, just
before it sleeps, how long it will. `Autojump` answers "an hour" to the first. If trio then is about
to sleep for exactly that hour, no task is in `wait_all_tasks_blocked` either, and nothing but time
or the outside world can happen next. If nothing outside is awaited, trio is kept from sleeping by an
empty callback and virtual time moves to the next deadline before trio looks for expired ones.

So there is no task that polls: held still by work in flight, the process sleeps in the kernel until
that work reports, and each jump costs one pass of trio's loop.

Whoever knows without trio's answer that no task is in `wait_all_tasks_blocked` says so by `is_settled`. Then there
is no need for an instrument, which is called twice in each pass, nor for a callback, which is a message to oneself
through a socket: time moves when trio asks.
"""

import bisect
import itertools
import math
from collections.abc import Callable
from typing import Protocol

import trio

from whenidle_clock.inflight import in_flight

_PARKED_SECONDS = 3600.0
"""What an idle loop is told to sleep; below trio's own cap of a day, so that it can be recognised."""


class Timeline(Protocol):
    """The virtual monotonic time that an `Autojump` moves, in nanoseconds."""

    monotonic_ns: int
    autojump: bool


class Autojump(trio.abc.Instrument):
    """Moves a timeline to trio's deadlines, freely or up to the horizon of an `advance`.

    One object serves all trio runs of its timeline, one run at a time.

    Args:
        timeline: what is moved.
        is_settled: tells, when no task can run, whether none is in `wait_all_tasks_blocked`; None if only trio knows.
    """

    def __init__(self, timeline: Timeline, is_settled: Callable[[], bool] | None = None) -> None:
        self._timeline = timeline
        self._is_settled = is_settled
        self._ticket = itertools.count()
        self._begin()

    def _begin(self) -> None:
        self._horizons: list[tuple[int, int, trio.lowlevel.Task]] = []
        self._next_deadline = math.inf
        self._primed = False
        self._expiring = 0.0

    def start_run(self) -> None:
        """Join the trio run that starts. Called from `trio.abc.Clock.start_clock`."""
        self._begin()
        if self._is_settled is None:
            self._token = trio.lowlevel.current_trio_token()
            trio.lowlevel.add_instrument(self)

    def current_time(self) -> float:
        """Answer trio's `current_time`.

        The first question after a move is trio's, which deadlines have passed: the one that time was moved
        to has, though its float may lie a rounding error above the nanosecond that was meant.
        """
        expiring, self._expiring = self._expiring, 0.0
        return max(to_seconds(self._timeline.monotonic_ns), expiring)

    def sleep_time(self, deadline: float) -> float:
        """Answer trio's `deadline_to_sleep_time`: asked exactly when no task can run."""
        self._next_deadline = deadline
        due = deadline <= to_seconds(self._timeline.monotonic_ns)
        if not due and self._is_settled is not None and self._can_move() and self._is_settled() and not _held_still():
            self._move()
            due = True
        return 0 if due else _PARKED_SECONDS

    async def travel(self, target_ns: int) -> None:
        """Let virtual time run to `target_ns`, stopping at each deadline on the way.

        Returns once time is there and everything that can run has run. Cancelled, it leaves time
        where it has got to.
        """
        horizon = (target_ns, next(self._ticket), trio.lowlevel.current_task())

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self._horizons.remove(horizon)
            return trio.lowlevel.Abort.SUCCEEDED

        bisect.insort(self._horizons, horizon)
        await trio.lowlevel.wait_task_rescheduled(abort)

    def before_io_wait(self, timeout: float) -> None:
        """Keep trio from sleeping if time is what everything waits for."""
        if timeout == _PARKED_SECONDS and self._can_move() and not _held_still():
            self._primed = True
            self._token.run_sync_soon(_nothing)

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - the signature is trio's
        """Move time, unless something has become runnable since; trio then expires deadlines."""
        if self._primed:
            self._primed = False
            # The one runnable task is trio's own, for the empty callback. More can be runnable only if
            # the world acted at this very moment: an exempt socket, a foreign thread, a host loop.
            if trio.lowlevel.current_statistics().tasks_runnable == 1:
                self._move()

    def _can_move(self) -> bool:
        return bool(self._horizons) or (self._timeline.autojump and self._next_deadline < math.inf)

    def _move(self) -> None:
        deadline_ns = math.inf if self._next_deadline == math.inf else reach(self._next_deadline)
        if not self._horizons or deadline_ns <= self._horizons[0][0]:
            self._timeline.monotonic_ns = int(deadline_ns)
            self._expiring = self._next_deadline
        elif self._timeline.monotonic_ns < self._horizons[0][0]:
            self._timeline.monotonic_ns = self._horizons[0][0]
        else:
            trio.lowlevel.reschedule(self._horizons.pop(0)[2])


def to_seconds(nanoseconds: int) -> float:
    """Give nanoseconds as the nearest float of seconds."""
    return nanoseconds / 1_000_000_000


def reach(deadline: float) -> int:
    """Give the nanosecond to move to for `deadline`: the first that is not before it, but for one thing.

    Trio computes deadlines in floats, whose errors would add up from wait to wait, and far from zero are
    coarser than a nanosecond (0.1 microseconds after thirty years). A deadline that lies within that error
    of a whole millisecond meant the millisecond, and gets it. So a wait of whole milliseconds ends on the
    millisecond, however many went before it.
    """
    numerator, denominator = deadline.as_integer_ratio()
    scaled = numerator * 1_000_000_000
    whole = (2 * scaled + 1_000_000 * denominator) // (2_000_000 * denominator) * 1_000_000
    error, parts = math.ulp(deadline).as_integer_ratio()  # in whole numbers: a float does not hold them near zero
    if abs(whole * denominator - scaled) * parts <= 4_000_000_000 * error * denominator:
        return whole
    return -(-scaled // denominator)


def _held_still() -> bool:
    return in_flight(trio.lowlevel.current_statistics().io_statistics)


def _nothing() -> None:
    """Run by trio's entry queue, so that the next wait for I/O returns at once."""
