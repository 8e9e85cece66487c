"""Damage that is found while the SQLite store is open: by reading, and by `check`."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from whenidle_actors.errors import StoreBusy, StoreClosed, StoreDamaged, StoreUnavailable
from whenidle_actors.stores.base import Batch, Role, TaskWrite
from whenidle_actors.stores.sqlite import SqliteStore, opening, reading
from whenidle_actors.stores.sqlite import store as store_module

from .helpers import appends, creates, puts, receipt, records, sqlite_error, task


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """An open store with sessions `a` of five events and `b` of none."""
    async with SqliteStore(path).opened(Role.HOST) as opened:
        await opened.commit(creates("a", "b"))
        await opened.commit(appends("a", 0, records(5)))
        assert isinstance(opened, SqliteStore)
        yield opened


def spoil(path: Path, *statements: str) -> None:
    """Execute statements behind the store's back."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def overwrite(path: Path, offset: int, content: bytes) -> None:
    """Change bytes of a store that is closed."""
    whole = bytearray(path.read_bytes())
    whole[offset : offset + len(content)] = content
    path.write_bytes(whole)


@pytest.mark.parametrize(
    ("statement", "seen", "found"),
    [
        ("DELETE FROM events WHERE seq = 0", "event 0 of 5 is missing", "has 4, numbered 1 to 4"),
        ("DELETE FROM events WHERE seq = 2", "event 2 of 5 is missing", "5 events and has 4, numbered 0 to 4"),
        ("DELETE FROM events WHERE seq = 4", "event 4 of 5 is missing", "has 4, numbered 0 to 3"),
        ("DELETE FROM events", "event 0 of 5 is missing", "has 0, numbered None to None"),
        ("UPDATE events SET at_millis = 'now' WHERE seq = 1", "event 1 is not what was", "event 1 is not a type"),
        ("UPDATE events SET type = 5.5 WHERE seq = 1", None, None),
        ("UPDATE events SET data = x'00' WHERE seq = 3", "event 3 is not what was", "event 3 is not a type"),
        ("UPDATE events SET type = x'41' WHERE seq = 3", "event 3 is not what was", "event 3 is not a type"),
        ("UPDATE events SET data = CAST(x'22ff22' AS TEXT) WHERE seq = 3", "decode", None),
        ("UPDATE events SET data = '{' WHERE seq = 4", None, "event 4 is not a type, an instant and JSON text"),
        ("UPDATE events SET ignorable = 2 WHERE seq = 4", None, "event 4 is not a type, an instant and JSON"),
        ("UPDATE sessions SET header = '{}' WHERE id = 'a'", "has no 'id'", "session 'a': the session header has"),
        ("UPDATE sessions SET header = 'x' WHERE id = 'a'", "session 'a' is damaged", "session 'a': Expecting"),
        ("UPDATE sessions SET header = x'' WHERE id = 'a'", "session 'a' is damaged", "session 'a': Expecting"),
        ("UPDATE sessions SET id = 'c' WHERE id = 'b'", None, "session 'c': its header names another session, 'b'"),
        ("UPDATE sessions SET due_millis = 'x' WHERE id = 'b'", None, "'b': its length or index is not of its kind"),
        ("INSERT INTO events VALUES (99, 0, 'x', 0, 0, '1')", None, "a session number 99 that does not exist"),
    ],
)
async def test_damage_is_found(
    store: SqliteStore, path: Path, statement: str, seen: str | None, found: str | None
) -> None:
    """A log that is not what was written is not read, and `check` tells where it is."""
    spoil(path, statement)
    if seen is None:
        await store.read("a")
    else:
        with pytest.raises(StoreDamaged, match=seen):
            await store.read("a")
    if found is not None:
        (line,) = await store.check()
        assert found in line


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE tasks SET data = '{' WHERE id = 't'", "task 't': it is not an id, instants, sessions and JSON text"),
        ("UPDATE tasks SET data = x'00' WHERE id = 't'", "task 't': it is not an id, instants"),
        ("UPDATE tasks SET next_millis = 'soon' WHERE id = 't'", "task 't': it is not an id, instants"),
        ("UPDATE tasks SET updated_millis = 1.5 WHERE id = 't'", "task 't': it is not an id, instants"),
        ("UPDATE tasks SET session_id = x'41' WHERE id = 't'", "task 't': it is not an id, instants"),
        ("UPDATE tasks SET creator = x'41' WHERE id = 'u'", "task 'u': it is not an id, instants"),
        ("UPDATE tasks SET id = x'41' WHERE id = 'u'", "it is not an id, instants"),
        ("UPDATE task_totals SET active = 7", "are 7 active and 1 others, and should be 1 and 1"),
        ("UPDATE task_totals SET others = 0", "are 1 active and 0 others, and should be 1 and 1"),
        ("DELETE FROM task_totals", "are None active and None others, and should be 1 and 1"),
        ("UPDATE active_by_creator SET active = 2", "of creator 'c' are counted as 2, and should be 1"),
        ("DELETE FROM active_by_creator", "of creator 'c' are counted as 0, and should be 1"),
        ("INSERT INTO active_by_creator VALUES ('d', 1)", "of creator 'd' are counted as 1, and should be 0"),
        ("INSERT INTO receipts VALUES (99, 1, 0, 0, '1')", "receipts belong to a task number 99 that does not exist"),
        ("DELETE FROM receipts WHERE number = 2", "task 't': 2 receipts cannot be numbered 1 to 3"),
        ("UPDATE receipts SET data = '{' WHERE number = 2", "task 't': receipt 2 is not two instants and JSON text"),
        ("UPDATE receipts SET scheduled_millis = 'x' WHERE number = 3", "task 't': receipt 3 is not two instants"),
        ("UPDATE receipts SET delivered_millis = 1.5 WHERE number = 1", "task 't': receipt 1 is not two instants"),
    ],
)
async def test_damage_of_tasks_is_found_by_the_check(
    store: SqliteStore, path: Path, statement: str, found: str
) -> None:
    """Rows that are not of their kind, counters that are wrong and receipts that lack a task are told, a line each."""
    await with_tasks(store)
    spoil(path, statement)
    lines = [line for line in await store.check() if found in line]
    assert len(lines) == 1


async def with_tasks(store: SqliteStore) -> None:
    """Give a store an active task with three receipts, and one that is not active."""
    await store.commit(puts(task("t", 5, session_id="s", creator="c"), task("u", creator="d")))
    await store.commit(Batch(receipts=tuple(receipt("t", number) for number in range(3))))
    assert list(await store.check()) == []


@pytest.mark.parametrize("damage", ["updated_millis = 'x'", "next_millis = 5.5"])
async def test_a_task_of_no_known_version_or_time_is_not_read(store: SqliteStore, path: Path, damage: str) -> None:
    """It could be neither delivered nor deleted, and is named as damaged; a list has it in its place."""
    await with_tasks(store)
    spoil(path, f"UPDATE tasks SET {damage} WHERE id = 't'")  # noqa: S608 - the words are the test's own
    for read in (lambda: store.task("t"), lambda: store.due_tasks(9)):
        with pytest.raises(StoreDamaged, match="task 't' is damaged: its row"):
            await read()
    assert [(row.id, row.damage is None) for row in (await store.tasks()).rows] == [("t", False), ("u", True)]
    assert len((await store.receipts("t")).receipts) == 3


@pytest.mark.parametrize("damage", ["data = x'00'", "session_id = x'41'", "creator = x'41'"])
async def test_a_damaged_task_does_not_hide_its_neighbours(store: SqliteStore, path: Path, damage: str) -> None:
    """A row that is not what was written is read with what is sound of it, and says that it is damaged."""
    await with_tasks(store)
    sound = {"id": "t", "updated_millis": (await store.task("t")).updated_millis, "next_millis": 5}
    spoil(path, f"UPDATE tasks SET {damage} WHERE id = 't'")  # noqa: S608 - the words are the test's own
    (due,) = await store.due_tasks(9)
    page = await store.tasks()
    assert [row.id for row in page.rows] == ["t", "u"]
    assert page.total == 2
    for row in (due, page.rows[0], await store.task("t")):
        assert row.damage == "its row is not what was written"
        assert {name: getattr(row, name) for name in sound} == sound
        assert all(isinstance(text, str) for text in (row.data, row.creator, row.session_id or ""))
    assert page.rows[1] == task("u", creator="d")
    await store.commit(Batch(tasks=(TaskWrite("t", due.updated_millis, None),)))
    assert (await store.tasks()).total == 1


async def test_a_damaged_id_is_shown(store: SqliteStore, path: Path) -> None:
    """No call can name such a task; a list shows that it is there."""
    await with_tasks(store)
    spoil(path, "UPDATE tasks SET id = x'41' WHERE id = 'u'")
    assert [row.id for row in (await store.tasks()).rows] == ["t", "b'A'"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tasks SET data = x'00' WHERE id = 't'",
        "UPDATE tasks SET next_millis = 5.5 WHERE id = 't'",
        "UPDATE tasks SET session_id = x'41' WHERE id = 't'",
    ],
)
async def test_a_damaged_task_hides_no_destination(store: SqliteStore, path: Path, statement: str) -> None:
    """It is found as one that goes nowhere, or to its session if that can be read, and so are those behind it."""
    await with_tasks(store)
    await store.commit(puts(task("v", 6, session_id="s"), task("w", 7)))
    destinations = await store.due_destinations(9)
    spoil(path, statement)
    first, *others = await store.due_destinations(9)
    assert [first.id, *others] == ["t", *destinations[1:]]
    assert first.session_id in {None, destinations[0].session_id}
    rest = await store.due_destinations(9, after=(first.next_millis, first.id))
    assert [*rest] == others


async def test_tasks_of_a_store_without_totals_are_not_listed(store: SqliteStore, path: Path) -> None:
    """Lists need the totals; without them they say so, and what is due can still be read."""
    await with_tasks(store)
    spoil(path, "DELETE FROM task_totals")
    for read in (store.tasks, store.count_active_tasks):
        with pytest.raises(StoreDamaged, match="totals of tasks are missing"):
            await read()
    assert [row.id for row in await store.due_tasks(9)] == ["t"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE receipts SET scheduled_millis = 'x' WHERE number = 1",
        "UPDATE receipts SET delivered_millis = 'x' WHERE number = 1",
        "UPDATE receipts SET data = x'00' WHERE number = 1",
    ],
)
async def test_a_damaged_receipt_is_not_read(store: SqliteStore, path: Path, statement: str) -> None:
    """A receipt that is not what was written is named, and the pages without it are read."""
    await with_tasks(store)
    spoil(path, statement)
    assert len((await store.receipts("t", limit=2)).receipts) == 2
    with pytest.raises(StoreDamaged, match="task 't' is damaged: receipt 1 is not"):
        await store.receipts("t")
    assert (await store.task("t")).active


async def test_a_gap_in_a_later_piece_is_found(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece of a long read is looked at like the first."""
    monkeypatch.setattr(reading, "PIECE", 2)
    assert (await store.read("a")).records == records(5)
    spoil(path, "DELETE FROM events WHERE seq = 3")
    with pytest.raises(StoreDamaged, match="event 3 of 5 is missing"):
        await store.read("a")


async def test_the_check_tells_of_broken_pages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage in a large store, which opening does not look for, is found by the check, a line for each."""
    store = SqliteStore(path)
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
    overwrite(path, 4096 * 3 + 7, b"\x4d")  # how much of the page of an empty index is fragments
    overwrite(path, 4096 * 4 + 7, b"\x4e")
    monkeypatch.setattr(opening, "_CHECKED_WHOLE_UP_TO", 0)
    async with store.opened(Role.HOST):
        lines = await store.check()
    assert len([line for line in lines if "page 4" in line.lower()]) == 1
    assert len([line for line in lines if "page 5" in line.lower()]) == 1
    assert not any("***" in line or "\n" in line for line in lines)


async def test_a_page_that_cannot_be_read_is_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that comes upon a page of garbage says that the store is damaged, and so does the check."""
    store = SqliteStore(path)
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0, records(2000)))
    pages = path.stat().st_size // 4096  # noqa: ASYNC240 - a test may wait for the disk
    overwrite(path, 4096 * (pages - 1), b"\x55" * 4096)
    monkeypatch.setattr(opening, "_CHECKED_WHOLE_UP_TO", 0)
    async with store.opened(Role.HOST):
        with pytest.raises(StoreDamaged, match="malformed"):
            await store.read("a")
        assert any("malformed" in line or f"page {pages}" in line for line in await store.check())


async def test_a_check_can_be_cancelled(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of a large store ends soon after it was cancelled, without finishing."""
    monkeypatch.setattr(store_module, "_STEPS_BETWEEN_LOOKS", 1)
    looks = 0

    def cancel_in_the_middle() -> bool:
        nonlocal looks
        looks += 1
        if looks == 50:
            trio.from_thread.run_sync(scope.cancel)
        return is_cancelled()

    is_cancelled = store_module._is_cancelled
    monkeypatch.setattr(store_module, "_is_cancelled", cancel_in_the_middle)
    with trio.CancelScope() as scope:
        await store.check()
    assert scope.cancelled_caught
    assert looks == 50


async def test_an_error_ends_the_check_with_a_line(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When SQLite cannot go on, the check tells what it had found and why it ended."""

    def faults(_connection: sqlite3.Connection) -> object:
        yield "first"
        raise sqlite_error(sqlite3.SQLITE_CORRUPT, "malformed")

    monkeypatch.setattr(store_module, "all_faults", faults)
    assert list(await store.check()) == ["first", "malformed"]


@pytest.mark.parametrize(
    ("code", "kind"), [(sqlite3.SQLITE_BUSY, StoreBusy), (sqlite3.SQLITE_IOERR_READ, StoreUnavailable)]
)
async def test_a_failing_read_has_a_name(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    """A read that fails tells the store and the reason, and the next one works."""

    def fail(*_arguments: object) -> None:
        raise sqlite_error(code, "what SQLite said")

    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_head", fail)
        with pytest.raises(kind, match=r"test\.store"):
            await store.read("a")
    assert (await store.read("a")).length == 5


async def test_a_read_that_waited_through_the_closing_says_so(store: SqliteStore) -> None:
    """A read that comes to its turn after the store was closed raises `StoreClosed`."""
    opened = store._opened()
    ended = trio.Event()

    async def read() -> None:
        with pytest.raises(StoreClosed, match="closed meanwhile"):
            await store.read("a")
        ended.set()

    async with trio.open_nursery() as nursery:
        await opened.reading.acquire_on_behalf_of("test")
        nursery.start_soon(store.aclose)
        await trio.testing.wait_all_tasks_blocked()
        opened.closed, closing_event = None, opened.closed
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        opened.closed = closing_event
        opened.reading.release_on_behalf_of("test")
        await ended.wait()
