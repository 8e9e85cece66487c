"""Work that trio's clock cannot see the end of, and how virtual time is told to hold still for it.

Virtual time must not run away from a thread, a socket or a subprocess (SPEC 1.4): when every task
is blocked but one of them waits for the real world, the next thing to happen is there, not at the
next deadline.
"""

from collections.abc import Generator
from contextlib import contextmanager

import attrs
import trio

_TRIO_OWN_FD_WAITS = 1  # trio's entry queue always waits for its wake-up socket while tasks are blocked
_FD_WAITS = (trio.lowlevel.wait_readable.__code__, trio.lowlevel.wait_writable.__code__)


@attrs.define
class _Held:
    """What a run has declared about itself."""

    work: int = 0
    background: dict[trio.lowlevel.Task, int] = attrs.Factory(dict[trio.lowlevel.Task, int])


_held: trio.lowlevel.RunVar[_Held] = trio.lowlevel.RunVar("whenidle_clock.inflight")


def _declared() -> _Held:
    try:
        return _held.get()
    except LookupError:
        held = _Held()
        _held.set(held)
        return held


class work_in_flight:  # noqa: N801 - used as a function; around every commit, for a third of a generator's cost
    """Hold virtual time still inside the block: wrap waits for things that trio cannot see.

    A result from a thread of one's own, for example. Threads of `trio.to_thread` and waits for
    sockets, pipes and subprocesses are seen without it. Do not wait for time inside: it stands still.
    Under a real clock it does nothing. Blocks may nest and overlap, in any task of one trio run.

    Raises:
        RuntimeError: not inside `trio.run`.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = _declared()

    def __enter__(self) -> None:
        self._held.work += 1

    def __exit__(self, *_: object) -> None:
        self._held.work -= 1


@contextmanager
def background_io() -> Generator[None, None, None]:
    """Let virtual time pass while the calling task waits for a socket, pipe or subprocess.

    For waits that may last for ever and that nothing is expected of: an idle listener's `accept`.
    Only the task that opened the block is exempt, not its children, and only while it waits; put
    the block around that wait alone, and handle what came in outside it.

    Raises:
        RuntimeError: not inside `trio.run`.
    """
    background = _declared().background
    task = trio.lowlevel.current_task()
    background[task] = background.get(task, 0) + 1
    try:
        yield
    finally:
        background[task] -= 1
        if not background[task]:
            del background[task]


def in_flight(io_statistics: object) -> bool:
    """Tell whether anything awaited is outside trio, given the run's own I/O statistics.

    True inside any `work_in_flight`, while a task is in `trio.to_thread.run_sync` whatever its
    limiter, and while a task waits for a file descriptor outside `background_io`.
    """
    # Importing it takes as long as the rest of the package, and only virtual time needs it.
    from trio.testing import active_thread_count  # noqa: PLC0415 - see above

    held = _declared()
    if held.work or active_thread_count():
        return True
    waits = count_fd_waits(io_statistics) - _TRIO_OWN_FD_WAITS
    if waits <= 0 or not held.background:
        return waits > 0
    return waits > sum(_waits_for_fd(task) for task in held.background)


def count_fd_waits(io_statistics: object) -> int:
    """Count the tasks that wait for descriptors, in the fields of any of trio's I/O backends."""
    fields = ("tasks_waiting_read", "tasks_waiting_write", "tasks_waiting_overlapped", "tasks_waiting")
    return sum(getattr(io_statistics, field, 0) for field in fields)


def _waits_for_fd(task: trio.lowlevel.Task) -> bool:
    return any(frame.f_code in _FD_WAITS for frame, _line in task.iter_await_frames())
