"""What one commit says, read from its JSON by the lab's own reader.

None of it is changed but a message, a reminder, and a commit while it is read. The others are not frozen all the same:
that takes three times as long to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from whenidle_lab.invariants.walls import Moment


def _none() -> list[Any]:
    """Return a new list: an eighth of what a call of `list[str]` costs, and a commit has ten of them."""
    return []


@attrs.define(eq=False)
class Message:
    """A message of an inbox."""

    id: str
    lane: str
    wake: bool
    text: str
    source: str
    is_foreign: bool = False
    """Whether a manager beside the host has put it there."""
    is_claimed: bool = False
    """Whether a turn has taken it."""
    is_removed: bool = False
    """Whether it left the inbox untaken."""
    is_served: bool = False
    """Whether it has been given to a turn that was not merely interrupted."""


@attrs.define(eq=False)
class Reminder:
    """A reminder that is active."""

    fields: dict[str, Any]
    """As it was created, on the wire."""
    first: int
    """The target that it was created with."""
    target: int
    """Its next one; all instants here are in milliseconds since the epoch."""
    period: int
    """Milliseconds between two occurrences; 0 for a one-shot."""
    number: int
    """How many were created before it."""

    @property
    def id(self) -> str:
        """Its id."""
        identity: str = self.fields["id"]
        return identity


@attrs.define
class Announced:
    """An occurrence that a message puts before an agent."""

    session: str
    message: str
    is_task: bool
    id: str
    """Of the reminder or task."""
    occurrence: int
    prompt: str
    missed: int = 0
    """How many occurrences before it stands for, as the message says; tasks only."""


@attrs.define
class Dispatched:
    """A reminder's record that an occurrence has entered the inbox."""

    session: str
    id: str
    target: int
    """What the reminder's target was before."""
    first: int
    period: int
    number: int
    prompt: str
    accepted: int | None
    at: int
    """What the record says when it was written."""


@attrs.define
class Started:
    """A turn that took messages, or took more of them between two steps."""

    session: str
    turn: int
    claimed: list[str]
    due: list[str]
    """What the rules of the inbox say that it had to take."""
    attempt: int
    due_attempt: int


@attrs.define
class Removed:
    """Messages that left the inbox untaken, together."""

    session: str
    ids: list[str]
    pending: list[str]
    """All that were in the inbox before."""
    cause: str | None
    """Of the cancel of the turn that it comes with; None if it comes with none."""


@attrs.define
class Ended:
    """A turn that has its outcome."""

    session: str
    turn: int
    outcome: str
    redeliver: bool
    cancelled: bool
    """Whether a cancel of it was in the log."""
    claimed: list[Message]


@attrs.frozen
class Receipt:
    """The record of a delivery of a task."""

    task: str
    scheduled: int
    delivered: int
    data: dict[str, Any]


@attrs.frozen
class Row:
    """A task as it is stored."""

    data: dict[str, Any]
    version: int
    next: int | None
    session: str | None


@attrs.frozen
class Written:
    """A change to a task."""

    id: str
    before: Row | None
    after: Row | None


@attrs.define(eq=False)
class Commit:
    """What a commit that has become durable says."""

    number: int
    began: Moment
    """When it was handed in: nothing in it was decided later."""
    durable: Moment
    elsewhere: bool = False
    """Whether another process made it, which owns no agents and so claims none."""
    created: list[str] = attrs.Factory(_none)
    appended: list[str] = attrs.Factory(_none)
    """Sessions whose own log has grown, copies for a fork apart."""
    announced: list[Announced] = attrs.Factory(_none)
    dispatched: list[Dispatched] = attrs.Factory(_none)
    made: list[tuple[str, Reminder]] = attrs.Factory(_none)
    """Reminders that were created, with their sessions."""
    deleted: list[tuple[str, str]] = attrs.Factory(_none)
    """Sessions and reminders."""
    started: list[Started] = attrs.Factory(_none)
    removed: list[Removed] = attrs.Factory(_none)
    """By a removal, or a cancel, which may have removed nothing."""
    ended: list[Ended] = attrs.Factory(_none)
    receipts: list[Receipt] = attrs.Factory(_none)
    written: list[Written] = attrs.Factory(_none)
