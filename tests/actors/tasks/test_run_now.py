"""Tasks run by hand (SPEC 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.reminders.faults import Fate
from whenidle_actors.errors import AgentDisposed, WouldWaitForItself
from whenidle_protocol.task_requests import UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import NEW, ONCE, THIS, TaskWorld, every, seconds

if TYPE_CHECKING:
    from whenidle_protocol.task_record import TargetKind


async def test_run_now_of_new_makes_a_session_of_its_own(world: TaskWorld) -> None:
    """Two runs in one millisecond share it: its id is a function of task and moment."""
    async with world.root():
        task = await world.make(every(60, 10), NEW)
        await world.tasks.run(task.id)
        await world.wait(1)
        await world.tasks.run(task.id)
        await world.tasks.run(task.id)
        assert [header.id for header in await world.store.sessions()] == [
            "root",
            f"{task.id}.run.20260101T000000000Z",
            f"{task.id}.run.20260101T000001000Z",
        ]


async def test_run_now_of_new_once_makes_the_reserved_session(world: TaskWorld) -> None:
    """And the occurrence that comes due afterwards goes there, too."""
    async with world.root():
        task = await world.make(every(60, 10), ONCE)
        after = await world.tasks.run(task.id)
        assert after.target.created
        await world.wait(10)
        account = await world.account()
        assert task.target.session_id is not None
        assert len(account.sessions[task.target.session_id]) == 2


async def test_run_now_waits_for_the_agent(world: TaskWorld) -> None:
    """It claims the agent like any delivery; cancelled while it waits it delivers nothing."""
    world.turn_seconds = 50
    async with world.root() as agent:
        task = await world.make(every(300, 300))
        await agent.followup("work")
        with trio.move_on_after(20) as given_up:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(world.tasks.run, task.id)
                await world.wait(30)
        assert given_up.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.tasks.run, task.id)
            await world.wait(25)
            assert await world.delivered() == []
            await world.wait(5)
        assert [(when, due) for when, _, due, _ in await world.delivered()] == [(50, 50)]


async def test_run_now_from_inside_a_turn_of_the_target_raises_at_once(world: TaskWorld) -> None:
    """It would wait for its own idleness (SPEC 2.4)."""
    async with world.root() as agent:
        task = await world.make(every(300, 300))
        raised: list[Exception] = []

        async def run(_: object) -> None:
            try:
                await world.tasks.run(task.id)
            except WouldWaitForItself as error:
                raised.append(error)

        world.during_turn = run
        await agent.followup("work")
        await agent.when_idle()
        assert len(raised) == 1
        assert await world.delivered() == []


async def test_run_now_decides_again_when_the_task_was_changed(world: TaskWorld) -> None:
    """An edit between its reading and its commit makes it look again, and what is delivered is as edited."""
    async with world.root():
        task = await world.make(every(300, 300))
        edited = False

        async def edit(batch: object) -> None:
            nonlocal edited
            if not edited:
                edited = True
                await world.desk.edit(UpdateTask(task.id, title="edited"), Caller("root"))

        world.store.before = edit
        after = await world.tasks.run(task.id)
        assert (after.title, after.deliveries) == ("edited", 1)
        assert await world.delivered() == [(0, "edited", 0, 0)]


@pytest.mark.parametrize(("before", "after"), [(NEW, THIS), (THIS, NEW)])
async def test_run_now_goes_to_the_target_that_the_task_has_when_it_is_delivered(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, before: TargetKind, after: TargetKind
) -> None:
    """A target that is changed while it waits for the agent counts, in the message as in the receipt."""
    async with world.root():
        task = await world.make(every(300, 300), before)
        read, reads = world.store.task, 0

        async def edit_before_the_second(task_id: str) -> object:
            nonlocal reads
            reads += 1
            if reads == 2:
                await world.desk.edit(UpdateTask(task_id, target=after), Caller("root"))
            return await read(task_id)

        monkeypatch.setattr(world.store, "task", edit_before_the_second)
        await world.tasks.run(task.id)
        account = await world.account()
        (delivery,) = account.deliveries
        assert (delivery.session == "root") == (after is THIS)


@pytest.mark.parametrize("target", [THIS, ONCE, NEW])
@pytest.mark.parametrize("fate", [Fate.LOST, Fate.KEPT])
async def test_run_now_reads_back_an_uncertain_commit(world: TaskWorld, fate: Fate, target: TargetKind) -> None:
    """Kept, it is a delivery like any other and runs; lost, the caller is told that it is not known."""
    async with world.root():
        task = await world.make(every(300, 300), target)
        world.store.fail(fate)
        if fate is Fate.KEPT:
            assert (await world.tasks.run(task.id)).deliveries == 1
        else:
            with pytest.raises(Exception, match="lost the connection"):
                await world.tasks.run(task.id)
        await world.wait(1)
        assert len(world.runs) == len(await world.delivered()) == (fate is Fate.KEPT)


async def test_run_now_that_is_aborted_while_it_commits_delivers_once(world: TaskWorld) -> None:
    """`cancel` ends the claim; the commit that had begun counts, and is not made again."""
    async with world.root() as agent:
        task = await world.make(every(300, 300))
        gate = trio.Event()

        async def hold(_: object) -> None:
            await gate.wait()

        world.store.before = hold
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.tasks.run, task.id)
            await world.wait(0)
            nursery.start_soon(agent.cancel, "no")
            await world.wait(0)
            gate.set()
        await world.wait(0)
        assert len(await world.delivered()) == 1


async def test_a_run_by_hand_while_the_host_closes_restores_nothing(world: TaskWorld) -> None:
    """Asked for by a turn that may still finish: it is refused, and the turn ends."""
    raised: list[Exception] = []
    async with trio.open_nursery() as nursery, world.host(shutdown_timeout=100) as host:
        agent = await host.create_agent("root")
        await host.create_agent("cold")
        task = await world.make(every(300, 300), by="cold")
        await host.dispose("cold")

        async def run(_: object) -> None:
            await trio.sleep(5)
            try:
                await world.tasks.run(task.id)
            except AgentDisposed as error:
                raised.append(error)

        world.during_turn = run
        await agent.followup("work")
        await world.wait(1)
        nursery.start_soon(world.advance, seconds(10))
    assert len(raised) == 1
    async with world.host():
        assert await world.delivered() == []
