"""The SQLite store between real processes: the host lock, foreign changes, sudden death."""

# ruff: noqa: ASYNC240 - a test may wait for the disk

import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import StoreLocked, TaskConflict
from whenidle_actors.stores.base import Batch, Changes, Role, SessionIndex, TaskWrite
from whenidle_actors.stores.sqlite import SqliteStore, elsewhere, lock, reading, writer, writing

from . import processes
from .helpers import appends, creates, deletes, puts, receipt, records, task

PATIENCE = 100.0
"""Seconds after which what was to come is taken to come never."""


@asynccontextmanager
async def running(*arguments: str | Path) -> AsyncIterator[trio.Process]:
    """Run one of `processes` with pipes; it is killed at the end of the block."""
    command = [sys.executable, "-m", processes.__name__, *map(str, arguments)]
    process = await trio.lowlevel.open_process(
        command,
        stdin=PIPE,
        stdout=PIPE,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
    )
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                await pipe.aclose()


async def output(process: trio.Process) -> bytes:
    """Return the next bytes that a process writes, none at the end."""
    assert process.stdout is not None
    return bytes(await process.stdout.receive_some())


async def opened(process: trio.Process) -> None:
    """Wait until a process of `host` says that it has the store open."""
    said = b""
    while not said.endswith(b"\n"):
        said += await output(process)
    assert said == b"open\n"


async def test_a_second_host_is_refused_with_the_first_ones_pid(path: Path) -> None:
    """While a host of another process has the store, a host is refused with its pid, and a manager is not."""
    async with running("host", path) as process:
        await opened(process)
        with pytest.raises(StoreLocked, match=f"process id {process.pid}; stop") as caught:
            await SqliteStore(path).open(Role.HOST)
        assert caught.value.pid == process.pid
        async with SqliteStore(path).opened(Role.MANAGER) as store:
            await store.commit(creates("a"))


@pytest.mark.parametrize("end", [signal.SIGKILL, None])
async def test_a_host_that_ended_is_succeeded(path: Path, end: signal.Signals | None) -> None:
    """The lock is free at once when its host has ended, killed or closed."""
    async with running("host", path) as process:
        await opened(process)
        if end is None:
            assert process.stdin is not None
            await process.stdin.aclose()
        else:
            process.send_signal(end)
        await process.wait()
        async with SqliteStore(path).opened(Role.HOST) as store:
            await store.commit(creates("a"))


async def test_a_second_host_in_the_same_process_is_refused(path: Path) -> None:
    """The lock is the host's, not the process's: another store object cannot be a host either."""
    async with SqliteStore(path).opened(Role.HOST):
        with pytest.raises(StoreLocked) as caught:
            await SqliteStore(path).open(Role.HOST)
        assert caught.value.pid == os.getpid()
    async with SqliteStore(path).opened(Role.HOST):
        pass


@pytest.mark.parametrize(("left", "pid"), [(b"", 0), (b"4194305\n", 4194305), (b"9" * 40, int("9" * 32))])
async def test_what_a_lock_file_says_is_doubted(
    path: Path, left: bytes, pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder that has not written its pid yet is looked at again; in the end what is there is told."""
    looks: list[float] = []
    monkeypatch.setattr(time, "sleep", looks.append)
    holder = lock.HostLock(path)
    try:
        Path(f"{path}{lock.SUFFIX}").write_bytes(left)
        with pytest.raises(StoreLocked) as caught:
            lock.HostLock(path)
        assert caught.value.pid == pid
        assert len(looks) == 20
    finally:
        holder.release()
    lock.HostLock(path).release()


async def test_a_lock_that_becomes_free_while_looking_is_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that ends between two looks leaves the lock to the one who looks."""
    holder = lock.HostLock(path)
    Path(f"{path}{lock.SUFFIX}").write_bytes(b"")
    monkeypatch.setattr(time, "sleep", lambda _seconds: holder.release())
    lock.HostLock(path).release()


async def test_a_holder_of_another_user_counts_as_running(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not be signalled is there all the same, and is not looked at twice."""

    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(time, "sleep", lambda _seconds: pytest.fail("looked again"))
    holder = lock.HostLock(path)
    with pytest.raises(StoreLocked, match=f"process id {os.getpid()}"):
        lock.HostLock(path)
    holder.release()


def test_a_host_looks_for_them_within_a_second() -> None:
    """Between two looks is little enough for the commits of a machine that is busy."""
    assert writer.POLL_SECONDS <= 0.5


async def test_another_processs_commits_are_reported(path: Path) -> None:
    """A host learns which sessions a manager of another process has changed, and its own are not among them."""
    async with SqliteStore(path).opened(Role.HOST) as store:
        await store.commit(creates("a", "b", "mine"))
        with trio.fail_after(PATIENCE):
            async with running("manage", path, "a", "b") as process:
                await process.wait()
                await store.commit(appends("mine", 0))
                changed: set[str] = set()
                while changed != {"a", "b"}:
                    changes = await store.changed_elsewhere()
                    changed |= changes.sessions
                    assert not changes.tasks
        assert (await store.read("a")).length == 1


async def manage(path: Path, session_id: str) -> None:
    """Append an event as another process would: by a store of its own."""
    async with SqliteStore(path).opened(Role.MANAGER) as store:
        await store.commit(appends(session_id, (await store.read(session_id)).length))


async def test_a_report_that_was_not_dealt_with_is_repeated(path: Path) -> None:
    """A report is forgotten when the next is asked for: until then a new host gets it again."""
    with trio.fail_after(PATIENCE):
        async with SqliteStore(path).opened(Role.MANAGER) as store:
            await store.commit(creates("a", "b"))
        async with SqliteStore(path).opened(Role.HOST) as store:
            assert await store.changed_elsewhere() == Changes(frozenset({"a", "b"}))
        async with SqliteStore(path).opened(Role.HOST) as store:
            assert await store.changed_elsewhere() == Changes(frozenset({"a", "b"}))
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(store.changed_elsewhere)
                    await wait_all_tasks_blocked()
                    scope.cancel()
            await manage(path, "b")
            assert await store.changed_elsewhere() == Changes(frozenset({"b"}))
        async with SqliteStore(path).opened(Role.HOST) as store:
            assert await store.changed_elsewhere() == Changes(frozenset({"b"}))


async def test_changes_between_two_questions_are_one_report(path: Path) -> None:
    """What changed while nobody asked is reported together, each session once and no report twice."""
    async with SqliteStore(path).opened(Role.HOST) as store:
        await store.commit(creates("a", "b"))
        for session_id in ("a", "b", "a"):
            await manage(path, session_id)
        await store.commit(creates("c"))  # the thread looks after each group
        with trio.fail_after(PATIENCE):
            assert await store.changed_elsewhere() == Changes(frozenset({"a", "b"}))
            await manage(path, "b")
            await store.commit(creates("d"))
            assert await store.changed_elsewhere() == Changes(frozenset({"b"}))


async def test_another_processs_task_writes_are_reported(path: Path) -> None:
    """A host learns that a manager of another process has written tasks, and not that it did so itself."""
    async with SqliteStore(path).opened(Role.HOST) as store:
        await store.commit(puts(task("mine")))
        with trio.fail_after(PATIENCE):
            async with running("schedule", path, "theirs") as process:
                await process.wait()
                assert await store.changed_elsewhere() == Changes(tasks=True)
        assert (await store.task("theirs")).next_millis == 5
        await store.commit(puts(task("mine", 1, 2), expected=1))
        with trio.move_on_after(0.6) as scope:
            await store.changed_elsewhere()
        assert scope.cancelled_caught


async def test_any_write_of_a_task_is_a_change_of_tasks(path: Path) -> None:
    """Making, changing and deleting a task are reported, together with sessions of the same commit."""
    first = Batch(tasks=(TaskWrite("t", None, task("t")),), created=creates("a").created)
    later = [puts(task("t", 5, 2), expected=1), deletes("t", 2)]
    async with SqliteStore(path).opened(Role.HOST) as store:
        for batch, sessions in ((first, {"a"}), *((batch, set[str]()) for batch in later)):
            async with SqliteStore(path).opened(Role.MANAGER) as manager:
                await manager.commit(batch)
            with trio.fail_after(PATIENCE):
                assert await store.changed_elsewhere() == Changes(frozenset(sessions), tasks=True)


async def test_changes_of_tasks_wait_for_the_next_question() -> None:
    """A change of tasks that nobody asked for yet is in the same report as what came after it, and only there."""
    forgotten: list[int] = []
    changes = elsewhere.ForeignChanges()
    changes.report([(1, None)])
    changes.report([(2, "a"), (3, "a")])
    assert await changes.wait(forgotten.append) == Changes(frozenset({"a"}), tasks=True)
    changes.report([(4, "b")])
    assert await changes.wait(forgotten.append) == Changes(frozenset({"b"}))
    assert forgotten == [3]


async def test_a_refused_write_of_a_task_is_no_change(path: Path) -> None:
    """A manager's conflict leaves no note for the host, only what it commits afterwards does."""
    async with SqliteStore(path).opened(Role.HOST) as store:
        await store.commit(puts(task("t")))
        async with SqliteStore(path).opened(Role.MANAGER) as manager:
            with pytest.raises(TaskConflict):
                await manager.commit(puts(task("t")))
            await manager.commit(creates("a"))
        with trio.fail_after(PATIENCE):
            assert await store.changed_elsewhere() == Changes(frozenset({"a"}))


async def test_a_manager_waits_for_changes_until_cancelled(path: Path) -> None:
    """Reports are the host's; a manager that asks for one never gets it, and may stop waiting."""
    async with SqliteStore(path).opened(Role.MANAGER) as store:
        await store.commit(creates("a"))
        with trio.move_on_after(0.01) as scope:
            await store.changed_elsewhere()
        assert scope.cancelled_caught


async def test_a_report_that_cannot_be_read_comes_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure while looking for changes is not the end of looking."""
    failures = iter([sqlite3.OperationalError("locked")])

    def read_after_failing(connection: sqlite3.Connection, after: int) -> list[tuple[int, str | None]]:
        for failure in failures:
            raise failure
        return reading.read_foreign_changes(connection, after)

    async with SqliteStore(path).opened(Role.MANAGER) as store:
        await store.commit(creates("a"))
    monkeypatch.setattr(writing, "read_foreign_changes", read_after_failing)
    with trio.fail_after(PATIENCE):
        async with SqliteStore(path).opened(Role.HOST) as store:
            assert await store.changed_elsewhere() == Changes(frozenset({"a"}))
    assert next(failures, None) is None


async def test_looking_for_changes_reads_nothing_while_there_are_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that nobody interferes with does not read the notes of changes, however much it commits itself."""
    read: list[int] = []

    def count(connection: sqlite3.Connection, after: int) -> list[tuple[int, str | None]]:
        read.append(after)
        return reading.read_foreign_changes(connection, after)

    monkeypatch.setattr(writing, "read_foreign_changes", count)
    async with SqliteStore(path).opened(Role.HOST) as store:
        await store.commit(creates("a"))
        for number in range(20):
            await store.commit(appends("a", number))
    assert read == [0]


KILLS = 10


async def test_a_killed_writer_loses_nothing_it_acknowledged(path: Path) -> None:
    """Killed at random moments, over and over: what was acknowledged is there, whole, and nothing else is odd."""
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)  # noqa: S311 - where to kill, not a secret
    acknowledged: dict[int, int] = {}
    for _ in range(KILLS):
        async with running("load", path) as process:
            said = b""
            wanted = chance.randrange(1, 4000)
            while len(said) < wanted:
                said += await output(process)
            process.kill()
            while more := await output(process):
                said += more
        for line in said.splitlines(keepends=True):
            if line.endswith(b"\n"):
                number, length = map(int, line.split())
                acknowledged[number] = length
        async with SqliteStore(path).opened(Role.HOST) as store:
            assert list(await store.check()) == [], seed
            for number, length in acknowledged.items():
                left, right = await store.read(f"left{number}"), await store.read(f"right{number}")
                assert left.length >= length, seed
                assert left.length % 2 == 0, seed
                assert left.records == right.records == records(left.length), seed
                assert left.index == right.index == SessionIndex(left.length - 2), seed
                row = await store.task(f"task{number}")
                assert row == task(f"task{number}", left.length, left.length + 1), seed
                newest, *older = (await store.receipts(row.id, limit=processes.KEPT)).receipts
                assert newest == receipt(row.id, left.length), seed
                assert len(older) == min(processes.KEPT, left.length // 2) - 1, seed
    assert set(acknowledged) == set(range(processes.LOAD_SESSIONS))
