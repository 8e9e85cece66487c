"""How fast simulated time passes, in the real runtime and bare.

The peer is trio's own `MockClock` with autojump, doing the same waits with no runtime around them: it
has no wall clock, so no host can run on it.
"""

from __future__ import annotations

import time
from typing import Final

import trio
import trio.testing

from benchmarks.harness.hosts import create, no_work
from benchmarks.harness.rows import Row, rate_row
from whenidle_actors.composition import open_host
from whenidle_actors.stores.memory import MemoryStore
from whenidle_clock import VirtualClock

_HOURS: Final = 500
_JUMPS: Final = 20_000
_HOUR: Final = 3600
_ROUNDS: Final = 3


def run(scale: float = 1.0) -> list[Row]:
    """Measure jumps and simulated seconds, a real second; `scale` multiplies how many.

    The best of several rounds counts.
    """
    hours, jumps = max(2, round(_HOURS * scale)), max(2, round(_JUMPS * scale))
    rounds = [
        (
            _simulate(hours, VirtualClock(autojump=True)),
            _simulate(hours, VirtualClock(autojump=True, slice_seconds=_HOUR)),
            _sleep(hours, _HOUR, trio.testing.MockClock(autojump_threshold=0)) * _HOUR,
            _sleep(jumps, 1, VirtualClock(autojump=True)),
            _sleep(jumps, 1, trio.testing.MockClock(autojump_threshold=0)),
        )
        for _ in range(_ROUNDS)
    ]
    minutes, whole, bare, ours, mock = (max(rates) for rates in zip(*rounds, strict=True))
    name, peer = "virtual time: simulated seconds, an hourly reminder", "MockClock, hourly sleeps"
    return [
        rate_row(f"{name}, slices of a minute", minutes, bare, "s/s", peer),
        rate_row(f"{name}, slices of an hour", whole, bare, "s/s", peer),
        rate_row("virtual time: jumps", ours, mock, "1/s", "MockClock"),
    ]


def _simulate(hours: int, clock: VirtualClock) -> float:
    """Return the simulated seconds that pass in a real one while each hour is delivered and has its turn."""

    async def main() -> float:
        async with open_host(store=MemoryStore(), turn=no_work, clock=clock) as host:
            agent = await host.create_agent()
            await create(agent, every_seconds=_HOUR)
            began = time.perf_counter()
            await trio.sleep(hours * _HOUR + 1)
            seconds = time.perf_counter() - began
            assert agent.statistics().turns == hours
            return hours * _HOUR / seconds

    return trio.run(main, clock=clock)


def _sleep(count: int, seconds: float, clock: trio.abc.Clock) -> float:
    """Return how many sleeps of `seconds` end in a real second."""

    async def main() -> float:
        began = time.perf_counter()
        for _ in range(count):
            await trio.sleep(seconds)
        return count / (time.perf_counter() - began)

    return trio.run(main, clock=clock)
