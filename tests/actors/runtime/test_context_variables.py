"""What a turn sees of the context variables of others."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import trio

from .worlds import Script, foreign, hosted

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.turn import Turn

seen: ContextVar[str] = ContextVar("seen", default="nothing")


async def test_a_turn_sees_the_context_of_whoever_opened_the_host(store: FaultyStore, script: Script) -> None:
    """Not of whoever sent the message, held the claim before, or had the agent restored: they are others' secrets."""
    contexts: list[str] = []

    async def look(_: Turn) -> None:
        contexts.append(seen.get())
        seen.set("the turn's own")

    script.every_turn = look
    seen.set("the host's")
    async with hosted(store, script) as host:
        agent, other = await host.create_agent("a"), await host.create_agent("b")
        await other.dispose()
        await foreign(other, "x", wake=True)

        async def send() -> None:
            seen.set("the sender's")
            await agent.followup("one")
            await agent.when_idle()

            async def claim() -> None:
                await agent.followup("two")

            await agent.run_maintenance(claim)
            await (await host.agent("b")).when_idle()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
        await agent.when_idle()
    assert (len(script.turns), set(contexts)) == (3, {"the host's"})
