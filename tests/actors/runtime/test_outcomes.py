from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.errors import StoreError
from whenidle_actors.observation import EventKind
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_actors.turn import Redelivery

from .worlds import Script, assert_replays, dying, hosted, living, log, settled, sleeping

if TYPE_CHECKING:
    from pathlib import Path

    from whenidle_actors.turn import Turn


async def test_a_turn_that_returns_is_completed(store: FaultyStore, script: Script) -> None:
    """Whatever the turn function returns, the outcome is completed and is announced with the turn."""
    seen: list[tuple[EventKind, object]] = []
    async with hosted(store, script) as host:
        host.subscribe(lambda event: seen.append((event.kind, dict(event.detail))))
        agent = await host.create_agent("a")
        await agent.followup("x")
        await agent.when_idle()
    assert [event for event in seen if event[0] is not EventKind.COMMITTED] == [
        (EventKind.SESSION_CREATED, {"parent": None, "forked_from": None}),
        (EventKind.AGENT_STARTED, {}),
        (EventKind.MESSAGE_QUEUED, {"message": "m0", "lane": "next-turn", "source": "user"}),
        (EventKind.TURN_STARTED, {"turn": 1, "attempt": 1, "messages": ["m0"]}),
        (EventKind.TURN_ENDED, {"turn": 1, "outcome": "completed", "cause": None}),
        (EventKind.AGENT_DISPOSED, {}),
        (EventKind.HOST_STOPPED, {}),
    ]


async def test_an_exception_ends_the_turn_and_not_the_agent(store: FaultyStore, script: Script) -> None:
    """A failing turn has the outcome error with what it raised; the next message is taken as usual."""

    async def fail(_: Turn) -> None:
        raise ValueError("no model")

    async with living(store, script) as agent:
        script.on("bad", fail)
        await agent.followup("bad")
        await agent.followup("good")
        await agent.when_idle()
        assert agent.statistics().restarts == 0
    assert log(store)[-3:] == ["end 1 error (ValueError: no model)", "start 2: m2", "end 2 completed"]


class Untellable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


async def test_an_exception_without_a_text_is_an_outcome_too(store: FaultyStore, script: Script) -> None:
    """An exception that fails when it is printed, or is endless, harms neither log nor host."""

    async def untellable(_: Turn) -> None:
        raise Untellable

    async def endless(_: Turn) -> None:
        raise ValueError("x" * 10_000)

    async with living(store, script) as agent:
        script.on("u", untellable)
        script.on("e", endless)
        await agent.followup("u")
        await agent.followup("e")
        await agent.when_idle()
    ends = [line for line in log(store) if line.startswith("end")]
    assert ends[0] == "end 1 error (Untellable: (it has no text))"
    assert ends[1] == f"end 2 error (ValueError: {'x' * 488})"


async def test_a_group_of_exceptions_is_an_error(store: FaultyStore, script: Script) -> None:
    """A turn whose nursery fails ends as an error."""

    async def fail(_: Turn) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise ValueError("inside")

    async with living(store, script) as agent:
        script.on("x", fail)
        await agent.followup("x")
        await agent.when_idle()
    assert log(store)[-1].startswith("end 1 error (ExceptionGroup: ")


async def crash(store: FaultyStore, script: Script, *texts: str, **options: Any) -> None:
    """Run a host whose process dies while it handles the last of `texts`."""
    async with dying(store, script, **options) as agent:
        for text in texts:
            await agent.followup(text)
        await settled()


async def test_an_interrupted_turn_gets_its_messages_again(store: FaultyStore, script: Script) -> None:
    """After a crash the open turn is recorded as interrupted, and a turn marked redelivered gets its messages."""
    script.on("x", sleeping(5))
    await crash(store, script, "x", "y")
    async with living(store, script) as agent:
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["x"], ["x"], ["y"]]
    assert [(turn.number, turn.attempt, turn.redelivered) for turn in script.turns] == [
        (1, 1, False),
        (2, 2, True),
        (3, 1, False),
    ]
    assert "end 1 interrupted redeliver" in log(store)
    assert "start 2: m0 (attempt 2)" in log(store)


async def test_a_crash_at_most_once_takes_the_messages_with_it(store: FaultyStore, script: Script) -> None:
    """With at-most-once an interrupted turn's messages are not given out again; those behind it are."""
    script.on("x", sleeping(5))
    await crash(store, script, "x", "y", redelivery=Redelivery.AT_MOST_ONCE)
    async with living(store, script, redelivery=Redelivery.AT_MOST_ONCE) as agent:
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["x"], ["y"]]
    assert "end 1 interrupted" in log(store)


async def test_attempts_count_up(store: FaultyStore, script: Script) -> None:
    """Each crash in the same messages raises their attempt by one."""
    script.on("x", sleeping(5))
    await crash(store, script, "x")
    for _ in range(3):
        await crash(store, script)
    async with living(store, script) as agent:
        await agent.when_idle()
    assert [turn.attempt for turn in script.turns] == [1, 2, 3, 4, 5]


async def test_what_a_turn_took_between_steps_is_redelivered_with_it(store: FaultyStore, script: Script) -> None:
    """A redelivery has the messages of the beginning and those of `next_step`, in order."""

    async def work(turn: Turn) -> None:
        if turn.attempt == 1:
            await turn.agent.steer("s")
            await turn.next_step()
            await trio.sleep(5)

    script.on("x", work)
    await crash(store, script, "x")
    async with living(store, script) as agent:
        await agent.when_idle()
    assert script.taken == [["x"], ["x", "s"]]


async def test_a_cancel_that_was_accepted_outlives_the_crash(store: FaultyStore, script: Script) -> None:
    """A turn whose cancel was recorded before the crash is aborted, and not redelivered."""

    async def stubborn(_: Turn) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)

    script.on("x", stubborn)
    async with dying(store, script) as agent:
        await agent.followup("x")
        await settled()
        await agent.cancel("stop")
    async with living(store, script) as agent:
        await agent.when_idle()
    assert script.taken == [["x"]]
    assert log(store)[-2:] == ["abort 1 (stop): ", "end 1 aborted (stop)"]


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("fault", [Fault.DEATH, Fault.DEATH_AFTER])
async def test_a_death_at_any_commit_loses_no_acknowledged_message(
    store: FaultyStore, script: Script, nth: int, fault: Fault
) -> None:
    """Whatever commit the process dies at, each acknowledged message is taken, each attempt in order."""
    acknowledged: list[str] = []

    async def work(turn: Turn) -> None:
        await turn.note("working")

    async with dying(store, script) as agent:
        script.on("x", work)
        store.will(*[None] * (nth - 1), fault)
        with suppress(StoreError):
            for text in ("x", "y", "z"):
                await agent.followup(text)
                acknowledged.append(text)
        with trio.move_on_after(1000):
            await agent.when_idle()
    first = len(script.turns)
    async with living(store, script) as agent:
        await agent.when_idle()
        await assert_replays(agent)
    completed = [line for line in log(store) if line.startswith("end") and "completed" in line]
    inserted = [line for line in log(store) if line.startswith("insert")]
    assert len(completed) == len(inserted) >= len(acknowledged)
    for turn in script.turns[first:]:
        earlier = [other for other in script.turns[:first] if other.messages == turn.messages]
        assert turn.redelivered or not earlier


async def test_an_orderly_stop_in_a_turn_is_an_interruption(tmp_path: Path, script: Script) -> None:
    """A turn that does not end in the grace of a host that stops is interrupted, and its messages come again."""
    script.on("x", sleeping(100))
    path = tmp_path / "s.db"
    async with living(SqliteStore(path), script, shutdown_timeout=10) as agent:
        await agent.followup("x")
        await settled()
    assert trio.current_time() == 10
    async with living(SqliteStore(path), script) as agent:
        await agent.when_idle()
    assert [turn.attempt for turn in script.turns] == [1, 2]
