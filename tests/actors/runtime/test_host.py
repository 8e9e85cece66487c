from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.composition import open_host
from whenidle_actors.errors import (
    CompositionError,
    InvalidArgument,
    SessionExists,
    StoreDamaged,
    StoreFull,
    UnknownSession,
)
from whenidle_actors.observation import EventKind, HostEvent
from whenidle_actors.reminders import Reminders
from whenidle_actors.stores.memory import MemoryStore
from whenidle_protocol.events import EventRecord

from .worlds import Script, hosted, settled, sleeping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.agent_core import AgentCore
    from whenidle_actors.services import Services
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.tool_schemas import ToolSchema


# Creating and finding -----------------------------------------------------------------------


async def test_a_created_agent_has_a_header(store: FaultyStore, script: Script) -> None:
    """A root agent has depth 0 and no parent; working directory, preset and time of creation are kept."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a", cwd="/home", preset="coder")
        header = agent.header
        assert (agent.id, header.id, header.parent, header.delegation_depth) == ("a", "a", None, 0)
        assert (header.cwd, header.preset, header.created_at) == ("/home", "coder", script.now())
        assert (await store.read("a")).header == header


async def test_a_delegated_agent_is_one_level_below_its_parent(store: FaultyStore, script: Script) -> None:
    """Depth counts from the root; a delegated agent has no reminder tools."""
    async with hosted(store, script) as host:
        root = await host.create_agent("root")
        child = await host.create_agent("child", parent="root")
        grandchild = await host.create_agent("grandchild", parent="child")
        assert [agent.header.delegation_depth for agent in (root, child, grandchild)] == [0, 1, 2]
        assert grandchild.header.parent == "child"
        assert [len(agent.tools()) for agent in (root, child, grandchild)] == [3, 0, 0]


async def test_an_id_is_drawn_if_none_is_given(store: FaultyStore, script: Script) -> None:
    """Drawn ids differ and can name sessions."""
    async with hosted(store, script) as host:
        names = {(await host.create_agent()).id for _ in range(10)}
        assert len(names) == 10
        for name in names:
            assert (await host.agent(name)).id == name


@pytest.mark.parametrize("name", ["", ".hidden", "a b", "a/b", "\u00e4", "a\n", "x" * 129, 5, b"a", "x" * 100_000])
async def test_an_id_that_cannot_name_a_session_is_refused(store: FaultyStore, script: Script, name: Any) -> None:
    """Everywhere an id is taken a bad one is InvalidArgument, short, and changes nothing."""
    async with hosted(store, script) as host:
        await host.create_agent("a")
        for call in (
            host.create_agent,
            host.agent,
            host.fork,
            lambda name: host.fork("a", new_id=name),
            lambda name: host.create_agent("b", parent=name),
        ):
            with pytest.raises(InvalidArgument, match="session id") as caught:
                await call(name)
            assert len(str(caught.value)) < 800
        assert [header.id for header in await store.sessions()] == ["a"]


async def test_the_longest_id_is_taken(store: FaultyStore, script: Script) -> None:
    """128 characters of letters, digits and . _ : - can name a session."""
    name = "aZ09._:-" * 16
    async with hosted(store, script) as host:
        assert (await host.create_agent(name)).id == name


async def test_a_session_that_exists_cannot_be_created(store: FaultyStore, script: Script) -> None:
    """SessionExists, whether its agent is live or not; the live one is untouched."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        with pytest.raises(SessionExists):
            await host.create_agent("a")
        await agent.dispose()
        with pytest.raises(SessionExists):
            await host.create_agent("a")
        assert host.agents == ()


async def test_an_unknown_session_is_named(store: FaultyStore, script: Script) -> None:
    """UnknownSession from agent, fork and as a parent; nothing is created."""
    async with hosted(store, script) as host:
        for call in (host.agent("b"), host.fork("b"), host.create_agent("c", parent="b")):
            with pytest.raises(UnknownSession, match="'b'"):
                await call
        assert await store.sessions() == ()


async def test_a_refused_creation_leaves_nothing(store: FaultyStore, script: Script) -> None:
    """When the store refuses, there is neither session nor agent, and the same call works later."""
    async with hosted(store, script) as host:
        store.will(Fault.REFUSED)
        with pytest.raises(StoreFull):
            await host.create_agent("a")
        assert (host.agents, await store.sessions()) == ((), ())
        assert (await host.create_agent("a")).id == "a"


async def test_a_damaged_session_is_refused_by_name(store: FaultyStore, script: Script) -> None:
    """A log that cannot be folded is StoreDamaged, names session and event, and harms no other session."""
    async with hosted(store, script) as host:
        await (await host.create_agent("a")).dispose()
        store._logs["a"].records.append(EventRecord("turn/end", 0, '{"turn":5,"outcome":"completed"}'))
        with pytest.raises(StoreDamaged, match=r"'a': event 0: .*turn 5 is not open"):
            await host.agent("a")
        assert (await host.create_agent("b")).id == "b"


# Composition --------------------------------------------------------------------------------


BAD: list[tuple[dict[str, Any], str]] = [
    ({"turn": None}, "turn is an async function"),
    ({"max_concurrent_turns": 0}, "max_concurrent_turns is 0"),
    ({"max_concurrent_turns": 1.5}, "max_concurrent_turns is 1.5; write a whole number"),
    ({"passivate_after": -1}, "passivate_after is -1"),
    ({"passivate_after": float("nan")}, "passivate_after is nan"),
    ({"shutdown_timeout": -0.5}, "shutdown_timeout is -0.5"),
    ({"max_message_bytes": 0}, "max_message_bytes is 0"),
    ({"store": 5}, "store is a Store, a path or None, not int"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
async def test_a_host_refuses_what_it_cannot_use(
    store: FaultyStore, script: Script, options: dict[str, Any], message: str
) -> None:
    """A bad argument is InvalidArgument, names it, and opens nothing."""
    with pytest.raises(InvalidArgument, match=message):
        async with open_host(**{"store": store, "turn": script, "clock": script, **options}):
            pytest.fail("it opened")
    async with hosted(store, script):
        pass


async def test_a_suite_needs_a_store(script: Script) -> None:
    """Reminders without a store are a composition error, when opening and when mounting."""
    with pytest.raises(CompositionError, match="needs a store"):
        async with open_host(store=None, turn=script, clock=script, suites=[Reminders()]):
            pytest.fail("it opened")
    async with open_host(store=None, turn=script, clock=script) as host:
        with pytest.raises(CompositionError, match="needs a store"):
            host.mount(Reminders())


async def test_a_host_without_a_store_runs_turns(script: Script) -> None:
    """With store None agents have no tools, and all that needs no promise works."""
    async with open_host(store=None, turn=script, clock=script) as host:
        agent = await host.create_agent("a")
        assert (agent.tools(), host.suites) == ((), ())
        await agent.followup("x")
        await agent.when_idle()
        await agent.dispose()
        assert (await host.agent("a")) is not agent
        assert isinstance(host.store, MemoryStore)
    assert script.taken == [["x"]]


class Echo:
    """A suite of one tool."""

    presets: frozenset[str] | None = None

    def __init__(self, name: str = "echo") -> None:
        self.name = name

    def mounted(self, services: Services) -> None:
        assert services.durable

    def suits(self, header: SessionHeader) -> bool:
        return header.id != "deaf"

    def tools(self) -> Sequence[ToolSchema]:
        return [attrs.evolve(Reminders().tools()[0], name=f"say_{self.name}")]

    async def call(self, agent: Agent, tool: str, arguments: Any) -> Any:
        return [agent.id, tool, arguments]

    def look(self) -> None:
        """Do nothing."""

    def attend(self, session_id: str, due_millis: int) -> None:
        """Do nothing."""

    def due(self, session_id: str) -> None:
        """Do nothing."""

    def recompute(self, agent: AgentCore) -> None:
        """Do nothing."""

    def release(self, session_id: str) -> None:
        """Do nothing."""


async def test_suites_are_given_to_agents_made_after_they_were_mounted(store: FaultyStore, script: Script) -> None:
    """Live agents keep what they have; later ones get the suite if it suits them."""
    async with hosted(store, script) as host:
        early = await host.create_agent("early")
        echo: Any = Echo()
        host.mount(echo)
        late, deaf = await host.create_agent("late"), await host.create_agent("deaf")
        assert [len(agent.tools()) for agent in (early, late, deaf)] == [3, 4, 3]
        assert await late.call_tool("say_echo", {"x": 1}) == ["late", "say_echo", {"x": 1}]
        assert host.suites[1] is echo


async def test_suites_that_clash_are_refused(store: FaultyStore, script: Script) -> None:
    """Two suites of one name, or with one tool, cannot be on one host; the refused one is not mounted."""
    async with hosted(store, script, suites=[Echo()]) as host:
        same_name: Any = Echo()
        same_name.tools = tuple
        with pytest.raises(CompositionError, match="'echo' is mounted already"):
            host.mount(same_name)
        same_tool: Any = Echo()
        same_tool.name = "other"
        same_tool.tools = Echo().tools
        with pytest.raises(CompositionError, match="'say_echo'"):
            host.mount(same_tool)
        assert len(host.suites) == 1


# Observers ----------------------------------------------------------------------------------


async def test_an_observer_that_raises_stops_nobody(store: FaultyStore, script: Script) -> None:
    """The others are told, the work goes on, and the exception is logged."""
    seen: list[HostEvent] = []

    def broken(_: HostEvent) -> None:
        raise ZeroDivisionError

    async with hosted(store, script) as host:
        host.subscribe(broken)
        unsubscribe = host.subscribe(seen.append)
        agent = await host.create_agent("a")
        await agent.followup("x")
        await agent.when_idle()
        assert [event.kind for event in seen if event.kind is not EventKind.COMMITTED] == [
            EventKind.SESSION_CREATED,
            EventKind.AGENT_STARTED,
            EventKind.MESSAGE_QUEUED,
            EventKind.TURN_STARTED,
            EventKind.TURN_ENDED,
        ]
        assert {event.session_id for event in seen} == {"a"}
        assert {event.at for event in seen} == {script.now()}
        assert agent.statistics().restarts == 0
        unsubscribe()
        unsubscribe()
        told = len(seen)
        await agent.dispose()
        assert len(seen) == told


async def test_an_observer_may_end_its_own_subscription(store: FaultyStore, script: Script) -> None:
    """Unsubscribing while being told is safe."""
    seen: list[str] = []
    async with hosted(store, script) as host:

        def once(event: HostEvent) -> None:
            seen.append(event.session_id)
            end()

        end = host.subscribe(once)
        await host.create_agent("a")
        await host.create_agent("b")
    assert seen == ["a"]


# What a host takes up when it opens ---------------------------------------------------------


async def test_what_waits_in_the_store_is_taken_up_at_once(store: FaultyStore, script: Script) -> None:
    """Sessions with waking messages run without being asked for; idle ones stay cold."""
    async with hosted(store, script) as host:
        busy, idle = await host.create_agent("busy"), await host.create_agent("idle")
        await idle.inject("fyi")
        script.on("x", sleeping(100))
        await busy.followup("x")
        await busy.followup("y")
    script.turns.clear()
    async with hosted(store, script) as host:
        await trio.sleep(101)
        assert [agent.id for agent in host.agents] == ["busy"]
    assert script.taken[-1] == ["y"]


async def test_a_session_that_cannot_be_restored_stops_no_other(store: FaultyStore, script: Script) -> None:
    """A damaged session with work to do is told to observers and logged; the others run."""
    script.on("x", sleeping(100))
    async with hosted(store, script, shutdown_timeout=0) as host:
        for name in ("bad", "good"):
            agent = await host.create_agent(name)
            await agent.followup("x")
        await settled()
    store._logs["bad"].records.append(EventRecord("mystery", 0, "{}"))
    script.turns.clear()
    async with hosted(store, script) as host:
        await trio.sleep(200)
        assert [agent.id for agent in host.agents] == ["good"]
    assert [turn.agent.id for turn in script.turns] == ["good"]


async def test_the_statistics_of_a_host_add_up(store: FaultyStore, script: Script) -> None:
    """Agents, running ones, and the numbers of its parts."""
    async with hosted(store, script) as host:
        script.on("x", sleeping(5))
        await (await host.create_agent("a")).followup("x")
        await host.create_agent("b")
        await settled()
        numbers = host.statistics()
        assert (numbers.agents, numbers.running, numbers.passivated) == (2, 1, 0)
        assert (numbers.supervisor.faults, numbers.alarm.armed, numbers.scheduler.ready) == (0, 0, 0)
        assert numbers.store.commits == 4
