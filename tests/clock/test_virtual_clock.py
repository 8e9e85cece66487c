import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from whenidle_clock import MAX_INSTANT, InstantOutOfRange, VirtualClock, from_millis, to_millis
from whenidle_clock.autojump import reach, to_seconds

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture
def clock() -> VirtualClock:
    """Give a virtual clock that the test moves."""
    return VirtualClock(START)


async def test_time_stands_still_on_its_own(clock: VirtualClock) -> None:
    """Nothing but the test moves virtual time."""
    await trio.lowlevel.checkpoint()
    await wait_all_tasks_blocked()
    assert (clock.now(), clock.monotonic()) == (START, 0.0)
    assert repr(clock) == "<VirtualClock wall=1767225600000ms monotonic=0.0s>"


async def test_advance_moves_both_clocks(clock: VirtualClock) -> None:
    """`advance` is what waiting does: wall and monotonic time run on together."""
    await clock.advance(90 * MILLISECOND)
    assert (clock.now(), clock.monotonic()) == (START + 90 * MILLISECOND, 0.09)
    await clock.advance(timedelta(microseconds=1))
    assert clock.monotonic() == 0.090001


async def test_advance_stops_at_each_deadline_and_lets_everything_run(
    clock: VirtualClock,
    nursery: trio.Nursery,
) -> None:
    """Tasks see time at their own deadlines, follow-up work included, before `advance` goes on."""
    log: list[tuple[str, float]] = []

    async def ticker() -> None:
        for _ in range(3):
            await trio.sleep(1)
            log.append(("tick", trio.current_time()))
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            log.append(("tock", trio.current_time()))

    nursery.start_soon(ticker)
    await clock.advance(timedelta(seconds=2))
    assert log == [("tick", 1.0), ("tock", 1.0), ("tick", 2.0), ("tock", 2.0)]
    assert clock.monotonic() == 2.0


async def test_advance_by_nothing_lets_everything_run(clock: VirtualClock, nursery: trio.Nursery) -> None:
    """`advance` of zero takes no time and returns when the others are blocked."""
    ran: list[int] = []

    async def worker() -> None:
        for step in range(5):
            await trio.lowlevel.checkpoint()
            ran.append(step)

    nursery.start_soon(worker)
    await clock.advance(timedelta(0))
    assert (ran, clock.monotonic()) == ([0, 1, 2, 3, 4], 0.0)


async def test_advance_ends_after_those_who_wait_for_all_tasks_blocked(
    clock: VirtualClock,
    nursery: trio.Nursery,
) -> None:
    """Whoever waits for the others to settle settles before time moves, whatever its cushion."""
    seen: list[float] = []

    async def settler(cushion: float) -> None:
        await wait_all_tasks_blocked(cushion)
        seen.append(trio.current_time())

    nursery.start_soon(settler, 0)
    nursery.start_soon(settler, 0.005)
    await clock.advance(HOUR)
    assert seen == [0.0, 0.0]


async def test_several_tasks_may_advance_at_once(clock: VirtualClock, nursery: trio.Nursery) -> None:
    """Each `advance` returns at its own end, in order of time; one that is cancelled moves nothing on."""
    ends: list[tuple[int, float]] = []

    async def advance(count: int) -> None:
        await clock.advance(count * HOUR)
        ends.append((count, clock.monotonic()))

    with trio.CancelScope() as abandoned:
        abandoned.cancel()
        await clock.advance(100 * HOUR)
    with trio.move_on_after(0) as abandoned:
        for count in (3, 1, 2):
            nursery.start_soon(advance, count)
        await clock.advance(HOUR / 2)
    assert abandoned.cancelled_caught
    await clock.advance(3 * HOUR)
    assert ends[:2] == [(1, 3600.0), (2, 7200.0)]
    assert clock.monotonic() == 10800.0


async def test_an_advance_under_its_own_deadline_stops_there(clock: VirtualClock) -> None:
    """Cancelled on the way, `advance` leaves time where it has got to."""
    with trio.move_on_after(60):
        await clock.advance(HOUR)
    assert clock.monotonic() == 60.0


async def test_time_does_not_advance_backwards(clock: VirtualClock) -> None:
    """Negative durations are refused with what to call instead; only `step` takes them."""
    with pytest.raises(ValueError, match=r"use step\(\)"):
        await clock.advance(-MILLISECOND)
    with pytest.raises(ValueError, match=r"use step\(\)"):
        clock.suspend(-MILLISECOND)


def test_steps_move_the_wall_alone(clock: VirtualClock) -> None:
    """`step`, `set_wall` and `suspend` leave monotonic time as it is."""
    clock.step(HOUR)
    assert clock.now() == START + HOUR
    clock.step(-2 * HOUR, announce=False)
    assert clock.now() == START - HOUR
    clock.set_wall(START)
    assert clock.now() == START
    clock.suspend(HOUR)
    assert clock.now() == START + HOUR
    assert clock.monotonic() == 0.0


@pytest.mark.parametrize("change", [VirtualClock.step, VirtualClock.suspend])
def test_the_wall_moves_by_whole_milliseconds(clock: VirtualClock, change: Callable[..., None]) -> None:
    """A step finer than public instants is refused and changes nothing."""
    with pytest.raises(ValueError, match="whole milliseconds"):
        change(clock, timedelta(microseconds=1500))
    assert clock.now() == START


def test_the_wall_stays_within_the_years(clock: VirtualClock) -> None:
    """A step out of years 0001-9999 is refused and changes nothing."""
    for by in (timedelta(days=365 * 9000), timedelta(days=-365 * 2100)):
        with pytest.raises(InstantOutOfRange):
            clock.step(by)
    with pytest.raises(ValueError, match="needs a time zone"):
        clock.set_wall(datetime(2026, 1, 1))  # noqa: DTZ001 - naive is the point
    assert clock.now() == START
    clock.set_wall(MAX_INSTANT)
    assert clock.now() == MAX_INSTANT


@pytest.mark.parametrize("silent_then_noticed_after", [(False, 0.0), (True, 60.0)])
async def test_a_jump_to_the_year_2200_ends_a_wait_once(
    clock: VirtualClock,
    nursery: trio.Nursery,
    silent_then_noticed_after: tuple[bool, float],
) -> None:
    """Announced, the jump is noticed in the same instant; silent, after one slice (CASES 8)."""
    silent, noticed_after = silent_then_noticed_after
    woken: list[float] = []

    async def sleeper() -> None:
        await clock.sleep_until(START + HOUR)
        woken.append(clock.monotonic())

    nursery.start_soon(sleeper)
    await wait_all_tasks_blocked()
    clock.set_wall(datetime(2200, 1, 1, tzinfo=UTC), announce=not silent)
    await clock.advance(HOUR)
    assert woken == [noticed_after]


async def test_what_passes_during_suspend_comes_on_resume_once(clock: VirtualClock, nursery: trio.Nursery) -> None:
    """An instant that passes while the machine is suspended is there on resume (CASES 10)."""
    woken: list[datetime] = []

    async def sleeper() -> None:
        await clock.sleep_until(START + HOUR)
        woken.append(clock.now())

    nursery.start_soon(sleeper)
    await clock.advance(HOUR / 2)
    clock.suspend(8 * HOUR)
    await clock.advance(timedelta(0))
    assert woken == [START + 8.5 * HOUR]
    assert clock.monotonic() == 1800.0


async def test_a_wait_over_a_step_back_ends_at_the_instant_exactly(
    clock: VirtualClock,
    nursery: trio.Nursery,
) -> None:
    """Set back an hour, the wall is waited for to the millisecond (CASES 7)."""
    woken: list[tuple[datetime, float]] = []

    async def sleeper() -> None:
        await clock.sleep_until(START + timedelta(seconds=300))
        woken.append((clock.now(), clock.monotonic()))

    nursery.start_soon(sleeper)
    await clock.advance(timedelta(seconds=299))
    clock.step(-HOUR)
    await clock.advance(timedelta(seconds=3600))
    assert woken == []
    await clock.advance(timedelta(seconds=1))
    assert woken == [(START + timedelta(seconds=300), 3900.0)]


@given(
    days=st.integers(0, 3_000_000),
    waits=st.lists(st.integers(1, 10**10), min_size=1, max_size=20),
    odd_start=st.integers(0, 999),
    drifted=st.integers(-100, 100),
)
def test_waits_of_whole_milliseconds_end_on_the_millisecond(
    days: int, waits: list[int], odd_start: int, drifted: int
) -> None:
    """However far from zero and however long, a wait for an instant ends at that instant, neither early nor late."""
    clock = VirtualClock(from_millis(0), autojump=True, slice_seconds=10**9)
    clock.monotonic_ns = days * 86_400_000_000_000 + odd_start * 1_000_000

    async def main() -> None:
        for wait in waits:
            target = clock.now_millis() + wait
            await clock.sleep_until(from_millis(target))
            assert clock.now_millis() == target

    clock.set_wall(START)
    clock.drift_ppm = drifted
    clock.monotonic_ns += 1_000_000
    clock.drift_ppm = 0
    trio.run(main, clock=clock)


@given(st.floats(1e-9, 1e12))
def test_the_nanosecond_moved_to_is_the_deadline_but_for_the_errors_of_floats(deadline: float) -> None:
    """Time moves to the deadline, give or take four units in the last place of its float, or one nanosecond on."""
    error = 4 * math.ulp(deadline) + 1e-15
    assert deadline - error <= to_seconds(reach(deadline)) <= deadline + error + 1e-9


@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=60), st.integers(0, 10**9))
def test_many_waits_of_whole_milliseconds_end_on_the_millisecond(waits: list[int], before: int) -> None:
    """The errors of trio's floats do not add up: after any number of waits the time is their exact sum."""
    clock = VirtualClock(START, autojump=True)
    clock.monotonic_ns = before * 1_000_000

    async def main() -> None:
        for wait in waits:
            await trio.sleep(wait / 1000)

    trio.run(main, clock=clock)
    assert clock.monotonic_ns == (before + sum(waits)) * 1_000_000


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=20))
def test_a_wait_that_ends_where_an_advance_ends_has_ended(waits: list[int]) -> None:
    """A chain of waits as long as an `advance` is over when the advance is."""
    clock = VirtualClock(START)

    async def main() -> None:
        over = trio.Event()

        async def wait() -> None:
            for each in waits:
                await trio.sleep(each / 1000)
            over.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await clock.advance(timedelta(milliseconds=sum(waits)))
            assert over.is_set()

    trio.run(main, clock=clock)


@given(ppm=st.integers(-900_000, 5_000_000), wait=st.integers(1, 10**8))
def test_a_wait_on_a_drifting_wall_is_never_early_and_at_most_a_slice_late(ppm: int, wait: int) -> None:
    """Whatever the drift, `sleep_until` returns at or after the instant, within a slice of it."""
    clock = VirtualClock(START, autojump=True, slice_seconds=3600)
    clock.drift_ppm = ppm

    async def main() -> None:
        target = to_millis(START) + wait
        await clock.sleep_until(from_millis(target))
        assert target <= clock.now_millis() <= target + 3_600_000 * max(0, ppm) // 10**6 + 1

    trio.run(main, clock=clock)


async def test_drift_counts_from_when_it_is_set(clock: VirtualClock) -> None:
    """The wall runs at its new rate from now on and shows the same instant at the change."""
    clock.drift_ppm = 1000
    assert clock.drift_ppm == 1000
    await clock.advance(timedelta(seconds=10))
    assert clock.now() == START + timedelta(seconds=10, milliseconds=10)
    clock.drift_ppm = -500
    assert clock.now() == START + timedelta(seconds=10, milliseconds=10)
    await clock.advance(timedelta(seconds=10))
    assert clock.now() == START + timedelta(seconds=20, milliseconds=5)
    clock.drift_ppm = 0
    await clock.advance(timedelta(seconds=10))
    assert (clock.now(), clock.monotonic()) == (START + timedelta(seconds=30, milliseconds=5), 30.0)


def test_a_wall_that_stands_still_is_no_drift(clock: VirtualClock) -> None:
    """A drift of minus a million ppm and beyond is refused."""
    with pytest.raises(ValueError, match="above -1000000"):
        clock.drift_ppm = -1_000_000


def test_time_goes_on_over_several_runs() -> None:
    """A process that restarts finds the time where it left it."""
    clock = VirtualClock(START, autojump=True)
    for run in (1, 2):
        trio.run(trio.sleep, 3600, clock=clock)
        assert (clock.now(), clock.monotonic()) == (START + run * HOUR, run * 3600.0)
    clock.step(HOUR)
    assert clock.now() == START + 3 * HOUR


def test_it_must_be_the_clock_of_the_run(clock: VirtualClock) -> None:
    """Waits on a virtual clock that trio does not run on are refused instead of hanging."""
    with pytest.raises(RuntimeError, match="clock=virtual"):
        trio.run(clock.sleep_until, START)
    with pytest.raises(RuntimeError, match="clock=virtual"):
        trio.run(clock.advance, HOUR)


def test_slices_without_end_let_a_silent_step_go_unnoticed() -> None:
    """With endless slices nothing but an announced step, or the end of the wait, has the wall looked at."""
    clock = VirtualClock(START, slice_seconds=math.inf)

    async def wait() -> None:
        await clock.sleep_until(START + timedelta(hours=1))
        assert clock.now() == START + timedelta(hours=3)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            clock.step(timedelta(hours=2), announce=False)
            await clock.advance(timedelta(minutes=59))
            assert len(nursery.child_tasks) == 1
            await clock.advance(timedelta(minutes=1))

    trio.run(main, clock=clock)
