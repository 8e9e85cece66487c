"""How a store of an older version becomes a current one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from whenidle_actors.errors import StoreLocked, StoreTooNew, StoreUnavailable
from whenidle_actors.stores.base import Role
from whenidle_actors.stores.sqlite import SqliteStore, opening, schema

from .helpers import contents, refused, works


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
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT DISTINCT mood FROM sessions").fetchall() == [("ok",)]


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
        connection.execute("PRAGMA user_version = 3")
        with pytest.raises(StoreTooNew):
            schema.migrate(connection)
        assert schema.user_version(connection) == 3
        assert not connection.in_transaction


def test_failures_that_undo_themselves_are_passed_on() -> None:
    """When SQLite has rolled a migration back by itself, its error is what is told."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nonsense"):
            schema.migrate(connection, (("ROLLBACK", "nonsense"),))
        assert not connection.in_transaction
