"""Fixtures of the runtime's tests."""

import pytest

from tests.actors.faulty_store import FaultyStore

from .worlds import Script


@pytest.fixture
def script() -> Script:
    """Return a turn function that the test writes, and its clock."""
    return Script()


@pytest.fixture
def store() -> FaultyStore:
    """Return a store that works until it is told to fail."""
    return FaultyStore()
