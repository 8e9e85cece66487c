from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import trio

from whenidle_actors.reminders import Reminders
from whenidle_lab.run import run
from whenidle_lab.scenario import Scenario

if TYPE_CHECKING:
    import pytest

    from whenidle_lab.world import World


class Disposed(Scenario):
    """An agent is disposed behind something that failed."""

    name = "disposed"

    async def play(self, world: World) -> None:
        """Hold on to the agent that was disposed, as users may."""
        agent = await world.agent("ada")
        await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 1})
        await world.dispose(agent)
        await world.wait(1)
        await world.dispose(agent)
        await world.wait(1)


def test_users_may_hold_on_to_an_agent_that_was_disposed() -> None:
    """What they do with it is none of the runtime's work."""
    assert run(Disposed()).finding is None


def test_a_task_of_the_runtime_that_outlives_its_agent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pursuit that would try again later must not wait for that when its agent is gone."""
    release = Reminders.release

    def linger(self: Reminders, session_id: str) -> None:
        agent = self.services.registry.live[session_id]
        pursuit: Any = SimpleNamespace(scope=_ENDLESS)
        release(self, session_id)
        self.services.start(self._pursue, agent, pursuit)

    monkeypatch.setattr(Reminders, "release", linger)
    monkeypatch.setattr(Reminders, "_attempt", _nap)
    found = run(Disposed()).finding
    assert found is not None
    assert "tasks of its go on" in found.text
    assert "_pursue" in found.text


class _Endless:
    def __enter__(self) -> None:
        """Guard nothing."""

    def __exit__(self, *_: object) -> None:
        """Catch nothing."""


_ENDLESS = _Endless()


async def _nap(self: Reminders, agent: Any, pursuit: Any, patience: Any) -> bool:
    await trio.sleep(10)
    return False
