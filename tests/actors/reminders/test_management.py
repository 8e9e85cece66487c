"""The order of a management call: preflight, fold, append, barrier, answer (SPEC 5.6)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio

from whenidle_actors import reminder_calls
from whenidle_actors.errors import AgentDisposed
from whenidle_actors.session import Session

from .faults import Fate
from .worlds import T0, World, create, delete, listed, seconds, settled

UNCERTAIN = (
    "It could not be confirmed that the reminders are saved. List them before you try again: "
    "the change may have been made."
)


def uncertain(operation: str, **more: str) -> dict[str, str]:
    """Return the answer of a call whose durability is not confirmed."""
    return {"code": "persistence_uncertain", "message": UNCERTAIN, "operation": operation, **more}


async def test_calls_of_one_agent_are_served_one_after_the_other(world: World) -> None:
    """A hundred creates at once get a hundred ids, none twice and none left out."""
    answers: list[Any] = []

    async def one(agent: Any) -> None:
        answers.append(await create(agent, after_seconds=1000))

    async with world.root() as agent:
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(one, agent)
        assert sorted(answer["id"] for answer in answers) == sorted(f"schedule-{n}" for n in range(1, 101))
        assert [item["id"] for item in await listed(agent)] == [f"schedule-{n}" for n in range(1, 101)]


async def test_a_caller_that_cancels_before_its_turn_changes_nothing(world: World) -> None:
    """The call that waits in the queue is withdrawn; the one that is being served is finished."""
    async with world.root() as agent, trio.open_nursery() as nursery:
        gate = trio.Event()

        async def hold(_: Any) -> None:
            await gate.wait()

        world.store.before = hold
        first, second = trio.CancelScope(), trio.CancelScope()

        async def make(prompt: str, scope: trio.CancelScope) -> None:
            with scope:
                await create(agent, prompt, after_seconds=10)

        nursery.start_soon(make, "served", first)
        await settled()
        nursery.start_soon(make, "waiting", second)
        await settled()
        first.cancel()
        second.cancel()
        await settled()
        gate.set()
        await settled()
        assert [item["prompt"] for item in await listed(agent)] == ["served"]


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.FULL, Fate.LOST])
async def test_a_create_that_is_not_confirmed_says_so(world: World, fate: Fate) -> None:
    """The answer names the operation; when the log can be read again it holds nothing of it."""
    async with world.root() as agent:
        world.store.fail(fate)
        assert await create(agent, after_seconds=10) == uncertain("create")
        assert await listed(agent) == []
        assert (await create(agent, after_seconds=10))["id"] == "schedule-1"


async def test_a_create_that_was_kept_is_listed_once_the_log_is_read_back(world: World) -> None:
    """An uncertain outcome that was durable comes to light in the next call, and is delivered."""
    async with world.root() as agent:
        world.store.fail(Fate.KEPT)
        assert await create(agent, after_seconds=10) == uncertain("create")
        assert [item["id"] for item in await listed(agent)] == ["schedule-1"]
        await world.wait(10)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_a_create_that_was_kept_is_delivered_without_another_call(world: World) -> None:
    """The owner reads back by itself what it has in doubt, and arms the alarm."""
    async with world.root() as agent:
        world.store.fail(Fate.KEPT)
        await create(agent, after_seconds=10)
        await world.wait(10)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


@pytest.mark.parametrize(("fate", "gone"), [(Fate.REFUSED, False), (Fate.LOST, False), (Fate.KEPT, True)])
async def test_a_delete_that_is_not_confirmed_names_its_id(world: World, fate: Fate, gone: bool) -> None:
    """It is no `not found` and no `deleted`; the next list tells which."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.fail(fate)
        assert await delete(agent, "schedule-1") == uncertain("delete", id="schedule-1")
        assert ([item["id"] for item in await listed(agent)] == []) is gone
        await world.wait(10)
        assert bool((await world.ledger()).delivered) is not gone


async def test_no_answer_is_built_on_what_is_not_confirmed(world: World) -> None:
    """While the log cannot be read back every call says so: no list, no not-found, no new reminder."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        world.store.fail(Fate.KEPT)
        world.store.unreadable = True
        await create(agent, after_seconds=20)
        written = len(world.store.batches)
        assert await listed(agent) == uncertain("list")
        assert await delete(agent, "schedule-7") == uncertain("delete", id="schedule-7")
        assert await create(agent, after_seconds=10) == uncertain("create")
        assert len(world.store.batches) == written
        world.store.unreadable = False
        assert [item["id"] for item in await listed(agent)] == ["schedule-1", "schedule-2"]


async def test_shape_checks_come_before_the_queue(world: World) -> None:
    """A malformed call is refused at once, whatever holds the queue up."""
    async with world.root() as agent, trio.open_nursery() as nursery:
        gate = trio.Event()

        async def hold(_: Any) -> None:
            await gate.wait()

        world.store.before = hold
        nursery.start_soon(partial(create, agent, after_seconds=10))
        await settled()
        assert (await create(agent, after_seconds=0))["code"] == "invalid_rule"
        assert (await agent.call_tool("schedule_delete", {}))["code"] == "invalid_selector"
        gate.set()


async def _go(_: Any) -> None:
    """Let a commit go on."""


async def test_each_preflight_has_the_owner_look_at_what_is_due(world: World) -> None:
    """A list after a forward step that nobody announced delivers what the alarm has not noticed yet."""
    async with world.root() as agent:
        await create(agent, after_seconds=1000)
        await settled()
        world.step(seconds(2000), announce=False)
        await settled()
        assert world.runs == []
        assert [item["state"] for item in await listed(agent)] == ["overdue"]
        await settled()
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 1_000_000)]


async def test_an_unreadable_log_is_an_answer_and_not_a_fault(world: World) -> None:
    """The agent is not restarted because its store does not answer."""
    async with world.root() as agent:
        agent.session.drop()
        world.store.unreadable = True
        for _ in range(20):
            assert (await listed(agent))["code"] == "persistence_uncertain"
        assert agent.statistics().restarts == 0
        world.store.unreadable = False
        assert await listed(agent) == []


async def test_a_disposed_agent_answers_no_more(world: World) -> None:
    """A call that waited when the agent was disposed raises; nothing is made of it."""
    async with world.root() as agent:
        await agent.dispose()
        with pytest.raises(AgentDisposed):
            await listed(agent)


async def test_another_process_that_appends_first_costs_one_more_try(world: World) -> None:
    """A create that loses the race for the next position of the log decides again, with the next free id."""
    async with world.root() as agent:
        raced: list[Any] = []

        async def race(_: Any) -> None:
            world.store.before = _go
            other = await Session.load(agent.services.journal, "root")
            raced.append(await _create_elsewhere(other))

        world.store.before = race
        assert (await create(agent, "mine", after_seconds=10))["id"] == "schedule-2"
        assert raced[0]["id"] == "schedule-1"
        assert [item["prompt"] for item in await listed(agent)] == ["theirs", "mine"]


async def _create_elsewhere(session: Any) -> Any:
    request = reminder_calls.read("schedule_create", {"prompt": "theirs", "after_seconds": 10})
    return await reminder_calls.serve(session, request)
