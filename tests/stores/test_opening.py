"""What the SQLite store does with files that are not what it would have left."""

# ruff: noqa: ASYNC240 - a test may wait for the disk

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from whenidle_actors.errors import (
    NotAStore,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreTooNew,
    StoreUnavailable,
)
from whenidle_actors.stores.base import Role
from whenidle_actors.stores.sqlite import SqliteStore, failures, lock, opening, schema

from .helpers import appends, connections, creates, die_while_opening, records, refused, sqlite_error, works


@contextmanager
def untouched(path: Path) -> Iterator[None]:
    """Check that the block leaves the folder of `path` as it was, every byte and every name."""
    before = snapshot(path.parent)
    yield
    assert snapshot(path.parent) == before


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize("content", [b"hello\n", b"x" * 99, b"x" * 100, b"\0" * 8192, bytes(range(256)) * 20])
@pytest.mark.parametrize("role", Role)
async def test_a_file_of_another_format_is_refused(path: Path, content: bytes, role: Role) -> None:
    """A file that is no SQLite database is named as such and stays as it is, alone in its folder."""
    path.write_bytes(content)
    with untouched(path):
        assert "not an SQLite database" in await refused(path, NotAStore, role)


@pytest.mark.parametrize(
    ("application_id", "name"), [(0, "00000000"), (0x47504B47, "47504b47, 'GPKG'"), (-2, "fffffffe")]
)
async def test_another_applications_database_is_refused(path: Path, application_id: int, name: str) -> None:
    """A database with another application's id, or with tables and no id, is refused and named."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.execute(f"PRAGMA application_id = {application_id}")
    with untouched(path):
        assert name in await refused(path, NotAStore)


async def test_another_applications_write_ahead_log_is_left_alone(path: Path) -> None:
    """A database without content of its own but with a write-ahead log is somebody else's, in use."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
        with untouched(path):
            await refused(path, NotAStore)


@pytest.mark.parametrize("role", Role)
async def test_a_newer_schema_is_refused_naming_both_versions(made: Path, role: Role) -> None:
    """A store of a later version says which version it has and which one is known."""
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("PRAGMA user_version = 7")
    with untouched(made):
        message = await refused(made, StoreTooNew, role)
    assert "version 7" in message
    assert f"versions up to {schema.VERSION}" in message


async def test_a_truncated_store_is_refused_at_every_length(made: Path) -> None:
    """Cut off anywhere, a store is named as damaged, and what is left of it stays as it is."""
    whole = made.read_bytes()
    pages = range(4096, len(whole), 4096)
    lengths = [1, 15, 16, 17, 50, 99, 100, 101, 511, 512, 1024, 4095, len(whole) - 1, len(whole) - 512, *pages]
    for length in lengths:
        made.write_bytes(whole[:length])
        with untouched(made):
            message = await refused_without_lock(made)
        assert f"damaged: it ends after {length} bytes" in message, length
    made.write_bytes(whole)
    await works(made)


async def refused_without_lock(path: Path) -> str:
    """Check that the store is damaged, and take away the lock file that looking at it has left."""
    try:
        return await refused(path, StoreDamaged)
    finally:
        Path(f"{path}{lock.SUFFIX}").unlink(missing_ok=True)


async def test_a_truncated_store_with_a_write_ahead_log_is_refused(made: Path, tmp_path: Path) -> None:
    """Damage is found, and nothing moved into the damaged file, when a crash has left a log beside it."""
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    copy = crashed / "copy.store"
    store = SqliteStore(made)
    async with store.opened(Role.HOST):
        await store.commit(appends("b", 0))
        shutil.copy(made, copy)
        shutil.copy(f"{made}-wal", f"{copy}-wal")
    whole = copy.read_bytes()
    log = Path(f"{copy}-wal").read_bytes()
    for length in (100, 4096, len(whole) // 2, len(whole) - 8192):
        copy.write_bytes(whole[:length])
        await refused(copy, StoreDamaged)
        assert copy.read_bytes() == whole[:length]
        assert Path(f"{copy}-wal").read_bytes() == log
    copy.write_bytes(b"")
    assert "the file is empty" in await refused(copy, StoreDamaged)
    # The last page is in the log: a file that is cut off there, as in mid-checkpoint, is whole again.
    copy.write_bytes(whole[:-4096])
    async with SqliteStore(copy).opened(Role.HOST) as recovered:
        assert (await recovered.read("a")).records == records(2000)
        assert (await recovered.read("b")).length == 1
        assert list(await recovered.check()) == []


@pytest.mark.parametrize("limit", [0, 10**9])
async def test_a_missing_table_is_named(made: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """A store that lacks a table or a column is damaged, whether or not its pages are looked at."""
    monkeypatch.setattr(opening, "_CHECKED_WHOLE_UP_TO", limit)
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("DROP TABLE foreign_changes")
        connection.execute("ALTER TABLE events RENAME COLUMN data TO datum")
    message = await refused(made, StoreDamaged)
    assert "the table foreign_changes is missing" in message
    assert "the table events has no column data" in message


async def test_tables_without_a_schema_version_are_damage(made: Path) -> None:
    """A store that has tables must say which version they are."""
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("PRAGMA user_version = 0")
    assert "no schema version" in await refused(made, StoreDamaged)


async def test_a_page_of_garbage_is_damage(made: Path) -> None:
    """A page overwritten with garbage is found at the next open, and the file stays as it is."""
    whole = bytearray(made.read_bytes())
    whole[4096 * 20 : 4096 * 21] = b"\x55" * 4096
    made.write_bytes(whole)
    await refused(made, StoreDamaged)
    assert made.read_bytes() == whole


async def test_a_broken_schema_is_damage(made: Path) -> None:
    """A database whose table definitions cannot be read is damaged, not unavailable."""
    with closing(sqlite3.connect(made)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE nonsense' WHERE name = 'events'")
        connection.commit()
    assert "malformed" in await refused(made, StoreDamaged)


async def test_places_that_cannot_hold_a_store_are_named(tmp_path: Path) -> None:
    """A missing folder, a folder in place of the file, and a file in place of a folder are told apart."""
    (tmp_path / "file").write_text("")
    assert "there is no folder" in await refused(tmp_path / "missing" / "x.store", StoreUnavailable)
    assert "is a folder" in await refused(tmp_path, StoreUnavailable)
    assert "Not a directory" in await refused(tmp_path / "file" / "x.store", StoreUnavailable)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


async def test_paths_that_name_no_file_are_named(tmp_path: Path) -> None:
    """A name that is too long or has a null character, and links that lead in a circle, are told as such."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "File name too long" in await refused(tmp_path / ("x" * 300), StoreUnavailable)
    with pytest.raises(StoreUnavailable, match="null"):
        SqliteStore("a\0b")
    with pytest.raises(StoreUnavailable, match=r"loop|levels of symbolic links"):
        await SqliteStore(loop).open(Role.HOST)


async def test_a_lock_file_that_cannot_be_made_is_named(path: Path) -> None:
    """When the host lock cannot be made, the error names its path."""
    Path(f"{path}{lock.SUFFIX}").mkdir()
    assert "the host lock, cannot be opened" in await refused(path, StoreUnavailable)
    assert not path.exists()


@pytest.fixture
def open_folder() -> Generator[Path]:
    """A folder that any user can reach: pytest closes its own to others whenever another pytest starts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


async def test_a_folder_without_permission_is_named(open_folder: Path) -> None:
    """A folder that may not be written to is a store that cannot be made there; checked without privileges."""
    folder = open_folder / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    program = (
        "import os, sys, trio\n"
        "from whenidle_actors.errors import StoreUnavailable\n"
        "from whenidle_actors.stores.base import Role\n"
        "from whenidle_actors.stores.sqlite import SqliteStore\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "for role in Role:\n"
        "    try: trio.run(SqliteStore(sys.argv[1]).open, role)\n"
        "    except StoreUnavailable as error: print(error)\n"
    )
    done = await trio.run_process(
        [sys.executable, "-c", program, str(folder / "x.store")], capture_stdout=True, check=False
    )
    folder.chmod(0o700)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 2
    assert "Permission denied" in lines[0]
    assert "unable to open database file" in lines[1]


@pytest.mark.parametrize("role", Role)
async def test_an_empty_file_becomes_a_store(path: Path, role: Role) -> None:
    """An empty file, and a database without content, are filled like a missing one."""
    path.write_bytes(b"")
    async with SqliteStore(path).opened(role) as store:
        await store.commit(creates("a"))
    other = path.with_name("other.store")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("VACUUM")
    await works(other)


@pytest.mark.parametrize(
    ("code", "kind"), [(sqlite3.SQLITE_FULL, None), (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable)]
)
async def test_what_is_found_is_synced_before_it_is_read(made: Path, code: int, kind: type[StoreError] | None) -> None:
    """Opening syncs the log that it finds; where the disk fails at that it fails, but not for want of room."""
    asked: list[str] = []

    def before(_connection: sqlite3.Connection, statement: str) -> None:
        asked.append(statement)
        if statement == "PRAGMA wal_checkpoint(PASSIVE)":
            raise sqlite_error(code, "what SQLite said")

    store = SqliteStore(made, connection_factory=connections(before))
    if kind is None:
        async with store.opened(Role.HOST):
            assert (await store.read("a")).length == 2000
    else:
        with pytest.raises(kind, match="what SQLite said"):
            await store.open(Role.HOST)
    assert asked[:3] == ["PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON", "PRAGMA wal_checkpoint(PASSIVE)"]
    await works(made)


async def test_a_store_is_found_by_any_of_its_names(made: Path, tmp_path: Path) -> None:
    """A symbolic link leads to the same store, the same log and the same host lock."""
    link = tmp_path / "link.store"
    link.symlink_to(made)
    async with SqliteStore(link).opened(Role.HOST) as store:
        assert store.name == str(made)
        with pytest.raises(StoreLocked, match=r"test\.store is in use"):
            await SqliteStore(made).open(Role.HOST)


async def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    """Characters that mean something in a URI mean nothing in a store's path."""
    await works(tmp_path / "a?b#c%41 d&mode=ro \N{SNOWMAN}.store")


async def test_dying_while_creating_leaves_something_that_can_be_completed(tmp_path: Path) -> None:
    """A process that dies at any statement of a store's creation leaves a store, or the way to one."""
    statements = 5 + sum(map(len, schema.MIGRATIONS))  # with version, BEGIN, application_id, user_version, COMMIT
    paths = [tmp_path / f"{number}.store" for number in range(statements + 15)]
    assert statements <= await die_while_opening(*paths) < len(paths)
    for path in paths:
        await works(path)


async def test_a_store_that_never_got_its_log_gets_it(made: Path) -> None:
    """A store whose maker died before switching to a write-ahead log is switched at the next open."""
    with closing(sqlite3.connect(made)) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    await works(made)
    with closing(sqlite3.connect(made)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_waiting_for_the_switch_has_an_end(made: Path) -> None:
    """A store that another process holds without a write-ahead log is busy, by name, after the timeout."""
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM sessions").fetchone()
        await refused(made, StoreBusy)
        connection.execute("ROLLBACK")
        await works(made)


@pytest.mark.parametrize(
    ("code", "opening_kind", "reading_kind"),
    [
        (sqlite3.SQLITE_FULL, StoreFull, StoreUnavailable),
        (sqlite3.SQLITE_BUSY_RECOVERY, StoreBusy, StoreBusy),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreDamaged, StoreDamaged),
        (sqlite3.SQLITE_NOTADB, NotAStore, StoreDamaged),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailable, StoreUnavailable),
    ],
)
def test_sqlite_errors_have_names(code: int, opening_kind: type[StoreError], reading_kind: type[StoreError]) -> None:
    """Each kind of SQLite error is told by a type of its own, with the original as its cause."""
    error = sqlite_error(code, "what SQLite said")
    for failure, kind in (
        (failures.open_failure(error, "the store"), opening_kind),
        (failures.read_failure(error, "the store"), reading_kind),
    ):
        assert type(failure) is kind
        assert failure.__cause__ is error
        assert str(failure).startswith("the store")
