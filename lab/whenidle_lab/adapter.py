"""The one file that touches what trio does not offer publicly: the order in which its tasks run.

Trio runs its tasks in rounds. Everything that is runnable when a round begins runs once in it, in an order
that trio leaves open: it reverses the list or not, by a throw of a module-wide generator. Where a module-wide
flag says so, which its own tests under hypothesis use, it sorts the list by age and has the generator shuffle it.
So a generator whose `shuffle` asks the lab is all it takes. That works for trio 0.32 to 0.35 and, since it
was never promised, may end with any release; `check_fit` tries it out before anything relies on it.

It also sees what trio tells nobody, that no task is in `wait_all_tasks_blocked`; so the lab's time moves faster.
"""

from __future__ import annotations

import functools
import importlib
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_clock import VirtualClock
from whenidle_clock.autojump import Autojump

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime

    Order = Callable[[list[trio.lowlevel.Task]], None]

_MODULE = "trio._core._run"
_GENERATOR = "_r"
_FLAG = "_ALLOW_DETERMINISTIC_SCHEDULING"
_CONTEXT = "GLOBAL_RUN_CONTEXT"


class AdapterMisfit(RuntimeError):
    """The installed trio does not let the lab decide which task runs next."""


class _Orderer(random.Random):
    """Stands in for trio's generator."""

    def __init__(self, order: Order) -> None:
        super().__init__(0)
        self._order = order

    def shuffle(self, x: Any) -> None:
        """Put the tasks of a round, the oldest first, into the order in which they run; trio takes the last first."""
        self._order(x)
        x.reverse()


@contextmanager
def controlled(order: Order) -> Generator[None, None, None]:
    """Let `order` arrange, in place, the tasks of each round of the trio runs in the block: the first runs first.

    It is called with the oldest task first, before any of them runs, and must not raise. Blocks do not nest,
    and trio runs of other threads meanwhile would be arranged too.

    Raises:
        AdapterMisfit: the installed trio has no place for it.
    """
    check_fit()
    with _installed(order):
        yield


@contextmanager
def _installed(order: Order) -> Generator[None, None, None]:
    try:
        module = importlib.import_module(_MODULE)
    except ImportError as error:
        raise AdapterMisfit(f"{_misfit()}: {error}") from None
    names = (_GENERATOR, _FLAG)
    missing = [name for name in names if not hasattr(module, name)]
    if missing:
        raise AdapterMisfit(f"{_misfit()}: {_MODULE} has no {' and no '.join(missing)}")
    saved = [getattr(module, name) for name in names]
    for name, value in zip(names, (_Orderer(order), True), strict=True):
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in zip(names, saved, strict=True):
            setattr(module, name, value)


@functools.cache
def check_fit() -> None:
    """Try out whether the installed trio runs tasks in the order it is told to, and what else the lab does to it.

    Raises:
        AdapterMisfit: it does not.
    """
    ran: list[int] = []
    wanted = [2, 0, 3, 1]

    async def note(number: int) -> None:
        ran.append(number)
        await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(len(wanted)):
                nursery.start_soon(note, number, name=str(number))

    def order(tasks: list[trio.lowlevel.Task]) -> None:
        if len(tasks) == len(wanted):
            tasks[:] = [tasks[number] for number in wanted]

    with _installed(order):
        trio.run(main)
    if ran != wanted:
        raise AdapterMisfit(f"{_misfit()}: it ran four tasks in the order {ran} instead of {wanted}")
    try:
        is_unshielded = trio.run(_is_unshielded)
        is_noticed = trio.run(_is_waiting_noticed)
    except AttributeError as error:
        raise AdapterMisfit(f"{_misfit()}: {error}") from None
    if not is_unshielded:
        raise AdapterMisfit(f"{_misfit()}: a task whose shields were taken away was not cancelled")
    if not is_noticed:
        raise AdapterMisfit(f"{_misfit()}: it was not seen that a task waits for all tasks to be blocked")


async def _is_unshielded() -> bool:
    """Return whether a cancellation reaches a task after `unshield`."""
    with trio.CancelScope() as outside, trio.CancelScope(shield=True):
        unshield(trio.lowlevel.current_task())
        outside.cancel()
        await trio.lowlevel.checkpoint()
    return outside.cancelled_caught


async def _is_waiting_noticed() -> bool:
    """Return whether `is_settled` is false while a task waits for all to be blocked, and only then."""
    before = is_settled()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_all_tasks_blocked)
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        meanwhile = is_settled()
    return before and not meanwhile and is_settled()


class LabClock(VirtualClock):
    """A virtual clock for trio runs that the lab controls: it moves with less ado."""

    def __init__(self, start: datetime) -> None:
        super().__init__(start, autojump=True)
        self._autojump = Autojump(self, is_settled)


def is_settled() -> bool:
    """Return whether no task of the trio run is in `wait_all_tasks_blocked`."""
    return not getattr(importlib.import_module(_MODULE), _CONTEXT).runner.waiting_for_idle


def unshield(task: trio.lowlevel.Task) -> None:
    """Take away every shield around a task, so that a cancellation from outside ends it.

    A process that is killed protects nothing.
    """
    status: Any = task._cancel_status  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what this file is for
    while status is not None:
        if status._scope.shield:  # noqa: SLF001 - the same
            status._scope.shield = False  # noqa: SLF001 - the same
        status = status._parent  # noqa: SLF001 - the same


def _misfit() -> str:
    return f"the lab cannot control the tasks of trio {trio.__version__}; install trio 0.32 to 0.35"
