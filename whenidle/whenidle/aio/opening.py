"""Opening a host on the running asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from whenidle.aio.guest import Guest
from whenidle.aio.host import Host
from whenidle.aio.life import Life
from whenidle.aio.tasks import Tasks
from whenidle.aio.turns import TrioTurn, TurnRunner, check_kind
from whenidle_actors import composition
from whenidle_actors.arguments import check_arguments
from whenidle_actors.composition import MAX_MESSAGE_BYTES, SHUTDOWN_TIMEOUT
from whenidle_actors.supervision import DEFAULT_SUPERVISION
from whenidle_actors.turn import Redelivery

if TYPE_CHECKING:
    import os
    import random
    from collections.abc import AsyncGenerator, Callable

    from whenidle.aio.turns import TurnFunction
    from whenidle_actors.mailbox import DeadLetter
    from whenidle_actors.stores import base
    from whenidle_actors.suites import Suite
    from whenidle_actors.supervision import Supervision
    from whenidle_actors.turn import TurnFunction as TrioTurnFunction
    from whenidle_clock import Clock


@asynccontextmanager
async def open_host(  # noqa: PLR0913 - the arguments of whenidle.open_host
    *,
    store: base.Store | str | os.PathLike[str] | None,
    turn: TurnFunction | TrioTurn,
    clock: Clock | None = None,
    suites: Iterable[Suite | Tasks] | None = None,
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
    """Run a host on the running asyncio loop for as long as the block runs.

    It is `whenidle.open_host`, with trio as a guest of the loop. Hosts of one loop share one trio run, which the last
    of them ends. When the block is left normally, turns that run may finish for `shutdown_timeout` seconds; left by an
    exception or a cancellation, as when the loop shuts down, they are interrupted at once. The host has stopped when
    the block is left, cancelled or not. If the host fails, the block is cancelled and raises what it failed with.

    Args:
        store: as for `whenidle.open_host`, like all that is not said to differ.
        turn: the agent: an asyncio coroutine function of one `Turn`, or a trio one marked with `TrioTurn`.
        clock: a `VirtualClock`, or another clock of trio's, becomes that of the trio run.
        suites: what agents get; tasks are mounted as `whenidle.aio.Tasks`.
        max_concurrent_turns: the same.
        passivate_after: the same.
        redelivery: the same.
        supervision: the same.
        shutdown_timeout: the same.
        max_message_bytes: the same.
        rng: the same.
        choose: the same.
        on_dead_letter: the same.

    Raises:
        InvalidArgument: an argument is not what it should be.
        CompositionError: the suites do not go together, or there is no store for them; the thread has another trio
            run, or one whose loop was closed while hosts were open; or the hosts of this loop are on another clock.
        StoreLocked: another host has the store.
        StoreError: the store cannot be opened; see `Store.open`.
    """
    options: dict[str, Any] = {
        "clock": clock,
        "max_concurrent_turns": max_concurrent_turns,
        "passivate_after": passivate_after,
        "redelivery": redelivery,
        "supervision": supervision,
        "shutdown_timeout": shutdown_timeout,
        "max_message_bytes": max_message_bytes,
        "rng": rng,
    }
    check_arguments(turn=turn.function if isinstance(turn, TrioTurn) else turn, **options)
    check_kind(turn)
    guest = await Guest.join(clock)
    try:
        mounted, tasks = _suites(suites, guest)
        function, on_leave = _trio_turn(turn, guest)
        opening = composition.open_host(
            store=store,
            turn=function,
            suites=mounted,
            choose=choose,
            on_dead_letter=on_dead_letter,
            **options,
        )
        async with Life(guest, opening, on_leave) as host:
            yield Host(guest, host, tasks)
    finally:
        await guest.leave()


def _suites(suites: Iterable[Suite | Tasks] | None, guest: Guest) -> tuple[Iterable[Suite] | None, tuple[Tasks, ...]]:
    """Return the suites as trio's host takes them, and which of them are tasks."""
    if not isinstance(suites, Iterable):
        return suites, ()  # None, or what trio's host refuses
    given = tuple(suites)
    mounted = [suite.suite_on(guest) if isinstance(suite, Tasks) else suite for suite in given]
    return mounted, tuple(suite for suite in given if isinstance(suite, Tasks))


def _trio_turn(turn: TurnFunction | TrioTurn, guest: Guest) -> tuple[TrioTurnFunction, Callable[[], None]]:
    """Return the turn function as trio's host takes it, and what to do when the host is to stop."""
    if isinstance(turn, TrioTurn):
        return turn.function, _nothing
    owner = asyncio.current_task()
    assert owner is not None  # noqa: S101 - this runs in asyncio
    runner = TurnRunner(guest, turn, owner)
    return runner, runner.cancel_again


def _nothing() -> None:
    """There is no asyncio task to cancel again."""
