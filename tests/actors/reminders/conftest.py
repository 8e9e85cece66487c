"""Fixtures of the reminder tests."""

import pytest

from .worlds import World


@pytest.fixture
def world() -> World:
    """Return a world; trio runs on its clock."""
    return World()
