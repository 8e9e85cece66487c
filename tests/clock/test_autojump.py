import os
import threading
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_clock import VirtualClock, background_io, work_in_flight
from whenidle_clock.inflight import count_fd_waits


@pytest.fixture
def clock() -> VirtualClock:
    """Give a virtual clock that jumps."""
    return VirtualClock(autojump=True)


@pytest.fixture
def autojump_off() -> VirtualClock:
    """Give a virtual clock that the test moves."""
    return VirtualClock()


async def test_a_year_of_waiting_takes_no_real_time(clock: VirtualClock) -> None:
    """Hourly sleeps over a simulated year pass while the real clock hardly moves (SPEC 1.4)."""
    for hour in range(1, 8761):
        await trio.sleep(3600)
        assert trio.current_time() == hour * 3600.0


async def test_time_jumps_to_the_next_deadline_only_when_all_are_blocked(
    clock: VirtualClock,
    nursery: trio.Nursery,
) -> None:
    """Work at an instant is finished before time goes on, and deadlines come in order."""
    log: list[tuple[str, float]] = []

    async def worker() -> None:
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        log.append(("worked", trio.current_time()))

    async def sleeper(seconds: float) -> None:
        await trio.sleep(seconds)
        log.append((f"slept {seconds}", trio.current_time()))

    for task in (worker, lambda: sleeper(3), lambda: sleeper(1), lambda: sleeper(2)):
        nursery.start_soon(task)
    await trio.sleep(3)
    assert log[:3] == [("worked", 0.0), ("slept 1", 1.0), ("slept 2", 2.0)]


@pytest.mark.parametrize("cushion", [0, 0.002])
async def test_waiting_for_all_tasks_blocked_goes_before_a_jump(clock: VirtualClock, cushion: float) -> None:
    """`wait_all_tasks_blocked` returns before time moves, whatever its cushion."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 3600)
        for _ in range(3):
            await wait_all_tasks_blocked(cushion)
            assert trio.current_time() == 0.0


async def test_autojump_can_be_switched(clock: VirtualClock) -> None:
    """Switched off in a running task, time stands; switched on, it jumps again."""
    clock.autojump = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 10)
        await wait_all_tasks_blocked(0.003)
        assert trio.current_time() == 0.0
        clock.autojump = True
    assert trio.current_time() == 10.0


async def test_without_a_deadline_time_stands(clock: VirtualClock) -> None:
    """When nothing waits for time there is nowhere to jump to; a thread can still wake the run."""
    token = trio.lowlevel.current_trio_token()
    woken = trio.Event()
    timer = threading.Timer(0.005, token.run_sync_soon, [woken.set])
    timer.start()
    await woken.wait()
    timer.join()
    assert trio.current_time() == 0.0


@pytest.mark.parametrize("limiter", [None, trio.CapacityLimiter(1)])
@pytest.mark.parametrize("abandon", [True, False])
async def test_time_stands_while_a_thread_works(
    clock: VirtualClock,
    limiter: trio.CapacityLimiter | None,
    abandon: bool,
) -> None:
    """A deadline does not overtake work in `trio.to_thread`, whatever its limiter (CASES 37)."""
    with trio.fail_after(1):
        await trio.to_thread.run_sync(time.sleep, 0.02, limiter=limiter, abandon_on_cancel=abandon)
    assert trio.current_time() == 0.0
    with trio.move_on_after(1) as scope:
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert trio.current_time() == 1.0


async def test_time_stands_while_a_thread_of_ones_own_works(clock: VirtualClock) -> None:
    """Inside `work_in_flight` a deadline does not overtake a result that trio cannot see (CASES 37)."""
    token = trio.lowlevel.current_trio_token()
    done = trio.Event()
    timer = threading.Timer(0.02, token.run_sync_soon, [done.set])
    with trio.fail_after(1), work_in_flight(), work_in_flight():
        timer.start()
        await done.wait()
    timer.join()
    assert trio.current_time() == 0.0
    await trio.sleep(5)
    assert trio.current_time() == 5.0


async def test_time_stands_while_a_socket_is_awaited(clock: VirtualClock) -> None:
    """A deadline does not overtake bytes on their way through a socket (CASES 37)."""
    left, right = trio.socket.socketpair()
    sender = threading.Timer(0.02, os.write, [left.fileno(), b"late"])
    with left, right:
        sender.start()
        with trio.fail_after(0.5):
            assert await right.recv(4) == b"late"
        sender.join()
    assert trio.current_time() == 0.0


async def test_time_stands_while_a_subprocess_runs(clock: VirtualClock) -> None:
    """A deadline does not overtake a child process."""
    with trio.fail_after(0.001):
        await trio.run_process(["sleep", "0.02"])
    assert trio.current_time() == 0.0


async def test_an_idle_listener_can_be_exempt(clock: VirtualClock, nursery: trio.Nursery) -> None:
    """Inside `background_io` a wait for a connection that never comes does not hold time."""
    listener = trio.socket.socket()
    await listener.bind(("127.0.0.1", 0))
    listener.listen()

    async def serve() -> None:
        with background_io():
            await listener.accept()

    with listener:
        nursery.start_soon(serve)
        await trio.sleep(3600)
        assert trio.current_time() == 3600.0
        nursery.cancel_scope.cancel()


async def test_background_io_exempts_its_own_task_and_only_while_it_waits_there(
    clock: VirtualClock,
    nursery: trio.Nursery,
) -> None:
    """Another task's socket holds time still even if an exempt task waits for something else meanwhile."""
    left, right = trio.socket.socketpair()
    release = trio.Event()

    async def exempt_but_elsewhere() -> None:
        with background_io(), background_io():
            await release.wait()

    sender = threading.Timer(0.02, os.write, [left.fileno(), b"late"])
    with left, right:
        nursery.start_soon(exempt_but_elsewhere)
        sender.start()
        with trio.fail_after(0.5):
            assert await right.recv(4) == b"late"
        sender.join()
    assert trio.current_time() == 0.0
    release.set()


async def test_an_exempt_wait_that_ends_is_handled_before_time_goes_on(
    clock: VirtualClock,
    nursery: trio.Nursery,
) -> None:
    """Bytes that are there already are read at the instant they came, not after a jump."""
    left, right = trio.socket.socketpair()
    seen: list[float] = []

    async def reader() -> None:
        with background_io():
            await trio.lowlevel.wait_readable(right)
        seen.append(trio.current_time())

    with left, right:
        nursery.start_soon(reader)
        await trio.sleep(1)
        await left.send(b"x")
        await trio.sleep(1)
        assert seen == [1.0]


def test_held_time_does_not_spin(clock: VirtualClock) -> None:
    """While time is held still the run sleeps until the work reports: a handful of passes, however long it takes."""
    passes: list[float] = []

    class CountPasses(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            passes.append(timeout)

    async def main() -> None:
        with trio.fail_after(3600):
            await trio.to_thread.run_sync(time.sleep, 0.05)

    trio.run(main, clock=clock, instruments=[CountPasses()])
    assert len(passes) < 20


def test_the_same_program_gives_the_same_trace() -> None:
    """Two runs of the same program see the same instants in the same order."""

    def trace() -> list[tuple[int, float]]:
        log: list[tuple[int, float]] = []

        async def worker(number: int) -> None:
            for step in range(20):
                await trio.sleep(number + step / 7)
                log.append((number, trio.current_time()))

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number in (1, 2, 3):
                    nursery.start_soon(worker, number)

        trio.run(main, clock=VirtualClock(autojump=True))
        return log

    assert trace() == trace()


async def test_advance_waits_for_work_in_flight(autojump_off: VirtualClock, nursery: trio.Nursery) -> None:
    """`advance` goes no further and does not end while a thread works."""
    log: list[tuple[str, float]] = []

    async def worker() -> None:
        await trio.sleep(1)
        await trio.to_thread.run_sync(time.sleep, 0.01)
        log.append(("done", trio.current_time()))

    nursery.start_soon(worker)
    await autojump_off.advance(timedelta(seconds=1))
    assert log == [("done", 1.0)]


async def test_a_foreign_thread_that_acts_at_the_moment_of_a_jump_goes_first(clock: VirtualClock) -> None:
    """What became runnable while trio looked at the world runs before time moves."""
    event = trio.Event()
    seen: list[float] = []

    class Meddler(trio.abc.Instrument):
        """Acts between the decision to jump and the jump."""

        done = False

        def before_io_wait(self, timeout: float) -> None:
            if timeout > 0 and not self.done:
                self.done = True
                event.set()

    async def waiter() -> None:
        await event.wait()
        seen.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiter)
        trio.lowlevel.add_instrument(Meddler())
        await trio.sleep(100)
    assert seen == [0.0]


@pytest.mark.parametrize(
    ("statistics", "waits"),
    [
        (SimpleNamespace(backend="epoll", tasks_waiting_read=2, tasks_waiting_write=1), 3),
        (SimpleNamespace(backend="kqueue", tasks_waiting=2, monitors=5), 2),
        (
            SimpleNamespace(
                backend="windows",
                tasks_waiting_read=1,
                tasks_waiting_write=1,
                tasks_waiting_overlapped=2,
                completion_key_monitors=4,
            ),
            4,
        ),
    ],
)
def test_waits_are_counted_on_each_of_trios_backends(statistics: SimpleNamespace, waits: int) -> None:
    """The fields that count waiting tasks differ by operating system; all are counted."""
    assert count_fd_waits(statistics) == waits


def test_declaring_work_needs_a_run() -> None:
    """Outside `trio.run` there is nothing to hold still."""
    with pytest.raises(RuntimeError), work_in_flight():
        pass
    with pytest.raises(RuntimeError), background_io():
        pass


@pytest.mark.parametrize("seconds", [5e-324, 2.225073858507e-311, 1e-300])
async def test_a_wait_of_next_to_nothing_ends(clock: VirtualClock, seconds: float) -> None:
    """A deadline may be as near to zero as a float can be, where one is coarser than the other is large."""
    await trio.sleep_until(seconds)
    assert clock.monotonic_ns <= 1  # by the nanosecond that it is rounded up to, or none
