"""What every clock promises: each test runs on the system's clock and on virtual time.

Real waits are a few milliseconds, and only conditions are asserted that hold however slow the machine is.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from tests.clock.worlds import SystemWorld, VirtualWorld, World
from whenidle_clock import Alarm, Clock, InstantOutOfRange, StepWatch, SystemClock, VirtualClock, to_millis

HOUR = timedelta(hours=1)
SOON = timedelta(milliseconds=20)
MakeWorld = Callable[..., World]


@pytest.fixture(params=["system", "virtual"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> MakeWorld:
    """Give what makes a world of either kind, its clock not running yet."""

    def make_world(slice_seconds: float = 60.0) -> World:
        if request.param == "system":
            return SystemWorld(slice_seconds, monkeypatch)
        return VirtualWorld(slice_seconds)

    return make_world


def test_it_is_a_clock(make: MakeWorld) -> None:
    """Both implementations satisfy the protocol, and wait in slices of 60 seconds by default."""
    assert isinstance(make().clock, Clock)
    assert SystemClock().slice_seconds == VirtualClock().slice_seconds == 60
    assert make(slice_seconds=0.25).clock.slice_seconds == 0.25


@pytest.mark.parametrize("slice_seconds", [0, -1, float("nan")])
def test_a_slice_is_a_positive_number_of_seconds(make: MakeWorld, slice_seconds: float) -> None:
    """A slice that would never end a wait, or never begin one, is refused."""
    with pytest.raises(ValueError, match="positive number of seconds"):
        make(slice_seconds)


def test_the_wall_shows_aware_utc_instants_of_whole_milliseconds(make: MakeWorld) -> None:
    """`now` is in UTC, in whole milliseconds, and the same time as `now_millis`."""
    clock = make().clock
    before, instant, after = clock.now_millis(), clock.now(), clock.now_millis()
    assert instant.tzinfo is UTC
    assert instant.microsecond % 1000 == 0
    assert before <= to_millis(instant) <= after


def test_monotonic_time_is_that_of_trios_deadlines(make: MakeWorld) -> None:
    """`monotonic` lies on the scale of `trio.current_time` and does not go back when the wall does."""
    world = make()

    async def main() -> None:
        before = trio.current_time()
        world.step(-HOUR, announce=True)
        between = world.clock.monotonic()
        await trio.sleep(0.001)
        assert before <= between < world.clock.monotonic() <= trio.current_time()

    world.run(main)


def test_a_wait_never_ends_early(make: MakeWorld) -> None:
    """When `sleep_until` returns the wall shows the instant or later, also over several slices."""
    world = make(slice_seconds=0.003)

    async def main() -> None:
        target = world.clock.now() + SOON
        await world.clock.sleep_until(target)
        assert world.clock.now() >= target

    world.run(main)


def test_waiting_for_a_past_instant_is_a_checkpoint(make: MakeWorld) -> None:
    """An instant that has passed returns at once, after letting others run, and can be cancelled."""
    world = make()

    async def main() -> None:
        with assert_checkpoints():
            await world.clock.sleep_until(world.clock.now() - HOUR)
        with trio.CancelScope() as scope:
            scope.cancel()
            await world.clock.sleep_until(world.clock.now())
        assert scope.cancelled_caught

    world.run(main)


def test_a_naive_instant_is_refused(make: MakeWorld) -> None:
    """`sleep_until` takes no datetime without a zone."""
    world = make()

    async def main() -> None:
        with pytest.raises(ValueError, match="needs a time zone"):
            await world.clock.sleep_until(datetime(2026, 1, 1))  # noqa: DTZ001 - naive is the point

    world.run(main)


def test_the_last_instant_of_all_can_be_waited_for(make: MakeWorld) -> None:
    """A wait for the end of year 9999 waits; one beyond it is refused."""
    world = make()

    async def main() -> None:
        last = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
        with trio.move_on_after(0.005) as scope:
            await world.clock.sleep_until(last)
        assert scope.cancelled_caught
        with pytest.raises(InstantOutOfRange):
            await world.clock.sleep_until(last.replace(tzinfo=timezone(-HOUR)))

    world.run(main)


@asynccontextmanager
async def _waiting(clock: Clock, target: datetime) -> AsyncIterator[list[datetime]]:
    """Wait for an instant beside the block; at the end of the wait the list has what the wall shows."""
    done: list[datetime] = []

    async def wait() -> None:
        await clock.sleep_until(target)
        done.append(clock.now())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        yield done


def test_an_announced_forward_step_ends_the_wait_at_once(make: MakeWorld) -> None:
    """Stepped past its instant, a wait of an hour with slices of an hour ends now."""
    world = make(slice_seconds=3600.0)

    async def main() -> None:
        target = world.clock.now() + HOUR
        began = world.clock.monotonic()
        async with _waiting(world.clock, target) as done:
            world.step(2 * HOUR, announce=True)
        assert done[0] >= target
        assert world.clock.monotonic() - began < 1800

    world.run(main)


def test_a_silent_forward_step_is_noticed_within_a_slice(make: MakeWorld) -> None:
    """A step that nobody announces ends the wait at the end of a slice."""
    world = make(slice_seconds=0.01)

    async def main() -> None:
        target = world.clock.now() + HOUR
        began = world.clock.monotonic()
        async with _waiting(world.clock, target) as done:
            world.step(2 * HOUR, announce=False)
        assert done[0] >= target
        assert world.clock.monotonic() - began < 1800

    world.run(main)


@pytest.mark.parametrize("announce", [True, False])
def test_a_step_back_is_waited_for_again(make: MakeWorld, announce: bool) -> None:
    """Set back, the wall reaches the instant later, and the wait ends only then."""
    world = make(slice_seconds=0.005)

    async def main() -> None:
        target = world.clock.now() + SOON
        async with _waiting(world.clock, target) as done:
            world.step(-HOUR, announce=announce)
            await trio.sleep(3 * SOON.total_seconds())
            assert done == []
            world.step(HOUR, announce=announce)
        assert done[0] >= target

    world.run(main)


def test_a_step_before_the_wait_is_not_lost(make: MakeWorld) -> None:
    """A watch remembers steps from its opening on, several of them as one."""
    world = make()

    async def main() -> None:
        with world.clock.watch_steps() as watch:
            world.step(HOUR, announce=True)
            world.step(-HOUR, announce=True)
            with assert_checkpoints():
                await watch.wait()
            assert not await _stepped(watch)
            world.step(HOUR, announce=True)
            assert await _stepped(watch)

    world.run(main)


async def _stepped(watch: StepWatch) -> bool:
    with trio.move_on_after(0.005) as scope:
        await watch.wait()
    return not scope.cancelled_caught


def test_a_cancelled_watch_loses_no_step(make: MakeWorld) -> None:
    """A step that comes after a cancelled wait, or a silent one before it, is told as it should be."""
    world = make()

    async def main() -> None:
        with world.clock.watch_steps() as watch:
            world.step(HOUR, announce=False)
            assert not await _stepped(watch)
            world.step(HOUR, announce=True)
            with trio.CancelScope() as scope:
                scope.cancel()
                await watch.wait()
            assert await _stepped(watch)

    world.run(main)


def test_each_watch_sees_each_step(make: MakeWorld) -> None:
    """Watches do not take steps from each other."""
    world = make()

    async def main() -> None:
        with world.clock.watch_steps() as one, world.clock.watch_steps() as other:
            world.step(HOUR, announce=True)
            assert await _stepped(one)
            assert await _stepped(other)

    world.run(main)


def test_nothing_is_left_behind(make: MakeWorld) -> None:
    """A wait that ended, was cancelled or was refused holds no watch and no descriptor."""
    world = make()

    async def main() -> None:
        await world.clock.sleep_until(world.clock.now())
        with trio.move_on_after(0.005):
            await world.clock.sleep_until(world.clock.now() + HOUR)
        with trio.CancelScope() as scope:
            scope.cancel()
            await world.clock.sleep_until(world.clock.now() + HOUR)
        assert world.count_watches() == 0

    world.run(main)


@pytest.mark.parametrize("announce", [True, False])
def test_an_alarm_fires_what_a_step_passed_once_and_never_early(make: MakeWorld, announce: bool) -> None:
    """An alarm set back fires nothing; stepped forward it fires at once, and once (SPEC 1.3)."""
    world = make(slice_seconds=0.005)
    fired: list[tuple[list[str], bool]] = []

    async def main() -> None:
        alarm: Alarm[str] = Alarm(world.clock)
        target = world.clock.now_millis() + 20
        alarm.arm("soon", target)
        alarm.arm("in an hour", target + 3_600_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alarm.run, lambda keys: fired.append((keys, world.clock.now_millis() >= target)))
            await wait_all_tasks_blocked()
            world.step(-2 * HOUR, announce=announce)
            await trio.sleep(0.05)
            assert fired == []
            world.step(2 * HOUR + SOON, announce=announce)
            await trio.sleep(0.05)
            world.step(HOUR, announce=announce)
            await trio.sleep(0.05)
            nursery.cancel_scope.cancel()

    world.run(main)
    assert fired == [(["soon"], True), (["in an hour"], True)]
    assert world.count_watches() == 0
