"""A million armed targets: the alarm against asyncio's `call_later` (SPEC 1.5).

Both arm the same number of timers at the same random distances, then all are due at once and are
fired. Each peer fires by its own loop.
"""

import asyncio
import random
import time
from datetime import timedelta
from typing import Any

import trio

from whenidle_clock import Alarm, VirtualClock

_TARGETS = 1_000_000
_SPREAD = timedelta(days=1)


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Measure arming and firing, in microseconds a timer, with `scale` times a million timers."""
    count = max(1, int(_TARGETS * scale))
    rng = random.Random(0)  # noqa: S311 - distances, not secrets
    distances = [rng.random() for _ in range(count)]
    ours_arm, ours_fire = _alarm(distances)
    peer_arm, peer_fire = asyncio.run(_call_later(distances))
    return [_row("arm", ours_arm, peer_arm, count), _row("fire", ours_fire, peer_fire, count)]


def _row(work: str, ours: float, peer: float, count: int) -> dict[str, Any]:
    return {
        "name": f"alarm: {work}, {count:,} targets",
        "ours": ours / count * 1e6,
        "peer": peer / count * 1e6,
        "ratio": peer / ours,
        "unit": "us",
        "peer_name": "asyncio call_later",
    }


def _alarm(distances: list[float]) -> tuple[float, float]:
    clock = VirtualClock()
    alarm: Alarm[int] = Alarm(clock)
    start, spread = clock.now_millis(), _SPREAD // timedelta(milliseconds=1)

    began = time.perf_counter()
    for key, distance in enumerate(distances):
        alarm.arm(key, start + int(distance * spread))
    armed = time.perf_counter()

    async def fire_all() -> None:
        def fire(_keys: list[int]) -> None:
            if not len(alarm):
                scope.cancel()

        with trio.CancelScope() as scope:
            await alarm.run(fire)

    clock.step(_SPREAD)
    stepped = time.perf_counter()
    trio.run(fire_all, clock=clock)
    return armed - began, time.perf_counter() - stepped


async def _call_later(distances: list[float]) -> tuple[float, float]:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    left = len(distances)

    def fire(_key: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    began = time.perf_counter()
    for key, distance in enumerate(distances):
        loop.call_later(distance * 1e-3, fire, key)
    armed = time.perf_counter()
    await done.wait()
    return armed - began, time.perf_counter() - armed
