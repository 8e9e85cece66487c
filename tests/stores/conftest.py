from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from whenidle_actors.stores.base import Role, SessionIndex, Store
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.stores.sqlite import SqliteStore, lock

from .helpers import appends, creates, records

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's store goes; nothing is there."""
    return tmp_path / "test.store"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, path: Path) -> Store:
    """A store of each kind, new and closed."""
    makers: dict[str, Callable[[], Store]] = {"memory": MemoryStore, "sqlite": lambda: SqliteStore(path)}
    return makers[request.param]()


@pytest.fixture
async def made(path: Path) -> Path:
    """A closed store with two sessions, of 35 pages."""
    store = SqliteStore(path)
    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b"))
        await store.commit(appends("a", 0, records(2000), SessionIndex(5)))
    Path(f"{path}{lock.SUFFIX}").unlink()  # noqa: ASYNC240 - a test may wait for the disk
    return path
