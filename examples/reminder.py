"""A host with one agent that reminds itself: run it twice, or stop it before the reminder is due."""

import trio

from whenidle import HostEvent, Turn, open_host


async def turn(turn: Turn) -> None:
    """Be the agent: this one only repeats what it is told."""
    for message in turn.messages:
        print(f"{turn.agent.id} was told: {message.text}")


async def main() -> None:
    """Make an agent, let it be reminded in a second, and wait until it was."""
    async with open_host(store="reminders.db", turn=turn) as host, host.events() as events:
        agent = await host.create_agent()
        await agent.call_tool("schedule_create", {"prompt": "Stretch your legs.", "after_seconds": 1})
        async for event in events:
            if isinstance(event, HostEvent) and (event.kind, event.session_id) == ("reminder-delivered", agent.id):
                break
        await agent.when_idle()


if __name__ == "__main__":
    trio.run(main)
