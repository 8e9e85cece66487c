from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.errors import InvalidArgument, UnknownMessage
from whenidle_actors.observation import EventKind
from whenidle_actors.stores.jsonl import export_lines, import_lines
from whenidle_protocol.events import Lane, Source
from whenidle_protocol.json_text import MAX_DEPTH

from .worlds import Script, assert_replays, hosted, living, log, settled, sleeping

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore


async def test_a_followup_is_a_message_that_starts_a_turn_with_it(store: FaultyStore, script: Script) -> None:
    """A followup wakes the idle agent, whose turn gets the message with its id, lane, source and text."""
    async with living(store, script) as agent:
        name = await agent.followup("hello")
        await agent.when_idle()
        [turn] = script.turns
        [message] = turn.messages
        assert (message.id, message.text, message.lane, message.source) == (
            name,
            "hello",
            Lane.NEXT_TURN,
            Source.USER,
        )
        assert (turn.number, turn.attempt, turn.redelivered, turn.agent) == (1, 1, False, agent)
    assert log(store) == ["insert m0 hello", "start 1: m0", "end 1 completed"]


async def test_each_turn_takes_one_followup_in_their_order(store: FaultyStore, script: Script) -> None:
    """Followups are taken one a turn, in the order they came."""
    async with living(store, script) as agent:
        for text in "abc":
            await agent.followup(text)
        await agent.when_idle()
    assert script.taken == [["a"], ["b"], ["c"]]
    assert [turn.number for turn in script.turns] == [1, 2, 3]


async def test_steering_an_idle_agent_starts_a_turn(store: FaultyStore, script: Script) -> None:
    """A steer wakes an idle agent and goes before its followups."""
    async with living(store, script) as agent:
        await agent.steer("now")
        await agent.when_idle()
    assert script.taken == [["now"]]


async def test_an_injection_waits_for_whatever_wakes_the_agent(store: FaultyStore, script: Script) -> None:
    """An injected message starts nothing, and the next turn takes it before its followup."""
    async with living(store, script) as agent:
        await agent.inject("context")
        await agent.when_idle()
        await settled()
        assert script.turns == []
        await agent.followup("question")
        await agent.when_idle()
    assert script.taken == [["context", "question"]]


async def test_a_turn_takes_all_of_next_step_and_one_of_next_turn(store: FaultyStore, script: Script) -> None:
    """A turn that begins claims every next-step message, then exactly one next-turn message."""
    async with living(store, script) as agent:
        script.on("busy", sleeping(1))
        await agent.followup("busy")
        await agent.followup("first")
        await agent.followup("second")
        await agent.steer("s1")
        await agent.inject("s2")
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["busy"], ["s1", "s2", "first"], ["second"]]


async def test_between_steps_a_turn_takes_next_step_only(store: FaultyStore, script: Script) -> None:
    """`next_step` claims what was steered and injected meanwhile, durably, and leaves followups alone."""
    steps: list[list[str]] = []

    async def work(turn: object) -> None:
        await agent.steer("left")
        await agent.inject("slowly")
        await agent.followup("later")
        steps.extend([[message.text for message in await script.turns[0].next_step()] for _ in range(2)])

    async with living(store, script) as agent:
        script.on("go", work)
        await agent.followup("go")
        await agent.when_idle()
        await assert_replays(agent)
    assert steps == [["left", "slowly"], []]
    assert script.taken == [["go"], ["later"]]
    assert log(store)[:6] == [
        "insert m0 go",
        "start 1: m0",
        "insert m2 left",
        "insert m3 slowly",
        "insert m4 later",
        "claim 1: m2,m3",
    ]


async def test_steering_a_turn_that_does_not_listen_starts_another(store: FaultyStore, script: Script) -> None:
    """What is steered into a turn that never asks for it is taken by a turn behind it."""
    async with living(store, script) as agent:
        script.on("deaf", sleeping(2))
        await agent.followup("deaf")
        await trio.sleep(1)
        await agent.steer("hey")
        await agent.when_idle()
    assert script.taken == [["deaf"], ["hey"]]


async def test_injecting_into_the_last_turn_starts_no_other(store: FaultyStore, script: Script) -> None:
    """An injection that a turn never asked for stays in the inbox when the agent becomes idle."""
    async with living(store, script) as agent:
        script.on("deaf", sleeping(2))
        await agent.followup("deaf")
        await trio.sleep(1)
        await agent.inject("fyi")
        await agent.when_idle()
        assert [message.text for message in (await agent.inbox()).next_step] == ["fyi"]
    assert script.taken == [["deaf"]]


async def test_the_inbox_shows_what_is_pending(store: FaultyStore, script: Script) -> None:
    """`inbox` returns both lists in order, without what the running turn has taken."""
    async with living(store, script) as agent:
        await script.begin(agent, "busy", sleeping(5))
        for text in ("t1", "t2"):
            await agent.followup(text)
        for text in ("s1", "s2"):
            await agent.inject(text)
        view = await agent.inbox()
        assert [message.text for message in view.next_turn] == ["t1", "t2"]
        assert [message.text for message in view.next_step] == ["s1", "s2"]


async def test_a_pending_message_can_be_removed(store: FaultyStore, script: Script) -> None:
    """A removed message is never taken; the others keep their order."""
    async with living(store, script) as agent:
        script.on("busy", sleeping(1))
        await agent.followup("busy")
        names = [await agent.followup(text) for text in "abc"]
        await agent.remove(names[1])
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["busy"], ["a"], ["c"]]


async def test_a_pending_message_can_be_replaced(store: FaultyStore, script: Script) -> None:
    """A replaced message keeps id and place and is taken with its new text."""
    async with living(store, script) as agent:
        script.on("busy", sleeping(1))
        await agent.followup("busy")
        first, _ = [await agent.followup(text) for text in "ab"]
        await agent.replace(first, "A")
        await agent.when_idle()
        await assert_replays(agent)
    assert script.taken == [["busy"], ["A"], ["b"]]
    assert script.turns[1].messages[0].id == first


async def test_what_a_turn_has_taken_is_not_pending_any_more(store: FaultyStore, script: Script) -> None:
    """Removing or replacing a message that is taken, or was never there, is UnknownMessage and changes nothing."""
    async with living(store, script) as agent:
        script.on("busy", sleeping(1))
        taken = await agent.followup("busy")
        await settled()
        before = log(store)
        for name in (taken, "m99", "", "m" * 10_000):
            with pytest.raises(UnknownMessage) as removing:
                await agent.remove(name)
            with pytest.raises(UnknownMessage):
                await agent.replace(name, "other")
            assert len(str(removing.value)) < 200
        assert log(store) == before


@pytest.mark.parametrize("name", [5, None, [], {"a": 1}])
async def test_a_message_id_of_another_type_is_an_unknown_one(store: FaultyStore, script: Script, name: object) -> None:
    """An id that is no string is the caller's mistake and no fault of the agent."""
    async with living(store, script) as agent:
        with pytest.raises(UnknownMessage):
            await agent.remove(name)  # type: ignore[arg-type]  # the wrong type is the point
        with pytest.raises(UnknownMessage):
            await agent.replace(name, "text")  # type: ignore[arg-type]  # the wrong type is the point
        assert agent.statistics().restarts == 0


async def test_message_ids_are_unique_over_the_whole_log(store: FaultyStore, script: Script) -> None:
    """No id comes twice, whatever was removed and taken in between, a restart included."""
    names: list[str] = []
    for _ in range(2):
        async with living(store, script) as agent:
            for text in "abc":
                name = await agent.inject(text)
                await agent.remove(name)
                names += [name, await agent.followup(text)]
                await agent.when_idle()
            await agent.when_idle()
    assert len(set(names)) == len(names) == 12


@pytest.mark.parametrize("verb", ["followup", "steer", "inject"])
async def test_a_message_is_in_the_log_before_anybody_sees_it(store: FaultyStore, script: Script, verb: str) -> None:
    """Durability first: while the commit is under way no turn runs, nothing is announced, nothing returns."""
    seen: list[EventKind] = []
    async with hosted(store, script) as host, trio.open_nursery() as nursery:
        agent = await host.create_agent("a")
        host.subscribe(lambda event: seen.append(event.kind))
        with store.held():
            nursery.start_soon(getattr(agent, verb), "hello")
            await settled()
            assert (seen, script.turns, log(store), agent.status.value) == ([], [], [], "idle")
        await settled()
        assert seen[:2] == [EventKind.COMMITTED, EventKind.MESSAGE_QUEUED]
        assert log(store)[0] == "insert m0 hello"


async def test_a_turn_runs_only_when_its_claim_is_durable(store: FaultyStore, script: Script) -> None:
    """The turn function is not called before the claim of its messages is in the log."""
    async with living(store, script) as agent:
        await agent.followup("hello")
        with store.held():
            await settled()
            assert script.turns == []
        await agent.when_idle()
        assert script.taken == [["hello"]]


async def test_a_caller_that_gives_up_before_its_turn_changes_nothing(store: FaultyStore, script: Script) -> None:
    """A followup cancelled while it waits in the mailbox leaves no trace."""
    async with living(store, script) as agent, trio.open_nursery() as nursery:
        with store.held():
            nursery.start_soon(agent.inject, "slow")
            await settled()
            with trio.move_on_after(1) as scope:
                await agent.followup("impatient")
            assert scope.cancelled_caught
        await settled()
    assert log(store) == ["insert m0 slow"]


@pytest.mark.parametrize("text", ["x" * 11, "\u20ac" * 4, "\ud800" * 4])
async def test_a_message_over_the_limit_is_refused_in_bytes(store: FaultyStore, script: Script, text: str) -> None:
    """The limit counts bytes of UTF-8; a longer message is InvalidArgument everywhere, and changes nothing."""
    async with living(store, script, max_message_bytes=10) as agent:
        name = await agent.inject("y" * 10)
        before = log(store)
        for call in (agent.followup, agent.steer, agent.inject, lambda text: agent.replace(name, text)):
            with pytest.raises(InvalidArgument, match="limit of 10 bytes"):
                await call(text)
        assert log(store) == before


@pytest.mark.parametrize("text", [None, 5, b"bytes"])
async def test_a_message_is_a_string(store: FaultyStore, script: Script, text: object) -> None:
    """Anything but a string is InvalidArgument."""
    async with living(store, script) as agent:
        with pytest.raises(InvalidArgument, match="a message is a string"):
            await agent.followup(text)  # type: ignore[arg-type]  # the wrong type is the point


@pytest.mark.parametrize("text", ["", "\ud83d alone", "a\0b\u2028c", "\U0001f600"])
async def test_any_string_goes_through_unchanged(store: FaultyStore, script: Script, text: str) -> None:
    """The empty string, lone surrogates and control characters come out of the log as they went in."""
    async with living(store, script) as agent:
        await agent.inject(text)
    async with living(store, script) as agent:
        assert [message.text for message in (await agent.inbox()).next_step] == [text]


async def test_a_note_is_kept_in_the_log_of_its_turn(store: FaultyStore, script: Script) -> None:
    """A note is any JSON value, kept in order between the turn's beginning and end."""

    async def work(turn: object) -> None:
        await script.turns[0].note({"exit": 0, "out": ["\u20ac", None, 1.5], "pair": (1, 2)})

    async with living(store, script) as agent:
        script.on("go", work)
        await agent.followup("go")
        await agent.when_idle()
    assert log(store)[2] == "note 1 {'exit': 0, 'out': ['\u20ac', None, 1.5], 'pair': [1, 2]}"


def nested(levels: int) -> object:
    """Return arrays within arrays."""
    value: object = []
    for _ in range(levels - 1):
        value = [value]
    return value


async def test_the_deepest_note_can_be_exported_and_imported(store: FaultyStore, script: Script) -> None:
    """What a log takes, a file of JSON Lines takes as well, though its lines nest one level deeper."""

    async def work(_: object) -> None:
        await script.turns[0].note(nested(MAX_DEPTH - 2))

    async with living(store, script) as agent:
        script.on("go", work)
        await agent.followup("go")
        await agent.when_idle()
        whole = await store.read("a")
    assert import_lines(io.BytesIO(b"".join(export_lines(whole))), "a.jsonl") == (whole.header, whole.records)


@pytest.mark.parametrize(
    "data", [{1, 2}, {1: 2}, float("nan"), "x" * 9_000, object(), 10**400, nested(MAX_DEPTH), nested(MAX_DEPTH - 1)]
)
async def test_a_note_that_is_no_json_or_too_long_is_refused(store: FaultyStore, script: Script, data: object) -> None:
    """A note that cannot be kept is InvalidArgument to the turn, and no fault of the agent."""

    async def work(turn: object) -> None:
        with pytest.raises(InvalidArgument):
            await script.turns[0].note(data)

    async with living(store, script, max_message_bytes=5_000) as agent:
        script.on("go", work)
        await agent.followup("go")
        await agent.when_idle()
        assert agent.statistics().restarts == 0
    assert log(store) == ["insert m0 go", "start 1: m0", "end 1 completed"]
