"""A virtual clock under an asyncio loop."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

from whenidle import Turn, VirtualClock, aio, errors
from whenidle.aio import work
from whenidle.aio.holding import Hold

from .loops import Gate, Run, host

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("autojump", [False, True])
def test_advance_stops_at_what_comes_due(run: Run, autojump: bool) -> None:
    """A reminder's turn runs at its instant, and time holds still while it awaits what is asyncio's."""
    clock = VirtualClock(MIDNIGHT, autojump=autojump)
    seen = list[tuple[datetime, datetime]]()

    async def turn(_: aio.Turn) -> None:
        began = clock.now()
        await asyncio.sleep(0.02)  # real time: what a model or a socket would take
        seen.append((began, clock.now()))

    async def main() -> None:
        async with host(turn, clock=clock) as there:
            assert there.clock is clock
            ada = await there.create_agent("ada")
            for hours in (1, 2, 5):
                await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": hours * 3600})
            assert clock.now() == MIDNIGHT
            await aio.advance(clock, 3 * HOUR)
            assert clock.now() == MIDNIGHT + 3 * HOUR
            assert seen == [(MIDNIGHT + n * HOUR, MIDNIGHT + n * HOUR) for n in (1, 2)]

    run(main())


def test_time_jumps_when_all_wait_for_it(run: Run) -> None:
    """With autojump it runs while asyncio waits in a call, not between one call and the next."""
    clock = VirtualClock(MIDNIGHT, autojump=True)
    seen = list[datetime]()

    async def turn(_: aio.Turn) -> None:
        seen.append(clock.now())

    async def deep(levels: int) -> datetime:
        if levels:
            return await asyncio.create_task(deep(levels - 1))
        await aio.sleep_until(clock, MIDNIGHT + HOUR)
        return clock.now()

    async def main() -> None:
        async with host(turn, clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": 7200})
            assert await deep(8) == MIDNIGHT + HOUR
            assert clock.now() == MIDNIGHT + HOUR
            await ada.call_tool("schedule_list", {})
            assert clock.now() == MIDNIGHT + HOUR
            await aio.sleep_until(clock, MIDNIGHT + 3 * HOUR)
            assert seen == [MIDNIGHT + 2 * HOUR]

    run(main())


def test_time_jumps_while_asyncio_waits_for_a_turn(run: Run) -> None:
    """A test that waits for an asyncio event, and not in a call, does not hold time."""
    clock = VirtualClock(MIDNIGHT, autojump=True)

    async def main() -> None:
        came = asyncio.Event()

        async def turn(_: aio.Turn) -> None:
            came.set()

        async with host(turn, clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": 7200})
            await ada.call_tool("schedule_create", {"prompt": "y", "after_seconds": 72000})
            await came.wait()
            await ada.when_idle()
            assert clock.now() == MIDNIGHT + 2 * HOUR

    run(main())


def test_a_turn_may_wait_for_virtual_time(run: Run) -> None:
    """While it waits in a call, in one of its tasks too, time is free to move; then it holds still again."""
    clock = VirtualClock(MIDNIGHT, autojump=True)
    seen = list[datetime]()

    async def turn(turn: aio.Turn) -> None:
        await aio.sleep_until(clock, MIDNIGHT + HOUR)
        await asyncio.gather(aio.sleep_until(clock, MIDNIGHT + 2 * HOUR), aio.sleep_until(clock, MIDNIGHT + 3 * HOUR))
        await turn.note(1)
        await asyncio.sleep(0.02)
        seen.append(clock.now())

    async def main() -> None:
        async with host(turn, clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": 72000})
            await ada.followup("x")
            await ada.when_idle()
            assert seen == [MIDNIGHT + 3 * HOUR]

    run(main())


def test_what_a_turn_leaves_behind_holds_no_time(run: Run) -> None:
    """A task that outlives its turn, and a call of it that does, hold time neither during nor after the call."""
    clock = VirtualClock(MIDNIGHT, autojump=True)
    left = list[asyncio.Task[None]]()

    async def linger() -> None:
        await aio.sleep_until(clock, MIDNIGHT + HOUR)
        await aio.sleep_until(clock, MIDNIGHT + 2 * HOUR)

    async def turn(_: aio.Turn) -> None:
        left.append(asyncio.create_task(linger()))
        await asyncio.sleep(0)

    async def main() -> None:
        async with host(turn, clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await ada.when_idle()
            await left[0]
            assert clock.now() == MIDNIGHT + 2 * HOUR

    run(main())


def test_maintenance_holds_time(run: Run) -> None:
    """A maintenance task on the asyncio side is work in flight, like a turn."""
    clock = VirtualClock(MIDNIGHT, autojump=True)

    async def main() -> None:
        async with host(clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": 72000})

            async def work() -> datetime:
                await asyncio.sleep(0.02)
                return clock.now()

            assert await ada.run_maintenance(work) == MIDNIGHT

    run(main())


def test_observers_have_their_say_before_time_moves(run: Run) -> None:
    """Asyncio code that an observer wakes comes back before the next deadline."""
    clock = VirtualClock(MIDNIGHT, autojump=True)
    seen = list[datetime]()

    async def main() -> None:
        async def turn(_: Turn) -> None:
            await trio.lowlevel.checkpoint()

        async def next_turn(levels: int) -> object:
            return await (asyncio.create_task(next_turn(levels - 1)) if levels else turns.get())

        turns = asyncio.Queue[object]()
        async with host(aio.TrioTurn(turn), clock=clock) as there:
            there.subscribe(lambda event: turns.put_nowait(event) if event.kind == "turn-ended" else None)
            ada = await there.create_agent("ada")
            for hours in (1, 2):
                await ada.call_tool("schedule_create", {"prompt": "x", "after_seconds": hours * 3600})
            for _ in range(2):
                await next_turn(8)
                await ada.inbox()
                seen.append(clock.now())

    run(main())
    assert seen == [MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR]


def test_the_same_program_gives_the_same_trace(run: Run) -> None:
    """Two runs see the same events at the same instants."""

    def once() -> list[tuple[str, str, datetime]]:
        clock = VirtualClock(MIDNIGHT, autojump=True)
        seen = list[tuple[str, str, datetime]]()

        async def turn(turn: aio.Turn) -> None:
            await asyncio.sleep(0)
            if turn.number < 4:
                await turn.call_tool("schedule_create", {"prompt": "x", "after_seconds": 60 * turn.number})

        async def main() -> None:
            async with host(turn, clock=clock) as there:
                there.subscribe(lambda event: seen.append((event.kind, event.session_id, event.at)))
                agents = await asyncio.gather(*(there.create_agent(f"a{n}") for n in range(5)))
                await asyncio.gather(*(agent.followup("x") for agent in agents))
                await aio.sleep_until(clock, MIDNIGHT + HOUR)

        run(main())
        return [event for event in seen if event[0] not in {"committed", "tool-answered"}]

    assert sorted(once()) == sorted(once())


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what time was logged to stand still for."""
    return [record.__dict__["work"] for record in caplog.records if record.__dict__["event"] == "time-held"]


async def passes(number: int = 50) -> None:
    """Let the loop go on for some passes."""
    for _ in range(number):
        await asyncio.sleep(0)


def test_a_turn_that_holds_time_still_for_long_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, however long it goes on; who waits for time to pass learns why it does not."""
    monkeypatch.setattr(work, "HELD_SECONDS", 0)
    clock = VirtualClock(MIDNIGHT)

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            await gate.pass_through()

        async with host(turn, clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            advancing = asyncio.create_task(aio.advance(clock, HOUR))
            await gate.entered.wait()
            while not caplog.records:  # noqa: ASYNC110 - it is about passes of the loop
                await asyncio.sleep(0)
            await passes()
            assert not advancing.done()
            gate.opened.set()
            await advancing

    run(main())
    assert complaints(caplog) == ["turn 1 of ada"]
    assert "passes when that ends, or waits in a call of the host" in caplog.text


def test_a_turn_that_waits_in_a_call_does_not_hold_time(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is looked at again, as it may hold time later, until it ends: then no timer is left of it."""
    looks = list[tuple[Any, Hold]]()
    timers = list[asyncio.TimerHandle]()
    arm = work.Work._time

    def armed(self: Any, hold: Hold) -> None:
        arm(self, hold)
        looks.append((self, hold))
        timers.append(self._timer)

    monkeypatch.setattr(work.Work, "_time", armed)
    clock = VirtualClock(MIDNIGHT)

    async def main() -> None:
        waits = asyncio.Event()

        async def turn(_: aio.Turn) -> None:
            waits.set()
            await aio.sleep_until(clock, MIDNIGHT + HOUR)

        async with host(turn, clock=clock) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await waits.wait()
            await passes()
            ((waiting, hold),) = looks
            timers[0].cancel()
            waiting._look(hold)
            assert len(looks) == 2
            await aio.advance(clock, HOUR)
            await ada.when_idle()
            assert timers[1].cancelled()

    run(main())
    assert complaints(caplog) == []


def test_real_time_is_not_held(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A turn may take as long as it likes on the system's clock."""
    monkeypatch.setattr(work, "HELD_SECONDS", 0)

    async def main() -> None:
        gate = Gate()

        async def turn(_: aio.Turn) -> None:
            await gate.pass_through()

        async with host(turn) as there:
            ada = await there.create_agent("ada")
            await ada.followup("x")
            await gate.entered.wait()
            await passes()
            gate.opened.set()
            await ada.when_idle()

    run(main())
    assert complaints(caplog) == []


def test_real_time_needs_no_holding(run: Run) -> None:
    """Under the system's clock waits are waits, and `advance` says that it is not its clock."""

    async def main() -> None:
        async with host() as there:
            await aio.sleep_until(there.clock, there.clock.now() + timedelta(milliseconds=2))
            with pytest.raises(RuntimeError, match="not the clock of the trio run"):
                await aio.advance(VirtualClock(), HOUR)

    run(main())


def test_time_needs_a_host() -> None:
    """Without one there is no trio run to wait in; inside trio, the clock itself is to be used."""
    clock = VirtualClock()

    async def main() -> None:
        with pytest.raises(errors.CompositionError, match="no host is open"):
            await aio.advance(clock, HOUR)

    asyncio.run(main())

    async def in_trio() -> None:
        with pytest.raises(errors.CompositionError, match="this code runs in trio"):
            await aio.advance(clock, HOUR)

    trio.run(in_trio)
