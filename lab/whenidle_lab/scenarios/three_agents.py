"""Three agents with reminders, spoken to while they come due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from whenidle_lab.scenario import Scenario

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World


class ThreeAgents(Scenario):
    """Three agents are reminded of things while their users speak to them."""

    name = "three-agents"

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - all turns are the same
        """Take a second."""
        await world.wait(1)

    async def play(self, world: World) -> None:
        """Make reminders, wait, speak."""
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob", "eve"):
                nursery.start_soon(self._use, world, name)

    async def _use(self, world: World, name: str) -> None:
        agent = await world.agent(name)
        if world.once(f"create {name}"):
            await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 5})
        await world.wait(5)
        await world.send(agent, "hello")
        await world.when_idle(agent)
