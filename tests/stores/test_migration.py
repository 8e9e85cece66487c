"""How a store of an older version becomes a current one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from whenidle_actors.errors import CommitUncertain, StoreDamaged, StoreLocked, StoreTooNew, StoreUnavailable
from whenidle_actors.stores.base import Changes, Role, TaskPage
from whenidle_actors.stores.sqlite import SqliteStore, opening, schema

from .helpers import (
    appends,
    connections,
    contents,
    creates,
    die_while_opening,
    puts,
    refused,
    sqlite_error,
    task,
    works,
)
from .versions import VERSION_1_CONTENTS, make_version_1


async def test_an_older_schema_is_migrated(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a store of an older version brings it to the newest, with all that it holds."""
    async with SqliteStore(made).opened(Role.HOST) as store:
        before = await contents(store)
    newer = (*schema.MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN mood TEXT", "UPDATE sessions SET mood = 'ok'"))
    with_version(monkeypatch, newer)
    async with SqliteStore(made).opened(Role.MANAGER) as store:
        assert await contents(store) == before
        assert list(await store.check()) == []
    with closing(sqlite3.connect(made)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
        assert connection.execute("SELECT DISTINCT mood FROM sessions").fetchall() == [("ok",)]


async def test_a_store_of_version_1_keeps_all_it_holds(path: Path) -> None:
    """Sessions, and changes that no host has seen yet, are there after the migration; then tasks can be."""
    make_version_1(path)
    async with SqliteStore(path).opened(Role.MANAGER) as store:
        assert await contents(store) == VERSION_1_CONTENTS
        assert [item.session_id async for item in store.attention()] == ["b", "a"]
        assert list(await store.check()) == []
        await store.commit(appends("a", 3))
    async with SqliteStore(path).opened(Role.HOST) as store:
        with trio.fail_after(30):
            assert await store.changed_elsewhere() == Changes(frozenset({"a", "b"}))
        assert await store.tasks() == TaskPage((), 0)
        await store.commit(puts(task("t", 5)))
        assert await store.next_due() == 5
        assert list(await store.check()) == []


def tables(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Return all names and definitions, white space aside."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {(name, " ".join(sql.replace("(", " ( ").replace(")", " ) ").split())) for name, sql in rows}


async def test_a_migrated_store_is_like_a_new_one(path: Path, made: Path) -> None:
    """Every table and index is the same, wherever a store began."""
    older = path.with_name("older.store")
    make_version_1(older)
    await works(older)
    with closing(sqlite3.connect(older)) as migrated, closing(sqlite3.connect(made)) as new:
        assert tables(migrated) == tables(new)


def test_version_1_is_not_edited(path: Path) -> None:
    """The first step makes what version 1 made, so that a new store is like a migrated one."""
    make_version_1(path)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as today, closing(sqlite3.connect(path)) as then:
        schema.migrate(today, schema.MIGRATIONS[:1])
        assert tables(today) == tables(then)


async def test_damage_of_an_older_store_is_found_before_it_is_migrated(path: Path) -> None:
    """A store of version 1 must have the tables of version 1, and is not asked for those that came later."""
    make_version_1(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE events")
    message = await refused(path, StoreDamaged)
    assert message.endswith("damaged: the table events is missing")
    with closing(sqlite3.connect(path)) as connection:
        assert schema.user_version(connection) == 1


async def test_dying_while_migrating_leaves_the_older_store_or_the_newer(tmp_path: Path) -> None:
    """A process that dies at any statement of a migration has lost nothing; the next open completes it."""
    statements = 4 + sum(map(len, schema.MIGRATIONS[1:]))  # with BEGIN, application_id, user_version, COMMIT
    paths = [tmp_path / f"{number}.store" for number in range(statements + 20)]
    for path in paths:
        make_version_1(path)
    assert statements <= await die_while_opening(*paths) < len(paths)
    versions: list[int] = []
    for path in paths:
        with closing(sqlite3.connect(path)) as connection:
            versions.append(schema.user_version(connection))
        async with SqliteStore(path).opened(Role.HOST) as store:
            assert await contents(store) == VERSION_1_CONTENTS
        await works(path)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT * FROM foreign_changes").fetchall() == [(1, 2)]
    assert versions == sorted(versions)
    assert set(versions) == {1, 2}


async def test_settling_does_not_put_the_version_back(path: Path) -> None:
    """A manager that is in doubt of a commit leaves the version alone, even if it was raised meanwhile."""

    def fail(connection: sqlite3.Connection, statement: str) -> None:
        if statement == "COMMIT":
            sqlite3.Connection.execute(connection, "ROLLBACK")
            raise sqlite_error(sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error")

    async with SqliteStore(path, connection_factory=connections(fail)).opened(Role.MANAGER) as store:
        with pytest.raises(CommitUncertain):
            await store.commit(creates("a"))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 7")
        assert await store.sessions() == ()
        with closing(sqlite3.connect(path)) as connection:
            assert schema.user_version(connection) == 7


async def test_a_migration_that_fails_changes_nothing(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration is one transaction: when a step fails the store is still of the older version, whole."""
    with_version(monkeypatch, (*schema.MIGRATIONS, ("DROP TABLE foreign_changes", "UPDATE nowhere SET x = 1")))
    assert "no such table: nowhere" in await refused(made, StoreUnavailable)
    monkeypatch.undo()
    await works(made)


async def test_a_store_is_not_migrated_beneath_a_host(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager of a newer version does not change the tables of a store that a host runs on."""
    async with SqliteStore(made).opened(Role.HOST):
        with_version(monkeypatch, (*schema.MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN mood TEXT",)))
        await refused(made, StoreLocked, Role.MANAGER)
        monkeypatch.undo()
    await works(made)


def with_version(monkeypatch: pytest.MonkeyPatch, migrations: tuple[tuple[str, ...], ...]) -> None:
    """Let the code be of the version that `migrations` lead to."""
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    monkeypatch.setattr(schema, "VERSION", len(migrations))
    monkeypatch.setattr(opening, "VERSION", len(migrations))
    migrate = schema.migrate
    monkeypatch.setattr(opening, "migrate", lambda connection: migrate(connection, migrations))


def test_a_store_that_became_newer_meanwhile_is_not_migrated_back() -> None:
    """The version is read again inside the transaction, so that a newer one is never overwritten."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 7")
        with pytest.raises(StoreTooNew):
            schema.migrate(connection)
        assert schema.user_version(connection) == 7
        assert not connection.in_transaction


def test_failures_that_undo_themselves_are_passed_on() -> None:
    """When SQLite has rolled a migration back by itself, its error is what is told."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nonsense"):
            schema.migrate(connection, (("ROLLBACK", "nonsense"),))
        assert not connection.in_transaction
