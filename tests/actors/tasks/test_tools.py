"""Tasks made, seen, listed, edited and deleted by tools (SPEC 6.2 to 6.5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
import trio

from .worlds import START, TaskWorld, call, create, every, ical, seconds


async def test_a_life_of_a_task_by_tools(any_world: TaskWorld) -> None:
    """Made, seen, listed, edited and deleted: each answer is the task as it is then."""
    world = any_world
    async with world.root() as agent:
        made = await create(agent, title="  tea ", prompt=" make tea ")
        assert made == {
            "id": made["id"],
            "title": "tea",
            "prompt": "make tea",
            "kind": "every",
            "everySeconds": 60,
            "scheduledAt": "2026-01-01T00:00:10.000Z",
            "scheduledAtLocal": "2026-01-01T00:00:10.000+00:00[UTC]",
            "target": "this_session",
            "targetSessionId": "root",
            "status": "active",
            "updatedAt": "2026-01-01T00:00:00.000Z",
        }
        assert await call(agent, "view", id=made["id"]) == made
        assert await call(agent, "list") == {"items": [made], "shown": 1, "total": 1, "limit": 100, "offset": 0}
        await world.wait(1)
        edited = await call(agent, "edit", id=made["id"], action="update", prompt="make coffee")
        assert edited == {**made, "prompt": "make coffee", "updatedAt": "2026-01-01T00:00:01.000Z"}
        assert await call(agent, "edit", id=made["id"], action="delete") == {"id": made["id"], "deleted": True}
        assert await call(agent, "view", id=made["id"]) == {"id": made["id"], "code": "schedule_not_found"}
        assert await call(agent, "edit", id=made["id"], action="delete") == {
            "id": made["id"],
            "code": "schedule_not_found",
        }


async def test_a_task_belongs_to_the_host(any_world: TaskWorld) -> None:
    """Any agent sees, changes and deletes any task (SPEC 6.1)."""
    async with any_world.host() as host:
        one, other = await host.create_agent("one"), await host.create_agent("other")
        made = await create(one)
        assert await call(other, "view", id=made["id"]) == made
        assert (await call(other, "edit", id=made["id"], action="update", title="mine"))["title"] == "mine"
        assert (await call(other, "edit", id=made["id"], action="delete"))["deleted"] is True


async def test_an_edit_of_the_title_changes_the_title(any_world: TaskWorld) -> None:
    """Zone, rule, target and next occurrence stay as they are (CASES 25)."""
    async with any_world.root() as agent:
        rule = ical(datetime(2026, 1, 5, 9), "FREQ=WEEKLY;BYDAY=MO,WE", "Europe/Paris")  # noqa: DTZ001 - local time
        made = await create(agent, rrule=rule, target="new_once")
        await any_world.wait(1)
        edited = await call(agent, "edit", id=made["id"], action="update", title="new")
        assert edited == {**made, "title": "new", "updatedAt": "2026-01-01T00:00:01.000Z"}


async def test_an_edit_that_changes_nothing_writes_nothing(world: TaskWorld) -> None:
    """Not even `updatedAt` moves, nor does the next occurrence; `active:true` on an active task is one (SPEC 6.5)."""
    async with world.root() as agent:
        made = await create(agent)
        await world.wait(1)
        commits = len(world.store.batches)
        same = {key: made[key] for key in ("title", "prompt")}
        rule = ical(START + seconds(10), "FREQ=MINUTELY")
        answer = await call(agent, "edit", id=made["id"], action="update", active=True, rrule=rule, **same)
        assert answer == made
        assert len(world.store.batches) == commits


async def test_paused_for_two_hundred_periods_and_resumed(any_world: TaskWorld) -> None:
    """Nothing comes due, nothing accumulates; it goes on at the first occurrence after (CASES 15)."""
    world = any_world
    async with world.root() as agent:
        made = await create(agent)
        paused = await call(agent, "edit", id=made["id"], action="update", active=False)
        assert (paused["status"], paused["scheduledAt"]) == ("paused", made["scheduledAt"])
        world.suspend(seconds(200 * 60 + 15))
        await world.wait(0)
        assert await world.delivered() == []
        resumed = await call(agent, "edit", id=made["id"], action="update", active=True)
        assert (resumed["status"], resumed["scheduledAt"]) == ("active", "2026-01-01T03:21:10.000Z")
        await world.wait(55)
        assert await world.delivered() == [(12070, "title", 12070, 0)]


async def test_a_task_that_has_ended_needs_a_new_rule(world: TaskWorld) -> None:
    """Resumed without one it is refused; with one it is active again, in one call."""
    async with world.root() as agent:
        made = await create(agent, rrule=ical(START + seconds(10), "FREQ=DAILY;COUNT=1"))
        await world.wait(11)
        assert (await call(agent, "edit", id=made["id"], action="update", active=True)) == {
            "code": "not_future",
            "message": "The task has no occurrence left; to make it active again, give a new rrule in the same call.",
        }
        rule = ical(START + seconds(20), "FREQ=DAILY;COUNT=1")
        again = await call(agent, "edit", id=made["id"], action="update", active=True, rrule=rule)
        assert (again["status"], again["scheduledAt"]) == ("active", "2026-01-01T00:00:20.000Z")
        await world.wait(10)
        assert [due for _, _, due, _ in await world.delivered()] == [10, 20]


async def test_a_change_based_on_an_old_reading_is_a_conflict(any_world: TaskWorld) -> None:
    """After an edit, a pause or a delivery the old `updatedAt` is refused and nothing changes (SPEC 6.5)."""
    world = any_world
    async with world.root() as agent:
        made = await create(agent)
        expected = {"id": made["id"], "expectedUpdatedAt": made["updatedAt"]}
        conflict = {"id": made["id"], "code": "schedule_conflict"}
        await world.wait(10)
        seen = await call(agent, "view", id=made["id"])
        assert await call(agent, "edit", action="update", title="x", **expected) == conflict
        assert await call(agent, "edit", action="delete", **expected) == conflict
        assert await call(agent, "view", id=made["id"]) == seen
        expected["expectedUpdatedAt"] = seen["updatedAt"]
        assert (await call(agent, "edit", action="update", title="x", **expected))["title"] == "x"
        assert await call(agent, "edit", action="update", title="x", **expected) == conflict


@pytest.mark.parametrize("first", ["edit", "delivery"])
async def test_an_edit_and_a_delivery_race(world: TaskWorld, first: str) -> None:
    """With `expectedUpdatedAt` exactly one of them wins; the other sees a conflict and decides again (CASES 31)."""
    async with world.host() as host:
        agent, editor = await host.create_agent("root"), await host.create_agent("editor")
        made = await create(agent)
        gate, held = trio.Event(), False
        answers: list[dict[str, Any]] = []

        async def hold(batch: Any) -> None:
            nonlocal held
            if bool(batch.receipts) is (first == "edit") and not held:
                held = True
                await gate.wait()

        async def edit() -> None:
            answers.append(
                await call(
                    editor,
                    "edit",
                    id=made["id"],
                    action="update",
                    title="edited",
                    expectedUpdatedAt=made["updatedAt"],
                )
            )

        world.store.before = hold
        async with trio.open_nursery() as nursery:
            if first == "edit":
                await world.wait(10)  # the delivery is decided and held
                await edit()
            else:
                await world.wait(9.5)
                nursery.start_soon(edit)  # decided and held
                await world.wait(0.5)
            gate.set()
        await world.wait(1)
        (only,) = (await world.account()).deliveries
        if first == "edit":
            assert (answers[0]["title"], only.title) == ("edited", "edited")
        else:
            assert (answers, only.title) == ([{"id": made["id"], "code": "schedule_conflict"}], "title")


async def test_edits_at_the_same_time_are_all_made(world: TaskWorld) -> None:
    """Without `expectedUpdatedAt` each is decided of what is there then; none is lost, and `updatedAt` rises."""
    async with world.host() as host:
        agents = [await host.create_agent(f"agent-{number}") for number in range(5)]
        made = await create(agents[0])
        stamps: list[str] = []

        async def edit(number: int) -> None:
            changes: list[dict[str, Any]] = [
                {"title": "t"},
                {"prompt": "p"},
                {"active": False},
                {"title": "u"},
                {"target": "new"},
            ]
            fields = changes[number]
            stamps.append((await call(agents[number], "edit", id=made["id"], action="update", **fields))["updatedAt"])

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(edit, number)
        assert len(set(stamps)) == 5
        after = await call(agents[0], "view", id=made["id"])
        assert (after["prompt"], after["status"], after["target"]) == ("p", "paused", "new")
        assert after["updatedAt"] == max(stamps)


async def test_updated_at_rises_when_the_clock_goes_back(world: TaskWorld) -> None:
    """It is a version, so it rises with each change whatever the wall shows (SPEC 6.5)."""
    async with world.root() as agent:
        made = await create(agent)
        world.step(seconds(-3600))
        after = await call(agent, "edit", id=made["id"], action="update", title="x")
        assert after["updatedAt"] == "2026-01-01T00:00:00.001Z"


async def test_lists_are_ordered_and_paged(any_world: TaskWorld) -> None:
    """Active by next occurrence, then the others, newest first; a page past the end is empty (SPEC 6.4)."""
    world = any_world
    async with world.root() as agent:
        names = {}
        for first in (300, 100, 200, 400, 500):
            names[first] = (await world.make(every(600, first), title=f"{first}")).id
        for first in (400, 500):
            await world.wait(1)
            await call(agent, "edit", id=names[first], action="update", active=False)

        async def titles(**arguments: Any) -> tuple[list[str], int, int]:
            answer = await call(agent, "list", **arguments)
            return [item["title"] for item in answer["items"]], answer["shown"], answer["total"]

        assert await titles() == (["100", "200", "300", "500", "400"], 5, 5)
        assert await titles(active=True) == (["100", "200", "300"], 3, 3)
        assert await titles(active=False) == (["500", "400"], 2, 2)
        assert await titles(limit=2, offset=2) == (["300", "500"], 2, 5)
        assert await titles(offset=17) == ([], 0, 5)
        assert await titles(offset=2**53 - 1) == ([], 0, 5)


async def test_ten_thousand_tasks_are_paged_while_they_are_edited(world: TaskWorld) -> None:
    """Pages of a hundred while others are edited, made and deleted: no crash, the totals right (CASES 32)."""
    async with world.host() as host:
        agent = await host.create_agent("root")
        made = [await world.make(every(3600, 3600 + number)) for number in range(10_000)]
        total = 10_000
        seen: set[str] = set()
        for offset in range(0, 10_000, 100):
            answer = await call(agent, "list", limit=100, offset=offset)
            assert (answer["total"], answer["shown"]) == (total, min(100, total - offset))
            seen |= {item["id"] for item in answer["items"]}
            victim = made[offset]
            change = offset // 100 % 3
            if change == 0:
                await call(agent, "edit", id=victim.id, action="update", active=False)
            elif change == 1:
                await call(agent, "edit", id=victim.id, action="delete")
                total -= 1
            else:
                await call(agent, "edit", id=victim.id, action="update", title="new")
        assert total == 9967
        assert len(seen) > 9800
