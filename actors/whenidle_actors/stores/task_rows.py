"""What a store keeps of host-wide tasks: rows, writes of them, and receipts (SPEC 6.3, 6.8)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import attrs

from whenidle_actors.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence


@attrs.frozen
class TaskRow:
    """One task as it is stored. What `data` says is the task service's; the rest is for finding it."""

    id: str
    data: str
    """JSON text of the whole task, opaque to the store."""
    updated_millis: int
    """The task's `updatedAt` in milliseconds since the epoch: its version, which each write raises."""
    next_millis: int | None = None
    """Next occurrence in milliseconds since the epoch; None for a task that is paused or ended."""
    session_id: str | None = None
    """Session that the next delivery goes to; None as long as that is not known."""
    creator: str = ""
    """Session id of the agent that created it; empty for one made through the host's own API."""
    damage: str | None = None
    """What is wrong with the row itself, as far as a store can tell when it reads it; its other fields hold then what
    could be read. None for a sound row, and for each that is written."""

    @property
    def active(self) -> bool:
        """Whether it comes due some time."""
        return self.next_millis is not None


@attrs.frozen
class DueTask:
    """A task that is due: where its next delivery goes, and what finds it. See the fields of `TaskRow`.

    One whose row is damaged stands for itself, without a session: reading it tells what is wrong.
    """

    id: str
    next_millis: int
    session_id: str | None


@attrs.frozen
class TaskWrite:
    """A change to one task, valid only if the task is still at the version the writer read.

    Raises:
        InvalidArgument: the row is another task's, its version is not above `expected`, or a task that must
            not exist is to be deleted.
    """

    task_id: str
    expected: int | None
    """`updated_millis` of the row that was read; None if the task must not exist yet."""
    row: TaskRow | None
    """The task after the write; None deletes it, its receipts included."""

    def __attrs_post_init__(self) -> None:
        if self.row is None:
            if self.expected is None:
                raise InvalidArgument(f"the deletion of task {self.task_id!r} must say which version it deletes")
        elif self.row.id != self.task_id:
            raise InvalidArgument(f"the row of task {self.row.id!r} cannot be written as task {self.task_id!r}")
        elif self.expected is not None and self.row.updated_millis <= self.expected:
            raise InvalidArgument(
                f"task {self.task_id!r}: updated_millis is {self.row.updated_millis}; "
                f"each write raises it, here above {self.expected}"
            )


@attrs.frozen
class TaskPage:
    """A part of a list of tasks."""

    rows: tuple[TaskRow, ...]
    total: int
    """How many tasks the whole list has, at the time of the read."""


@attrs.frozen
class Receipt:
    """The record of one delivery of a task."""

    task_id: str
    scheduled_millis: int
    """The occurrence that was delivered, in milliseconds since the epoch."""
    delivered_millis: int
    """When that was decided, in milliseconds since the epoch."""
    data: str
    """JSON text of what else is to be known of it, opaque to the store."""


@attrs.frozen
class ReceiptPage:
    """A part of a task's receipts, in the order asked for."""

    receipts: tuple[Receipt, ...]
    before: int | None
    """What to pass as `before` to read on; None if these were the last."""


MAX_DROPPED: Final = 20
"""Receipts that one new receipt can push out: bounds the work of a commit when retention was shortened."""


@attrs.frozen
class Retention:
    """How long receipts are kept (SPEC 6.8): one goes when it is too many or too old, whichever comes first.

    Looked at when a receipt is added to the same task, and measured from that one, which always stays. At
    most `MAX_DROPPED` go each time, the oldest first.

    Raises:
        InvalidArgument: there is nothing that it keeps.
    """

    records: int = 200
    """The most that are kept of one task."""
    age: timedelta = timedelta(days=30)
    """How much earlier than the newest one a receipt may have been delivered."""

    def __attrs_post_init__(self) -> None:
        if self.records < 1:
            raise InvalidArgument(f"records is {self.records}; keep 1 or more")
        if self.age <= timedelta(0):
            raise InvalidArgument(f"age is {self.age}; it must be positive")

    @property
    def age_millis(self) -> int:
        """`age` in milliseconds."""
        return self.age // timedelta(milliseconds=1)

    def surplus(self, kept: int, oldest: Sequence[int], newest: int) -> int:
        """Return how many of the `oldest` go, where `kept` are there with the one that was just added.

        `oldest` holds the `delivered_millis` of the first `MAX_DROPPED` at most, the oldest first; `newest`
        is that of the one that was added.
        """
        limit = newest - self.age_millis
        for dropped, delivered in enumerate(oldest):
            if kept - dropped <= self.records and delivered >= limit:
                return dropped
        return len(oldest)


DEFAULT_RETENTION: Final = Retention()
"""What is kept unless a store is told otherwise."""
