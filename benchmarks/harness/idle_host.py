"""`python -m benchmarks.harness.idle_host KIND SECONDS`: what a host with nothing to do costs its process.

Prints JSON: how often its threads went to sleep and were woken, and how many milliseconds of CPU they took.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import trio

from whenidle import aio, open_host

KINDS = ("asyncio", "uvloop", "trio", "bare asyncio")

_SETTLING = 0.5
"""Seconds for threads that were busy to go to sleep."""


def measure(kind: str, seconds: float) -> dict[str, float]:
    """Measure a kind of host in a process of its own, for so many seconds, and return it for one minute."""
    command = [sys.executable, "-m", __name__, kind, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own module
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Do what the module says."""
    kind, seconds = sys.argv[1], float(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "idle.db"
        if kind == "trio":
            found = trio.run(_on_trio, path, seconds)
        else:
            with asyncio.Runner(loop_factory=_loop_factory(kind)) as runner:
                found = runner.run(_on_asyncio(None if kind == "bare asyncio" else path, seconds))
    print(json.dumps(found))


def _loop_factory(kind: str) -> Any:
    if kind != "uvloop":
        return asyncio.new_event_loop
    import uvloop  # noqa: PLC0415 - it may be missing

    return uvloop.new_event_loop


async def _no_work(_: object) -> None:
    """Never called."""


async def _on_trio(path: Path, seconds: float) -> dict[str, float]:
    async with open_host(store=path, turn=_no_work) as host:
        await (await host.create_agent()).call_tool("schedule_create", {"prompt": "x", "after_seconds": 86_400})
        await trio.sleep(_SETTLING)
        began = _account()
        await trio.sleep(seconds)
        return _a_minute(began, _account())


async def _on_asyncio(path: Path | None, seconds: float) -> dict[str, float]:
    async with AsyncExitStack() as opened:
        if path is not None:
            host = await opened.enter_async_context(aio.open_host(store=path, turn=_no_work))
            agent = await host.create_agent()
            await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 86_400})
        await asyncio.sleep(_SETTLING)
        began = _account()
        await asyncio.sleep(seconds)
        return _a_minute(began, _account())


def _account() -> tuple[int, float, float]:
    """Return how often threads went to sleep of their own accord, CPU seconds, and when that was."""
    return _sleeps(), time.process_time(), time.monotonic()


def _sleeps() -> int:
    told = (task / "status" for task in Path("/proc/self/task").iterdir())
    lines = (line for status in told for line in status.read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def _a_minute(began: tuple[int, float, float], ended: tuple[int, float, float]) -> dict[str, float]:
    minutes = (ended[2] - began[2]) / 60
    return {"wake-ups": (ended[0] - began[0]) / minutes, "milliseconds": (ended[1] - began[1]) * 1000 / minutes}


if __name__ == "__main__":
    main()
