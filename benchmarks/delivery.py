"""How fast reminders that are due get their turns, over a thousand agents on SQLite.

Each delivery is three commits: message and dispatch, the start of the turn, its end. The peer is one
agent with many one-shots, which come one by one: what the thousand gain is what group commit shares.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import trio

from benchmarks.harness.disk import scratch
from benchmarks.harness.hosts import create, no_work
from benchmarks.harness.rows import Row, rate_row
from whenidle_actors.composition import open_host
from whenidle_clock import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from whenidle_actors.turn import Turn
    from whenidle_clock import Clock

_AGENTS: Final = 1000
_ROUNDS: Final = 2


def run(scale: float = 1.0) -> list[Row]:
    """Measure deliveries a second from the moment the host opens; `scale` multiplies the agents.

    The reminders were made by an earlier host, long ago, so each session is restored first: the case of a
    morning after. The best of several rounds counts.
    """
    count = max(8, round(_AGENTS * scale))
    many: list[float] = []
    one: list[float] = []
    with scratch() as folder:
        for number in range(_ROUNDS):
            many.append(_rate(folder / f"many-{number}.db", count, 1))
            one.append(_rate(folder / f"one-{number}.db", 1, count // 4))
    return [rate_row(f"delivery: {count:,} agents restored", max(many), max(one), "1/s", "one agent")]


def _rate(path: Path, agents: int, each: int) -> float:
    clock = VirtualClock()
    trio.run(_prepare, path, agents, each, clock, clock=clock)
    return trio.run(_deliver, path, agents * each)


async def _prepare(path: Path, agents: int, each: int, clock: Clock) -> None:
    async with open_host(store=path, turn=no_work, clock=clock) as host:

        async def make() -> None:
            agent = await host.create_agent()
            for _ in range(each):
                await create(agent, after_seconds=1)

        async with trio.open_nursery() as nursery:
            for _ in range(agents):
                nursery.start_soon(make)


async def _deliver(path: Path, count: int) -> float:
    done = trio.Event()
    left = count

    async def turn(turn: Turn) -> None:
        nonlocal left
        left -= len(turn.messages)
        if not left:
            done.set()

    began = time.perf_counter()
    async with open_host(store=path, turn=turn):
        await done.wait()
        return count / (time.perf_counter() - began)
