"""Damage that is found while the SQLite store is open: by reading, and by `check`."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import trio

from whenidle_actors.errors import StoreBusy, StoreClosed, StoreDamaged, StoreUnavailable
from whenidle_actors.stores.base import Role
from whenidle_actors.stores.sqlite import SqliteStore, opening, reading
from whenidle_actors.stores.sqlite import store as store_module

from .helpers import appends, creates, records, sqlite_error


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
    overwrite(path, 4096 * 15, b"\x55" * 4096)
    monkeypatch.setattr(opening, "_CHECKED_WHOLE_UP_TO", 0)
    async with store.opened(Role.HOST):
        with pytest.raises(StoreDamaged, match="malformed"):
            await store.read("a")
        assert any("malformed" in line or "page 16" in line for line in await store.check())


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
