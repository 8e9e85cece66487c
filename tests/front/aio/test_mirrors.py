"""The asyncio classes say and take what the trio classes do: none of it can be forgotten or rot."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import whenidle
from whenidle import aio
from whenidle_actors import agent, event_stream, host, offline, task_desk, tasks, turn
from whenidle_actors.stores import base

NOT_MIRRORED: dict[type, set[str]] = {
    # The runtime's own, not its users'.
    agent.Agent: {"admit", "claim", "claim_step", "note", "release"},
    tasks.Tasks: {"attend", "call", "due", "look", "mounted", "recompute", "release", "services", "suits"},
    task_desk.TaskDesk: {"journal", "on_change", "random"},
    event_stream.EventStream: {"end", "put"},
}
ONLY_HERE: dict[type, set[str]] = {
    aio.Tasks: {"suite_on", "presets", "settings"},  # the last two are attributes of the model's instances
}
DIFFERENT_ANNOTATIONS = {
    "open_host": {"turn", "suites", "return"},
    "mount": {"suite"},
}
"""What takes an asyncio class, or is made of one, in place of its trio namesake."""

PAIRS: list[tuple[type, type]] = [
    (aio.Agent, agent.Agent),
    (aio.EventStream, event_stream.EventStream),
    (aio.Host, host.Host),
    (aio.Manager, offline.Manager),
    (aio.Store, base.Store),
    (aio.TaskDesk, task_desk.TaskDesk),
    (aio.Tasks, tasks.Tasks),
    (aio.Turn, turn.Turn),
]
FUNCTIONS = [
    pytest.param(getattr(mirror, name), getattr(model, name), id=f"{mirror.__name__}.{name}")
    for mirror, model in PAIRS
    for name in sorted(vars(mirror))
    if not name.startswith("_") and inspect.isfunction(vars(mirror)[name]) and name != "suite_on"
] + [
    pytest.param(aio.open_host, whenidle.open_host, id="open_host"),
    pytest.param(aio.open_manager, whenidle.open_manager, id="open_manager"),
]


def members(kind: type) -> set[str]:
    """Return the public names that a class itself defines, attrs fields included."""
    names = {name for name in vars(kind) if not name.startswith("_")}
    if attrs.has(kind):
        names |= {field.name for field in attrs.fields(kind) if not field.name.startswith("_")}
    return names


@pytest.mark.parametrize(("mirror", "model"), PAIRS, ids=lambda kind: kind.__name__)
def test_nothing_is_missing(mirror: type, model: type) -> None:
    """Each public member of the trio class has its namesake, but for those that are named above.

    Of a store there is what its readers need; the rest of it is the runtime's.
    """
    own = members(mirror) - ONLY_HERE.get(mirror, set())
    if mirror is aio.Store:
        assert own < members(model)
    else:
        assert own == members(model) - NOT_MIRRORED.get(model, set())


@pytest.mark.parametrize(("mirror", "model"), FUNCTIONS)
def test_parameters_are_the_same(mirror: Callable[..., Any], model: Callable[..., Any]) -> None:
    """Names, kinds, defaults and types; a wait is a wait in both."""
    different = DIFFERENT_ANNOTATIONS.get(mirror.__name__, set())

    def told(function: Callable[..., Any]) -> list[tuple[object, ...]]:
        parameters = inspect.signature(function).parameters.values()
        return [
            (p.name, p.kind, p.default, None if p.name in different else str(p.annotation).replace("base.", ""))
            for p in parameters
        ]

    assert told(mirror) == told(model)
    assert inspect.iscoroutinefunction(mirror) == inspect.iscoroutinefunction(model)


@pytest.mark.parametrize(("mirror", "model"), PAIRS, ids=lambda kind: kind.__name__)
def test_documentation_is_the_same(mirror: type, model: type) -> None:
    """`help()` tells of each member what it tells of the trio one, and what is different after it."""
    for name in members(mirror) & set(vars(model)):
        words = inspect.getdoc(getattr(model, name))
        if words is not None and inspect.getdoc(vars(mirror)[name]) is not None:
            assert (inspect.getdoc(vars(mirror)[name]) or "").startswith(words), name


def test_what_is_different_is_told_after_it() -> None:
    """A note of a member's own stands behind the words that are shared."""
    words = inspect.getdoc(aio.Agent.run_maintenance)
    assert words is not None
    assert words.index("Claim the idle agent") < words.index("asyncio coroutine function")


def test_members_have_words_of_their_own_where_the_model_has_none() -> None:
    """A field has no docstring at run time; its namesake, a property, has."""
    assert inspect.getdoc(vars(aio.Turn)["number"]) == "Counts the turns of the session from 1, a redelivery included."


def test_asyncio_is_not_imported_with_whenidle() -> None:
    """`import whenidle` stays as fast as it is: the asyncio part comes when it is asked for."""
    code = "import sys, whenidle; print('whenidle.aio' in sys.modules); from whenidle import aio; print(aio.Host)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n<class 'whenidle.aio.host.Host'>\n"
