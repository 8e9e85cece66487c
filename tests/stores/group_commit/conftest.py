"""Fixtures of the tests on group commit."""

from pathlib import Path

import pytest

from tests.stores.helpers import Gate
from whenidle_actors.stores.sqlite import SqliteStore

from .crowds import gated


@pytest.fixture
def gate() -> Gate:
    """What holds the writing thread."""
    return Gate()


@pytest.fixture
def store(path: Path, gate: Gate) -> SqliteStore:
    """A store whose transactions begin when the gate is open."""
    return gated(path, gate)
