"""What meets a host that stops, or has stopped, half way."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.errors import AgentDisposed
from whenidle_actors.turn import Redelivery

from .worlds import Crash, Script, foreign, hosted, living, log, settled, sleeping, tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn


async def test_a_session_restored_while_the_host_stops_starts_nothing(store: FaultyStore, script: Script) -> None:
    """What waits in it is not begun, only to be interrupted: also at most once, the next host runs it."""
    async with hosted(store, script, redelivery=Redelivery.AT_MOST_ONCE) as host:

        async def restore(_: Turn) -> None:
            await trio.sleep(1)
            assert (await host.agent("b")).phase.value == "idle"

        script.on("go", restore)
        script.on("precious", sleeping(100))
        agent = await host.create_agent("a")
        other = await host.create_agent("b")
        await other.dispose()
        await foreign(other, "precious", wake=True)
        await agent.followup("go")
        await settled()
    assert (trio.current_time(), log(store, "b")) == (1, ["insert m0 precious"])
    async with hosted(store, script, redelivery=Redelivery.AT_MOST_ONCE) as host:
        await (await host.agent("b")).when_idle()
    assert script.taken == [["go"], ["precious"]]


@pytest.mark.parametrize("redelivery", Redelivery)
async def test_a_turn_that_no_turn_function_has_seen_is_delivered_whatever_the_policy(
    store: FaultyStore, script: Script, redelivery: Redelivery
) -> None:
    """The host fails while the start of the turn is being committed: its messages were not given to anybody."""
    with suppress(Crash):
        async with living(store, script, redelivery=redelivery) as agent:
            await agent.followup("precious")
            store.slow = trio.Event()
            await settled()
            agent.services.nursery.start_soon(_release, store)
            raise Crash
    assert script.taken == []
    assert log(store)[-1] == "end 1 interrupted (the host stops) redeliver"
    async with living(store, script, redelivery=redelivery) as agent:
        await agent.when_idle()
    assert script.taken == [["precious"]]


async def _release(store: FaultyStore) -> None:
    """Let the commits go on in a second."""
    with trio.CancelScope(shield=True):
        await trio.sleep(1)
    assert store.slow is not None
    store.slow.set()
    store.slow = None


async def _late(host: Host, find: Callable[[str], Awaitable[object]], answers: list[object]) -> None:
    try:
        answers.append(await find("b"))
    except AgentDisposed as error:
        answers.append(str(error))
    answers.append(host.agents)


@pytest.mark.parametrize("create", [True, False])
async def test_an_agent_that_comes_too_late_for_its_host_is_refused(
    store: FaultyStore, script: Script, *, create: bool
) -> None:
    """The host has stopped while the session was made or read: there is no agent, and the session is kept."""
    answers: list[object] = []
    release = trio.Event()
    before = tasks()
    async with trio.open_nursery() as nursery:
        async with hosted(store, script) as host:
            if create:
                store.slow = release
            else:
                await (await host.create_agent("b")).dispose()
                store.slow_read = release
            nursery.start_soon(_late, host, host.create_agent if create else host.agent, answers)
            await settled()
        assert answers == []
        release.set()
    assert answers == ["the host has stopped; session 'b' is kept", ()]
    assert log(store, "b") == []
    assert tasks() == before


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("seconds", [100, 0.5])
async def test_an_interrupt_in_a_turn_leaves_the_host_as_it_was_raised(
    store: FaultyStore, script: Script, interrupt: type[BaseException], seconds: float
) -> None:
    """In the block and in the grace behind it: other agents do not hold it up, and it is wrapped in nothing."""

    async def stop(_: Turn) -> None:
        await trio.sleep(1)
        raise interrupt

    script.on("x", stop)
    script.on("long", sleeping(1000))
    before = tasks()

    async def serve() -> None:
        async with hosted(store, script) as host:
            await host.create_agent("idle")
            await (await host.create_agent("busy")).followup("long")
            await (await host.create_agent("a")).followup("x")
            await trio.sleep(seconds)

    with pytest.raises(interrupt):
        await serve()
    assert (trio.current_time(), tasks()) == (1, before)
