"""Reaching what is trio's from asyncio: a clock's waits, and any other async function."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from whenidle.aio.guest import running_guest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime, timedelta

    from whenidle_clock import Clock, VirtualClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def run_trio(function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
    """Run a trio async function in the trio run of this loop's hosts, and return or raise what it does.

    It sees the caller's context variables. Cancelled, it is cancelled in trio, and this raises when it has ended:
    what it raised, else `asyncio.CancelledError`.

    Raises:
        CompositionError: no host is open on this loop.
        HostClosed: the last host was closed meanwhile, and the function was cancelled.
    """
    return await running_guest().call(partial(function, *args))


async def sleep_until(clock: Clock, instant: datetime) -> None:
    """Wait until the wall clock of a host shows `instant` or later; see `Clock.sleep_until`.

    Raises:
        CompositionError: no host is open on this loop.
    """
    await run_trio(clock.sleep_until, instant)


async def advance(clock: VirtualClock, by: timedelta) -> None:
    """Let wall and monotonic time of a virtual clock run on by `by`; see `VirtualClock.advance`.

    Time stops at each deadline on the way, and holds still while turns run in asyncio and while asyncio code goes on
    with what it was handed.

    Raises:
        CompositionError: no host is open on this loop.
        ValueError, RuntimeError: as `VirtualClock.advance`.
    """
    await run_trio(clock.advance, by)
