"""Fixtures of the task tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actors.reminders.faults import FaultyStore
from whenidle_actors.stores.sqlite import SqliteStore

from .worlds import TaskWorld

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world() -> TaskWorld:
    """Return a world on a store in memory; trio runs on its clock."""
    return TaskWorld()


@pytest.fixture(params=["memory", "sqlite"])
def any_world(request: pytest.FixtureRequest, tmp_path: Path) -> TaskWorld:
    """Return a world on a store in memory, and one on a file."""
    return TaskWorld() if request.param == "memory" else TaskWorld(FaultyStore(SqliteStore(tmp_path / "store")))
