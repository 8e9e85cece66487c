"""How fast tasks that are due are delivered durably: ten thousand of them over a thousand sessions, on SQLite.

A host is opened on a store that another has left five weeks before, and all that became due is in the inboxes as soon
as it can be. The peers run as many trivial jobs, stored beforehand: pgqueuer on PostgreSQL, and APScheduler 3 with its
SQLite job store. A delivery here is more than a job there: the message in the session's log, the task with its
next occurrence and a receipt, in one commit, exactly once. What is recurring and due for one session is one message,
and ten tasks of a session are one commit; one-shots come one by one, each after the turn of the one before.

What is measured is delivery: the host runs a few turns at a time, as one does that calls a model (SPEC 2.11), and
those take longer than the measurement, as with a model. `and their turns` waits for the end of all turns, of which
none does anything and any number runs at once; one-shots are delivered by such a host, too.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from typing import TYPE_CHECKING, Final

import trio

from benchmarks.harness import apscheduler_jobs, postgres_jobs
from benchmarks.harness.disk import SYNC_PEER, scratch, sync_rate
from benchmarks.harness.hosts import no_work
from benchmarks.harness.rows import Row, rate_row
from whenidle_actors.composition import open_host
from whenidle_actors.stores.base import Batch, Role, SessionHeader
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_actors.task_rows import change
from whenidle_actors.tasks import Tasks
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_changes import create
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from whenidle_actors.turn import Turn
    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.task_record import Task

_SESSIONS: Final = 1000
_EACH: Final = 10
_ROUNDS: Final = 3
_SYNCS: Final = 200
_SLOW_SHARE: Final = 10
"""APScheduler commits each job by itself: a tenth of the jobs tells how many it runs a second, in a minute less."""

_TURNS: Final = 8
"""Turns at a time."""

_MADE_AT: Final = datetime.now(UTC).replace(microsecond=0) - timedelta(days=35)
"""So that all kinds below have become due, whenever this runs, and nothing depends on the year."""

_ZONE: Final = "Europe/Berlin"
_STARTED: Final = f"DTSTART;TZID={_ZONE}:{_MADE_AT:%Y%m%d}T100000"
_RECURRING: Final[tuple[Rule, ...]] = (
    DailyRule("09:00", _ZONE),
    DailyRule("18:30", _ZONE),
    WeeklyRule("09:00", _ZONE, (1, 2, 3, 4, 5)),
    WeeklyRule("16:00", _ZONE, (5,)),
    CronRule("*/30 9-17 * * 1-5", _ZONE),
    CronRule("0 8 1 * *", _ZONE),
    EveryRule(3600),
    EveryRule(86_400),
    RRuleRule.parse(f"{_STARTED}\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"),
    RRuleRule.parse(f"{_STARTED}\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"),
)
"""What one person might have asked for."""
_ONCE: Final[tuple[Rule, ...]] = (AtRule(_MADE_AT + timedelta(hours=1)),)


def run(scale: float = 1.0) -> list[Row]:
    """Measure from the moment the host or worker starts; `scale` multiplies the sessions.

    The best of several rounds counts, ours and the peers' in turn.
    """
    sessions = max(1, round(_SESSIONS * scale))
    count = sessions * _EACH
    slow = max(1, count // _SLOW_SHARE)
    peers = _peers(count, slow)
    delivered: dict[str, list[float]] = {name: [] for name in _KINDS}
    theirs: dict[str, list[float]] = {name: [] for name in (SYNC_PEER, *peers)}
    for _ in range(_ROUNDS):
        with scratch() as folder:
            for name, deliver in _KINDS.items():
                delivered[name].append(deliver(folder / f"{name}.db", sessions))
            theirs[SYNC_PEER].append(sync_rate(folder, _SYNCS))
            for name, measure in peers.items():
                theirs[name].append(measure(folder))
    return [
        rate_row(f"task_delivery: {count:,} {kind}", max(ours), max(rates), "1/s", peer)
        for kind, ours in delivered.items()
        for peer, rates in theirs.items()
    ]


def _peers(count: int, slow: int) -> dict[str, Callable[[Path], float]]:
    """Return the peers that can be measured here, each with what measures it in a folder that is empty."""
    peers: dict[str, Callable[[Path], float]] = {}
    if postgres_jobs.why_not() is None:
        for batch in postgres_jobs.BATCHES:
            peers[f"pgqueuer, batches of {batch}"] = _pgqueuer(count, batch)
    if apscheduler_jobs.why_not() is None:
        peers["APScheduler"] = lambda folder: apscheduler_jobs.rate(folder, slow)
    return peers


def _pgqueuer(count: int, batch: int) -> Callable[[Path], float]:
    return lambda _: postgres_jobs.rate(count, batch)


def _recurring(path: Path, sessions: int) -> float:
    """Return how many recurring tasks a second are delivered by a host that paces its turns."""
    trio.run(_prepare, path, sessions, _RECURRING)
    return trio.run(_deliver_paced, path, sessions * _EACH)


def _recurring_and_turns(path: Path, sessions: int) -> float:
    """Return how many recurring tasks a second are delivered, each session's turn included."""
    trio.run(_prepare, path, sessions, _RECURRING)
    return trio.run(_deliver_and_run, path, sessions)


def _one_shots(path: Path, sessions: int) -> float:
    """Return how many one-shots a second are delivered, the turns between them included."""
    trio.run(_prepare, path, sessions, _ONCE)
    return trio.run(_deliver, path, sessions * _EACH)


async def _prepare(path: Path, sessions: int, rules: Sequence[Rule]) -> None:
    """Store the sessions and their tasks, made long ago, as some host would have."""
    settings = TaskSettings()
    async with SqliteStore(path).opened(Role.HOST) as store:
        for number in range(sessions):
            session_id = f"session-{number}"
            tasks = _tasks(session_id, rules, settings)
            header = SessionHeader(session_id, _MADE_AT)
            await store.commit(Batch(created=(header,), tasks=tuple(change(None, task) for task in tasks)))


def _tasks(session_id: str, rules: Sequence[Rule], settings: TaskSettings) -> Iterator[Task]:
    for number, rule in enumerate(islice(cycle(rules), _EACH)):
        request = CreateTask("Parcels", "Ask whether the parcel has arrived.", rule, TargetKind.THIS_SESSION)
        task_id = f"task-{session_id}-{number}"
        yield create(request, Caller(session_id), _MADE_AT, task_id, settings, ActiveCounts())


class _Counting(SqliteStore):
    """Takes note when so many deliveries are durable."""

    def __init__(self, path: Path, deliveries: int) -> None:
        super().__init__(path)
        self.left = deliveries
        self.done = trio.Event()

    async def commit(self, batch: Batch) -> None:
        await super().commit(batch)
        self._count(batch)

    async def commit_all(self, batches: Sequence[Batch]) -> list[Exception | None]:
        answers = await super().commit_all(batches)
        for batch, error in zip(batches, answers, strict=True):
            if error is None:
                self._count(batch)
        return answers

    def _count(self, batch: Batch) -> None:
        self.left -= len(batch.receipts)
        if not self.left:
            self.done.set()


async def _deliver_paced(path: Path, count: int) -> float:
    over = trio.Event()

    async def turn(_: Turn) -> None:
        await over.wait()

    store = _Counting(path, count)
    began = time.perf_counter()
    async with open_host(store=store, turn=turn, suites=[Tasks()], max_concurrent_turns=_TURNS):
        await store.done.wait()
        rate = count / (time.perf_counter() - began)
        over.set()
    return rate


async def _deliver(path: Path, count: int) -> float:
    store = _Counting(path, count)
    began = time.perf_counter()
    async with open_host(store=store, turn=no_work, suites=[Tasks()]):
        await store.done.wait()
        return count / (time.perf_counter() - began)


async def _deliver_and_run(path: Path, sessions: int) -> float:
    left, done = sessions, trio.Event()

    async def turn(_: Turn) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    began = time.perf_counter()
    async with open_host(store=SqliteStore(path), turn=turn, suites=[Tasks()]) as host:
        await done.wait()
        for agent in host.agents:
            await agent.when_idle()
        return sessions * _EACH / (time.perf_counter() - began)


_KINDS: Final[dict[str, Callable[[Path, int], float]]] = {
    "recurring tasks": _recurring,
    "recurring tasks and their turns": _recurring_and_turns,
    "one-shots": _one_shots,
}
"""What is measured of ours, by what it is called."""
