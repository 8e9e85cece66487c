"""How a host is put together, started and stopped."""

from __future__ import annotations

import math
import os
import random
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from whenidle_actors.arguments import check_arguments, check_suites
from whenidle_actors.attendance import Attendance
from whenidle_actors.errors import InvalidArgument
from whenidle_actors.host import Host
from whenidle_actors.registry import Registry
from whenidle_actors.reminders import Reminders
from whenidle_actors.restorations import Restorations
from whenidle_actors.scheduler import Scheduler
from whenidle_actors.services import Services
from whenidle_actors.session import Journal
from whenidle_actors.stores.base import Role, Store
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_actors.supervision import DEFAULT_SUPERVISION
from whenidle_actors.turn import Redelivery
from whenidle_clock import Alarm, SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from whenidle_actors.mailbox import DeadLetter
    from whenidle_actors.suites import Suite
    from whenidle_actors.supervision import Supervision
    from whenidle_actors.turn import TurnFunction
    from whenidle_clock import Clock

MAX_MESSAGE_BYTES = 1024 * 1024
"""The longest message, in bytes of UTF-8, unless the host says otherwise."""

SHUTDOWN_TIMEOUT = 10.0
"""Seconds that turns get to finish when a host stops, unless it says otherwise."""

_IDLE_WORKERS = 128
"""Worker tasks kept for the next burst: each commit in flight holds one, and a task costs more to make than to keep."""

_RESTORERS = 8
"""Sessions that are read at once when many come due together; more would only queue at the store."""


@asynccontextmanager
async def open_host(  # noqa: PLR0913 - each is one decision of the host's, and has a default
    *,
    store: Store | str | os.PathLike[str] | None,
    turn: TurnFunction,
    clock: Clock | None = None,
    suites: Iterable[Suite] | None = None,
    max_concurrent_turns: int | None = None,
    passivate_after: float | None = None,
    redelivery: Redelivery = Redelivery.AT_LEAST_ONCE,
    supervision: Supervision = DEFAULT_SUPERVISION,
    shutdown_timeout: float = SHUTDOWN_TIMEOUT,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    rng: random.Random | None = None,
    choose: Callable[[object], int] | None = None,
    on_dead_letter: Callable[[DeadLetter], None] | None = None,
) -> AsyncGenerator[Host]:
    """Run a host for as long as the block runs.

    What the store holds is taken up at once: turns that were interrupted, messages that wait, reminders that
    came due meanwhile. When the block is left normally, turns that run may finish for `shutdown_timeout`
    seconds; left by an exception or a cancellation, they are interrupted at once. No task is left behind.

    Args:
        store: where sessions are kept; a path means a `SqliteStore` there. None keeps nothing, and then no
            suite can be mounted.
        turn: the agent: an async function of one `Turn`.
        clock: `SystemClock()` if not given.
        suites: what agents get; `(Reminders(),)` if not given and there is a store.
        max_concurrent_turns: most turns that run at once; None sets no bound (SPEC 2.11).
        passivate_after: seconds of quiet after which an agent is dropped from memory; None keeps it.
        redelivery: what becomes of the messages of a turn that was interrupted (SPEC 4).
        supervision: how agents are restarted after a fault of their own code (SPEC 2.7).
        shutdown_timeout: seconds; see above.
        max_message_bytes: longest message, in bytes of UTF-8.
        rng: where ids and jitter are drawn from; seeded by the system if not given.
        choose: which of the ready actors runs next; see `Scheduler`.
        on_dead_letter: called with each message an actor accepted and could not handle; see `Scheduler`.

    Raises:
        InvalidArgument: an argument is not what it should be.
        CompositionError: the suites do not go together, or there is no store for them.
        StoreLocked: another host has the store.
        StoreError: the store cannot be opened; see `Store.open`.
    """
    check_arguments(
        turn=turn,
        clock=clock,
        max_concurrent_turns=max_concurrent_turns,
        passivate_after=passivate_after,
        redelivery=redelivery,
        supervision=supervision,
        shutdown_timeout=shutdown_timeout,
        max_message_bytes=max_message_bytes,
        rng=rng,
    )
    if suites is None:
        suites = () if store is None else (Reminders(),)
    mounted = check_suites(suites)
    fixed_rate = all(suite.fixed_rate for suite in mounted if isinstance(suite, Reminders))
    journal = Journal(as_store(store), SystemClock() if clock is None else clock, fixed_rate)
    generator = random.Random() if rng is None else rng  # noqa: S311 - ids and jitter are no secrets
    scheduler = Scheduler(
        choose=choose, max_idle_workers=_IDLE_WORKERS, random=generator, on_dead_letter=on_dead_letter
    )
    async with (
        journal.store.opened(Role.HOST),
        _work_nursery() as (nursery, working),
        scheduler.open(),
    ):
        restorations = Restorations(_RESTORERS)
        services = Services(
            journal=journal,
            scheduler=scheduler,
            turn=turn,
            nursery=nursery,
            turn_slots=trio.CapacityLimiter(math.inf if max_concurrent_turns is None else max_concurrent_turns),
            registry=Registry(passivate_after),
            supervision=supervision,
            redelivery=redelivery,
            max_message_bytes=max_message_bytes,
            random=generator,
            alarm=Alarm(journal.clock),
            restore_soon=restorations.soon,
            durable=store is not None,
        )
        attendance = Attendance(services)
        host = Host(services, attendance)
        for suite in mounted:
            host.mount(suite)
        await attendance.begin()
        attending = trio.CancelScope()
        services.start(_attend, services, attendance, restorations, attending)
        grace = 0.0
        try:
            yield host
            grace = shutdown_timeout
        finally:
            attending.cancel()
            if not working.cancel_called:  # else the work has failed, and there is nothing left to end in order
                with working:
                    await host.close(grace=grace)
            services.registry.closed = True
            services.announcer.end()


async def _attend(
    services: Services, attendance: Attendance, restorations: Restorations, scope: trio.CancelScope
) -> None:
    """Make agents live as there is something for them to do, and drop quiet ones, until cancelled."""
    with scope:
        try:
            async with _flat_nursery() as nursery:
                restorations.begin(partial(services.start_in, nursery), attendance.restore)
                nursery.start_soon(attendance.ring)
                nursery.start_soon(attendance.watch)
                if services.registry.passivates:
                    nursery.start_soon(attendance.passivate)
        finally:
            restorations.end()


@asynccontextmanager
async def _work_nursery() -> AsyncGenerator[tuple[trio.Nursery, trio.CancelScope]]:
    """Open a nursery whose tasks outlast a cancellation of the block, so that they can be ended in order.

    With it comes the scope to wait for them in: shielded, and cancelled if one of them has failed, because
    then the others were cancelled with it and there is nothing to wait for.
    """
    lifetime, working = trio.CancelScope(shield=True), trio.CancelScope(shield=True)
    opened = trio.Event()
    nurseries: list[trio.Nursery] = []

    # Not by `nursery.start`: cancelled meanwhile, that waits for the end of a task that is shielded.
    async def keep_open() -> None:
        try:
            with lifetime:
                async with _flat_nursery() as nursery:
                    nurseries.append(nursery)
                    opened.set()
                    await trio.sleep_forever()
        finally:
            working.cancel()

    async with _flat_nursery() as outer:
        outer.start_soon(keep_open)
        try:
            await opened.wait()
            yield nurseries[0], working
        finally:
            lifetime.cancel()


@asynccontextmanager
async def _flat_nursery() -> AsyncGenerator[trio.Nursery]:
    """Open a nursery that does not wrap what leaves it alone: it is not the caller's business."""
    try:
        async with trio.open_nursery() as nursery:
            yield nursery
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from group.exceptions[0].__cause__


def as_store(store: Store | str | os.PathLike[str] | None) -> Store:
    """Return the store that is meant: a path is a `SqliteStore` there, None one that keeps nothing.

    Raises:
        InvalidArgument: it is something else.
    """
    if store is None:
        return MemoryStore()
    if isinstance(store, Store):
        return store
    if isinstance(store, str | os.PathLike):
        return SqliteStore(store)
    raise InvalidArgument(f"store is a Store, a path or None, not {type(store).__name__}")
