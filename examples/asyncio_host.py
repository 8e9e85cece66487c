"""A host on an asyncio loop: an agent reminds itself, its turns await what is asyncio's, and a thread calls in."""

import asyncio

from whenidle import HostEvent, aio


async def turn(turn: aio.Turn) -> None:
    """Be the agent: an asyncio coroutine, which may await any asyncio library, a model's client for example."""
    async with asyncio.timeout(10):
        await asyncio.sleep(0.1)
    for message in turn.messages:
        print(f"{turn.agent.id} was told: {message.text.splitlines()[-1]}")


def from_a_thread(portal: aio.Portal, agent: aio.Agent) -> None:
    """Call the host from synchronous code, as a web framework's worker thread would."""
    portal.call(agent.followup, "Hello from a thread.")


async def main() -> None:
    """Make an agent, call in from a thread, let it be reminded in a second, and wait until it is idle."""
    opening = aio.open_host(store="reminders.db", turn=turn)
    async with opening as host, host.events() as events, aio.open_portal() as portal:
        agent = await host.create_agent()
        await asyncio.to_thread(from_a_thread, portal, agent)
        await agent.call_tool("schedule_create", {"prompt": "Stretch your legs.", "after_seconds": 1})
        async for event in events:
            if isinstance(event, HostEvent) and (event.kind, event.session_id) == ("reminder-delivered", agent.id):
                break
        await agent.when_idle()


if __name__ == "__main__":
    asyncio.run(main())
