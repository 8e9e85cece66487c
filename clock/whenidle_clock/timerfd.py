"""Linux timers that report a step of the wall clock (timerfd_create(2), `TFD_TIMER_CANCEL_ON_SET`).

A timer on `CLOCK_REALTIME`, set to an instant that never comes, becomes readable at once when the
wall clock is set or the machine resumes from suspend; reading it then fails with `ECANCELED`.
"""

import ctypes
import errno
import os
import sys
import time

_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_TIMER_ABSTIME = 1
_TFD_TIMER_CANCEL_ON_SET = 2
_NEVER_SECONDS = 2**33  # year 2242; the kernel counts in 64-bit nanoseconds, which end in 2262


class _TimeSpec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_int64), ("tv_nsec", ctypes.c_int64))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("it_interval", _TimeSpec), ("it_value", _TimeSpec))


def open_step_timer() -> int | None:
    """Open a non-blocking descriptor that becomes readable when the wall clock is stepped.

    None where the system has no such timer or refuses one: too many open files, a sandbox. The
    caller closes the descriptor.
    """
    try:
        return _open_by_os() if hasattr(os, "timerfd_create") else _open_by_libc()
    except (OSError, AttributeError):
        return None


def take_step(descriptor: int) -> bool:
    """Tell whether a readable step timer reports a step, and make it ready for the next one."""
    try:
        os.read(descriptor, 8)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno != errno.ECANCELED:
            raise
    # ECANCELED is the step. Eight bytes mean that "never" has come: stepped as far as that.
    return True


def _open_by_os() -> int:
    """Open by the standard library, Python 3.13 and newer."""
    # Spelled out at run time: type checkers look at the oldest Python, which lacks these.
    create = vars(os)["timerfd_create"]
    set_time = vars(os)["timerfd_settime"]
    descriptor: int = create(time.CLOCK_REALTIME, flags=_TFD_NONBLOCK | _TFD_CLOEXEC)
    try:
        set_time(descriptor, flags=_TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET, initial=float(_NEVER_SECONDS))
    except OSError as error:
        _unless_stepped_meanwhile(descriptor, error)
    return descriptor


def _open_by_libc() -> int:
    if sys.maxsize < 2**32:
        raise OSError(errno.ENOSYS, "the size of time_t is not known on a 32-bit system")
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.timerfd_create(time.CLOCK_REALTIME, _TFD_NONBLOCK | _TFD_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create")
    never = _TimerSpec(it_value=_TimeSpec(tv_sec=_NEVER_SECONDS))
    flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
    if libc.timerfd_settime(descriptor, flags, ctypes.byref(never), None) < 0:
        _unless_stepped_meanwhile(descriptor, OSError(ctypes.get_errno(), "timerfd_settime"))
    return descriptor


def _unless_stepped_meanwhile(descriptor: int, error: OSError) -> None:
    """Let pass the one error after which the timer is armed all the same: a step just now."""
    if error.errno != errno.ECANCELED:
        os.close(descriptor)
        raise error
