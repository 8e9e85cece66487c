"""Arguments that are not what they should be, refused before anything is opened or written."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.actors.reminders.worlds import LongestWaits
from whenidle_actors.composition import open_host
from whenidle_actors.errors import InvalidArgument
from whenidle_actors.reminders import Reminders
from whenidle_actors.stores.base import SessionHeader
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.supervision import Supervision
from whenidle_actors.turn import Redelivery
from whenidle_clock import EPOCH

from .worlds import Script, hosted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.turn import Turn


class Unopened(MemoryStore):
    """A store that must not be opened."""

    async def open(self, role: object) -> None:  # noqa: ARG002 - the signature of a store
        raise AssertionError("opened")


def plain(turn: Turn) -> None:
    """Await nothing, as a turn must not."""


def untold(turn):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - that is the case
    """Await nothing and say nothing."""


def generator(turn: Turn) -> Iterator[Turn]:
    """Yield, as a turn must not."""
    yield turn


async def async_generator(turn: Turn) -> AsyncIterator[Turn]:
    """Yield, as a turn must not."""
    yield turn


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_concurrent_turns", "3", "max_concurrent_turns is '3'; write a whole number, 1 or more, or None"),
        ("max_concurrent_turns", 1.5, "1.5"),
        ("max_concurrent_turns", 0, "0"),
        ("max_concurrent_turns", True, "True"),
        ("max_message_bytes", "1", "max_message_bytes is '1'; write a whole number, 1 or more$"),
        ("max_message_bytes", None, "None"),
        ("passivate_after", "x", "passivate_after is 'x'; write seconds, 0 or more, or None"),
        ("passivate_after", -1, "-1"),
        ("passivate_after", math.nan, "nan"),
        ("shutdown_timeout", None, "shutdown_timeout is None; write seconds, 0 or more$"),
        ("shutdown_timeout", False, "False"),
        ("redelivery", "at-most-once", "redelivery is Redelivery.AT_LEAST_ONCE or .*'at-most-once' is not"),
        ("redelivery", None, "redelivery"),
        ("supervision", None, "supervision is a Supervision"),
        ("clock", object(), "clock is a Clock, .* or None"),
        ("rng", 5, r"rng is a random.Random\(...\), or None; 5 is not"),
        ("suites", [object()], "suites is a list of suites"),
        ("suites", [Reminders], "suites is a list of suites"),
        ("suites", Reminders(), "suites is a list of suites"),
        ("turn", None, "turn is an async function of one Turn, .* not NoneType"),
        ("turn", plain, r"write `async def plain\(turn\)"),
        ("turn", untold, r"write `async def untold\(turn\)"),
        ("turn", generator, r"write `async def generator\(turn\)"),
        ("turn", async_generator, r"write `async def async_generator\(turn\)"),
    ],
)
async def test_an_argument_of_another_kind_is_named_before_the_store_is_opened(
    script: Script, name: str, value: object, words: str
) -> None:
    """The message says which it is, what it was and what to write instead."""
    options: dict[str, Any] = {"turn": script, "clock": script, name: value}
    with pytest.raises(InvalidArgument, match=words):
        async with open_host(store=Unopened(), **options):
            pass


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrent_turns": None, "passivate_after": None, "rng": None},
        {"max_concurrent_turns": 1, "passivate_after": 0, "shutdown_timeout": 0, "max_message_bytes": 1},
        {"passivate_after": math.inf, "shutdown_timeout": 0.5, "redelivery": Redelivery.AT_MOST_ONCE},
        {"rng": LongestWaits(1), "supervision": Supervision(), "suites": iter([Reminders()])},
    ],
)
async def test_arguments_at_their_bounds_are_taken(
    store: FaultyStore, script: Script, options: dict[str, object]
) -> None:
    """Zero seconds, one turn, no bound at all: a host opens."""
    async with hosted(store, script, **options) as host:
        assert host.agents == ()


async def test_whatever_returns_an_awaitable_can_be_a_turn(store: FaultyStore, script: Script) -> None:
    """A lambda, a partial, an object, a function that says so, and a wrapper: their awaitable is the turn."""

    def told(turn: Turn) -> Awaitable[None]:
        return script(turn)

    @functools.wraps(script.__call__)
    def wrapper(turn):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as decorators are often written
        return script(turn)

    async def with_more(_: object, turn: Turn) -> None:
        await script(turn)

    short = lambda turn: script(turn)  # noqa: E731, PLW0108 - one that a program might write
    choices: tuple[Any, ...] = (script, told, wrapper, short, functools.partial(with_more, None))
    for number, turn in enumerate(choices):
        async with open_host(store=store, clock=script, turn=turn) as host:
            agent = await host.create_agent(f"a{number}")
            await agent.followup("x")
            await agent.when_idle()
    assert script.taken == [["x"]] * len(choices)


@pytest.mark.parametrize("field", [{"cwd": 5}, {"preset": None}, {"parent": 5}])
async def test_a_session_that_no_store_could_read_back_is_not_created(
    store: FaultyStore, script: Script, field: dict[str, Any]
) -> None:
    """A header of other types is refused before it is written, and nothing is left."""
    async with hosted(store, script) as host:
        with pytest.raises(InvalidArgument):
            await host.create_agent("a", **field)
        assert await store.sessions() == ()


@pytest.mark.parametrize("name", ["id", "cwd", "preset", "parent", "forked_from"])
def test_a_session_header_names_the_field_that_is_no_text(name: str) -> None:
    """Also for whoever writes to a store directly."""
    fields: dict[str, Any] = {"id": "a", "created_at": EPOCH, name: 5}
    with pytest.raises(InvalidArgument, match=f"{name} of a session is a "):
        SessionHeader(**fields)


@pytest.mark.parametrize("upto", ["x", 1.0, True])
async def test_a_fork_is_cut_at_a_whole_number(store: FaultyStore, script: Script, upto: Any) -> None:
    """Anything else is refused: its header could not be read back."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.inject("x")
        with pytest.raises(InvalidArgument, match="cannot be cut at"):
            await host.fork("a", upto=upto)
        assert [header.id for header in await store.sessions()] == ["a"]
