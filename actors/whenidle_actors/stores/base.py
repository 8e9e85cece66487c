"""The contract of a store: one durable place for the sessions and tasks of a host (SPEC 3).

A store knows logs, not agents. It keeps, for each session, a header, an append-only
list of event records, and a small *index* that the runtime derives from the log so that
a host can find what needs attention without reading every log. Beside them it keeps rows of
host-wide tasks, in the orders in which they are listed and come due, and receipts of their
deliveries; it knows no more of a task than that.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle_actors.errors import InvalidArgument, StoreError
from whenidle_actors.stores.task_rows import (
    DEFAULT_RETENTION,
    DueTask,
    Receipt,
    ReceiptPage,
    Retention,
    TaskPage,
    TaskRow,
    TaskWrite,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime
    from types import TracebackType

    from whenidle_protocol.events import EventRecord


class Role(enum.Enum):
    """What the opener wants to do with the store."""

    HOST = "host"
    """Own agents and schedule: at most one host at a time (SPEC 3.4)."""

    MANAGER = "manager"
    """Read, and append beside a running host; takes no lock."""


@attrs.frozen
class SessionHeader:
    """What is true of a session for its whole life (SPEC 2.10, 3.1).

    Raises:
        InvalidArgument: a text is no string; a store could never read it back.
    """

    id: str
    created_at: datetime
    parent: str | None = None
    """Session id of the agent that delegated to this one; None for a root agent."""
    delegation_depth: int = 0
    """0 for a root agent, parent's depth plus one for a delegated child."""
    cwd: str = ""
    preset: str = ""
    seed_length: int = 0
    """How many leading events were inherited by a fork; folds of ownership ignore them."""
    forked_from: str | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("id", "cwd", "preset"):
            if not isinstance(getattr(self, name), str):
                raise InvalidArgument(f"{name} of a session is a string, not {type(getattr(self, name)).__name__}")
        for name in ("parent", "forked_from"):
            if not isinstance(getattr(self, name), str | None):
                raise InvalidArgument(f"{name} of a session is a session id or None")


@attrs.frozen
class SessionIndex:
    """What a host must know of a session to wake it, derived from its log at each commit."""

    due_millis: int | None = None
    """Earliest target of an active reminder, in milliseconds since the epoch."""
    runnable: bool = False
    """True while a turn is open or the inbox gives the agent a reason to run."""


IDLE_INDEX = SessionIndex()


@attrs.frozen
class Append:
    """Events to add to one log, valid only if the log still has `expected` events."""

    session_id: str
    expected: int
    records: tuple[EventRecord, ...]
    index: SessionIndex = IDLE_INDEX
    """The index of the session after these records."""


@attrs.frozen
class Batch:
    """One atomic commit: all of it becomes durable, or none (SPEC 3.2).

    It takes effect in the order `created`, `appends`, `tasks`, `receipts`, each from its first to its last:
    sessions in `created` exist (empty, expected 0) for the `appends` of the same batch, and a task that is
    written twice has the first write's version for the second.
    """

    appends: tuple[Append, ...] = ()
    created: tuple[SessionHeader, ...] = ()
    tasks: tuple[TaskWrite, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """Receipts of tasks that exist behind `tasks`; adding one drops what retention does not keep."""


@attrs.frozen
class SessionSlice:
    """A consistent read of one session: header, index, and the records from `start` on."""

    header: SessionHeader
    index: SessionIndex
    start: int
    records: tuple[EventRecord, ...]

    @property
    def length(self) -> int:
        """Number of events in the whole log at the time of the read."""
        return self.start + len(self.records)


@attrs.frozen
class Attention:
    """A session that needs a host: something is due at some time, or something must run now."""

    session_id: str
    index: SessionIndex


@attrs.frozen
class Changes:
    """What managers have committed beside a host."""

    sessions: frozenset[str] = frozenset()
    """The sessions that were created or appended to."""
    tasks: bool = False
    """Whether any task was made, changed or deleted."""


@attrs.frozen
class StoreStatistics:
    """Counters since the store was opened (SPEC 2.12)."""

    commits: int = 0
    """Batches that became durable."""
    refused: int = 0
    """Batches that changed nothing."""
    uncertain: int = 0
    """Batches whose outcome could not be told."""
    groups: int = 0
    """Transactions; commits divided by groups is the gain of group commit."""
    waiting: int = 0
    """Batches handed in and not yet answered."""


class Store(ABC):
    """Base class of all stores. Use as `async with store.opened(Role.HOST):` or by `open`/`aclose`."""

    @abstractmethod
    async def open(self, role: Role) -> None:
        """Open the store, creating or migrating it where that is safe.

        Raises:
            StoreLocked: role is HOST and another host has the store, or this object is open already.
            NotAStore, StoreTooNew, StoreDamaged, StoreUnavailable: the file is left untouched.
            StoreBusy, StoreFull: it could not be created or migrated now, and is as it was.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the store; commits already handed in finish first. Idempotent, shielded from cancellation."""

    @abstractmethod
    async def commit(self, batch: Batch) -> None:
        """Make `batch` durable, all of it or nothing.

        Returns only when the batch is on disk. If cancelled before the write began, the batch is withdrawn
        and nothing changed; once the write has begun the outcome is awaited, shielded from cancellation.

        Raises:
            SequenceConflict, SessionExists, UnknownSession, TaskConflict, UnknownTask: nothing changed; read
                and decide again.
            StoreFull, StoreBusy, CommitRefused: nothing changed.
            CommitUncertain: the outcome is unknown; read the session back.
            StoreClosed: the store is not open.
        """

    async def commit_all(self, batches: Sequence[Batch]) -> list[Exception | None]:
        """Commit several batches, each by itself as `commit` does, and return what that raised for each, or None.

        A batch that is refused takes nothing with it. If cancelled, those whose write has not begun are
        withdrawn.

        Raises:
            StoreClosed: the store is not open; nothing changed.
        """
        answers: list[Exception | None] = []
        for batch in batches:
            try:
                await self.commit(batch)
            except Exception as error:  # noqa: BLE001 - an answer like any other
                answers.append(error)
            else:
                answers.append(None)
        return answers

    @abstractmethod
    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """Return header, index and the records numbered `start` and above, as one consistent view.

        Everything that a returned commit wrote is in it. A `start` past the end gives no records and `start`
        clipped to the length. What the records' data means, and whether it is JSON, is the reader's to judge.

        Raises:
            UnknownSession: there is no such session.
            StoreDamaged: the log has a gap, or a row that is not of the shape that is written.
            CommitUncertain: an earlier commit's outcome still cannot be told; try again later.
            InvalidArgument: `start` is negative.
        """

    async def read_all(self, session_ids: Sequence[str]) -> list[SessionSlice | None]:
        """Return what `read` gives for each of some sessions; None where that fails or would take long.

        It is for sessions that can as well be read one by one. What is returned is as good as from `read`.

        Raises:
            CommitUncertain: as `read`.
        """
        found: list[SessionSlice | None] = []
        for session_id in session_ids:
            try:
                found.append(await self.read(session_id))
            except StoreError:
                found.append(None)
        return found

    @abstractmethod
    async def sessions(self, *, after: str = "", limit: int = 500) -> tuple[SessionHeader, ...]:
        """Return up to `limit` headers with ids above `after`, in code point order of id.

        Raises:
            InvalidArgument: `limit` is not positive.
        """

    @abstractmethod
    def attention(self) -> AsyncIterator[Attention]:
        """Iterate over all sessions whose index is not idle.

        Runnable ones come first, in order of their creation; then those that only wait for a time, the
        earliest first, ties in order of creation. May be left at any item without being closed.
        """

    @abstractmethod
    async def task(self, task_id: str) -> TaskRow:
        """Return one task.

        Raises:
            UnknownTask: there is none of that id.
            StoreDamaged, CommitUncertain: as `read`; all reads of tasks raise them.
        """

    @abstractmethod
    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """Return up to `limit` tasks from the `offset`-th of a list on, and the length of that list (SPEC 6.4).

        Active tasks come by next occurrence, then the others by last update, the newest first; ties in code
        point order of id. `active` leaves one of the two kinds out. Page and total are one consistent view.

        Raises:
            InvalidArgument: `limit` is not positive, or `offset` is negative.
        """

    @abstractmethod
    async def count_active_tasks(self, creator: str | None = None) -> int:
        """Return how many tasks are active: all, or those of one creator. Takes the same time for any number."""

    @abstractmethod
    async def due_tasks(
        self,
        until_millis: int,
        *,
        session_id: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 500,
    ) -> tuple[TaskRow, ...]:
        """Return active tasks whose next occurrence is at or before `until_millis`, the earliest first.

        Ties come in code point order of id. Takes the same time however many tasks are stored.

        Args:
            until_millis: milliseconds since the epoch.
            session_id: leaves out all but the tasks with this `TaskRow.session_id`.
            after: `next_millis` and `id` of a task to read on behind; it need not exist any more.
            limit: the most to return.

        Raises:
            InvalidArgument: `limit` is not positive.
        """

    async def due_destinations(
        self, until_millis: int, *, after: tuple[int, str] | None = None, limit: int = 500
    ) -> tuple[DueTask, ...]:
        """Return what `due_tasks` does for all sessions, without the tasks' texts.

        Raises:
            InvalidArgument: `limit` is not positive.
        """
        rows = await self.due_tasks(until_millis, after=after, limit=limit)
        return tuple(DueTask(row.id, row.next_millis or 0, row.session_id) for row in rows)

    async def due_tasks_of(
        self, session_ids: Sequence[str], until_millis: int, *, limit: int = 500
    ) -> list[tuple[TaskRow, ...]]:
        """Return what `due_tasks` gives for each of some sessions, up to `limit` tasks of each.

        Raises:
            InvalidArgument: `limit` is not positive.
        """
        return [await self.due_tasks(until_millis, session_id=each, limit=limit) for each in session_ids]

    @abstractmethod
    async def next_due(self, after_millis: int | None = None) -> int | None:
        """Return the earliest next occurrence of all active tasks, of those above `after_millis` if it is given.

        In milliseconds since the epoch; None if there is none. Takes the same time however many tasks are stored.
        """

    @abstractmethod
    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """Return up to `limit` receipts of a task, the last one added first; `before` is a page's `before`.

        Raises:
            UnknownTask: there is no such task.
            InvalidArgument: `limit` is not positive.
        """

    @abstractmethod
    async def changed_elsewhere(self) -> Changes:
        """Wait until a manager has committed beside this host and return what it touched.

        Each change is reported at least once, within a second of real time; waiting does not hold virtual
        time. Changes made while no host ran are reported too. A report counts as dealt with when the next
        one is asked for; one that was not is repeated when the store is opened again. For one task at a
        time. Cancelling is safe and loses no report. A manager, and a store that only this process can
        reach, never get one.

        Raises:
            StoreClosed: the store was closed meanwhile.
        """

    async def revision(self) -> int:
        """Return a number that is another one after every commit, whoever made it; cheap, for looking often.

        It means nothing but that, and nothing any more after the store was closed. A store that others can reach,
        too, has to ask for it; here are counted the commits of this one.

        Raises:
            StoreClosed, StoreError: as `read`.
        """
        await trio.lowlevel.checkpoint()
        return self.statistics().commits

    @abstractmethod
    async def check(self) -> Sequence[str]:
        """Look through the whole store and return one line for each thing that is wrong; empty if sound."""

    @abstractmethod
    def statistics(self) -> StoreStatistics:
        """Return the counters."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What to call the store in a message: a path, or `memory`."""

    def opened(self, role: Role) -> _Opened:
        """Return an async context manager that opens the store and closes it again."""
        return _Opened(self, role)


@attrs.define
class _Opened:
    _store: Store
    _role: Role

    async def __aenter__(self) -> Store:
        await self._store.open(self._role)
        return self._store

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._store.aclose()


__all__ = [
    "DEFAULT_RETENTION",
    "IDLE_INDEX",
    "Append",
    "Attention",
    "Batch",
    "Changes",
    "DueTask",
    "Receipt",
    "ReceiptPage",
    "Retention",
    "Role",
    "SessionHeader",
    "SessionIndex",
    "SessionSlice",
    "Store",
    "StoreStatistics",
    "TaskPage",
    "TaskRow",
    "TaskWrite",
]
