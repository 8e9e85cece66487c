import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from whenidle_clock import SystemClock, from_millis, timerfd

linux = pytest.mark.skipif(sys.platform != "linux", reason="timerfd is Linux's")


def fail(number: int) -> Callable[..., Any]:
    """Give a function that fails as a system call does."""

    def call(*_args: object, **_kwargs: object) -> Any:
        raise OSError(number, os.strerror(number))

    return call


def count_descriptors() -> int:
    """Count what this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@linux
def test_the_timer_is_cancelled_when_the_wall_clock_is_set() -> None:
    """The kernel holds a real-time timer, absolute and cancelled on set, that has not fired and is not inherited."""
    descriptor = timerfd.open_step_timer()
    assert descriptor is not None
    try:
        info = dict(line.split(":", 1) for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines())
        assert int(info["clockid"]) == time.CLOCK_REALTIME
        assert int(info["settime flags"], 8) == 3
        assert int(info["ticks"]) == 0
        assert not os.get_inheritable(descriptor)
        assert not os.get_blocking(descriptor)
        assert not timerfd.take_step(descriptor)
    finally:
        os.close(descriptor)


@linux
def test_a_watch_holds_one_descriptor_and_closes_it() -> None:
    """Watches of the real timer leak nothing, also when they are cancelled."""

    async def main() -> None:
        clock = SystemClock()
        before = count_descriptors()
        for _ in range(20):
            with trio.move_on_after(0), clock.watch_steps() as watch:
                assert count_descriptors() == before + 1
                await watch.wait()
        assert count_descriptors() == before

    trio.run(main)


def test_a_cancelled_timer_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """ECANCELED from the timer, which is how Linux reports a step, ends the wait; a false alarm does not."""
    answers = [errno.EAGAIN, errno.ECANCELED]

    def read(descriptor: int, size: int) -> bytes:
        assert (descriptor, size) == (readable, 8)
        return fail(answers.pop(0))()  # type: ignore[no-any-return]  # it raises

    readable, writable = os.pipe()
    os.write(writable, b"readable")

    async def main() -> None:
        with SystemClock(timer_descriptor=lambda: readable).watch_steps() as watch:
            monkeypatch.setattr(timerfd, "os", SimpleNamespace(read=read))
            await watch.wait()
            monkeypatch.undo()

    trio.run(main)
    os.close(writable)
    assert answers == []


def test_another_error_of_the_timer_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that cannot be read is an error, not a step."""
    monkeypatch.setattr(timerfd, "os", SimpleNamespace(read=fail(errno.EIO)))
    with pytest.raises(OSError, match="Input/output error"):
        timerfd.take_step(0)


def test_without_a_timer_slices_alone_notice_a_step() -> None:
    """Where the system has no timer a watch sees no step, and a wait ends by its slices."""
    clock = SystemClock(slice_seconds=0.002, timer_descriptor=lambda: None)

    async def main() -> None:
        with trio.move_on_after(0.01) as scope, clock.watch_steps() as watch:
            await watch.wait()
        assert scope.cancelled_caught
        target = clock.now_millis() + 10
        await clock.sleep_until(from_millis(target))
        assert clock.now_millis() >= target

    trio.run(main)


class FakeOs(SimpleNamespace):
    """The functions of `os` from Python 3.13 on."""

    def __init__(self, settle: Callable[..., Any]) -> None:
        super().__init__(close=self._close, timerfd_create=self._create, timerfd_settime=self._set_time)
        self.settle = settle
        self.calls: list[object] = []

    def _create(self, clock: int, *, flags: int) -> int:
        self.calls.append(("create", clock, flags))
        return 77

    def _set_time(self, descriptor: int, *, flags: int, initial: float) -> None:
        self.calls.append(("set", descriptor, flags, initial > 8e9))
        self.settle()

    def _close(self, descriptor: int) -> None:
        self.calls.append(("close", descriptor))


def test_the_standard_librarys_timer_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.13 on the timer comes from `os`, with the same clock and flags."""
    fake = FakeOs(lambda: None)
    monkeypatch.setattr(timerfd, "os", fake)
    assert timerfd.open_step_timer() == 77
    assert fake.calls == [("create", time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC), ("set", 77, 3, True)]


@pytest.mark.parametrize(("number", "result", "closed"), [(errno.ECANCELED, 77, False), (errno.EINVAL, None, True)])
def test_a_step_while_the_timer_is_armed_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    result: int | None,
    closed: bool,
) -> None:
    """ECANCELED from arming leaves an armed timer; any other error closes it and means there is none."""
    fake = FakeOs(fail(number))
    monkeypatch.setattr(timerfd, "os", fake)
    assert timerfd.open_step_timer() == result
    assert (("close", 77) in fake.calls) == closed


class FakeLibc(SimpleNamespace):
    """A C library whose timer calls answer what the test wants."""

    def __init__(self, descriptor: int, settled: int) -> None:
        super().__init__(timerfd_create=lambda *_: descriptor, timerfd_settime=lambda *_: settled)


@pytest.mark.parametrize(
    ("descriptor", "settled", "number", "result"),
    [(-1, 0, errno.EMFILE, None), (78, 0, 0, 78), (78, -1, errno.ECANCELED, 78), (78, -1, errno.EPERM, None)],
)
def test_errors_of_the_c_library_mean_there_is_no_timer(
    monkeypatch: pytest.MonkeyPatch,
    descriptor: int,
    settled: int,
    number: int,
    result: int | None,
) -> None:
    """Too many open files, or a sandbox that forbids timers, leaves slices alone."""
    closed: list[int] = []
    ctypes = SimpleNamespace(
        CDLL=lambda *_args, **_kwargs: FakeLibc(descriptor, settled),
        get_errno=lambda: number,
        byref=lambda value: value,
    )
    monkeypatch.setattr(timerfd, "os", SimpleNamespace(close=closed.append))
    monkeypatch.setattr(timerfd, "ctypes", ctypes)
    assert timerfd.open_step_timer() == result
    assert closed == ([78] if descriptor == 78 and result is None else [])


def test_a_system_without_the_call_has_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A C library without timerfd, and a 32-bit one, leave slices alone."""
    monkeypatch.setattr(timerfd, "os", SimpleNamespace())
    monkeypatch.setattr(timerfd, "ctypes", SimpleNamespace(CDLL=lambda *_args, **_kwargs: SimpleNamespace()))
    assert timerfd.open_step_timer() is None
    monkeypatch.setattr(timerfd, "sys", SimpleNamespace(maxsize=2**31 - 1))
    assert timerfd.open_step_timer() is None
