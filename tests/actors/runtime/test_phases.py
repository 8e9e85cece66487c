from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.errors import AgentBusy, UnknownTool, WouldWaitForItself

from .worlds import Script, hosted, living, log, settled, sleeping

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn


async def hold(seconds: float) -> float:
    """Be a task that takes so long, and returns it."""
    await trio.sleep(seconds)
    return seconds


async def test_maintenance_returns_what_its_task_returned(store: FaultyStore, script: Script) -> None:
    """The result of a maintenance task passes through, and the agent counts as idle meanwhile."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        results: list[float] = []

        async def claim() -> None:
            results.append(await agent.run_maintenance(lambda: hold(3)))

        nursery.start_soon(claim)
        await settled()
        assert agent.status.value == "idle"
        await agent.when_idle()
        assert (results, trio.current_time()) == ([3], 3)
    assert log(store) == []


async def test_the_exception_of_a_maintenance_task_passes_through(store: FaultyStore, script: Script) -> None:
    """What the task raises is what the claimer gets, the very object, and the agent is idle again."""
    error = ZeroDivisionError("mine")

    async def fail() -> None:
        raise error

    async with living(store, script) as agent:
        with pytest.raises(ZeroDivisionError) as caught:
            await agent.run_maintenance(fail)
        assert caught.value is error
        assert await agent.run_maintenance(lambda: hold(0)) == 0


async def test_a_claim_happens_without_a_checkpoint(store: FaultyStore, script: Script) -> None:
    """Between the test for idleness and the claim nothing else can run, so of two claims one is refused."""
    order: list[str] = []

    async def claim(agent: Agent, name: str) -> None:
        try:
            await agent.run_maintenance(lambda: hold(1))
            order.append(f"{name} done")
        except AgentBusy:
            order.append(f"{name} busy at {trio.current_time()}")

    async with living(store, script) as agent, trio.open_nursery() as nursery:
        for name in ("first", "second"):
            nursery.start_soon(claim, agent, name)
    assert sorted(order) in (
        ["first busy at 0.0", "second done"],
        ["first done", "second busy at 0.0"],
    )


async def test_a_running_agent_is_busy_at_once(store: FaultyStore, script: Script) -> None:
    """A claim during a turn, and one between the waking message and its turn, raise AgentBusy at once."""
    async with living(store, script) as agent:
        script.on("busy", sleeping(5))
        await agent.followup("busy")
        for _ in range(2):
            with pytest.raises(AgentBusy, match="running"):
                await agent.run_maintenance(lambda: hold(0))
            await settled()
        assert trio.current_time() == 0


async def test_an_agent_whose_drain_goes_on_is_busy(store: FaultyStore, script: Script) -> None:
    """Between two turns of a drain the agent is not idle."""
    refused: list[str] = []
    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def try_to_claim() -> None:
            while agent.status.value == "running":
                try:
                    await agent.run_maintenance(lambda: hold(0))
                except AgentBusy:
                    refused.append("busy")
                await trio.lowlevel.checkpoint()

        for text in "abc":
            await agent.followup(text)
        nursery.start_soon(try_to_claim)
        await agent.when_idle()
        assert script.taken == [["a"], ["b"], ["c"]]
        assert len(refused) > 3


async def test_waking_input_during_maintenance_runs_when_it_is_released(store: FaultyStore, script: Script) -> None:
    """A followup that arrives during a claim stays in the inbox and is taken when the claim is released."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        nursery.start_soon(agent.run_maintenance, lambda: hold(4))
        await settled()
        await agent.followup("wait")
        await agent.inject("along")
        await settled()
        assert script.turns == []
        assert [message.text for message in (await agent.inbox()).next_turn] == ["wait"]
        await agent.when_idle()
        assert (script.taken, trio.current_time()) == ([["along", "wait"]], 4)


async def test_a_failing_maintenance_task_releases_waking_input_too(store: FaultyStore, script: Script) -> None:
    """The driver starts on release however the task ended."""

    async def fail() -> None:
        await trio.sleep(1)
        raise ZeroDivisionError

    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def claim() -> None:
            with pytest.raises(ZeroDivisionError):
                await agent.run_maintenance(fail)

        nursery.start_soon(claim)
        await settled()
        await agent.steer("hurry")
        await agent.when_idle()
        assert script.taken == [["hurry"]]


async def test_a_claimer_that_is_cancelled_releases_its_claim(store: FaultyStore, script: Script) -> None:
    """Cancelling the caller of run_maintenance ends the task and leaves the agent idle."""
    async with living(store, script) as agent:
        with trio.move_on_after(2) as scope:
            await agent.run_maintenance(trio.sleep_forever)
        assert scope.cancelled_caught
        assert await agent.run_maintenance(lambda: hold(0)) == 0


async def test_when_idle_follows_maintenance_and_what_it_released(store: FaultyStore, script: Script) -> None:
    """`when_idle` returns when the maintenance task and the turns released behind it are over."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        script.on("x", sleeping(5))
        nursery.start_soon(agent.run_maintenance, lambda: hold(3))
        await settled()
        await agent.followup("x")
        await agent.followup("x")
        await agent.when_idle()
        assert trio.current_time() == 13


async def test_when_idle_of_an_idle_agent_returns_at_once(store: FaultyStore, script: Script) -> None:
    """An idle agent is quiescent, whatever waits in its inbox without waking it."""
    async with living(store, script) as agent:
        await agent.inject("fyi")
        await agent.when_idle()
        assert (trio.current_time(), script.turns) == (0, [])


async def test_cancelling_a_wait_for_idleness_changes_nothing(store: FaultyStore, script: Script) -> None:
    """A waiter that gives up leaves turn and other waiters alone."""
    async with living(store, script) as agent:
        script.on("x", sleeping(5))
        await agent.followup("x")
        with trio.move_on_after(1) as scope:
            await agent.when_idle()
        assert scope.cancelled_caught
        await agent.when_idle()
        assert trio.current_time() == 5


ITSELF: list[Callable[[Agent], Awaitable[object]]] = [
    lambda agent: agent.when_idle(),
    lambda agent: agent.run_maintenance(lambda: hold(0)),
]


@pytest.mark.parametrize("wait", ITSELF)
async def test_waiting_for_oneself_in_a_turn_raises_at_once(
    store: FaultyStore, script: Script, wait: Callable[[Agent], Awaitable[object]]
) -> None:
    """CASE 41: from inside its own turn, an agent's idleness cannot be waited for, nor claimed."""
    raised: list[float] = []

    async def work(turn: Turn) -> None:
        with pytest.raises(WouldWaitForItself, match="own turn"):
            await wait(turn.agent)
        raised.append(trio.current_time())

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
    assert raised == [0]
    assert log(store)[-1] == "end 1 completed"


@pytest.mark.parametrize("wait", ITSELF)
async def test_a_child_task_of_the_turn_cannot_wait_for_it_either(
    store: FaultyStore, script: Script, wait: Callable[[Agent], Awaitable[object]]
) -> None:
    """CASE 41: tasks and threads that the turn started are inside it too."""
    raised: list[str] = []

    async def child(agent: Agent, where: str) -> None:
        with pytest.raises(WouldWaitForItself):
            await wait(agent)
        raised.append(where)

    async def work(turn: Turn) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, turn.agent, "task")
        await trio.to_thread.run_sync(trio.from_thread.run, child, turn.agent, "thread")

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
    assert raised == ["task", "thread"]


@pytest.mark.parametrize("wait", ITSELF)
async def test_waiting_for_oneself_in_maintenance_raises_at_once(
    store: FaultyStore, script: Script, wait: Callable[[Agent], Awaitable[object]]
) -> None:
    """CASE 41: from inside its own maintenance task, an agent's idleness cannot be waited for, nor claimed."""
    async with living(store, script) as agent:

        async def task() -> str:
            with pytest.raises(WouldWaitForItself, match="maintenance"):
                await wait(agent)
            return "raised"

        assert await agent.run_maintenance(task) == "raised"


@pytest.mark.parametrize("wait", ITSELF)
async def test_waiting_for_oneself_in_the_mailbox_raises_at_once(
    store: FaultyStore, script: Script, wait: Callable[[Agent], Awaitable[object]]
) -> None:
    """CASE 41: a tool at work in the agent's mailbox cannot wait for the agent."""
    async with living(store, script) as agent:
        with pytest.raises(WouldWaitForItself, match="tool"):
            await agent.in_queue(lambda: wait(agent))


async def test_a_turn_may_wait_for_another_agent(store: FaultyStore, script: Script) -> None:
    """Being inside one's own turn says nothing about other agents."""
    async with hosted(store, script) as host:
        agent, other = await host.create_agent("a"), await host.create_agent("b")

        async def work(_: Turn) -> None:
            await other.followup("y")
            await other.when_idle()
            await other.run_maintenance(lambda: hold(1))

        script.on("x", work)
        script.on("y", sleeping(5))
        await agent.followup("x")
        await agent.when_idle()
        assert trio.current_time() == 6


async def test_a_task_that_outlives_its_turn_may_wait_for_the_agent(store: FaultyStore, script: Script) -> None:
    """A task that a turn left behind in somebody else's nursery is inside no turn once that is over."""
    done: list[float] = []
    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def later() -> None:
            await trio.sleep(10)
            await agent.when_idle()
            await agent.run_maintenance(lambda: hold(1))
            done.append(trio.current_time())

        async def work(_: Turn) -> None:
            nursery.start_soon(later)

        script.on("x", work)
        await agent.followup("x")
        await trio.sleep(20)
    assert done == [11]


async def test_a_task_that_outlives_its_turn_may_wait_for_what_came_after(store: FaultyStore, script: Script) -> None:
    """A task left behind by a turn is not inside the maintenance task that has claimed the agent since."""
    done: list[float] = []
    async with living(store, script) as agent, trio.open_nursery() as nursery:

        async def later() -> None:
            await trio.sleep(10)
            await agent.when_idle()
            done.append(trio.current_time())

        async def work(_: Turn) -> None:
            nursery.start_soon(later)

        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
        await agent.run_maintenance(lambda: hold(15))
        await trio.sleep(1)
    assert done == [15]


async def test_a_tool_called_from_inside_a_turn_is_answered_while_it_runs(store: FaultyStore, script: Script) -> None:
    """CASE 42: the turn gets the tool's answer and goes on."""
    answers: list[object] = []

    async def work(turn: Turn) -> None:
        answers.append(await turn.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60}))
        answers.append(await turn.call_tool("schedule_list", {}))
        answers.append(turn.agent.status.value)

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
    created, listed, status = answers
    assert (created["id"], [item["id"] for item in listed], status) == ("schedule-1", ["schedule-1"], "running")  # type: ignore[index,attr-defined]  # answers are JSON
    assert log(store)[:4] == ["insert m0 x", "start 1: m0", "ScheduleChanged", "end 1 completed"]


async def test_a_turn_may_send_to_its_own_agent(store: FaultyStore, script: Script) -> None:
    """Messages an agent sends itself during a turn are taken by the turn behind it."""

    async def work(turn: Turn) -> None:
        await turn.agent.followup("next")

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
    assert script.taken == [["x"], ["next"]]


@pytest.mark.parametrize("name", ["nonsense", "n" * 10_000, "", 5])
async def test_an_unknown_tool_is_refused_by_name(store: FaultyStore, script: Script, name: str) -> None:
    """Calling a tool the agent has not got is UnknownTool, with a short message."""
    async with living(store, script) as agent:
        with pytest.raises(UnknownTool) as caught:
            await agent.call_tool(name, {})
        assert len(str(caught.value)) < 200


async def test_statistics_say_what_the_agent_is_doing(store: FaultyStore, script: Script) -> None:
    """The statistics of an agent are those of its mailbox, its phase, and the numbers of its log."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", sleeping(5))
        await agent.inject("y")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        before = agent.statistics()
        assert (before.phase.value, before.turns, before.pending, before.reminders, before.log_length) == (
            "running",
            1,
            1,
            1,
            4,
        )
        agent.session.drop()
        doubtful = agent.statistics()
        assert (doubtful.turns, doubtful.pending, doubtful.processed) == (None, None, before.processed)
