"""Where tasks go: this session, one new session, a new session each time (SPEC 6.8)."""

from __future__ import annotations

import pytest

from whenidle_actors.errors import UnknownSession
from whenidle_protocol.task_record import TaskStatus
from whenidle_protocol.task_requests import UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import NEW, ONCE, T0, THIS, TaskWorld, at, call, create, every, once


async def test_new_once_creates_its_reserved_session_at_the_first_delivery(any_world: TaskWorld) -> None:
    """The session is known from the start, exists from the first delivery on, and gets every later one."""
    world = any_world
    async with world.host() as host:
        agent = await host.create_agent("root", cwd="/project", preset="coder")
        made = await create(agent, target="new_once")
        reserved = made["targetSessionId"]
        assert reserved == f"{made['id']}.once.20260101T000000000Z"
        with pytest.raises(UnknownSession):
            await world.store.read(reserved)
        await world.wait(10)
        header = (await world.store.read(reserved)).header
        assert (header.cwd, header.preset, header.created_at) == ("/project", "coder", at(10))
        assert (header.delegation_depth, header.parent) == (0, None)
        await world.wait(60)
        account = await world.account()
        assert [len(account.sessions[name]) for name in ("root", reserved)] == [0, 2]
        assert [moment - T0 for moment, _, _ in world.runs] == [10_000, 70_000]


async def test_new_makes_a_session_for_each_delivery(any_world: TaskWorld) -> None:
    """Its id is a function of the task and the occurrence, and it has the maker's directory and preset."""
    world = any_world
    async with world.host() as host:
        agent = await host.create_agent("root", cwd="/project", preset="coder")
        made = await create(agent, target="new")
        assert "targetSessionId" not in made
        await world.wait(70)
        names = [f"{made['id']}.at.20260101T00{time}000Z" for time in ("0010", "0110")]
        account = await world.account()
        assert account.sessions.keys() == {"root", *names}
        header = (await world.store.read(names[1])).header
        assert (header.cwd, header.preset, header.created_at) == ("/project", "coder", at(70))
        seen = await call(agent, "view", id=made["id"])
        assert seen["lastDelivery"]["targetSessionId"] == names[1]
        assert {agent.id for agent in host.agents} == {"root", *names}


async def test_the_agent_of_a_new_session_has_the_tools(world: TaskWorld) -> None:
    """It is a root agent like any other, and may act on the task that made it."""
    async with world.root():
        await world.make(once(10), NEW)
        world.during_turn = lambda turn: self_edit(turn.agent)
        seen: list[int] = []

        async def self_edit(agent: object) -> None:
            seen.append((await call(agent, "list"))["total"])  # type: ignore[arg-type]

        await world.wait(10)
        assert seen == [1]


async def test_an_edit_of_the_target_moves_the_next_delivery(world: TaskWorld) -> None:
    """From `new` to this session, from there to a session reserved anew (SPEC 6.5)."""
    async with world.host() as host:
        agent, other = await host.create_agent("root"), await host.create_agent("other", cwd="/elsewhere")
        made = await create(agent, target="new")
        await call(other, "edit", id=made["id"], action="update", target="this_session")
        await world.wait(15)
        after = await call(other, "edit", id=made["id"], action="update", target="new_once")
        assert after["targetSessionId"] == f"{made['id']}.once.20260101T000015000Z"
        await world.wait(60)
        account = await world.account()
        assert [each.session for each in account.deliveries] == ["other", after["targetSessionId"]]
        assert (await world.store.read(after["targetSessionId"])).header.cwd == "/elsewhere"


async def test_two_tasks_for_one_session_that_is_yet_to_be_made(world: TaskWorld) -> None:
    """If one of them makes the session, both arrive there, in one message."""
    async with world.root():
        maker = await world.make(every(60, 10), ONCE)
        assert maker.target.session_id is not None
        await world.wait(1)
        await world.make(every(60, 10), by=maker.target.session_id, title="guest")
        await world.wait(11)
        account = await world.account()
        assert [each.title for each in account.deliveries] == ["title", "guest"]
        assert [len(texts) for texts in account.sessions.values()] == [0, 1]


async def test_a_one_shot_for_a_session_that_another_task_would_make_later_fails_alone(world: TaskWorld) -> None:
    """It comes first, finds nothing, and says so; the maker is delivered all the same."""
    async with world.root():
        maker = await world.make(every(60, 10), ONCE)
        assert maker.target.session_id is not None
        guest = await world.make(once(10), by=maker.target.session_id)
        await world.wait(11)
        assert (await world.view(guest)).failures == 1
        assert [each.task for each in (await world.account()).deliveries] == [maker.id]


async def test_new_delivers_into_a_session_of_that_id_that_is_there(any_world: TaskWorld) -> None:
    """A retry finds the session of its occurrence instead of failing on it (SPEC 6.8)."""
    world = any_world
    async with world.host() as host:
        task = await world.make(once(10), NEW)
        name = f"{task.id}.at.20260101T000010000Z"
        await host.create_agent(name)
        await world.wait(10)
        account = await world.account()
        assert [len(account.sessions[name])] == [1]
        assert (await world.view(task)).status is TaskStatus.ENDED


async def test_new_waits_for_the_agent_of_the_session_it_finds(world: TaskWorld) -> None:
    """If time makes the occurrence another while it waits, that one gets a session of its own."""
    world.turn_seconds = 100
    async with world.host() as host:
        task = await world.make(every(60, 10), NEW)
        agent = await host.create_agent(f"{task.id}.at.20260101T000010000Z")
        await agent.followup("work")
        await world.wait(100)
        account = await world.account()
        (only,) = account.deliveries
        assert (only.at - T0, only.missed, only.session) == (100_000, 1, f"{task.id}.at.20260101T000110000Z")


async def test_a_session_made_by_hand_for_new_once_is_used(world: TaskWorld) -> None:
    """The reserved session exists already, made by somebody else: the task is delivered there."""
    async with world.host() as host:
        task = await world.make(once(10), ONCE)
        await host.create_agent(task.target.session_id)
        await world.wait(10)
        assert len(await world.delivered()) == 1


async def test_a_task_that_gets_another_target_as_it_comes_due_has_not_failed(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found due as one that makes its sessions, and given an existing one before it is read again: it goes there."""
    async with world.root():
        task = await world.make(every(60, 10), NEW)
        read, edited = world.store.task, False

        async def edit_first(task_id: str) -> object:
            nonlocal edited
            if not edited:
                edited = True
                await world.desk.edit(UpdateTask(task_id, target=THIS), Caller("root"))
            return await read(task_id)

        monkeypatch.setattr(world.store, "task", edit_first)
        await world.wait(10)
        assert [(when, due) for when, _, due, _ in await world.delivered()] == [(10, 10)]
        assert len((await world.account()).sessions["root"]) == 1
        assert (await world.view(task)).failures == 0
