"""Faults that other systems had, where they would live in the runtime."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import trio

from whenidle_actors.stores.sqlite import SqliteStore

from .worlds import Script, living, log, settled, sleeping

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.turn import Turn


async def test_an_idle_agent_gets_its_reminder_at_the_very_instant(store: FaultyStore, script: Script) -> None:
    """CASE 14: with nothing else happening, message and turn are at the instant that was asked for."""
    begun: list[float] = []

    async def note(_: Turn) -> None:
        begun.append(trio.current_time())

    async with living(store, script) as agent:
        script.every_turn = note
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        await trio.sleep(60)
        await settled()
    assert begun == [60]


async def test_a_reminder_deleted_before_the_claim_is_not_delivered(store: FaultyStore, script: Script) -> None:
    """CASE 23: due while a turn runs, deleted before the agent is idle: nothing is delivered."""
    async with living(store, script) as agent:
        script.on("x", sleeping(100))
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        await agent.followup("x")
        await trio.sleep(70)
        answer = await agent.call_tool("schedule_delete", {"id": "schedule-1"})
        assert answer["deleted"] is True
        await trio.sleep(1000)
        await agent.when_idle()
    assert script.taken == [["x"]]
    assert [line for line in log(store) if line.startswith("insert")] == ["insert m1 x"]


async def test_time_does_not_run_away_from_a_turn_in_a_thread(tmp_path: Path, script: Script) -> None:
    """CASE 37: while a turn waits for a thread, and commits for the writer's, no virtual time passes."""
    go = threading.Event()
    seen: list[float] = []

    async def work(turn: Turn) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.to_thread.run_sync, go.wait))
            await turn.note("in the store's own thread")
            seen.append(trio.current_time())
            go.set()
        seen.append(trio.current_time())

    async with living(SqliteStore(tmp_path / "s.db"), script) as agent:
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
        assert seen == [0, 0]
        await trio.sleep(61)
        await agent.when_idle()
    assert len(script.turns) == 2
