"""What wraps the work of a host while it is done: for traces, whose spans begin before and end after it (SPEC 7.4).

An observer is told of facts; a probe is entered and left around work. A host has none unless one is attached, and
then none of its cost.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractContextManager

T = TypeVar("T")


class Work(enum.StrEnum):
    """What is wrapped. Behind each stand the facts it is begun with, and those that are added before it ends."""

    TOOL_CALL = "tool-call"
    """`tool`; added `code`, None or that of a refusal."""
    CLAIM = "claim"
    """An idle agent is claimed; none."""
    DELIVERY = "delivery"
    """What is due is put into an inbox; added `schedules` (ids; empty if nothing was due after all), `traces` (as
    `Probe.trace` gave them when each was created; None if it did not) and `late_millis`, in the same order."""
    TURN = "turn"
    """`turn`, `attempt`, `messages` (ids); added `outcome`."""
    COMMIT = "commit"
    """`events`, `sessions` (new ones), `tasks`, `receipts`: how many of each."""


class Note(Protocol):
    """Adds facts to the work that is under way."""

    def __call__(self, **facts: Any) -> None:
        """Add them; one that is there already is replaced."""


class Probe(Protocol):
    """What can be attached to a host. None of its methods may block or raise."""

    def work(self, kind: Work, session_id: str, facts: Mapping[str, Any]) -> AbstractContextManager[Note]:
        """Return what is entered around a piece of work; it lets every exception pass."""
        ...

    def carry(self, operation: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Return an operation that does the same in another task as a part of the present work."""
        ...

    def trace(self) -> str | None:
        """Return what stands for the present work in a log, a W3C `traceparent`; None if it is not traced."""
        ...


class unprobed:  # noqa: N801 - used as a function; around every turn and delivery, for a third of a generator's cost
    """Wrap work that nobody looks at."""

    __slots__ = ()

    def __enter__(self) -> Note:
        return _forget

    def __exit__(self, *_: object) -> None:
        pass


def _forget(**_: Any) -> None:
    """Take no notice."""
