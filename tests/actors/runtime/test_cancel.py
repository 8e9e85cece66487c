from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.errors import AgentDisposed, InvalidArgument, MaintenanceAborted, StoreError, TurnEnded

from .worlds import Script, assert_replays, expecting, living, log, settled, sleeping, stubborn

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn


async def test_a_cancel_aborts_the_turn_and_empties_the_inbox(store: FaultyStore, script: Script) -> None:
    """The turn ends aborted with the cause, and what waited is durably removed."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", sleeping(60))
        await agent.followup("y")
        await agent.inject("z")
        await agent.cancel("enough")
        await agent.when_idle()
        assert trio.current_time() == 0
        await assert_replays(agent)
    assert log(store)[2:] == ["insert m2 y", "insert m3 z", "abort 1 (enough): m3,m2", "end 1 aborted (enough)"]
    assert script.taken == [["x"]]


async def test_what_a_cancel_keeps_waits_for_the_next_waking_message(store: FaultyStore, script: Script) -> None:
    """With keep_inbox the messages stay, start nothing by themselves, and are taken after the next message."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", sleeping(60))
        await agent.followup("kept")
        await agent.cancel("enough", keep_inbox=True)
        await agent.when_idle()
        await settled()
        assert [message.text for message in (await agent.inbox()).next_turn] == ["kept"]
        assert script.taken == [["x"]]
        await assert_replays(agent)
    async with living(store, script) as agent:
        await settled()
        assert script.taken == [["x"]]
        await agent.followup("new")
        await agent.when_idle()
    assert script.taken == [["x"], ["kept"], ["new"]]


async def test_waking_input_after_the_abort_runs(store: FaultyStore, script: Script) -> None:
    """A followup that lands after the cancel, while the turn still unwinds, is remembered and runs."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", stubborn(5))
        await agent.followup("before")
        await agent.cancel("enough")
        await agent.followup("after")
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["x"], ["after"]]


async def test_waking_input_after_the_abort_releases_what_was_kept(store: FaultyStore, script: Script) -> None:
    """A waking message behind a cancel that kept the inbox makes everything run, in order."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", stubborn(5))
        await agent.followup("kept")
        await agent.cancel("enough", keep_inbox=True)
        await agent.followup("after")
        await agent.when_idle()
    assert script.taken == [["x"], ["kept"], ["after"]]


async def test_cancelling_an_idle_agent_does_nothing(store: FaultyStore, script: Script) -> None:
    """An idle agent's inbox is left alone, and nothing is written."""
    async with living(store, script) as agent:
        await agent.inject("fyi")
        await agent.cancel("enough")
        assert [message.text for message in (await agent.inbox()).next_step] == ["fyi"]
    assert log(store) == ["insert m0 fyi"]


async def test_a_cancel_aborts_maintenance(store: FaultyStore, script: Script) -> None:
    """The claimer gets MaintenanceAborted with the cause, and waking messages that waited are removed."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        aborted = pytest.raises(MaintenanceAborted, match="enough")
        nursery.start_soon(expecting, aborted, agent.run_maintenance, trio.sleep_forever)
        await settled()
        await agent.followup("waits")
        await agent.cancel("enough")
        await agent.when_idle()
        await assert_replays(agent)
    assert log(store) == ["insert m0 waits", "remove m0"]
    assert script.turns == []


async def test_a_maintenance_task_that_ignores_a_cancel_keeps_its_result(store: FaultyStore, script: Script) -> None:
    """A cancelled task that returns all the same, returns what it returned."""

    async def task() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done"

    async with living(store, script) as agent, trio.open_nursery() as nursery:
        results: list[str] = []

        async def claim() -> None:
            results.append(await agent.run_maintenance(task))

        nursery.start_soon(claim)
        await settled()
        await agent.cancel("enough")
        await agent.when_idle()
    assert results == ["done"]


async def test_a_turn_that_ignores_its_cancellation_is_aborted_all_the_same(store: FaultyStore, script: Script) -> None:
    """Once a cancel is accepted the outcome is aborted, however the turn function ends."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", stubborn(3))
        await agent.cancel("enough")
        assert agent.status.value == "running"
        await agent.when_idle()
        assert trio.current_time() == 3
    assert log(store)[2:] == ["abort 1 (enough): ", "end 1 aborted (enough)"]


async def test_a_turn_that_turns_its_cancellation_into_an_error_is_aborted(store: FaultyStore, script: Script) -> None:
    """An exception raised because of the cancel is not the turn's outcome."""

    async def work(_: Turn) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while cancelled")

    async with living(store, script) as agent:
        await script.begin(agent, "x", work)
        await agent.cancel("enough")
        await agent.when_idle()
    assert log(store)[2:] == ["abort 1 (enough): ", "end 1 aborted (enough)"]


async def test_a_child_task_that_fails_while_cancelled_harms_nobody(store: FaultyStore, script: Script) -> None:
    """A nursery of the turn that ends with a cancellation and an error together is an aborted turn."""

    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while cancelled")

    async def work(_: Turn) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(trio.sleep_forever)

    async with living(store, script) as agent:
        await script.begin(agent, "x", work)
        await agent.cancel("enough")
        await agent.when_idle()
    assert log(store)[2:] == ["abort 1 (enough): ", "end 1 aborted (enough)"]


async def test_a_turn_may_cancel_itself(store: FaultyStore, script: Script) -> None:
    """From inside its own turn a cancel is recorded, and takes effect at the turn's next checkpoint."""
    reached: list[str] = []

    async def work(turn: Turn) -> None:
        await turn.agent.cancel("my own wish")
        reached.append("after the call")
        await trio.lowlevel.checkpoint()
        reached.append("never")

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.followup("y")
        await agent.when_idle()
    assert reached == ["after the call"]
    assert log(store)[-2:] == ["abort 1 (my own wish): m2", "end 1 aborted (my own wish)"]


async def test_of_several_cancels_the_first_gives_the_cause(store: FaultyStore, script: Script) -> None:
    """Each cancel empties the inbox; the outcome has the cause of the first, and is recorded once."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", stubborn(3))
        await agent.cancel("first")
        await agent.followup("y")
        await agent.cancel("second")
        await agent.when_idle()
    assert log(store)[2:] == [
        "abort 1 (first): ",
        "insert m3 y",
        "abort 1 (second): m3",
        "end 1 aborted (first)",
    ]


async def test_a_cancelled_turn_takes_no_more_messages(store: FaultyStore, script: Script) -> None:
    """`next_step` of a turn that was cancelled raises TurnEnded; what waits is for the turn behind it."""
    raised: list[str] = []

    async def work(turn: Turn) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
            with pytest.raises(TurnEnded, match="enough") as caught:
                await turn.next_step()
            raised.append(str(caught.value))
            await turn.note("still allowed")

    async with living(store, script) as agent:
        await script.begin(agent, "x", work)
        await agent.cancel("enough")
        await agent.steer("later")
        await agent.when_idle()
    assert (len(raised), script.taken) == (1, [["x"], ["later"]])


async def test_a_turn_that_has_ended_can_do_nothing_any_more(store: FaultyStore, script: Script) -> None:
    """A turn object kept beyond its end raises TurnEnded."""
    async with living(store, script) as agent:
        await agent.followup("x")
        await agent.when_idle()
        with pytest.raises(TurnEnded, match="turn 1 has ended"):
            await script.turns[0].next_step()
        with pytest.raises(TurnEnded, match="turn 1 has ended"):
            await script.turns[0].note("late")


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNCERTAIN_LOST])
async def test_a_cancel_that_cannot_be_recorded_aborts_all_the_same(
    store: FaultyStore, script: Script, fault: Fault
) -> None:
    """The caller learns of the store's failure; the turn that runs is aborted and says so in its outcome."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", sleeping(1000))
        store.will(fault)
        with pytest.raises(StoreError):
            await agent.cancel("stop")
        await agent.when_idle()
        assert trio.current_time() == 0
        await assert_replays(agent)
    assert log(store)[2:] == ["end 1 aborted (stop)"]


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNCERTAIN_LOST])
async def test_a_cancel_refused_before_the_turn_began_to_run_aborts_it(
    store: FaultyStore, script: Script, fault: Fault
) -> None:
    """A turn that has claimed its messages and not begun to run is aborted by a cancel whose record fails."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        script.on("long", sleeping(1000))
        await agent.followup("long")
        with store.held():
            await settled()
            store.will(None, fault)
            nursery.start_soon(expecting, pytest.raises(StoreError), agent.cancel, "stop")
            await settled()
        await agent.when_idle()
        assert trio.current_time() == 0


@pytest.mark.parametrize("cause", [None, 5, b"stop"])
async def test_a_cause_is_a_string(store: FaultyStore, script: Script, cause: str) -> None:
    """Anything else is InvalidArgument, aborts nothing, and is no fault of the agent."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", sleeping(5))
        with pytest.raises(InvalidArgument, match="cause"):
            await agent.cancel(cause)
        await agent.when_idle()
        assert agent.statistics().restarts == 0
    assert log(store)[-1] == "end 1 completed"


async def test_cancelling_a_disposed_agent_says_so(store: FaultyStore, script: Script) -> None:
    """There is nothing left to cancel: AgentDisposed."""
    async with living(store, script) as agent:
        await agent.dispose()
        with pytest.raises(AgentDisposed):
            await agent.cancel("stop")
