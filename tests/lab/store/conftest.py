from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whenidle_lab.choices import Chooser, Quiet
from whenidle_lab.scenarios.three_agents import ThreeAgents
from whenidle_lab.world import World

if TYPE_CHECKING:
    from whenidle_lab.store import SimulatedStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest) -> SimulatedStore:
    """A simulated store with each engine, new and closed, that nothing befalls."""
    scenario = ThreeAgents()
    scenario.engine = request.param  # type: ignore[misc]  # for this instance alone
    return World(scenario, Chooser(Quiet()), ()).store
