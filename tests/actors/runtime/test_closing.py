from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.composition import open_host
from whenidle_actors.errors import AgentDisposed
from whenidle_actors.observation import EventKind
from whenidle_actors.turn import Redelivery

from .worlds import Crash, Script, hosted, living, log, settled, sleeping, stubborn, tasks

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn


async def test_closing_leaves_no_task(store: FaultyStore, script: Script) -> None:
    """Whatever agents, alarms and deliveries there were, nothing runs after the block."""
    before = tasks()
    async with hosted(store, script, passivate_after=100) as host:
        script.on("x", sleeping(5))
        for number in range(20):
            agent = await host.create_agent(f"a{number}")
            await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60 + number})
            await agent.followup("x")
        await trio.sleep(62)
    assert tasks() == before


async def test_turns_may_finish_in_the_grace_of_a_host_that_stops(store: FaultyStore, script: Script) -> None:
    """Left normally, a host waits for its turns and starts no others."""
    async with living(store, script, shutdown_timeout=100) as agent:
        script.on("x", sleeping(30))
        await agent.followup("x")
        await agent.followup("y")
        await settled()
    assert trio.current_time() == 30
    assert (script.taken, log(store)[-1]) == ([["x"]], "end 1 completed")


async def test_a_turn_can_use_its_agent_in_the_grace(store: FaultyStore, script: Script) -> None:
    """A turn that may finish gets its tools, steps, notes and messages; nobody else does."""
    answers: list[object] = []

    async def work(turn: Turn) -> None:
        await trio.sleep(30)
        answers.append(await turn.call_tool("schedule_list", {}))
        await turn.agent.inject("i")
        answers.append([message.text for message in await turn.next_step()])
        await turn.note("done")

    async def meddle(agent: Agent) -> None:
        await trio.sleep(10)
        with pytest.raises(AgentDisposed):
            await agent.inject("too late")
        answers.append("refused")

    async with trio.open_nursery() as nursery, living(store, script, shutdown_timeout=100) as agent:
        await script.begin(agent, "x", work)
        nursery.start_soon(meddle, agent)
    assert answers == ["refused", [], ["i"]]
    assert log(store)[-2:] == ["note 1 done", "end 1 completed"]


async def test_a_turn_that_exceeds_the_grace_is_interrupted(store: FaultyStore, script: Script) -> None:
    """Its messages come again with the next host, unless that is not wanted."""
    script.on("x", sleeping(30))
    for redelivery, line in (
        (Redelivery.AT_LEAST_ONCE, "end 1 interrupted (the host stops) redeliver"),
        (Redelivery.AT_MOST_ONCE, "end 2 interrupted (the host stops)"),
    ):
        async with living(store, script, shutdown_timeout=10, redelivery=redelivery) as agent:
            if not script.turns:
                await agent.followup("x")
            await settled()
        assert log(store)[-1] == line
    assert trio.current_time() == 20
    async with living(store, script) as agent:
        await agent.when_idle()
    assert [turn.attempt for turn in script.turns] == [1, 2]


async def test_a_disposal_after_the_interruption_takes_nothing_from_the_turn(
    store: FaultyStore, script: Script
) -> None:
    """A turn interrupted by its host stays interrupted, whoever disposes its agent while it unwinds."""

    async def work(_: Turn) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(10)

    async def dispose(agent: Agent) -> None:
        await trio.sleep(5)
        await agent.dispose()

    async with trio.open_nursery() as nursery, living(store, script, shutdown_timeout=0) as agent:
        await script.begin(agent, "x", work)
        nursery.start_soon(dispose, agent)
    assert log(store)[-1] == "end 1 interrupted (the host stops) redeliver"


async def test_the_exception_of_the_block_leaves_as_it_was_raised(store: FaultyStore, script: Script) -> None:
    """Unwrapped, the very object; turns are interrupted at once."""
    error = Crash("mine")

    async def leave() -> None:
        async with living(store, script, shutdown_timeout=100) as agent:
            await script.begin(agent, "x", sleeping(30))
            raise error

    with pytest.raises(Crash) as caught:
        await leave()
    assert caught.value is error
    assert trio.current_time() == 0
    assert log(store)[-1] == "end 1 interrupted (the host stops) redeliver"


async def test_a_group_of_the_block_leaves_as_it_was_raised(store: FaultyStore, script: Script) -> None:
    """A group with one exception in it stays a group: it is the block's own."""
    group = ExceptionGroup("mine", [ValueError("inside")])
    with pytest.raises(ExceptionGroup) as caught:
        async with open_host(store=store, turn=script, clock=script):
            raise group
    assert (caught.value.message, caught.value.exceptions) == ("mine", group.exceptions)


@pytest.mark.parametrize("phase", ["turn", "maintenance", "idle"])
async def test_a_host_whose_block_is_cancelled_closes_in_order(store: FaultyStore, script: Script, phase: str) -> None:
    """A cancellation from outside ends the block; turns are interrupted, recorded, and nothing hangs."""
    before = tasks()
    with trio.move_on_after(10) as scope:
        async with living(store, script, shutdown_timeout=100) as agent:
            script.on("x", sleeping(30))
            if phase == "turn":
                await agent.followup("x")
            elif phase == "maintenance":
                await agent.run_maintenance(trio.sleep_forever)
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert (trio.current_time(), tasks()) == (10, before)
    if phase == "turn":
        assert log(store)[-1] == "end 1 interrupted (the host stops) redeliver"


@pytest.mark.parametrize("after", range(20))
async def test_a_host_that_is_cancelled_while_it_opens_leaves_nothing(
    store: FaultyStore, script: Script, after: int
) -> None:
    """Wherever in opening the cancellation falls, the block ends, without a task, and the store can be opened."""
    before = tasks()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                for _ in range(after):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

            nursery.start_soon(cancel)
            async with living(store, script):
                await trio.sleep_forever()
    assert (scope.cancelled_caught, tasks()) == (True, before)
    async with living(store, script):
        pass


async def test_a_turn_that_does_not_let_go_is_waited_for(store: FaultyStore, script: Script) -> None:
    """A turn that ignores its interruption delays the end of the host; its outcome is what it was."""
    async with living(store, script, shutdown_timeout=10) as agent:
        await script.begin(agent, "x", stubborn(30))
    assert (trio.current_time(), log(store)[-1]) == (30, "end 1 completed")


async def test_an_agent_that_waits_for_a_slot_is_no_reason_to_wait(store: FaultyStore, script: Script) -> None:
    """Messages that were not taken yet stay in the inbox of a host that stops."""
    async with hosted(store, script, max_concurrent_turns=1, shutdown_timeout=10) as host:
        for name in ("a", "b"):
            script.on(name, sleeping(5))
            await (await host.create_agent(name)).followup(name)
        await settled()
    assert trio.current_time() == 5
    assert sorted(log(store, "a") + log(store, "b"))[:2] == ["end 1 completed", "insert m0 a"]
    assert len(script.turns) == 1


async def test_an_agent_made_while_the_host_stops_is_disposed_too(store: FaultyStore, script: Script) -> None:
    """A turn in its grace may make agents; they end with the host."""
    seen: list[tuple[EventKind, str]] = []

    async def work(turn: Turn) -> None:
        await trio.sleep(5)
        child = await hosts[0].create_agent("child", parent=turn.agent.id)
        await child.followup("x")
        await trio.sleep(100)

    hosts: list[Host] = []
    before = tasks()
    async with hosted(store, script, shutdown_timeout=10) as host:
        hosts.append(host)
        host.subscribe(lambda event: seen.append((event.kind, event.session_id)))
        script.on("go", work)
        script.on("x", sleeping(100))
        await (await host.create_agent("a")).followup("go")
        await settled()
    assert (EventKind.AGENT_DISPOSED, "child") in seen
    assert (trio.current_time(), tasks()) == (10, before)
    assert log(store, "child")[-1] == "end 1 interrupted (the host stops) redeliver"


async def test_an_agent_made_by_a_turn_that_unwinds_is_disposed_too(store: FaultyStore, script: Script) -> None:
    """Even what is made after the grace is over ends with the host, in order."""

    async def work(_: Turn) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await (await hosts[0].create_agent("child")).followup("x")
                await settled()

    hosts: list[Host] = []
    async with hosted(store, script, shutdown_timeout=10) as host:
        hosts.append(host)
        script.on("go", work)
        script.on("x", sleeping(100))
        await (await host.create_agent("a")).followup("go")
        await settled()
    assert log(store, "child")[-1] == "end 1 interrupted (the host stops) redeliver"


async def test_nothing_comes_due_any_more_while_the_host_stops(store: FaultyStore, script: Script) -> None:
    """A reminder of a cold session that falls into the grace waits for the next host."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("cold")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        await agent.dispose()
    async with hosted(store, script, shutdown_timeout=100) as host:
        script.on("x", sleeping(90))
        await (await host.create_agent("a")).followup("x")
        await settled()
    assert trio.current_time() == 90
    assert script.taken == [["x"]]


async def test_a_store_that_takes_nothing_any_more_does_not_hold_the_host_up(
    store: FaultyStore, script: Script
) -> None:
    """The turn stays open in the log, and is found so by the next host."""
    async with living(store, script, shutdown_timeout=10) as agent:
        await script.begin(agent, "x", sleeping(30))
        store.dead = True
    assert trio.current_time() == 10
    store.revive()
    assert log(store)[-1] == "start 1: m0"
    async with living(store, script) as agent:
        await agent.when_idle()
    assert "end 1 interrupted redeliver" in log(store)


async def test_a_defect_in_a_task_of_the_host_ends_it_and_is_told(store: FaultyStore, script: Script) -> None:
    """What no supervisor covers ends the block with its exception, unwrapped, and nothing hangs."""
    before = tasks()

    async def defect() -> None:
        raise ZeroDivisionError("a defect")

    async def meet() -> None:
        async with living(store, script, shutdown_timeout=100) as agent:
            await script.begin(agent, "x", sleeping(1000))
            agent.services.start(defect)
            await trio.sleep_forever()

    with pytest.raises(ZeroDivisionError):
        await meet()
    assert (trio.current_time(), tasks()) == (0, before)
    async with living(store, script) as agent:
        await agent.when_idle()
    assert [turn.attempt for turn in script.turns] == [1, 2]


async def test_a_handle_kept_beyond_its_host_is_disposed(store: FaultyStore, script: Script) -> None:
    """After the block every use is AgentDisposed, of passivated agents too."""
    async with hosted(store, script, passivate_after=10) as host:
        quiet = await host.create_agent("quiet")
        await trio.sleep(20)
        agent = await host.create_agent("a")
    for handle in (agent, quiet):
        with pytest.raises(AgentDisposed):
            await handle.inject("x")
        with pytest.raises(AgentDisposed):
            await handle.inbox()


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNCERTAIN_KEPT, Fault.UNCERTAIN_LOST])
async def test_a_turn_whose_outcome_cannot_be_written_at_once_is_written_later(
    store: FaultyStore, script: Script, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    """Its agent stays running and tries again, with growing waits, until the store takes it."""
    async with living(store, script) as agent:
        await agent.followup("x")
        store.will(None, fault, fault, fault)
        with caplog.at_level(logging.WARNING, "whenidle.turns"):
            await agent.when_idle()
        assert trio.current_time() < 1
    assert log(store) == ["insert m0 x", "start 1: m0", "end 1 completed"]
    assert "could not be recorded, trying again" in caplog.text
