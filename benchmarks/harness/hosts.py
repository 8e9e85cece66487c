"""What benchmarks that run a real host share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_actors.stores.memory import MemoryStore

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.stores.base import Batch
    from whenidle_actors.turn import Turn


class ForgetfulStore(MemoryStore):
    """Takes every commit and keeps nothing of it, so that what is left in memory is the agents' own."""

    async def commit(self, batch: Batch) -> None:
        """Forget `batch`."""


async def no_work(_: Turn) -> None:
    """Do nothing: a turn of which only the runtime's part is left."""


async def create(agent: Agent, **rule: Any) -> str:
    """Create a reminder by the agent's tool, with a prompt of usual length, and return its id."""
    answer = await agent.call_tool("schedule_create", {"prompt": "Ask whether the parcel has arrived.", **rule})
    reminder: str = answer["id"]
    return reminder
