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


def job() -> None:
    """Do nothing; the store names it by its module."""


class _Countdown:
    """Takes note when so many events have come, from whatever thread."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._one_counts = threading.Lock()
        self.done = threading.Event()

    def __call__(self, _: object) -> None:
        with self._one_counts:
            self._left -= 1
            if not self._left:
                self.done.set()


def rate(folder: Path, count: int) -> float:
    """Return how many of `count` date jobs, all due, it runs a second, the last one gone from the store."""
    from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_REMOVED  # noqa: PLC0415 - they may be missing
    from apscheduler.executors.pool import ThreadPoolExecutor  # noqa: PLC0415
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
    executed, removed = _Countdown(count), _Countdown(count)
    scheduler.add_listener(executed, EVENT_JOB_EXECUTED)
    scheduler.add_listener(removed, EVENT_JOB_REMOVED)
    scheduler.start(paused=True)
    try:
        due = datetime.now(UTC) - timedelta(minutes=1)
        for _ in range(count):
            scheduler.add_job(job, "date", run_date=due)
        began = time.perf_counter()
        scheduler.resume()
        executed.done.wait()
        removed.done.wait()
        return count / (time.perf_counter() - began)
    finally:
        scheduler.shutdown()
        engine.dispose()
