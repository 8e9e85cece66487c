from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.actors.faulty_store import FAILED, UNCERTAIN, Fault, FaultyStore
from whenidle_actors.errors import CommitUncertain, SessionExists, StoreBusy, StoreDamaged, StoreFull, UnknownMessage
from whenidle_actors.session import Session
from whenidle_protocol import turn_changes
from whenidle_protocol.events import EventRecord

from .worlds import Script, assert_replays, foreign, hosted, living, log, looks, sleeping

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn

CALLS: dict[str, tuple[Callable[[Agent], Awaitable[Any]], str]] = {
    "followup": (lambda agent: agent.followup("new"), "insert m1 new"),
    "steer": (lambda agent: agent.steer("new"), "insert m1 new"),
    "inject": (lambda agent: agent.inject("new"), "insert m1 new"),
    "remove": (lambda agent: agent.remove("m0"), "remove m0"),
    "replace": (lambda agent: agent.replace("m0", "new"), "replace m0 new"),
}


@pytest.mark.parametrize(("call", "line"), CALLS.values(), ids=CALLS.keys())
async def test_a_refused_change_changes_nothing_and_works_later(
    store: FaultyStore, script: Script, call: Callable[[Agent], Awaitable[Any]], line: str
) -> None:
    """CASE 34: the caller gets the store's own error, the state is as it was, the same call works afterwards."""
    async with living(store, script) as agent:
        await agent.inject("old")
        before = looks(await agent.session.confirm())
        store.will(Fault.REFUSED)
        with pytest.raises(StoreFull):
            await call(agent)
        await agent.when_idle()
        assert looks(await agent.session.confirm()) == before
        assert (log(store), script.turns, agent.statistics().restarts) == (["insert m0 old"], [], 0)
        await call(agent)
        assert log(store)[1] == line
        await agent.when_idle()
        await assert_replays(agent)


@pytest.mark.parametrize(("call", "line"), CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("fault", UNCERTAIN)
async def test_an_uncertain_change_is_read_back(
    store: FaultyStore, script: Script, call: Callable[[Agent], Awaitable[Any]], line: str, fault: Fault
) -> None:
    """CASE 33: the caller learns that it is not known; the next decision is made of what is in the log."""
    async with living(store, script) as agent:
        await agent.inject("old")
        store.will(fault)
        with pytest.raises(CommitUncertain):
            await call(agent)
        await agent.when_idle()
        await agent.inbox()
        await assert_replays(agent)
        assert log(store).count(line) == (fault is Fault.UNCERTAIN_KEPT)
        await agent.inject("later")
        await assert_replays(agent)


@pytest.mark.parametrize("verb", ["followup", "steer"])
async def test_a_message_of_uncertain_fate_runs_if_it_is_there(store: FaultyStore, script: Script, verb: str) -> None:
    """An uncertain waking message that was kept is taken, once, without anything else happening."""
    async with living(store, script) as agent:
        store.will(Fault.UNCERTAIN_KEPT)
        with pytest.raises(CommitUncertain):
            await getattr(agent, verb)("x")
        await trio.sleep(100)
        assert script.taken == [["x"]]
    assert log(store) == ["insert m0 x", "start 1: m0", "end 1 completed"]


async def test_a_store_that_cannot_be_read_back_leaves_the_doubt(store: FaultyStore, script: Script) -> None:
    """While the log cannot be read nothing is decided, and everything works when it can."""
    async with living(store, script) as agent:
        store.will(Fault.UNCERTAIN_KEPT)
        with pytest.raises(CommitUncertain):
            await agent.inject("x")
        store.unreadable = 2
        for call in (agent.inbox, lambda: agent.inject("y")):
            with pytest.raises(CommitUncertain, match="cannot be read"):
                await call()
        assert [message.text for message in (await agent.inbox()).next_step] == ["x"]
    assert log(store) == ["insert m0 x"]


TURN = ["insert m0 x", "start 1: m0", "end 1 completed"]


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("fault", [fault for fault, _ in FAILED])
async def test_a_turn_begins_and_ends_once_whatever_fails(
    store: FaultyStore, script: Script, fault: Fault, nth: int
) -> None:
    """A beginning or an end that is refused or uncertain is tried until it is there, and is there once."""
    async with living(store, script) as agent:
        await agent.followup("x")
        store.will(*[None] * (nth - 1), fault, fault)
        await agent.when_idle()
        await assert_replays(agent)
    assert log(store) == TURN
    assert (script.taken, script.turns[0].attempt) == ([["x"]], 1)


@pytest.mark.parametrize(("fault", "error"), FAILED)
async def test_a_cancel_that_fails_is_told_and_aborts(
    store: FaultyStore, script: Script, fault: Fault, error: type[Exception]
) -> None:
    """The turn ends aborted, once, whether or not the cancel's own record is there."""
    async with living(store, script) as agent:
        await script.begin(agent, "x", sleeping(60))
        store.will(fault)
        with pytest.raises(error):
            await agent.cancel("stop")
        await agent.when_idle()
        await assert_replays(agent)
    kept = ["abort 1 (stop): "] if fault is Fault.UNCERTAIN_KEPT else []
    assert log(store)[2:] == [*kept, "end 1 aborted (stop)"]


@pytest.mark.parametrize(("fault", "error"), FAILED)
async def test_a_step_whose_claim_fails_gets_its_messages_at_the_next_try(
    store: FaultyStore, script: Script, fault: Fault, error: type[Exception]
) -> None:
    """What a turn took in an uncertain claim is handed to it by the next one, and never twice."""
    steps: list[list[str]] = []

    async def work(turn: Turn) -> None:
        await turn.agent.steer("one")
        store.will(fault)
        with pytest.raises(error):
            await turn.next_step()
        await turn.agent.steer("two")
        steps.extend([[message.text for message in await turn.next_step()] for _ in range(2)])

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
        await assert_replays(agent)
    assert steps == [["one", "two"], []]
    assert script.taken == [["x"]]


async def test_a_step_that_is_cancelled_loses_no_message(store: FaultyStore, script: Script) -> None:
    """A time limit around next_step ends when the claim is durable, and what was claimed is handed over."""
    steps: list[list[str]] = []

    async def work(turn: Turn) -> None:
        await turn.agent.steer("one")
        slow = store.slow = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(release, slow)
            with trio.move_on_after(1):
                steps.append([message.text for message in await turn.next_step()])
        steps.append([message.text for message in await turn.next_step()])

    async def release(slow: trio.Event) -> None:
        await trio.sleep(5)
        store.slow = None
        slow.set()

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
    assert steps == [["one"], []]


@pytest.mark.parametrize(("fault", "error"), FAILED)
async def test_a_note_that_fails_is_the_turns_to_repeat(
    store: FaultyStore, script: Script, fault: Fault, error: type[Exception]
) -> None:
    """The turn gets the store's error and may go on."""

    async def work(turn: Turn) -> None:
        store.will(fault)
        with pytest.raises(error):
            await turn.note("n")

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
        await assert_replays(agent)
    assert log(store).count("note 1 n") == (fault is Fault.UNCERTAIN_KEPT)
    assert log(store)[-1] == "end 1 completed"


@pytest.mark.parametrize(("fault", "error"), FAILED)
async def test_a_creation_that_fails_leaves_no_agent(
    store: FaultyStore, script: Script, fault: Fault, error: type[Exception]
) -> None:
    """Created or not, the session can be had afterwards."""
    async with hosted(store, script) as host:
        store.will(fault)
        with pytest.raises(error):
            await host.create_agent("a")
        assert host.agents == ()
        if fault is Fault.UNCERTAIN_KEPT:
            with pytest.raises(SessionExists):
                await host.create_agent("a")
            agent = await host.agent("a")
        else:
            agent = await host.create_agent("a")
        await agent.followup("x")
        await agent.when_idle()
    assert log(store) == TURN


@pytest.mark.parametrize("call", [call for call, _ in CALLS.values()], ids=CALLS.keys())
async def test_a_foreign_append_makes_the_decision_be_made_again(
    store: FaultyStore, script: Script, call: Callable[[Agent], Awaitable[Any]]
) -> None:
    """A change that finds the log longer than it knew is decided again of the longer log."""
    async with living(store, script) as agent:
        await agent.inject("old")
        await foreign(agent, "theirs")
        await call(agent)
        await agent.when_idle()
        await assert_replays(agent)
    lines = log(store)
    assert lines[1] == "insert m1 theirs"
    assert lines[2] in {"insert m2 new", "remove m0", "replace m0 new"}


async def test_a_message_that_another_process_removed_is_not_pending(store: FaultyStore, script: Script) -> None:
    """The decision made again may be another one."""
    async with living(store, script) as agent:
        await agent.inject("old")
        other = await Session.load(agent.services.journal, "a")
        await other.decide(lambda state: turn_changes.remove(state, "m0"))
        with pytest.raises(UnknownMessage):
            await agent.replace("m0", "new")
        await assert_replays(agent)


async def test_a_turn_takes_what_another_process_appended(store: FaultyStore, script: Script) -> None:
    """A foreign append between a message and its turn is seen when the turn claims."""
    async with living(store, script) as agent:
        await agent.inject("mine")
        await foreign(agent, "theirs")
        await agent.followup("x")
        await agent.when_idle()
    assert script.taken == [["mine", "theirs", "x"]]


async def test_a_foreign_append_during_a_turn_does_not_lose_its_end(store: FaultyStore, script: Script) -> None:
    """The outcome is recorded behind the foreign event, and what woke is run."""

    async def work(turn: Turn) -> None:
        await foreign(turn.agent, "theirs", wake=True)

    async with living(store, script) as agent:
        script.on("x", work)
        await agent.followup("x")
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["x"], ["theirs"]]


async def test_catching_up_folds_what_others_appended(store: FaultyStore, script: Script) -> None:
    """Only the tail is read, and a tail that cannot follow leaves a doubt, not a wrong state."""
    async with living(store, script) as agent:
        await agent.inject("mine")
        await foreign(agent, "theirs")
        assert len((await agent.session.catch_up()).inbox) == 2
        store._logs["a"].records.append(EventRecord("turn/end", 0, '{"turn":1,"outcome":"completed"}'))
        with pytest.raises(StoreDamaged, match="'a': event 2"):
            await agent.session.catch_up()
        assert agent.session.confirmed_state is None
        store._logs["a"].records.pop()
        await agent.inbox()


async def test_a_full_disk_leaves_a_reminder_active(store: FaultyStore, script: Script) -> None:
    """CASE 34: a delivery the store has no room for is tried again, and made once there is room."""
    async with living(store, script) as agent:
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        store.will(*[Fault.REFUSED] * 5)
        await trio.sleep(200)
        assert len(script.turns) == 1
    assert [line.split()[0] for line in log(store)] == ["ScheduleChanged", "insert", "ScheduleChanged", "start", "end"]


@pytest.mark.parametrize("fault", UNCERTAIN)
async def test_an_uncertain_delivery_is_made_once(store: FaultyStore, script: Script, fault: Fault) -> None:
    """CASE 33: the log is read back before anything is decided from it: one message, one turn."""
    async with living(store, script) as agent:
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        store.will(fault)
        await trio.sleep(200)
        assert len(script.turns) == 1
        await assert_replays(agent)
    assert [line.split()[0] for line in log(store)] == ["ScheduleChanged", "insert", "ScheduleChanged", "start", "end"]


async def test_a_dead_store_keeps_what_was_committed(store: FaultyStore, script: Script) -> None:
    """The double itself: dead from the planned commit on, revived with what is there; or lying about it."""
    async with living(store, script) as agent:
        store.die_at(2)
        await agent.inject("kept")
        for _ in range(2):
            with pytest.raises(StoreBusy):
                await agent.inject("lost")
        store.revive()
        store.will(Fault.LOST)
        await agent.inject("lost too")
    assert log(store) == ["insert m0 kept"]
