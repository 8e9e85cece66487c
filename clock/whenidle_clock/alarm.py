"""One alarm a host: a single task that sleeps until the earliest of many targets (SPEC 1.5)."""

import math
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import attrs
import trio

from whenidle_clock.alarm_queue import AlarmQueue
from whenidle_clock.clock import Clock
from whenidle_clock.waiting import rest

K = TypeVar("K", bound=Hashable)

FIRE_LIMIT = 256
"""The most keys one call of `fire` gets; a checkpoint follows each call.

Taking out that many holds the loop for less than a millisecond, beside what `fire` itself does.
"""

STEP_MILLIS = 2.0
"""What the wall may differ from monotonic time by for having been read a moment later, and floored."""

SILENT_STEP_MILLIS = 1_000.0
"""What is told of as a step though nobody announced it. A clock that is slewed by the most that NTP does, 500 parts
in a million, moves by 30 ms in a slice of a minute."""


@attrs.frozen
class AlarmStatistics:
    """What an alarm holds and has done."""

    armed: int
    """Keys that have a target now."""

    stale: int
    """Entries still held for keys that were disarmed, re-armed or fired."""

    fired: int
    """Keys handed to `fire` so far."""

    rearmed: int
    """Times `arm` replaced a target so far."""

    early_wakes: int
    """Times the alarm woke with nothing due so far: end of a slice, step, changed targets."""

    steps_seen: int
    """Steps of the wall clock that ended a wait so far."""


class Alarm(Generic[K]):
    """Targets of any number of owners, by key, on the wall clock; `run` is the one task they need.

    A million targets cost no tasks. Not thread-safe: for the thread that
    runs trio. Keys are hashable and compare by equality.

    Args:
        clock: whose wall says what is due.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: AlarmQueue[K] = AlarmQueue()
        self._running = False
        # While `run` waits: until when, and how to end that.
        self._waiting_for: float = -math.inf
        self._nap = trio.CancelScope()
        self._wall_ahead = 0.0
        self._last_ahead = 0.0  # when it was looked at last for a step to tell of
        self._fired = 0
        self._rearmed = 0
        self._early_wakes = 0
        self._steps_seen = 0

    def __len__(self) -> int:
        return len(self._queue)

    def arm(self, key: K, at_millis: int) -> None:
        """Give `key` the target `at_millis` in place of any it has. O(log n) amortised.

        A target that has passed is fired at once. If `run` is waiting for this very target, and the wall clock
        was stepped since without notice, it looks at the wall clock again.

        Args:
            key: what `fire` is to be told.
            at_millis: wall time in milliseconds since the epoch.
        """
        before = self._queue.target(key)
        self._rearmed += self._queue.arm(key, at_millis)
        if at_millis < self._waiting_for or self._is_put_off(before, at_millis):
            self._look_again()

    def disarm(self, key: K) -> bool:
        """Take away the target of `key`; tell whether it had one. O(log n) amortised."""
        if self._queue.target(key) == self._waiting_for:
            self._look_again()
        return self._queue.disarm(key)

    def target(self, key: K) -> int | None:
        """Give the target of `key` in milliseconds since the epoch, None if it has none."""
        return self._queue.target(key)

    def earliest(self) -> int | None:
        """Give the earliest target in milliseconds since the epoch, None if there is none."""
        return self._queue.earliest()

    def statistics(self) -> AlarmStatistics:
        """Say what the alarm holds and has done."""
        return AlarmStatistics(
            armed=len(self._queue),
            stale=self._queue.count_stale(),
            fired=self._fired,
            rearmed=self._rearmed,
            early_wakes=self._early_wakes,
            steps_seen=self._steps_seen,
        )

    async def run(self, fire: Callable[[list[K]], None], stepped: Callable[[float], None] | None = None) -> None:
        """Fire what comes due, until cancelled.

        `fire` is called with keys whose target the wall clock has reached, never before (SPEC 1.3), at
        most `FIRE_LIMIT` a call, ordered by target and then by time of arming. They are no longer armed
        when it is called: each arming fires at most once, and `fire` may arm and disarm any key, its
        own included. Disarming a key that is in the list comes too late and says so (False); whoever
        can be disarmed by a neighbour's firing decides again when its turn comes.

        Set back, the wall clock is waited for again; stepped forward, what it passed fires at once.

        `stepped` is told by how many milliseconds the wall clock was stepped, negative if back: of each step that
        was noticed at once, if it is 2 ms or more, and of one that nobody announced, at the end of the slice, if it
        is a second or more; less may be drift. Several steps before the alarm gets to look are one.

        An exception of `fire` or `stepped` ends the run and is passed on; the keys of that call stay disarmed.
        Cancelled, no key is lost: what was not fired stays armed, and `run` may be called again.

        Raises:
            RuntimeError: the alarm is running already.
        """
        if self._running:
            raise RuntimeError("this alarm is running already: one task runs it for all its owners")
        self._running = True
        try:
            with self._clock.watch_steps() as watch:
                self._last_ahead = self._read_wall_ahead()
                while True:
                    if keys := self._queue.take_due(self._clock.now_millis(), FIRE_LIMIT):
                        self._fired += len(keys)
                        fire(keys)
                        await trio.lowlevel.checkpoint()
                    else:
                        earliest = self._queue.earliest()
                        self._waiting_for = math.inf if earliest is None else earliest
                        self._wall_ahead = self._read_wall_ahead()
                        with rest(self._clock, self._waiting_for) as self._nap:
                            await watch.wait()
                        noticed = not self._nap.cancelled_caught
                        self._waiting_for = -math.inf
                        self._steps_seen += noticed
                        if stepped is not None:
                            self._tell_of_step(stepped, noticed=noticed)
                        self._early_wakes += not self._is_due()
        finally:
            self._running = False
            self._waiting_for = -math.inf

    def _is_put_off(self, before: int | None, at_millis: int) -> bool:
        """Tell whether the wait is for what a key had, or has now, and does not end when it should."""
        if before == at_millis:
            return at_millis == self._waiting_for and self._was_stepped()
        return self._waiting_for == before or (self._waiting_for == at_millis and self._was_stepped())

    def _look_again(self) -> None:
        """End the wait: it is for a target that is not the earliest any more, or on a wall that moved."""
        self._waiting_for = -math.inf
        self._nap.cancel()

    def _was_stepped(self) -> bool:
        """Tell whether the wall moved against monotonic time since the wait began."""
        return abs(self._read_wall_ahead() - self._wall_ahead) > STEP_MILLIS

    def _tell_of_step(self, stepped: Callable[[float], None], *, noticed: bool) -> None:
        ahead = self._read_wall_ahead()
        by_millis, self._last_ahead = ahead - self._last_ahead, ahead
        # What is noticed after it was told of, because something else ended the wait, is not told again.
        if abs(by_millis) >= (STEP_MILLIS if noticed else SILENT_STEP_MILLIS):
            stepped(by_millis)

    def _read_wall_ahead(self) -> float:
        return self._clock.now_millis() - self._clock.monotonic() * 1000

    def _is_due(self) -> bool:
        earliest = self._queue.earliest()
        return earliest is not None and earliest <= self._clock.now_millis()
