"""What comes due enters the inbox of its session once, when its agent is idle (SPEC 6.8)."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from whenidle_actors.observation import EventKind
from whenidle_protocol.task_record import TargetKind, TaskStatus

from .worlds import T0, TaskWorld, at, call, create, every, once, seconds


async def test_a_task_is_delivered_in_the_instant_it_is_due(any_world: TaskWorld) -> None:
    """An idle agent gets its message when the wall clock shows the occurrence, and its turn begins then."""
    world = any_world
    async with world.root() as agent:
        await create(agent)
        await world.wait(9.999)
        assert await world.delivered() == []
        await world.wait(0.001)
        assert await world.delivered() == [(10, "title", 10, 0)]
        await world.wait(60)
        assert await world.delivered() == [(10, "title", 10, 0), (70, "title", 70, 0)]
        assert [moment for moment, _, _ in world.runs] == [T0 + 10_000, T0 + 70_000]


async def test_the_answer_of_a_view_tells_of_the_last_delivery(world: TaskWorld) -> None:
    """After a delivery the task says which occurrence went where and when, and `updatedAt` has moved (SPEC 6.3)."""
    async with world.root() as agent:
        made = await create(agent)
        assert "lastDelivery" not in made
        await world.wait(11)
        seen = await call(agent, "view", id=made["id"])
        assert seen["lastDelivery"] == {
            "scheduledAt": "2026-01-01T00:00:10.000Z",
            "deliveredAt": "2026-01-01T00:00:10.000Z",
            "targetSessionId": "root",
        }
        assert seen["scheduledAt"] == "2026-01-01T00:01:10.000Z"
        assert seen["updatedAt"] == "2026-01-01T00:00:10.000Z"


async def test_a_delivery_waits_until_the_agent_is_idle(world: TaskWorld) -> None:
    """While a turn runs nothing is delivered; in the instant it ends, what came due is, once and late."""
    world.turn_seconds = 100
    async with world.root() as agent:
        await agent.followup("work")
        await world.make(every(60, 10))
        await world.wait(99.9)
        assert await world.delivered() == []
        await world.wait(0.1)
        (only,) = (await world.account()).deliveries
        assert (only.at - T0, only.occurrence - T0, only.late, only.missed) == (100_000, 70_000, 30.0, 1)
        assert [moment - T0 for moment, _, _ in world.runs] == [0, 100_000]


async def test_a_maintenance_task_is_waited_for(world: TaskWorld) -> None:
    """Somebody else's claim comes first (SPEC 2.3)."""
    async with world.root() as agent, trio.open_nursery() as nursery:
        await world.make(once(10))
        await world.wait(5)
        nursery.start_soon(agent.run_maintenance, partial(trio.sleep, 20))
        await world.wait(19)
        assert await world.delivered() == []
        await world.wait(1)
        assert await world.delivered() == [(25, "title", 10, 0)]


async def test_recurring_tasks_due_together_are_one_message(any_world: TaskWorld) -> None:
    """All recurring tasks that are due for a session share one message and one turn, in order of their targets."""
    world = any_world
    async with world.root():
        await world.make(every(60, 30), title="third")
        await world.make(every(60, 10), title="first")
        await world.make(every(60, 20), title="second")
        world.suspend(seconds(35))
        await world.wait(0)
        assert await world.delivered() == [(35, "first", 10, 0), (35, "second", 20, 0), (35, "third", 30, 0)]
        assert [len(ids) for _, ids, _ in world.runs] == [1]
        assert world.count(EventKind.TASK_DELIVERED) == 1


async def test_all_that_is_due_is_one_message_however_many_pages_it_takes(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages in which rows are read are not seen in what is delivered."""
    monkeypatch.setattr("whenidle_actors.task_deliveries._SWEEP", 2)
    monkeypatch.setattr("whenidle_actors.task_pursuit._PAGE", 3)
    async with world.host() as host:
        await host.create_agent("root")
        await host.create_agent("other")
        for number in range(7):
            await world.make(every(60, 10 + number), title=f"{number}")
            await world.make(every(60, 10 + number), title=f"{number}", by="other")
        world.suspend(seconds(20))
        await world.wait(0)
        account = await world.account()
        assert [len(account.sessions[name]) for name in ("root", "other")] == [1, 1]
        assert [each.title for each in account.deliveries if each.session == "root"] == list("0123456")


async def test_one_shots_come_first_and_each_alone(world: TaskWorld) -> None:
    """One-shots by target, each with a turn of its own, then everything recurring (SPEC 5.8, 6.8)."""
    world.turn_seconds = 5
    async with world.root():
        await world.make(every(60, 1), title="often")
        await world.make(once(20), title="later")
        await world.make(once(10), title="sooner")
        world.suspend(seconds(30))
        await world.wait(20)
        assert await world.delivered() == [
            (30, "sooner", 10, 0),
            (35, "later", 20, 0),
            (40, "often", 1, 0),
        ]


async def test_one_shots_due_at_one_instant_come_in_the_order_they_were_made(world: TaskWorld) -> None:
    """Of equal targets the task made first goes first."""
    async with world.root():
        for title in "abcdef":
            await world.make(once(10), title=title)
            await world.wait(0.001)
        await world.wait(11)
        assert [title for _, title, _, _ in await world.delivered()] == list("abcdef")


async def test_an_ended_task_shows_its_last_occurrence(world: TaskWorld) -> None:
    """A one-shot has ended after its delivery; it stays to be seen."""
    async with world.root():
        task = await world.make(once(10))
        await world.wait(11)
        after = await world.view(task)
        assert (after.status, after.scheduled_at, after.deliveries) == (TaskStatus.ENDED, at(10), 1)


async def test_a_deleted_task_does_not_come_back(any_world: TaskWorld) -> None:
    """Deleted, then restarted, then due: nothing (CASES 24)."""
    world = any_world
    async with world.root() as agent:
        made = await create(agent)
        assert await call(agent, "edit", id=made["id"], action="delete") == {"id": made["id"], "deleted": True}
        await world.wait(5)
    async with world.root() as agent:
        await world.wait(100)
        assert await world.delivered() == []
        assert (await call(agent, "list"))["total"] == 0


async def test_a_task_paused_or_deleted_while_its_delivery_waits_is_not_delivered(world: TaskWorld) -> None:
    """What is decided between the due instant and the claim counts (CASES 23)."""
    world.turn_seconds = 20
    async with world.root() as agent:
        await agent.followup("work")
        paused, deleted, renamed = [await create(agent, title=title) for title in ("a", "b", "c")]
        await world.wait(15)
        await call(agent, "edit", id=paused["id"], action="update", active=False)
        await call(agent, "edit", id=deleted["id"], action="delete")
        await call(agent, "edit", id=renamed["id"], action="update", title="new")
        await world.wait(6)
        assert await world.delivered() == [(20, "new", 10, 0)]


async def test_run_now_delivers_whatever_the_status_and_leaves_the_next_occurrence(any_world: TaskWorld) -> None:
    """By hand: now, as an occurrence of this moment, with a receipt; paused stays paused (SPEC 6.8)."""
    world = any_world
    async with world.root() as agent:
        made = await create(agent)
        await call(agent, "edit", id=made["id"], action="update", active=False)
        await world.wait(5)
        after = await world.tasks.run(made["id"])
        assert (after.status, after.scheduled_at, after.deliveries) == (TaskStatus.PAUSED, at(10), 1)
        await world.wait(100)
        assert await world.delivered() == [(5, "title", 5, 0)]
        assert world.count(EventKind.TASK_DELIVERED) == 1


async def test_a_task_made_for_the_past_of_another_session_goes_there(world: TaskWorld) -> None:
    """Each session gets its own, at its own pace: a busy one holds up nobody else."""
    world.turn_seconds = 50
    async with world.host() as host:
        busy, _ = await host.create_agent("busy"), await host.create_agent("free")
        await busy.followup("work")
        await world.make(every(300, 10), by="busy", title="b")
        await world.make(every(300, 10), by="free", title="f")
        await world.wait(10)
        assert await world.delivered() == [(10, "f", 10, 0)]
        await world.wait(40)
        assert await world.delivered() == [(10, "f", 10, 0), (50, "b", 10, 0)]


async def test_a_cold_session_is_restored(any_world: TaskWorld) -> None:
    """A session with nothing but a task is not in memory until the task is due (SPEC 6.8)."""
    world = any_world
    async with world.root():
        await world.make(every(300, 300))
    async with world.host() as host:
        await world.wait(299)
        assert host.statistics().agents == 0
        await world.wait(1)
        assert [agent.id for agent in host.agents] == ["root"]
        assert await world.delivered() == [(300, "title", 300, 0)]
        assert [moment - T0 for moment, _, _ in world.runs] == [300_000]


@pytest.mark.parametrize("target", list(TargetKind))
async def test_a_passivated_agent_is_taken_up_again(world: TaskWorld, target: TargetKind) -> None:
    """An agent dropped from memory gets what comes due, and is dropped again."""
    async with world.host(passivate_after=5) as host:
        await host.create_agent("root")
        await world.make(every(300, 300), target)
        await world.wait(290)
        assert len(host.agents) == 0
        await world.wait(311)
        assert [due for _, _, due, _ in await world.delivered()] == [300, 600]
        await world.wait(10)
        assert len(host.agents) == 0
        assert len(world.runs) == 2
