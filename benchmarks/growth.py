"""What a long log costs: creating, listing and delivering beside 3,000 reminders and beside 30.

The runtime keeps the fold of a log and never folds it again, so the length should not matter. The
same work alternates between one agent with the long log and agents with short ones; each number is
the best of many small batches, as other work on the machine can only slow one down.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import trio

from benchmarks.harness.disk import scratch
from benchmarks.harness.hosts import create, no_work
from benchmarks.harness.rows import Row, cost_row
from whenidle_actors.composition import open_host
from whenidle_actors.stores.memory import MemoryStore
from whenidle_clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host

_LONG: Final = 3000
_SHORT: Final = 30
_BATCH: Final = 10
_ROUNDS: Final = 30
_LATER: Final = 1_000_000
"""Seconds until the reminders that only fill a log are due."""


def run(scale: float = 1.0) -> list[Row]:
    """Measure microseconds a call; `scale` multiplies the long log and the number of batches."""
    size = max(_SHORT, round(_LONG * scale))
    rounds = max(1, round(_ROUNDS * scale))
    rows = [
        *trio.run(_creating, MemoryStore(), "memory", size, rounds),
        *trio.run(_listing, size, rounds),
        _delivering(size, rounds),
    ]
    with scratch() as folder:
        rows += trio.run(_creating, folder / "growth.db", "SQLite", size, rounds)
    return rows


async def _creating(store: MemoryStore | Path, kind: str, size: int, rounds: int) -> list[Row]:
    async with open_host(store=store, turn=no_work) as host:
        long, shorts = await _agents(host, size, rounds)

        async def work(agent: Agent) -> None:
            for _ in range(_BATCH):
                await create(agent, after_seconds=_LATER)

        ours, peer = await _alternate(long, shorts, work, _BATCH)
        return [_row(f"growth: create on {kind}, log of {size:,}", ours, peer)]


async def _listing(size: int, rounds: int) -> list[Row]:
    async with open_host(store=MemoryStore(), turn=no_work) as host:
        long, shorts = await _agents(host, size, rounds)

        async def work(agent: Agent) -> None:
            await agent.call_tool("schedule_list", {})

        ours, peer = await _alternate(long, shorts, work, 1)
        rows = [_row(f"growth: list {size:,} active, an item", ours / size, peer / _SHORT)]
        for number in range(1, size - _SHORT + 1):
            await long.call_tool("schedule_delete", {"id": f"schedule-{number}"})
        ours, peer = await _alternate(long, shorts, work, 1)
        return [*rows, _row(f"growth: list {_SHORT} active, log of {size:,}", ours, peer)]


def _delivering(size: int, rounds: int) -> Row:
    """Measure deliveries of one-shots that come due beside many that do not, with the turns they start."""
    clock = VirtualClock()

    async def main() -> tuple[float, float]:
        async with open_host(store=MemoryStore(), turn=no_work, clock=clock) as host:
            long, shorts = await _agents(host, size, rounds)
            ours: list[float] = []
            peer: list[float] = []
            for short in shorts:
                for agent, times in ((long, ours), (short, peer)):
                    for _ in range(_BATCH):
                        await create(agent, after_seconds=1)
                    times.append(await _deliver(agent, clock) / _BATCH)
            return min(ours), min(peer)

    return _row(f"growth: deliver, log of {size:,}", *trio.run(main, clock=clock))


async def _deliver(agent: Agent, clock: VirtualClock) -> float:
    """Let a second pass and return how long it took, in real seconds, until all that was due had its turn."""
    turns = agent.statistics().turns
    assert turns is not None
    began = time.perf_counter()
    clock.step(timedelta(seconds=1))
    while (now := agent.statistics().turns) is None or now < turns + _BATCH:
        await trio.lowlevel.checkpoint()
    await agent.when_idle()
    return time.perf_counter() - began


async def _agents(host: Host, size: int, rounds: int) -> tuple[Agent, list[Agent]]:
    """Return an agent with `size` reminders, and for each round one with a few."""
    # Somebody else's is due first, so that the alarm has nothing to do with the difference.
    await create(await host.create_agent(), after_seconds=_LATER - 1000)
    agents = [await host.create_agent() for _ in range(rounds + 1)]
    for agent in agents:
        for _ in range(size if agent is agents[0] else _SHORT):
            await create(agent, after_seconds=_LATER)
    return agents[0], agents[1:]


async def _alternate(
    long: Agent, shorts: list[Agent], work: Callable[[Agent], Awaitable[None]], calls: int
) -> tuple[float, float]:
    """Return seconds a call on the long log and on the short ones."""
    ours: list[float] = []
    peer: list[float] = []
    for short in shorts:
        for agent, times in ((long, ours), (short, peer)):
            began = time.perf_counter()
            await work(agent)
            times.append((time.perf_counter() - began) / calls)
    return min(ours), min(peer)


def _row(name: str, ours: float, peer: float) -> Row:
    return cost_row(name, ours * 1e6, peer * 1e6, "us", f"log of {_SHORT}")
