import itertools
from datetime import UTC, datetime, timedelta

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_clock import Alarm, AlarmStatistics, VirtualClock, to_millis
from whenidle_clock.alarm import FIRE_LIMIT

START = datetime(2026, 1, 1, tzinfo=UTC)
T0 = to_millis(START)
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


@pytest.fixture
def clock() -> VirtualClock:
    """Give a virtual clock that the test moves."""
    return VirtualClock(START)


@pytest.fixture
def alarm(clock: VirtualClock) -> Alarm[str]:
    """Give an alarm that does not run yet."""
    return Alarm(clock)


class Log:
    """What an alarm fired: keys with the wall millisecond since the start."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.fired: list[tuple[str, int]] = []

    def __call__(self, keys: list[str]) -> None:
        self.fired += [(key, self.clock.now_millis() - T0) for key in keys]


@pytest.fixture
def log(clock: VirtualClock) -> Log:
    """Give what writes down what is fired."""
    return Log(clock)


@pytest.fixture
def running(alarm: Alarm[str], log: Log, nursery: trio.Nursery) -> Alarm[str]:
    """Give an alarm that runs and fires into the log."""
    nursery.start_soon(alarm.run, log)
    return alarm


def ms(value: int) -> timedelta:
    """Give milliseconds as a duration."""
    return timedelta(milliseconds=value)


async def test_each_key_fires_once_at_its_target(clock: VirtualClock, running: Alarm[str], log: Log) -> None:
    """A key fires when the wall shows its target, to the millisecond, and is gone then."""
    running.arm("b", T0 + 2 * HOUR)
    running.arm("a", T0 + HOUR + 1)
    assert (len(running), running.earliest(), running.target("b")) == (2, T0 + HOUR + 1, T0 + 2 * HOUR)
    await clock.advance(ms(HOUR))
    assert log.fired == []
    await clock.advance(ms(9 * HOUR))
    assert log.fired == [("a", HOUR + 1), ("b", 2 * HOUR)]
    assert (len(running), running.earliest(), running.target("b")) == (0, None, None)


async def test_keys_due_together_fire_by_target_then_by_order_of_arming(
    clock: VirtualClock,
    running: Alarm[str],
    log: Log,
) -> None:
    """After a jump everything passed fires at once in order of target; equal targets as they were armed."""
    await wait_all_tasks_blocked()
    for key, target in [("d", HOUR), ("x", MINUTE), ("b", SECOND), ("e", HOUR), ("c", SECOND), ("a", -HOUR)]:
        running.arm(key, T0 + target)
    running.arm("d", T0 + HOUR)
    running.disarm("x")
    clock.step(ms(HOUR))
    await clock.advance(ms(0))
    assert log.fired == [(key, HOUR) for key in "abced"]


async def test_a_new_target_replaces_the_old_one(clock: VirtualClock, running: Alarm[str], log: Log) -> None:
    """Re-arming moves a key to an earlier or a later target; the old one does not fire."""
    running.arm("later", T0 + SECOND)
    running.arm("earlier", T0 + HOUR)
    await wait_all_tasks_blocked()
    running.arm("later", T0 + MINUTE)
    running.arm("earlier", T0 + 5)
    await clock.advance(ms(2 * HOUR))
    assert log.fired == [("earlier", 5), ("later", MINUTE)]


async def test_a_disarmed_key_does_not_fire(clock: VirtualClock, running: Alarm[str], log: Log) -> None:
    """Disarming says whether there was a target, and there is none after it."""
    running.arm("a", T0 + SECOND)
    await wait_all_tasks_blocked()
    assert running.disarm("a")
    assert not running.disarm("a")
    await clock.advance(ms(HOUR))
    assert log.fired == []


async def test_set_back_nothing_fires_early_and_nothing_twice(
    clock: VirtualClock,
    alarm: Alarm[str],
    log: Log,
) -> None:
    """Every 300 seconds with the wall set back an hour: aligned targets, each once (CASES 7)."""

    def again(keys: list[str]) -> None:
        log(keys)
        target = T0 + 300 * SECOND * (len(log.fired) + 1)
        alarm.arm("every", target)

    alarm.arm("every", T0 + 300 * SECOND)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alarm.run, again)
        await clock.advance(ms(450 * SECOND))
        clock.step(ms(-HOUR))
        await clock.advance(ms(HOUR + 140 * SECOND))
        assert log.fired == [("every", 300 * SECOND)]
        await clock.advance(ms(10 * SECOND))
        assert log.fired == [("every", 300 * SECOND), ("every", 600 * SECOND)]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("announce", [True, False])
async def test_what_a_jump_passes_fires_once(
    clock: VirtualClock,
    running: Alarm[str],
    log: Log,
    announce: bool,
) -> None:
    """A wall that jumps to the year 2200 fires a target once: at once, or within a slice (CASES 8)."""
    jump = to_millis(datetime(2200, 1, 1, tzinfo=UTC)) - T0
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    clock.step(ms(jump), announce=announce)
    await clock.advance(ms(2 * HOUR))
    assert log.fired == [("a", jump + (0 if announce else MINUTE))]


async def test_what_passes_during_suspend_fires_on_resume_once(
    clock: VirtualClock,
    running: Alarm[str],
    log: Log,
) -> None:
    """A target that passes while the machine is suspended fires on resume, once (CASES 10)."""
    running.arm("a", T0 + HOUR)
    await clock.advance(ms(MINUTE))
    clock.suspend(ms(8 * HOUR))
    await clock.advance(ms(HOUR))
    assert log.fired == [("a", 8 * HOUR + MINUTE)]


@pytest.mark.parametrize("key", ["a", "b"])
async def test_arming_makes_a_waiting_alarm_look_at_the_wall_again(
    clock: VirtualClock,
    running: Alarm[str],
    log: Log,
    key: str,
) -> None:
    """Arming at or before the target waited for, the same one included, re-reads the wall without waiting."""
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    clock.step(ms(2 * HOUR), announce=False)
    await clock.advance(ms(0))
    assert log.fired == []
    running.arm(key, T0 + HOUR)
    await clock.advance(ms(0))
    assert sorted(log.fired) == sorted({("a", 2 * HOUR), (key, 2 * HOUR)})


async def test_arming_beyond_the_target_waited_for_wakes_nobody(clock: VirtualClock, running: Alarm[str]) -> None:
    """A later target costs the waiting alarm nothing."""
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    wakes = running.statistics().early_wakes
    for later in range(1, 100):
        running.arm("b", T0 + HOUR + later)
        await wait_all_tasks_blocked()
    assert running.statistics().early_wakes == wakes


async def test_firing_may_arm_and_disarm(clock: VirtualClock, alarm: Alarm[str], log: Log) -> None:
    """`fire` may re-arm its own key and disarm others; what is in its list was disarmed before."""
    said: list[tuple[int, bool, bool]] = []

    def fire(keys: list[str]) -> None:
        log(keys)
        if "a" in keys:
            said.append((len(alarm), alarm.disarm("b"), alarm.disarm("c")))
            alarm.arm("a", T0)
            alarm.arm("d", T0 - HOUR)
        if len(log.fired) > 3:
            scope.cancel()

    for key, target in [("a", T0), ("b", T0), ("c", T0 + HOUR)]:
        alarm.arm(key, target)
    with trio.CancelScope() as scope:
        await alarm.run(fire)
    assert said[0] == (1, False, True)
    assert [key for key, _ in log.fired] == ["a", "b", "d", "a"]


async def test_a_flood_of_due_keys_does_not_hold_the_loop(clock: VirtualClock) -> None:
    """No call gets more than the limit, and others run between calls."""
    alarm: Alarm[int] = Alarm(clock)
    count = 10 * FIRE_LIMIT + 1
    for key in range(count):
        alarm.arm(key, T0 - key // 2 * 10)
    calls: list[list[int]] = []
    turns: list[int] = []

    async def bystander() -> None:
        while len(alarm):
            turns.append(len(calls))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(alarm.run, calls.append)
        await bystander()
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [len(keys) for keys in calls] == [FIRE_LIMIT] * 10 + [1]
    assert [key for keys in calls for key in keys] == sorted(range(count), key=lambda key: (-(key // 2), key))
    # Trio may run the bystander before or after the alarm in a round, so at most two calls lie between its turns.
    assert max(after - before for before, after in itertools.pairwise(turns)) <= 2


async def test_a_step_back_between_two_calls_holds_the_rest(clock: VirtualClock) -> None:
    """The wall is read for each call: what is no longer due stays armed."""
    alarm: Alarm[int] = Alarm(clock)
    for key in range(2 * FIRE_LIMIT):
        alarm.arm(key, T0)
    calls: list[int] = []

    def fire(keys: list[int]) -> None:
        calls.append(len(keys))
        clock.step(ms(-HOUR))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(alarm.run, fire)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert (calls, len(alarm)) == ([FIRE_LIMIT], FIRE_LIMIT)


async def test_one_task_runs_an_alarm(running: Alarm[str], log: Log) -> None:
    """A second run at the same time is refused; the first goes on."""
    await wait_all_tasks_blocked()
    with pytest.raises(RuntimeError, match="running already"):
        await running.run(log)


async def test_an_alarm_can_be_run_again(clock: VirtualClock, alarm: Alarm[str], log: Log) -> None:
    """Cancelled, an alarm keeps its targets and holds no watch; run again, it fires them."""
    alarm.arm("a", T0 + HOUR)
    with trio.move_on_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alarm.run, log)
            await clock.advance(ms(HOUR))
    assert clock._watches == set()
    alarm.arm("b", T0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alarm.run, log)
        await clock.advance(ms(HOUR))
        nursery.cancel_scope.cancel()
    assert log.fired == [("b", MINUTE), ("a", HOUR)]


async def test_an_exception_of_fire_ends_the_run(clock: VirtualClock, alarm: Alarm[str], log: Log) -> None:
    """What `fire` raises comes out of `run`; its keys stay disarmed, the others armed."""

    def fail(keys: list[str]) -> None:
        raise LookupError(keys[0])

    alarm.arm("a", T0)
    alarm.arm("b", T0 + HOUR)
    with pytest.raises(LookupError, match="a"):
        await alarm.run(fail)
    assert (alarm.target("a"), alarm.target("b")) == (None, T0 + HOUR)


async def test_a_long_wait_is_one_wait_while_nothing_happens_to_the_wall(
    clock: VirtualClock, running: Alarm[str]
) -> None:
    """A virtual clock does not wait slices out one by one: a year passes without a look at the wall."""
    running.arm("a", T0 + 365 * 24 * HOUR)
    await wait_all_tasks_blocked()
    before = running.statistics().early_wakes
    await clock.advance(ms(365 * 24 * HOUR))
    assert (running.statistics().fired, running.statistics().early_wakes) == (1, before)


async def test_arming_what_is_waited_for_ends_the_wait_only_if_the_wall_was_stepped(
    clock: VirtualClock, running: Alarm[str]
) -> None:
    """Owners set the same target again and again; the alarm looks at the wall when it has moved in silence."""
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    before = running.statistics().early_wakes
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    assert running.statistics().early_wakes == before
    clock.step(ms(HOUR), announce=False)
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    assert running.statistics().fired == 1


@pytest.mark.parametrize("disarm", [False, True])
async def test_a_wait_for_a_target_that_is_gone_ends(clock: VirtualClock, running: Alarm[str], *, disarm: bool) -> None:
    """Disarmed or put off, a target is not waited for any more: what comes next is looked at anew."""
    running.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    if disarm:
        running.disarm("a")
    else:
        running.arm("a", T0 + 9 * HOUR)
    await wait_all_tasks_blocked()
    clock.step(ms(2 * HOUR), announce=False)
    running.arm("b", T0 + 2 * HOUR)
    await wait_all_tasks_blocked()
    assert running.statistics().fired == 1


async def test_statistics_tell_what_happened(clock: VirtualClock, running: Alarm[str]) -> None:
    """Each documented number counts what it says."""
    await wait_all_tasks_blocked()
    assert running.statistics() == AlarmStatistics(armed=0, stale=0, fired=0, rearmed=0, early_wakes=0, steps_seen=0)
    running.arm("a", T0 + 90 * SECOND)  # wakes the alarm once
    await clock.advance(ms(10 * SECOND))
    clock.step(ms(-SECOND), announce=False)
    await clock.advance(ms(51 * SECOND))  # a slice ends
    clock.step(ms(-SECOND))  # a step
    await wait_all_tasks_blocked()
    running.arm("b", T0 + 2 * HOUR)
    running.arm("b", T0 + HOUR)  # the place of its first target is stale until it comes up
    running.arm("a", T0 + 91 * SECOND)  # what it waits for is not the earliest target any more
    await clock.advance(ms(MINUTE))
    assert running.statistics() == AlarmStatistics(armed=1, stale=1, fired=1, rearmed=2, early_wakes=4, steps_seen=1)
    with pytest.raises(AttributeError):
        running.statistics().armed = 5  # type: ignore[misc]  # frozen is the point


async def test_steps_are_told_with_their_size(clock: VirtualClock, alarm: Alarm[str], nursery: trio.Nursery) -> None:
    """Each announced step is told of at once, forward and back; time that merely passes is not."""
    told: list[float] = []
    fired: list[str] = []
    nursery.start_soon(alarm.run, fired.extend, told.append)
    alarm.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    await clock.advance(ms(10 * MINUTE))
    clock.step(ms(-5 * SECOND))
    await wait_all_tasks_blocked()
    clock.step(ms(2 * HOUR))
    await wait_all_tasks_blocked()
    assert (told, fired) == ([-5 * SECOND, 2 * HOUR], ["a"])


async def test_a_step_between_two_waits_has_its_size(
    clock: VirtualClock, alarm: Alarm[str], nursery: trio.Nursery
) -> None:
    """A step that comes while something fires is told of with what it moved the clock by, not by nothing."""
    told: list[float] = []
    nursery.start_soon(alarm.run, lambda _: clock.step(ms(MINUTE)), told.append)
    alarm.arm("a", T0 + SECOND)
    await wait_all_tasks_blocked()
    await clock.advance(ms(SECOND))
    await wait_all_tasks_blocked()
    assert told == [MINUTE]


async def test_a_silent_step_is_told_of_at_the_end_of_the_slice(
    clock: VirtualClock, alarm: Alarm[str], nursery: trio.Nursery
) -> None:
    """From a second on it is a step; less than that may be drift, and is passed over."""
    told: list[float] = []
    nursery.start_soon(alarm.run, lambda _: None, told.append)
    alarm.arm("a", T0 + HOUR)
    await wait_all_tasks_blocked()
    clock.step(ms(SECOND - 1), announce=False)
    await clock.advance(ms(2 * MINUTE))
    assert told == []
    clock.step(ms(SECOND), announce=False)
    await clock.advance(ms(2 * MINUTE))
    assert told == [SECOND]
