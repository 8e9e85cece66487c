"""A session whose reminder log cannot be folded (SPEC 5.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from whenidle_actors.reminders import Reminders
from whenidle_actors.stores.base import Append, Batch, Role, SessionHeader, SessionIndex
from whenidle_protocol.events import EventRecord

from .worlds import START, T0, World, create, delete, listed

GOOD = {
    "version": 1,
    "operation": "create",
    "schedule": {
        "id": "schedule-1",
        "kind": "after",
        "prompt": "tea",
        "afterSeconds": 10,
        "scheduledAt": "2026-01-01T00:00:10.000Z",
    },
}
EVERY = {
    "id": "schedule-1",
    "kind": "every",
    "prompt": "tea",
    "everySeconds": 300,
    "scheduledAt": "2026-01-01T00:05:00.000Z",
}
DISPATCH = {"version": 1, "operation": "dispatch", "id": "schedule-1"}
CORRUPT: list[tuple[str, list[Any]]] = [
    ("version", [{**GOOD, "version": 2}]),
    ("operation", [{**GOOD, "operation": "pause"}]),
    ("extra key", [{**GOOD, "note": ""}]),
    ("extra key of the record", [{**GOOD, "schedule": {**GOOD["schedule"], "note": ""}}]),  # type: ignore[dict-item]  # a value of a dict[str, object]
    ("missing key", [{"version": 1, "operation": "delete"}]),
    ("id used again", [GOOD, GOOD]),
    ("dispatch with acceptedAt", [GOOD, {**DISPATCH, "acceptedAt": "2026-01-01T00:00:10.000Z"}]),
    ("dispatch without acceptedAt", [{**GOOD, "schedule": EVERY}, DISPATCH]),
    ("not active", [{"version": 1, "operation": "delete", "id": "schedule-1"}]),
    ("no object", ["x"]),
]
ANSWER = {
    "code": "corrupt_schedule_log",
    "message": "The reminders of this session cannot be read: its log is corrupt. Nothing was changed; "
    "reminders work again in a new session.",
}


async def write(world: World, payloads: list[Any], due: int | None = T0 + 10_000) -> None:
    """Write a log as another version, or a defect, might have."""
    records = tuple(EventRecord("schedule/change", T0, json.dumps(payload)) for payload in payloads)
    append = Append("root", 0, records, SessionIndex(due))
    async with world.store.inner.opened(Role.HOST):
        await world.store.inner.commit(Batch((append,), (SessionHeader("root", START),)))


@pytest.mark.parametrize(("what", "payloads"), CORRUPT)
async def test_a_corrupt_log_stops_the_reminders_and_nothing_else(world: World, what: str, payloads: list[Any]) -> None:
    """Each tool says so, nothing is rewritten, no alarm stays set, and the agent runs its turns."""
    await write(world, payloads)
    async with world.host() as host:
        agent = await host.agent("root")
        for answer in (
            await listed(agent),
            await delete(agent, "schedule-1"),
            await create(agent, after_seconds=10),
        ):
            assert answer == ANSWER, what
        await world.wait(1000)
        assert (world.store.batches, host.statistics().alarm.armed) == ([], 0)
        await agent.followup("work")
        await world.wait(0)
        assert len(world.runs) == 1
        assert len((await world.store.read("root")).records) == len(payloads) + 3


async def test_a_corrupt_log_that_comes_due_while_cold_is_left_alone(world: World) -> None:
    """The alarm restores the agent, which finds nothing it may deliver; other sessions are untouched."""
    await write(world, [{**GOOD, "version": 2}])
    async with world.host() as host:
        other = await host.create_agent("other")
        await create(other, after_seconds=10)
        await world.wait(1000)
        assert [len(ids) for _, ids, _ in world.runs] == [1]
        assert host.statistics().alarm.armed == 0
        assert len((await world.store.read("root")).records) == 1


@pytest.mark.parametrize("index", [0, 1])
async def test_an_every_record_is_corrupt_in_the_one_shot_protocol(world: World, index: int) -> None:
    """The same log is sound on a host with fixed rates."""
    await write(world, [{**GOOD, "schedule": EVERY}], due=T0 + 300_000)
    suite = Reminders(fixed_rate=bool(index))
    async with world.host(suites=[suite]) as host:
        agent = await host.agent("root")
        answer = await listed(agent)
        assert (answer == ANSWER) is not bool(index)
        await world.wait(300)
        assert len(world.runs) == index


async def test_a_log_that_is_found_corrupt_while_live_stops_its_owner(world: World) -> None:
    """What another process appends is folded strictly too, and ends what was waited for."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        bad = EventRecord("schedule/change", T0, json.dumps({"version": 3}))
        await world.store.inner.commit(Batch((Append("root", 1, (bad,), SessionIndex(T0 + 10_000)),)))
        agent.session.drop()
        await world.wait(100)
        assert await listed(agent) == ANSWER
        assert world.runs == []
        assert len((await world.store.read("root")).records) == 2
