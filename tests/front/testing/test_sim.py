import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

from whenidle import EventKind, SqliteStore, Tasks, Turn, aio
from whenidle.testing import NotIdle, Sim

HOUR = timedelta(hours=1)
REMINDER = {"prompt": "Stretch.", "after_seconds": 3600}


async def create(agent: Any, **selector: Any) -> Any:
    """Make a reminder."""
    return await agent.call_tool("schedule_create", {"prompt": "Stretch.", **selector})


async def test_what_is_due_is_delivered_as_time_is_advanced(sim: Sim) -> None:
    """An hour passes in no time, and what was due in it is a delivery and a turn, on time."""
    async with sim.host() as host:
        agent = await host.create_agent("ada")
        await create(agent, after_seconds=3600)
        await sim.advance(HOUR - timedelta(milliseconds=1))
        assert sim.deliveries() == []
        await sim.advance(timedelta(milliseconds=1))
        (delivery,) = sim.deliveries()
        (turn,) = sim.turns
    assert (delivery.session_id, delivery.at) == ("ada", datetime(2026, 1, 1, 1, tzinfo=UTC))
    assert (delivery.schedules, delivery.late) == (("schedule-1",), timedelta(0))
    assert (turn.session_id, turn.at, turn.attempt) == ("ada", delivery.at, 1)
    assert "Stretch." in turn.texts[0]


async def test_tasks_are_deliveries_too(sim: Sim) -> None:
    """With the task suite mounted, a task's delivery names the task."""
    tasks = Tasks()
    async with sim.host(suites=[tasks]) as host:
        agent = await host.create_agent("ada")
        made = await agent.call_tool(
            "schedule_create",
            {
                "title": "Digest",
                "prompt": "Sum up.",
                "rrule": "DTSTART:20260101T010000Z\nRRULE:FREQ=DAILY",
                "target": "this_session",
            },
        )
        await sim.advance(HOUR)
        assert [delivery.schedules for delivery in sim.deliveries()] == [(made["id"],)]


async def test_a_crash_ends_the_block_and_the_next_host_goes_on(sim: Sim) -> None:
    """Nothing after the crash runs, what was durable is there, and what came due meanwhile comes late."""
    async with sim.host() as host:
        await create(await host.create_agent("ada"), after_seconds=3600)
        await sim.crash()
        pytest.fail("the process is dead")
    await sim.advance(2 * HOUR)
    async with sim.host():
        await sim.run_until_idle()
        assert [(one.session_id, one.late) for one in sim.deliveries()] == [("ada", HOUR)]


async def test_a_turn_that_a_crash_interrupts_is_given_again(sim: Sim) -> None:
    """What a dead process says on its way out is not durable: its turn is open, and the next host redelivers."""
    attempts: list[int] = []

    async def turn(turn: Turn) -> None:
        attempts.append(turn.attempt)
        await trio.sleep(60)

    async with sim.host(turn) as host:
        await (await host.create_agent("ada")).followup("hello")
        await sim.advance(timedelta(seconds=1))
        await sim.crash()
    async with sim.host(turn):
        await sim.run_until_idle()
    assert attempts == [1, 2]


async def test_runs_until_idle_and_no_longer(sim: Sim) -> None:
    """Time passes while turns need it, and stands where the last of them has ended."""

    async def turn(_: Turn) -> None:
        await trio.sleep(90)

    async with sim.host(turn) as host:
        agent = await host.create_agent("ada")
        await create(agent, after_seconds=3600)
        await agent.followup("one")
        await agent.followup("two")
        await sim.run_until_idle()
        assert sim.now() == datetime(2026, 1, 1, 0, 3, tzinfo=UTC)
        await sim.run_until_idle()
        assert sim.now() == datetime(2026, 1, 1, 0, 3, tzinfo=UTC)


async def test_an_agent_that_stays_busy_is_named(sim: Sim) -> None:
    """A turn that takes longer than the test allows is an assertion that names the agent and what it does."""

    async def turn(_: Turn) -> None:
        await trio.sleep(7200)

    async with sim.host(turn) as host:
        await (await host.create_agent("ada")).followup("hello")
        with pytest.raises(NotIdle, match=r"not idle within 1:00:00: ada \(running\)"):
            await sim.run_until_idle()
        assert not sim.autojump


async def test_tells_what_happened_line_by_line(sim: Sim) -> None:
    """The timeline is text that a test can compare, in the zone it asks for."""
    async with sim.host() as host:
        agent = await host.create_agent("ada")
        await create(agent, after_seconds=3600)
        sim.suspend(2 * HOUR)
        await sim.run_until_idle()
        await create(agent, after_seconds=60)
        await agent.call_tool("schedule_delete", {"id": "schedule-2"})
        sim.step(-HOUR)
    assert sim.timeline() == (
        "2026-01-01 00:00:00.000  -  the process began\n"
        "2026-01-01 00:00:00.000  ada  made schedule-1\n"
        "2026-01-01 02:00:00.000  -  the wall clock moved by +2:00:00\n"
        "2026-01-01 02:00:00.000  ada  got m1 (schedule)\n"
        "2026-01-01 02:00:00.000  ada  delivered schedule-1, 3600000 ms late\n"
        "2026-01-01 02:00:00.000  ada  turn 1 began with m1\n"
        "2026-01-01 02:00:00.000  ada  turn 1 completed\n"
        "2026-01-01 02:00:00.000  ada  made schedule-2\n"
        "2026-01-01 02:00:00.000  ada  deleted schedule-2\n"
        "2026-01-01 01:00:00.000  -  the wall clock moved by -1:00:00\n"
        "2026-01-01 01:00:00.000  ada  disposed\n"
    )
    assert sim.timeline("Asia/Kolkata").startswith("2026-01-01 05:30:00.000+0530  -  the process began\n")


async def test_is_one_process_after_the_other(sim: Sim) -> None:
    """A second host beside the first is refused, and so is a crash of what does not run."""
    with pytest.raises(RuntimeError, match="no host to crash"):
        await sim.crash()
    async with sim.host():
        with pytest.raises(RuntimeError, match="open already"):
            async with sim.host():
                pytest.fail("two at once")


def test_runs_functions_itself() -> None:
    """Without pytest-trio `run` is `trio.run` on the simulation's clock."""
    sim = Sim(start=datetime(2030, 5, 1, tzinfo=UTC))

    async def main(seconds: float) -> datetime:
        async with sim.host():
            await sim.advance(timedelta(seconds=seconds))
        return sim.now()

    assert sim.run(main, 5) == datetime(2030, 5, 1, 0, 0, 5, tzinfo=UTC)


def test_is_for_asyncio_too() -> None:
    """In asyncio everything is the same: time, deliveries, turns, waiting for idleness."""
    sim = Sim()

    async def turn(turn: aio.Turn) -> None:
        await aio.run_trio(trio.sleep, 30)
        texts.extend(message.text for message in turn.messages)

    async def main() -> None:
        async with sim.aio_host(turn) as host:
            await create(await host.create_agent("ada"), after_seconds=3600)
            await sim.advance(HOUR)
            await sim.run_until_idle()
            assert [one.session_id for one in sim.deliveries()] == ["ada"]
            assert sim.now() == datetime(2026, 1, 1, 1, 0, 30, tzinfo=UTC)

    texts: list[str] = []
    asyncio.run(main())
    assert len(texts) == 1


def test_crashes_in_asyncio_too() -> None:
    """A crash ends the block there as well, leaves the task uncancelled, and the next host goes on."""
    sim = Sim()

    async def main() -> None:
        async with sim.aio_host() as host:
            await create(await host.create_agent("ada"), after_seconds=3600)
            await sim.crash()
            pytest.fail("the process is dead")
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        sim.suspend(2 * HOUR)
        async with sim.aio_host():
            await sim.run_until_idle()
            assert [turn.session_id for turn in sim.turns] == ["ada"]

    asyncio.run(main())


def test_a_cancellation_in_asyncio_is_none_of_ours() -> None:
    """A host's block that is cancelled from outside is cancelled."""
    sim = Sim()

    async def main() -> None:
        async with asyncio.timeout(0):
            async with sim.aio_host():
                await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def test_a_cancellation_beside_a_crash_is_kept() -> None:
    """Only the cancellation that is the crash ends with the block; one that comes from outside goes on."""
    sim = Sim()

    async def life() -> None:
        async with sim.aio_host():
            owner = asyncio.current_task()
            assert owner is not None
            asyncio.get_running_loop().call_soon(owner.cancel)
            await sim.crash()

    async def main() -> None:
        life_task = asyncio.create_task(life())
        with pytest.raises(asyncio.CancelledError):
            await life_task

    asyncio.run(main())


def test_what_is_raised_while_crashing_leaves_the_task_uncancelled() -> None:
    """Code that cleans up after a process can fail, and the test that sees it goes on as any other."""
    sim = Sim()

    async def life() -> None:
        async with sim.aio_host():
            try:
                await sim.crash()
            finally:
                _ = 1 // 0

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await life()
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    asyncio.run(main())


async def test_keeps_to_its_own_store(sim: Sim, tmp_path: Any) -> None:
    """A host that keeps its sessions elsewhere can be simulated, and not be crashed."""
    async with sim.host():
        await sim.crash()
    steps: list[str] = []
    async with sim.host(store=SqliteStore(tmp_path / "agents.db")) as host:
        await host.create_agent("ada")
        with pytest.raises(RuntimeError, match="without store="):
            await sim.crash()
        steps.append("went on")
    assert steps == ["went on"]
    assert EventKind.SESSION_CREATED in [event.kind for event in sim.events]
