"""A weekly digest for a quarter of a year that is over in a moment: a task of the host, previewed and delivered."""

from datetime import UTC, datetime, timedelta

import trio

from whenidle import (
    Caller,
    CreateTask,
    MemoryStore,
    TargetKind,
    Tasks,
    Turn,
    VirtualClock,
    WeeklyRule,
    open_host,
    preview,
)

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
clock = VirtualClock(NEW_YEAR, autojump=True)

MONDAYS = WeeklyRule("08:00", "Europe/Paris", weekdays=[1])


async def turn(turn: Turn) -> None:
    """Be the agent that writes the digest: each week has a session of its own."""
    facts = dict(line.split(": ", 1) for line in turn.messages[0].text.splitlines() if ": " in line)
    print(f"{turn.agent.id.partition('.')[2]}  {facts['occurrence_at_local']}  {facts['prompt_json']}")


async def main() -> None:
    """Look at what is to come, make the task, and let thirteen weeks go by."""
    for occurrence in preview(MONDAYS, after=NEW_YEAR, count=3):
        print(f"to come {occurrence.local:%a %d %b %H:%M} ({occurrence.utc:%H:%M} UTC)")
    tasks = Tasks()
    async with open_host(store=MemoryStore(), turn=turn, clock=clock, suites=[tasks]) as host:
        digest = CreateTask("Digest", "Sum up what was decided last week.", MONDAYS, TargetKind.NEW)
        task = await tasks.desk.create(digest, Caller(""))
        await clock.sleep_until(NEW_YEAR + timedelta(weeks=13))
        for agent in host.agents:
            await agent.when_idle()
        task = await tasks.desk.view(task.id)
        print(f"delivered {task.deliveries}, next at {task.scheduled_at:%d %b %H:%M} UTC")


if __name__ == "__main__":
    trio.run(main, clock=clock)
