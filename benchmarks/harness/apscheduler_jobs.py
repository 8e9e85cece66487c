"""Jobs of APScheduler 3 in its SQLAlchemy job store, on a SQLite file."""

from __future__ import annotations

import importlib.util
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_THREADS: Final = 10


def why_not() -> str | None:
    """Return what is missing, None if nothing is."""
    for package in ("apscheduler", "sqlalchemy"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    return None


class _Countdown:
    """What the jobs do: count. They are stored by name, so there is one for all."""

    left = 0
    done = threading.Event()
    one_counts = threading.Lock()


def count_down() -> None:
    """Count one job; the store names it by its module."""
    with _Countdown.one_counts:
        _Countdown.left -= 1
        if not _Countdown.left:
            _Countdown.done.set()


def rate(folder: Path, count: int) -> float:
    """Return how many of `count` date jobs, all due, it runs a second."""
    from apscheduler.executors.pool import ThreadPoolExecutor  # noqa: PLC0415 - they may be missing
    from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore  # noqa: PLC0415
    from apscheduler.schedulers.background import BackgroundScheduler  # noqa: PLC0415
    from sqlalchemy import create_engine  # noqa: PLC0415

    engine = create_engine(f"sqlite:///{folder / f'apscheduler-{time.monotonic_ns()}.db'}")
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(engine=engine)},
        executors={"default": ThreadPoolExecutor(_THREADS)},
        job_defaults={"misfire_grace_time": None},  # or it would drop them for being late
        timezone=UTC,
    )
    _Countdown.left = count
    _Countdown.done.clear()
    scheduler.start(paused=True)
    try:
        due = datetime.now(UTC) - timedelta(minutes=1)
        for _ in range(count):
            scheduler.add_job(count_down, "date", run_date=due)
        began = time.perf_counter()
        scheduler.resume()
        _Countdown.done.wait()
        return count / (time.perf_counter() - began)
    finally:
        scheduler.shutdown()
        engine.dispose()
