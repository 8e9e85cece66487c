"""Durable commits of the SQLite store, against the disk's own sync rate measured beside it.

The peer of one caller is `fdatasync` after overwriting one block of a file on the same disk: the least
that making anything durable costs. The peer of a hundred callers is the one caller.
"""

from __future__ import annotations

import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from whenidle_actors.stores.base import Append, Batch, Role, SessionHeader, SessionIndex
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_protocol.events import EventRecord

_BLOCK = 4096
_CALLERS = 100
_ROUNDS = 3
_RECORD = EventRecord("schedule/change", 1_700_000_000_000, f'{{"prompt":"{"x" * 200}"}}')


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Return one row a comparison; `scale` multiplies how many commits are timed."""
    commits = max(1, round(3000 * scale))
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as folder:
        # Alternating, and the best of each: other work on the machine can only slow a round down.
        syncs, one, many = zip(
            *(
                (_sync_rate(Path(folder), commits), *trio.run(_commit_rates, Path(folder) / f"{number}", commits))
                for number in range(_ROUNDS)
            ),
            strict=True,
        )
    return [
        _row("durable commits, one caller", max(one), max(syncs), "fdatasync of one block"),
        _row(f"durable commits, {_CALLERS} callers", max(many), max(one), "one caller"),
    ]


def _row(name: str, ours: float, peer: float, peer_name: str) -> dict[str, Any]:
    return {
        "name": name,
        "ours": ours,
        "peer": peer,
        "ratio": ours / peer,
        "unit": "1/s",
        "peer_name": peer_name,
    }


def _sync_rate(folder: Path, count: int) -> float:
    descriptor = os.open(folder / "raw", os.O_RDWR | os.O_CREAT)
    try:
        block = b"x" * _BLOCK
        started = time.perf_counter()
        for _ in range(count):
            os.pwrite(descriptor, block, 0)
            os.fdatasync(descriptor)
        return count / (time.perf_counter() - started)
    finally:
        os.close(descriptor)


async def _commit_rates(path: Path, commits: int) -> tuple[float, float]:
    """Return commits a second of one caller, and of many at once with a session each."""
    created_at = datetime(2026, 1, 1, tzinfo=UTC)
    async with SqliteStore(path).opened(Role.HOST) as store:
        names = [f"session-{number}" for number in range(_CALLERS + 1)]
        await store.commit(Batch(created=tuple(SessionHeader(name, created_at) for name in names)))

        async def call(name: str, count: int) -> None:
            for number in range(count):
                # The index changes each time, as it does when reminders are created.
                await store.commit(Batch((Append(name, number, (_RECORD,), SessionIndex(number)),)))

        started = time.perf_counter()
        await call(names[-1], commits)
        one = commits / (time.perf_counter() - started)

        each = max(1, commits * 4 // _CALLERS)
        started = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for name in names[:_CALLERS]:
                nursery.start_soon(call, name, each)
        return one, _CALLERS * each / (time.perf_counter() - started)
