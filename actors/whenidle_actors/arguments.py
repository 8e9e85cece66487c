"""Whether what a host was given can be what it needs: said at once, in words, before anything is opened."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from whenidle_actors.errors import InvalidArgument
from whenidle_actors.suites import Suite
from whenidle_actors.supervision import Supervision
from whenidle_actors.turn import Redelivery
from whenidle_clock import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS: Mapping[str, tuple[type[Any], bool, str]] = {
    "clock": (Clock, True, "a Clock, such as SystemClock() or VirtualClock()"),
    "redelivery": (Redelivery, False, "Redelivery.AT_LEAST_ONCE or Redelivery.AT_MOST_ONCE"),
    "supervision": (Supervision, False, "a Supervision(...)"),
    "rng": (random.Random, True, "a random.Random(...)"),
}
"""What some arguments must be an instance of, whether None will do as well, and how to say it."""


def check_arguments(*, turn: object, **given: Any) -> None:
    """Check the arguments of `open_host`.

    Raises:
        InvalidArgument: one is not what it should be.
    """
    _check_turn(turn)
    for name, (kind, optional, words) in _KINDS.items():
        value = given[name]
        if not (isinstance(value, kind) or (optional and value is None)):
            raise InvalidArgument(f"{name} is {words}{', or None' if optional else ''}; {value!r} is not")
    _check_count("max_concurrent_turns", given["max_concurrent_turns"], optional=True)
    _check_count("max_message_bytes", given["max_message_bytes"], optional=False)
    _check_seconds("passivate_after", given["passivate_after"], optional=True)
    _check_seconds("shutdown_timeout", given["shutdown_timeout"], optional=False)


def check_suites(suites: object) -> tuple[Suite, ...]:
    """Return the suites that `open_host` was given.

    Raises:
        InvalidArgument: they are none.
    """
    if not isinstance(suites, Iterable):
        raise InvalidArgument(f"suites is a list of suites, such as [Reminders()]; {suites!r} is not")
    given = tuple(cast("Iterable[object]", suites))
    for suite in given:
        if isinstance(suite, type) or not isinstance(suite, Suite):
            raise InvalidArgument(f"suites is a list of suites, such as [Reminders()]; {suite!r} is none")
    return cast("tuple[Suite, ...]", given)


def _check_turn(turn: object) -> None:
    if not callable(turn):
        raise InvalidArgument(
            f"turn is an async function of one Turn, `async def turn(turn): ...`, not {type(turn).__name__}"
        )
    if inspect.isgeneratorfunction(turn) or inspect.isasyncgenfunction(turn) or _returns_nothing(turn):
        raise InvalidArgument(
            f"turn is an async function of one Turn: write `async def {getattr(turn, '__name__', 'turn')}(turn): ...`"
        )


def _returns_nothing(turn: object) -> bool:
    """Return whether `turn` is plainly a `def` that awaits nothing, rather than one that returns an awaitable."""
    if not inspect.isfunction(turn) or inspect.iscoroutinefunction(turn) or hasattr(turn, "__wrapped__"):
        return False
    return turn.__name__ != "<lambda>" and turn.__annotations__.get("return", None) in {None, "None"}


def _check_count(name: str, value: object, *, optional: bool) -> None:
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(f"{name} is {value!r}; write a whole number, 1 or more{', or None' if optional else ''}")


def _check_seconds(name: str, value: object, *, optional: bool) -> None:
    if value is None and optional:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        raise InvalidArgument(f"{name} is {value!r}; write seconds, 0 or more{', or None' if optional else ''}")
