"""What it costs that many host-wide tasks are stored: nothing, if each question is an index look-up.

The peer of a store with a million tasks is a store with a thousand.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

import trio

from benchmarks.harness.disk import scratch
from benchmarks.harness.rows import Row, cost_row
from whenidle_actors.stores.base import Role
from whenidle_actors.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

_MANY: Final = 1_000_000
_FEW: Final = 1000
_REPEATS: Final = 15
_PER_SESSION: Final = 10


def run(scale: float = 1.0) -> list[Row]:
    """Measure opening and asking; `scale` multiplies how many tasks are stored. The best of several counts."""
    many, few = max(2, round(_MANY * scale)), max(2, round(_FEW * scale))
    with scratch() as folder:
        ours = trio.run(_times, folder / "many.db", many)
        peer = trio.run(_times, folder / "few.db", few)
    return [cost_row(f"stored_tasks: {name}", ours[name], peer[name], "ms", f"{few:,} stored") for name in ours]


async def _times(path: Path, count: int) -> dict[str, float]:
    await _fill(path, count)
    times: dict[str, float] = {"open and next due": await _best(lambda: _open_and_ask(path))}
    async with SqliteStore(path).opened(Role.HOST) as store:
        times["first page"] = await _best(store.tasks)
        times["last page"] = await _best(lambda: store.tasks(offset=max(0, count - 100)))
        times["due for a session"] = await _best(lambda: store.due_tasks(count, session_id="session-0", limit=10))
        times["count of a creator"] = await _best(lambda: store.count_active_tasks("session-0"))
    return times


async def _open_and_ask(path: Path) -> None:
    async with SqliteStore(path).opened(Role.HOST) as store:
        assert await store.next_due() == 0


async def _best(ask: Callable[[], Awaitable[object]]) -> float:
    """Return the fewest milliseconds that `ask` takes."""
    taken: list[float] = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        await ask()
        taken.append(time.perf_counter() - began)
    return 1000 * min(taken)


async def _fill(path: Path, count: int) -> None:
    """Make a store of `count` tasks, every second one active; by SQL, since a million commits are not the question."""
    async with SqliteStore(path).opened(Role.HOST):
        pass
    active = -(-count // 2)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executemany(
            "INSERT INTO tasks (id, updated_millis, next_millis, session_id, creator, data) "
            'VALUES (?, ?, ?, ?, ?, \'{"title":"Water the plants"}\')',
            ((f"task-{number}", number, *_standing(number)) for number in range(count)),
        )
        connection.execute("UPDATE task_totals SET active = ?, others = ?", (active, count - active))
        connection.execute(
            "INSERT INTO active_by_creator SELECT creator, count(*) FROM tasks WHERE next_millis IS NOT NULL GROUP BY 1"
        )
        connection.commit()


def _standing(number: int) -> tuple[int | None, str, str]:
    session_id = f"session-{number // (2 * _PER_SESSION)}"
    return None if number % 2 else number, session_id, session_id
