"""Who has reminders, and what a host that cannot keep them says (SPEC 5.1, 5.4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.composition import open_host
from whenidle_actors.errors import CompositionError, UnknownTool
from whenidle_actors.observation import EventKind
from whenidle_actors.reminders import Reminders
from whenidle_actors.tasks import Tasks

from .worlds import T0, World, create, listed, settled

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn

NAMES = ["schedule_create", "schedule_list", "schedule_delete"]


async def test_a_root_agent_has_the_three_tools(world: World) -> None:
    """An agent created after the suite was mounted has them, in this order."""
    async with world.root() as agent:
        assert [tool.name for tool in agent.tools()] == NAMES


async def test_a_delegated_child_has_none(world: World) -> None:
    """Nor has its own child; a call is for a tool they do not have."""
    async with world.host() as host:
        await host.create_agent("root")
        child = await host.create_agent("child", parent="root")
        grandchild = await host.create_agent("grandchild", parent="child")
        assert child.tools() == grandchild.tools() == ()
        with pytest.raises(UnknownTool, match="schedule_list"):
            await listed(child)


async def test_an_agent_that_was_live_before_mounting_has_none(world: World) -> None:
    """It gets them when it is restored; one created later has them at once."""
    async with world.host(suites=()) as host:
        early = await host.create_agent("early")
        host.mount(Reminders())
        late = await host.create_agent("late")
        assert (early.tools(), len(late.tools())) == ((), 3)
        assert (await host.agent("early")).tools() == ()
        await early.dispose()
        assert len((await host.agent("early")).tools()) == 3


async def test_a_host_without_a_store_cannot_have_reminders(world: World) -> None:
    """Mounting is refused, at the start and later, with what to do instead."""
    with pytest.raises(CompositionError, match="give open_host a store"):
        async with open_host(store=None, turn=world.turn, suites=[Reminders()]):
            pytest.fail("the host opened")
    async with open_host(store=None, turn=world.turn) as host:
        with pytest.raises(CompositionError, match="give open_host a store"):
            host.mount(Reminders())
        assert (await host.create_agent("root")).tools() == ()


async def test_a_suite_is_mounted_once(world: World) -> None:
    """Not twice on a host, not beside another with the same tools, and not on two hosts."""
    suite = Reminders()
    async with world.host(suites=[suite]) as host:
        with pytest.raises(CompositionError, match="schedule_create"):
            host.mount(Reminders())
    with pytest.raises(CompositionError, match="make one for each host"):
        async with world.host(suites=[suite]):
            pytest.fail("the host opened")


async def test_how_logs_are_read_is_not_changed_under_a_host(world: World) -> None:
    """The one-shot protocol is chosen when the host is opened."""
    async with world.host(suites=()) as host:
        with pytest.raises(CompositionError, match="give it to open_host"):
            host.mount(Reminders(fixed_rate=False))


def test_a_suite_that_is_not_mounted_says_so() -> None:
    """It cannot do anything without a host."""
    with pytest.raises(CompositionError, match="not mounted"):
        Reminders().attend("root", 0)


async def test_the_one_shot_protocol_knows_no_every(world: World) -> None:
    """With `fixed_rate=False`, `every_seconds` is not in the schema and is an invalid selector."""
    async with world.root(suites=[Reminders(fixed_rate=False)]) as agent:
        properties = agent.tools()[0].input_schema["properties"]
        assert list(properties) == ["prompt", "after_seconds", "at"]
        assert await create(agent, every_seconds=300) == {
            "code": "invalid_selector",
            "message": 'There is no argument "every_seconds"; the arguments are prompt, after_seconds and at.',
        }
        assert (await create(agent, after_seconds=10))["id"] == "schedule-1"
        await world.wait(10)
        assert (await world.ledger()).delivered == [("schedule-1", T0 + 10_000)]


async def test_a_fork_owns_no_reminder_of_its_parent(world: World) -> None:
    """What was inherited is not listed and does not come due; the parent's does, and ids start anew."""
    async with world.host() as host:
        parent = await host.create_agent("root")
        await create(parent, after_seconds=10)
        fork = await host.fork("root", new_id="fork")
        assert await listed(fork) == []
        assert (await create(fork, "mine", after_seconds=20))["id"] == "schedule-1"
        await world.wait(20)
        assert [delivery.prompt for delivery in (await world.ledger()).deliveries] == ["tea"]
        assert [item["id"] for item in await listed(fork)] == []
    assert [at for at, _, _ in world.runs] == [T0 + 10_000, T0 + 20_000]


async def test_what_is_stored_comes_due_after_a_late_mounting(world: World) -> None:
    """A suite that is mounted on an open host takes up the reminders of sessions that are not live."""
    async with world.root() as agent:
        await create(agent, after_seconds=60)
    async with world.host(suites=()) as host:
        await world.wait(90)
        assert world.runs == []
        host.mount(Reminders())
        await settled()
        assert len(world.runs) == 1


async def test_presets_say_which_root_agents_have_reminders(world: World) -> None:
    """An agent of another preset has none, so that another suite may offer it tools of the same names."""
    async with world.host(suites=[Reminders(presets=["chat"])]) as host:
        chat = await host.create_agent("chat", preset="chat")
        other = await host.create_agent("other", preset="batch")
        host.mount(Tasks(presets=["batch"]))
        late = await host.create_agent("late", preset="batch")
        assert [len(agent.tools()) for agent in (chat, other, late)] == [3, 0, 4]


async def test_a_suite_mounted_late_takes_up_what_is_in_the_store(world: World) -> None:
    """Sessions of earlier hosts get what comes due; live agents made without it get nothing, nor the rest anything."""
    async with world.host() as host:
        for name in ("cold", "live"):
            await create(await host.create_agent(name), after_seconds=100)
        await (await host.create_agent("waits")).inject("x")
    async with world.host(suites=()) as host:
        await host.agent("live")
        waits = await host.agent("waits")
        world.during_turn = partial(_sleep, 1000)
        await waits.followup("y")
        await waits.dispose()
        host.mount(Reminders())
        await settled()
        assert host.statistics().alarm.armed == 1
        world.during_turn = None
        await world.wait(100)
        assert [event.session_id for event in world.events if event.kind is EventKind.REMINDER_DELIVERED] == ["cold"]


async def _sleep(seconds: float, _: Turn) -> None:
    await trio.sleep(seconds)
