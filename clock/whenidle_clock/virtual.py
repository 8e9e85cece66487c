"""`VirtualClock`: time that a test or a simulation owns (SPEC 1.4)."""

import math
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType

import trio

from whenidle_clock import waiting
from whenidle_clock.autojump import Autojump, to_seconds
from whenidle_clock.clock import DEFAULT_SLICE_SECONDS, StepWatch
from whenidle_clock.instants import check_millis, from_millis, to_millis

_DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
_NS_PER_MS = 1_000_000
_NS_PER_SECOND = 1_000_000_000
_MILLION = 1_000_000


class VirtualClock(trio.abc.Clock):
    """A deterministic `Clock`, which is trio's clock as well: `trio.run(main, clock=virtual)`.

    Its wall and its monotonic time start at `start` and 0 and move only when told to: by `advance`,
    by itself with `autojump`, or the wall alone by `step`, `set_wall`, `suspend` and `drift_ppm`. Time
    a program computes takes none. Deadlines of `trio.sleep`, `trio.move_on_after` and so on are in
    its monotonic time.

    One object may serve several runs, one after the other: its time goes on from where it was, as
    for a process that restarts. Use it from the thread that runs trio. In trio's guest mode the host
    loop is the outside world: wrap waits for it in `work_in_flight`.

    Args:
        start: what the wall shows first, an aware instant of whole milliseconds.
        autojump: see the attribute.
        slice_seconds: see `Clock`.
    """

    autojump: bool
    """Whether time jumps to trio's next deadline when every task is blocked and nothing is in flight.

    In flight is work in `trio.to_thread` or inside `work_in_flight`, and every wait for a socket, pipe
    or subprocess outside `background_io`; for these the clock holds still and the process sleeps.
    Tasks in `trio.testing.wait_all_tasks_blocked` go first. May be set at any time in a running task.
    """

    monotonic_ns: int
    """Monotonic time in nanoseconds."""

    def __init__(
        self,
        start: datetime = _DEFAULT_START,
        *,
        autojump: bool = False,
        slice_seconds: float = DEFAULT_SLICE_SECONDS,
    ) -> None:
        self.autojump = autojump
        self.monotonic_ns = 0
        self._slice_seconds = waiting.check_slice(slice_seconds)
        # The wall ran through this point, at this rate. Its whole milliseconds are those of
        # monotonic time unless it drifts, so that waits of whole milliseconds end on one.
        self._wall_ns = to_millis(start) * _NS_PER_MS
        self._wall_since_ns = 0
        self._drift_ppm = 0
        self._watches: set[_VirtualStepWatch] = set()
        self._slices: dict[trio.CancelScope, int] = {}
        self._autojump = Autojump(self)

    def __repr__(self) -> str:
        return f"<VirtualClock wall={self.now_millis()}ms monotonic={self.monotonic()}s>"

    @property
    def slice_seconds(self) -> float:
        """See `Clock.slice_seconds`."""
        return self._slice_seconds

    def now(self) -> datetime:
        """See `Clock.now`."""
        return from_millis(self.now_millis())

    def now_millis(self) -> int:
        """See `Clock.now_millis`."""
        return self._read_wall_ns() // _NS_PER_MS

    def monotonic(self) -> float:
        """See `Clock.monotonic`. May be read outside a trio run too."""
        return to_seconds(self.monotonic_ns)

    async def sleep_until(self, instant: datetime) -> None:
        """See `Clock.sleep_until`.

        Raises:
            RuntimeError: trio runs on another clock, so the wait would never end.
        """
        self._check_running()
        await waiting.sleep_until(self, instant)

    def wait_slice(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """See `Clock.wait_slice`.

        A virtual clock knows when its wall is stepped in silence, so that slices need not be waited out one
        by one: they end, where they would have ended, only if there is something to notice. A wall that
        drifts is looked at after every slice.
        """
        drifts = self._drift_ppm != 0
        scope = trio.move_on_after(min(seconds, self._slice_seconds) if drifts else seconds)
        return _Slice(scope, self._slices, self.monotonic_ns)

    def _end_slices(self) -> None:
        """Let every wait notice, at the end of its slice, that the wall does not go on as it did."""
        if self._slice_seconds == math.inf:
            return
        slice_ns = max(1, int(self._slice_seconds * _NS_PER_SECOND))
        for scope, since_ns in self._slices.items():
            end_ns = since_ns + ((self.monotonic_ns - since_ns) // slice_ns + 1) * slice_ns
            scope.deadline = min(scope.deadline, to_seconds(end_ns))

    @contextmanager
    def watch_steps(self) -> Generator[StepWatch, None, None]:
        """See `Clock.watch_steps`. Announced steps alone are seen."""
        watch = _VirtualStepWatch()
        self._watches.add(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    async def advance(self, by: timedelta) -> None:
        """Let wall and monotonic time run on by `by`, as they would if the program waited that long.

        Time stops at each of trio's deadlines on the way, and goes on once everything that can run has
        run and nothing is in flight (see `autojump`); the same again at the end. Several tasks may
        advance at once: each waits for its own end. Cancelled, time stays where it has got to.

        Raises:
            ValueError: `by` is negative.
            RuntimeError: trio runs on another clock.
        """
        if by < timedelta(0):
            raise ValueError(f"time cannot be advanced by {by}: use step() to set the wall clock back")
        self._check_running()
        await self._autojump.travel(self.monotonic_ns + by // timedelta(microseconds=1) * 1000)

    def step(self, by: timedelta, *, announce: bool = True) -> None:
        """Step the wall forward, or back if `by` is negative, as an operator or NTP does.

        Args:
            by: whole milliseconds.
            announce: whether open step watches are told. If not, waits notice within their slice.

        Raises:
            ValueError: `by` is not whole milliseconds.
            InstantOutOfRange: it leads outside years 0001-9999; nothing has changed then.
        """
        millis, rest = divmod(by, timedelta(milliseconds=1))
        if rest:
            raise ValueError(f"the wall clock steps by whole milliseconds, not by {by!r}")
        check_millis(self.now_millis() + millis)
        self._set_wall_ns(self._read_wall_ns() + millis * _NS_PER_MS)
        if announce:
            for watch in self._watches:
                watch.stepped.set()
        else:
            self._end_slices()

    def set_wall(self, instant: datetime, *, announce: bool = True) -> None:
        """Step the wall so that it shows `instant`; otherwise like `step`.

        Raises:
            ValueError: `instant` is naive.
            InstantOutOfRange: its offset carries it outside years 0001-9999 UTC.
        """
        self.step(timedelta(milliseconds=to_millis(instant) - self.now_millis()), announce=announce)

    def suspend(self, for_: timedelta, *, announce: bool = True) -> None:
        """Sleep as a machine does: the wall runs on by `for_`, monotonic time does not.

        Raises:
            ValueError: `for_` is negative or not whole milliseconds.
            InstantOutOfRange: it leads outside years 0001-9999; nothing has changed then.
        """
        if for_ < timedelta(0):
            raise ValueError(f"a machine cannot be suspended for {for_}: use step() to set the wall clock back")
        self.step(for_, announce=announce)

    @property
    def drift_ppm(self) -> int:
        """How much faster than monotonic time the wall runs, in millionths; negative if it is slower.

        A new value counts from now on and changes neither time. Nothing announces a drift. Above
        -1,000,000: a wall that stands still or runs backwards is not drifting.
        """
        return self._drift_ppm

    @drift_ppm.setter
    def drift_ppm(self, ppm: int) -> None:
        if ppm <= -_MILLION:
            raise ValueError(f"a wall clock cannot drift by {ppm} ppm: it must run forward, above -1000000")
        wall_ns = self._read_wall_ns()
        self._set_wall_ns(wall_ns - wall_ns % _NS_PER_MS + self.monotonic_ns % _NS_PER_MS)
        self._drift_ppm = ppm
        self._end_slices()

    def start_clock(self) -> None:
        """Join the trio run that starts. For trio: see `trio.abc.Clock`."""
        self._autojump.start_run()

    def current_time(self) -> float:
        """Give monotonic time. For trio: see `trio.abc.Clock`."""
        return self._autojump.current_time()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Tell trio how long to sleep in real time. For trio: see `trio.abc.Clock`."""
        return self._autojump.sleep_time(deadline)

    def _read_wall_ns(self) -> int:
        elapsed = self.monotonic_ns - self._wall_since_ns
        return self._wall_ns + elapsed + elapsed * self._drift_ppm // _MILLION

    def _set_wall_ns(self, wall_ns: int) -> None:
        self._wall_ns = wall_ns
        self._wall_since_ns = self.monotonic_ns

    def _check_running(self) -> None:
        if trio.lowlevel.current_clock() is not self:
            raise RuntimeError("this VirtualClock is not the clock of the trio run: trio.run(main, clock=virtual)")


class _VirtualStepWatch:
    def __init__(self) -> None:
        self.stepped = trio.Event()

    async def wait(self) -> None:
        await self.stepped.wait()
        self.stepped = trio.Event()


class _Slice:
    """One wait, in a scope that its clock can end; around every wait of an alarm, for half of a generator's cost."""

    __slots__ = ("_began_ns", "_scope", "_slices")

    def __init__(self, scope: trio.CancelScope, slices: dict[trio.CancelScope, int], began_ns: int) -> None:
        self._scope = scope
        self._slices = slices
        self._began_ns = began_ns

    def __enter__(self) -> trio.CancelScope:
        scope = self._scope.__enter__()
        self._slices[scope] = self._began_ns
        return scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        del self._slices[self._scope]
        return self._scope.__exit__(kind, error, trace)
