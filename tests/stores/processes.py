"""Programs that the store tests run as processes of their own.

python -m tests.stores.processes host PATH             open as host, say so, wait to be ended
python -m tests.stores.processes manage PATH SESSION…  append one event to each, as a manager
python -m tests.stores.processes schedule PATH TASK    make a task, as a manager
python -m tests.stores.processes load PATH             append without end, saying what was acknowledged
"""

import sys
from pathlib import Path
from typing import Any

import trio

from whenidle_actors.stores.base import Append, Batch, Retention, Role, SessionIndex
from whenidle_actors.stores.sqlite import SqliteStore

from .helpers import appends, creates, puts, receipt, records, task

LOAD_SESSIONS = 5
KEPT = 4
"""Receipts that `load` keeps of a task."""


def say(line: str) -> None:
    """Tell the test something, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def host(path: Path) -> None:
    """Have the store open until standard input ends."""
    async with SqliteStore(path).opened(Role.HOST):
        say("open")
        await trio.to_thread.run_sync(sys.stdin.read)


async def manage(path: Path, *session_ids: str) -> None:
    """Append one event to each session."""
    async with SqliteStore(path).opened(Role.MANAGER) as store:
        for session_id in session_ids:
            length = (await store.read(session_id)).length
            await store.commit(appends(session_id, length))


async def schedule(path: Path, task_id: str) -> None:
    """Make a task that comes due at 5 ms of the epoch."""
    async with SqliteStore(path).opened(Role.MANAGER) as store:
        await store.commit(puts(task(task_id, 5)))


async def load(path: Path) -> None:
    """Append pairs of events, to two sessions at once, each with a delivery of a task, from several trio tasks."""
    async with SqliteStore(path, retention=Retention(records=KEPT)).opened(Role.HOST) as store:
        known = {head.id for head in await store.sessions()}

        async def write(number: int) -> None:
            pair, name = (f"left{number}", f"right{number}"), f"task{number}"
            if pair[0] not in known:
                await store.commit(Batch(created=creates(*pair).created, tasks=puts(task(name, 0)).tasks))
            length = (await store.read(pair[0])).length
            while True:
                index = SessionIndex(length)
                events = records(2, length)
                appended = tuple(Append(session_id, length, events, index) for session_id in pair)
                version, length = length + 1, length + 2
                moved = puts(task(name, length, length + 1), expected=version)
                await store.commit(Batch(appended, tasks=moved.tasks, receipts=(receipt(name, length),)))
                say(f"{number} {length}")

        async with trio.open_nursery() as nursery:
            for number in range(LOAD_SESSIONS):
                nursery.start_soon(write, number)


if __name__ == "__main__":
    programs: dict[str, Any] = {"host": host, "manage": manage, "schedule": schedule, "load": load}
    trio.run(programs[sys.argv[1]], Path(sys.argv[2]), *sys.argv[3:])
