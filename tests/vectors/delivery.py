"""Whole lives of one agent under a virtual clock: what the tools answered, and what the log says after."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from whenidle_actors.composition import open_host
from whenidle_actors.stores.memory import MemoryStore
from whenidle_clock import VirtualClock, format_instant, from_millis, parse_instant
from whenidle_protocol.events import Message, ScheduleChanged, TurnStarted, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn
    from whenidle_protocol.events import EventRecord

TOOLS = {"create": "schedule_create", "list": "schedule_list", "delete": "schedule_delete"}


def check_row(row: dict[str, Any]) -> str | None:
    """Return how the runtime's life differs from the row's, None if it does not."""
    results, log = _live(parse_instant(row["start"]), row["ops"])
    return _difference("result", results, row["results"]) or _difference("log entry", log, row["log"])


def _difference(what: str, ours: list[Any], theirs: list[Any]) -> str | None:
    for index, (mine, expected) in enumerate(zip(ours, theirs, strict=False)):
        if mine != expected:
            return f"{what} {index} is {mine!r}, not {expected!r}"
    return None if len(ours) == len(theirs) else f"{len(ours)} of {what}, not {len(theirs)}"


def _live(start: Any, ops: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    clock = VirtualClock(start)
    durations: deque[int] = deque()

    async def turn(_: Turn) -> None:
        await trio.sleep((durations.popleft() if durations else 0) / 1000)

    async def main() -> tuple[list[Any], list[Any]]:
        store = MemoryStore()
        results = []
        async with open_host(store=store, turn=turn, clock=clock, shutdown_timeout=0) as host:
            agent = await host.create_agent("root")
            for op in ops:
                results.append(await _perform(op, agent, clock, durations))
                await trio.testing.wait_all_tasks_blocked()
            return results, _log((await store.read("root")).records)

    return trio.run(main, clock=clock)


async def _perform(op: dict[str, Any], agent: Agent, clock: VirtualClock, durations: deque[int]) -> Any:
    match op["op"]:
        case "busy":
            durations.append(op["ms"])
            await agent.followup("user")
        case "advance":
            await clock.advance(timedelta(milliseconds=op["ms"]))
        case "step":
            clock.step(timedelta(milliseconds=op["ms"]), announce=False)
        case "delete":
            return await agent.call_tool(TOOLS["delete"], {"id": op["id"]})
        case name:
            return await agent.call_tool(TOOLS[name], op.get("args", {}))
    return None


def _log(records: Iterable[EventRecord]) -> list[Any]:
    log: list[Any] = []
    texts: dict[str, str] = {}
    for record in records:
        event = decode(record)
        if isinstance(event, ScheduleChanged):
            log.append({"change": event.payload})
        elif isinstance(event, Message):
            texts[event.id] = event.text
        elif isinstance(event, TurnStarted):
            at = format_instant(from_millis(record.at_millis))
            log.extend({"turn": texts[message], "at": at} for message in event.claimed)
    return log
