"""Durable `schedule_create` through an agent's tool on SQLite: one caller, and a hundred agents at once.

The peer of one caller is the disk's own sync rate, the least that making anything durable costs. The
peer of a hundred agents is the one caller: what they gain is what group commit shares.

The first thousand pages that an opened store writes make its write-ahead log grow, and a file that grows
costs more to sync. They come before the clock starts: the peer overwrites one block.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import trio

from benchmarks.harness.disk import SYNC_PEER, scratch, sync_rate
from benchmarks.harness.hosts import create, no_work
from benchmarks.harness.rows import Row, rate_row
from whenidle_actors.composition import open_host

if TYPE_CHECKING:
    from pathlib import Path

    from whenidle_actors.agent import Agent

_CREATES: Final = 2000
_BEFORE: Final = 600
"""Creates that make the write-ahead log as long as it gets, at two pages each."""
_AGENTS: Final = 100
_ROUNDS: Final = 5
_SECONDS: Final = 86_400


def run(scale: float = 1.0) -> list[Row]:
    """Measure creates a second; `scale` multiplies how many are timed.

    The best of several rounds counts: other work on the machine can only slow one down.
    """
    count = max(1, round(_CREATES * scale))
    syncs: list[float] = []
    one: list[float] = []
    many: list[float] = []
    with scratch() as folder:
        for number in range(_ROUNDS):
            syncs.append(sync_rate(folder, count))
            alone, together = trio.run(_rates, folder / f"{number}.db", count)
            one.append(alone)
            many.append(together)
    return [
        rate_row("creates: one caller", max(one), max(syncs), "1/s", SYNC_PEER),
        rate_row(f"creates: {_AGENTS} agents", max(many), max(one), "1/s", "one caller"),
    ]


async def _rates(path: Path, count: int) -> tuple[float, float]:
    """Return creates a second of one caller, and of many agents at once."""
    async with open_host(store=path, turn=no_work) as host:
        await _rate([await host.create_agent()], max(1, count * _BEFORE // _CREATES))
        alone = await _rate([await host.create_agent()], count)
        together = [await host.create_agent() for _ in range(_AGENTS)]
        return alone, await _rate(together, max(1, 3 * count // _AGENTS))


async def _rate(agents: list[Agent], each: int) -> float:
    async def work(agent: Agent) -> None:
        for _ in range(each):
            await create(agent, after_seconds=_SECONDS)

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for agent in agents:
            nursery.start_soon(work, agent)
    return len(agents) * each / (time.perf_counter() - began)
