"""When and how what is due is delivered (SPEC 5.8)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.actors.runtime.worlds import foreign
from whenidle_actors.agent import Agent
from whenidle_actors.errors import AgentBusy, AgentDisposed
from whenidle_actors.observation import EventKind

from .faults import delivers
from .logs import read_log
from .worlds import T0, World, create, delete, listed, seconds, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.stores.base import Batch
    from whenidle_actors.turn import Turn


def before_each_claim(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Awaitable[object]]) -> None:
    """Have `act` happen between the moment something is found due and the claim."""
    claim = Agent.run_maintenance

    async def run_maintenance(agent: Agent, task: Callable[[], Awaitable[Any]]) -> Any:
        await act()
        return await claim(agent, task)

    monkeypatch.setattr(Agent, "run_maintenance", run_maintenance)


async def test_an_idle_agent_gets_what_is_due_in_the_same_instant(world: World) -> None:
    """With nothing else happening, a one-shot enters the inbox and its turn starts at its very target."""
    async with world.root() as agent:
        await create(agent, after_seconds=90)
        await world.wait(89.999)
        assert world.runs == []
        await world.wait(0.001)
        assert world.runs == [(T0 + 90_000, ("m1",), False)]
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 90_000)]


async def test_what_is_due_waits_for_the_end_of_the_turn(world: World) -> None:
    """While a turn runs nothing enters the inbox; the reminder does in the instant the turn ends."""
    world.turn_seconds = 60
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await agent.followup("work")
        await world.wait(59.999)
        assert (await world.ledger()).delivered == []
        assert [(await listed(agent))[0]["state"]] == ["overdue"]
        await world.wait(0.001)
        assert [(at, ids) for at, ids, _ in world.runs] == [(T0, ("m1",)), (T0 + 60_000, ("m4",))]


async def test_what_is_due_waits_for_the_end_of_maintenance(world: World) -> None:
    """A maintenance task of the host's own keeps what is due out until it is over."""
    async with world.root() as agent, trio.open_nursery() as nursery:
        await create(agent, after_seconds=10)
        nursery.start_soon(agent.run_maintenance, partial(trio.sleep, 60))
        await world.wait(59)
        assert (await world.ledger()).delivered == []
        await world.wait(1)
        assert [delivery.at for delivery in (await world.ledger()).deliveries] == [T0 + 60_000]


async def test_each_turn_gets_one_one_shot_by_target_and_then_by_creation(world: World) -> None:
    """Four one-shots that are due together make four messages and four turns, the earliest target first."""
    world.turn_seconds = 1
    async with world.root() as agent:
        for prompt, after in [("b", 20), ("c", 20), ("d", 21), ("a", 5)]:
            await create(agent, prompt, after_seconds=after)
        world.suspend(seconds(60))
        await world.wait(10)
        ledger = await world.ledger()
        assert [delivery.prompt for delivery in ledger.deliveries] == ["a", "b", "c", "d"]
        assert [at for at, _, _ in world.runs] == [T0 + 60_000 + after * 1000 for after in range(4)]
        assert [len(ids) for _, ids, _ in world.runs] == [1, 1, 1, 1]


async def test_one_shots_go_before_the_batch(world: World) -> None:
    """A one-shot that is due goes first even if an `every` reminder has waited for longer."""
    async with world.root() as agent:
        await create(agent, "again", every_seconds=300)
        await create(agent, "once", after_seconds=400)
        world.suspend(seconds(500))
        await world.wait(1)
        assert [delivery.prompt for delivery in (await world.ledger()).deliveries] == ["once", "again"]


async def test_every_reminders_that_are_overdue_make_one_message(world: World) -> None:
    """They come in order of target and creation, each with its latest occurrence, under one acceptedAt."""
    async with world.root() as agent:
        await create(agent, "slow", every_seconds=400)
        await create(agent, "quick", every_seconds=300)
        await create(agent, "alike", every_seconds=400)
        await create(agent, "later", every_seconds=5000)
        world.suspend(seconds(1000))
        await world.wait(0)
        ledger = await world.ledger()
        assert [(delivery.prompt, delivery.occurrence - T0) for delivery in ledger.deliveries] == [
            ("quick", 900_000),
            ("slow", 800_000),
            ("alike", 800_000),
        ]
        assert len(world.runs) == 1
        assert [target - T0 for target in ledger.active.values()] == [5_000_000, 1_200_000, 1_200_000, 1_200_000]
        accepted = [entry.data["acceptedAt"] for entry in await read_log(world.store) if "acceptedAt" in entry.data]
        assert accepted == ["2026-01-01T00:16:40.000Z"] * 3


@pytest.mark.parametrize(("overslept", "occurrence"), [(0, 1), (299_999, 1), (300_000, 2), (86_400_000 * 365, 105_121)])
async def test_missed_intervals_are_one_delivery_and_one_division(
    world: World, overslept: int, occurrence: int
) -> None:
    """However many intervals were slept through, the latest is delivered and the next lies on the same grid."""
    async with world.root() as agent:
        await create(agent, every_seconds=300)
        world.step(seconds(300 + overslept / 1000))
        await world.wait(0)
        ledger = await world.ledger()
        assert ledger.delivered == [("schedule-1", T0 + occurrence * 300_000)]
        assert ledger.active == {"schedule-1": T0 + (occurrence + 1) * 300_000}


async def test_message_and_dispatch_are_one_commit(world: World) -> None:
    """No commit holds a reminder's message without its dispatch, of one-shots and of batches."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await create(agent, every_seconds=300)
        await create(agent, every_seconds=300)
        await world.wait(300)
        shapes = [
            [record.type for record in batch.appends[0].records] for batch in world.store.batches if delivers(batch)
        ]
        assert shapes == [
            ["inbox/insert", "schedule/change"],
            ["inbox/insert", "schedule/change", "schedule/change"],
        ]


async def test_what_is_deleted_while_it_waits_for_idle_is_not_delivered(world: World) -> None:
    """A reminder that came due during a turn and is deleted before its end leaves no message."""
    world.turn_seconds = 60
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await agent.followup("work")
        await world.wait(20)
        assert await delete(agent, "schedule-1") == {"id": "schedule-1", "deleted": True}
        await world.wait(100)
        assert (await world.ledger()).delivered == []
        assert len(world.runs) == 1


async def test_what_is_deleted_between_the_due_check_and_the_claim_is_not_delivered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision inside the claim is made anew, of the log as it is then (CASES 23)."""
    async with world.root() as agent:
        before_each_claim(monkeypatch, lambda: delete(agent, "schedule-1"))
        await create(agent, after_seconds=10)
        await world.wait(100)
        ledger = await world.ledger()
        assert (ledger.delivered, ledger.deleted, world.runs) == ([], {"schedule-1"}, [])


async def test_a_rollback_between_the_due_check_and_the_claim_means_no_delivery(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is early again when the claim is held is delivered when its time has come again, once."""
    steps = [seconds(-30)]

    async def set_back() -> None:
        if steps:
            world.step(steps.pop())

    before_each_claim(monkeypatch, set_back)
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await world.wait(39.999)
        assert (await world.ledger()).delivered == []
        await world.wait(0.001)
        assert [delivery.at for delivery in (await world.ledger()).deliveries] == [T0 + 10_000]


async def test_the_wall_is_read_after_the_log_inside_the_claim(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback while a doubted log is read back is seen by the decision that follows."""

    def set_back() -> None:
        world.store.before_read = lambda: None
        world.step(seconds(-30))

    async def doubt_once() -> None:
        if world.store.reads == 0:
            world.store.before_read = set_back
            await agent.in_mailbox(forget)

    async def forget() -> None:
        agent.session.drop()

    before_each_claim(monkeypatch, doubt_once)
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await world.wait(10)
        assert world.store.reads == 1
        assert (await world.ledger()).delivered == []
        await world.wait(30)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_disposal_while_a_due_delivery_waits_for_idle_keeps_the_record(world: World) -> None:
    """The waiter ends, nothing is delivered, and the agent restored from the log delivers it (CASES 30)."""
    world.turn_seconds = 60
    async with world.host() as host:
        agent = await host.create_agent("root")
        await create(agent, after_seconds=10)
        await agent.followup("work")
        await world.wait(20)
        await agent.dispose()
        with pytest.raises(AgentDisposed):
            await create(agent, after_seconds=10)
        await world.wait(1000)
        ledger = await world.ledger()
        assert (ledger.delivered, list(ledger.active)) == ([], ["schedule-1"])
        world.turn_seconds = 0
        await host.agent("root")
        await settled()
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_an_idle_agent_that_is_disposed_gets_nothing(world: World) -> None:
    """Its alarm is taken away with it, and set again when it is restored."""
    async with world.host() as host:
        agent = await host.create_agent("root")
        await create(agent, after_seconds=10)
        assert host.statistics().alarm.armed == 1
        await agent.dispose()
        assert host.statistics().alarm.armed == 0
        await world.wait(5)
        await host.agent("root")
        assert host.statistics().alarm.armed == 1
        await world.wait(5)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_a_tool_called_inside_a_turn_is_answered_while_the_turn_runs(world: World) -> None:
    """A turn can make, list and delete reminders, and sees the answers before it ends (CASES 42)."""
    answers: list[Any] = []

    async def manage(turn: Turn) -> None:
        if not answers:
            answers.append((await turn.call_tool("schedule_create", {"prompt": "x", "after_seconds": 5}))["id"])
            answers.append([item["id"] for item in await turn.call_tool("schedule_list", {})])
            answers.append((await turn.call_tool("schedule_delete", {"id": "schedule-1"}))["deleted"])
            await turn.call_tool("schedule_create", {"prompt": "y", "after_seconds": 5})

    world.during_turn = manage
    world.turn_seconds = 10
    async with world.root() as agent:
        await agent.followup("plan")
        await settled()
        assert answers == ["schedule-1", ["schedule-1"], True]
        assert agent.status == "running"
        await world.wait(10)
        assert [(delivery.id, delivery.at - T0) for delivery in (await world.ledger()).deliveries] == [
            ("schedule-2", 10_000)
        ]


async def test_a_cancel_while_a_delivery_is_being_committed_loses_no_other_reminder(world: World) -> None:
    """A cancel empties the inbox of what was just admitted; what is still to come is delivered."""
    async with world.root() as agent, trio.open_nursery() as nursery:
        await create(agent, "first", after_seconds=10)
        await create(agent, "second", after_seconds=10)
        gate = trio.Event()

        async def hold(batch: Any) -> None:
            if delivers(batch):
                await gate.wait()

        world.store.before = hold
        await world.wait(10)
        nursery.start_soon(agent.cancel, "changed my mind")
        await settled()
        gate.set()
        await settled()
        ledger = await world.ledger()
        assert ledger.delivered == [("schedule-1", T0 + 10_000), ("schedule-2", T0 + 10_000)]
        first, second = (delivery.message for delivery in ledger.deliveries)
        assert (list(ledger.attempts), ledger.active) == ([second], {})
        assert [entry.data["ids"] for entry in await read_log(world.store) if entry.type == "inbox/remove"] == [[first]]


async def test_each_delivery_is_announced_once_it_is_durable(world: World) -> None:
    """Observers hear of one event a message, with the ids of its reminders."""
    async with world.root() as agent:
        for every in (300, 300):
            await create(agent, every_seconds=every)
        await create(agent, after_seconds=10)
        await world.wait(300)
        told = [event.detail["reminders"] for event in world.events if event.kind is EventKind.REMINDER_DELIVERED]
        assert told == [["schedule-3"], ["schedule-1", "schedule-2"]]


async def test_a_reminder_made_as_a_pursuit_ends_is_not_overlooked(world: World) -> None:
    """Whichever of the two comes first, the alarm is set for what was made (an order that trio draws at random)."""
    async with world.root() as agent:
        alarm = agent.services.alarm
        for after in range(1000, 950, -1):
            agent.session.drop()
            async with trio.open_nursery() as nursery:
                agent.recompute()
                nursery.start_soon(partial(create, agent, after_seconds=after))
            await settled()
            assert alarm.earliest() == T0 + after * 1000


async def test_a_delivery_whose_claim_is_cancelled_while_it_reads_is_made_in_the_next(world: World) -> None:
    """Another process was faster and the log is being read again: what is cancelled then decides nothing any more."""
    commits: list[tuple[float, str, str | None]] = []
    async with world.root() as agent:
        await create(agent, after_seconds=10)

        async def note(batch: Batch) -> None:
            if delivers(batch):
                cause = None if agent.activity is None else agent.activity.cause
                commits.append(((world.now_millis() - T0) / 1000, agent.phase.value, cause))
                if len(commits) == 1:
                    await foreign(agent, "theirs")
                    world.store.after_read = partial(trio.sleep, 20)

        world.store.before = note
        await world.wait(10)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.cancel, "stop it")
            await settled()
            world.store.after_read = settled_at_once
            with pytest.raises(AgentBusy):
                await agent.run_maintenance(settled)
            await world.wait(20)
        assert commits == [(10, "maintenance", None), (30, "maintenance", None)]
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def settled_at_once() -> None:
    """Let a read return."""
