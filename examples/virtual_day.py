"""A day with reminders, over in a moment: the real runtime on a virtual clock and a store in memory."""

from datetime import UTC, datetime, timedelta

import trio

from whenidle import MemoryStore, Turn, VirtualClock, open_host

MORNING = datetime(2026, 3, 8, 8, 0, tzinfo=UTC)
clock = VirtualClock(MORNING, autojump=True)


async def turn(turn: Turn) -> None:
    """Take a quarter of an hour for whatever comes, and say when it came."""
    for message in turn.messages:
        print(f"{clock.now():%H:%M}  {message.text.splitlines()[-1]}")
    await clock.sleep_until(clock.now() + timedelta(minutes=15))


async def main() -> None:
    """Make three reminders and let the day go by."""
    async with open_host(store=MemoryStore(), turn=turn, clock=clock) as host:
        agent = await host.create_agent("ada")
        for reminder in (
            {"prompt": "Look away from the screen.", "every_seconds": 4 * 3600},
            {"prompt": "Lunch.", "at": "2026-03-08T12:30:00Z"},
            # Due while the agent is busy with lunch: it waits for 12:45.
            {"prompt": "Call Bob.", "at": {"date": "2026-03-08", "time": "13:40:00", "time_zone": "Europe/Paris"}},
        ):
            await agent.call_tool("schedule_create", reminder)
        await clock.sleep_until(MORNING + timedelta(hours=23))
        await agent.when_idle()


if __name__ == "__main__":
    trio.run(main, clock=clock)
