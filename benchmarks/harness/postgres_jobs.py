"""Jobs of pgqueuer on PostgreSQL, in a database that is made for them and dropped again.

The server is the one on this machine, as `postgres` without a password; `WHENIDLE_BENCHMARK_POSTGRES` names
another (a URL as libpq takes it, of a database to connect to first).
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCHES: Final = (10, 500)
"""Jobs fetched and acknowledged at a time: what pgqueuer does by default, and what turned out the fastest."""

_CONNECTIONS: Final = 4
_PATIENCE: Final = 2.0
"""Seconds to wait for a server that may not be there."""

_SERVER: Final = "WHENIDLE_BENCHMARK_POSTGRES"
_DEFAULT: Final = "postgresql://postgres@127.0.0.1:5432/test"


def why_not() -> str | None:
    """Return what is missing, None if nothing is."""
    for package in ("pgqueuer", "asyncpg"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    return asyncio.run(_why_no_server())


def rate(count: int, batch: int) -> float:
    """Return how many of `count` trivial jobs a second are done and acknowledged, fetched `batch` at a time."""
    return asyncio.run(_rate_in_own_database(count, batch))


def _server() -> str:
    return os.environ.get(_SERVER, _DEFAULT)


async def _connect() -> Any:
    import asyncpg  # noqa: PLC0415 - it may be missing

    return await asyncpg.connect(_server(), timeout=_PATIENCE)


async def _why_no_server() -> str | None:
    try:
        connection = await _connect()
    except Exception as error:  # noqa: BLE001 - whatever it is, the peer is left out and the reason is shown
        return f"no PostgreSQL server at {urlsplit(_server()).hostname}: {error!r}"
    await connection.close()
    return None


async def _rate_in_own_database(count: int, batch: int) -> float:
    name = f"whenidle_benchmark_{os.getpid()}"
    connection = await _connect()
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        try:
            return await _rate(urlsplit(_server())._replace(path=f"/{name}").geturl(), count, batch)
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


async def _rate(url: str, count: int, batch: int) -> float:
    import asyncpg  # noqa: PLC0415 - they may be missing
    from pgqueuer import Queries, QueueManager  # noqa: PLC0415

    done = asyncio.Event()
    left = count

    class Counting(Queries):  # type: ignore[misc] # seldom installed, so that it is Any
        """Takes note when so many jobs are done, and that is durable."""

        async def log_jobs(self, job_status: Sequence[Any]) -> None:
            nonlocal left
            await super().log_jobs(job_status)
            left -= len(job_status)
            if not left:
                done.set()

    async with asyncpg.create_pool(url, min_size=_CONNECTIONS, max_size=_CONNECTIONS) as pool:
        queries = Counting.from_asyncpg_pool(pool)
        await queries.install()
        await queries.enqueue(["job"] * count, [None] * count, [0] * count)
        await pool.execute("VACUUM ANALYZE")  # or the first fetches are planned for an empty table
        manager = QueueManager(queries)

        @manager.entrypoint("job")  # type: ignore[untyped-decorator] # the same
        async def job(_: Any) -> None:
            """Do nothing."""

        began = time.perf_counter()
        worker = asyncio.create_task(manager.run(batch_size=batch))
        waiting = asyncio.create_task(done.wait())
        await asyncio.wait([worker, waiting], return_when=asyncio.FIRST_COMPLETED)
        seconds = time.perf_counter() - began
        manager.shutdown.set()
        await worker  # raises what ended it, if that was not we
        return count / seconds
