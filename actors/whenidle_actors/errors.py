"""Every exception the runtime raises on purpose, in one tree.

A caller's mistake, a refused claim, a vanished agent and a store that will not
take a write are different things to the person who reads the traceback; each has
a class of its own below `WhenidleError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class WhenidleError(Exception):
    """Base of all exceptions raised on purpose by the runtime."""


class CompositionError(WhenidleError):
    """The host was put together in a way that cannot work (SPEC 5.1)."""


class InvalidArgument(WhenidleError, ValueError):
    """An argument of the Python API is not what the function takes."""


# Agents -----------------------------------------------------------------------------------


class AgentBusy(WhenidleError):
    """The agent's phase is not idle, so it cannot be claimed for maintenance (SPEC 2.3)."""


class AgentDisposed(WhenidleError):
    """The agent was disposed; everything that waited for it ends with this (SPEC 2.6)."""


class AgentFaulted(WhenidleError):
    """The agent's own code failed more often than its restart intensity allows (SPEC 2.7)."""


class WouldWaitForItself(WhenidleError):
    """A turn or maintenance task asked to wait for the very agent it runs on (SPEC 2.4)."""


class MaintenanceAborted(WhenidleError):
    """The maintenance task was cancelled by `Agent.cancel`; the message gives the cause (SPEC 2.5)."""


class UnknownTool(WhenidleError, LookupError):
    """The agent has no tool of that name."""


class TurnEnded(WhenidleError):
    """The turn that is asked for something has ended or was cancelled."""


class UnknownMessage(WhenidleError, LookupError):
    """No pending inbox message has that id (SPEC 2.2)."""


# Actors -----------------------------------------------------------------------------------


class ActorStopped(WhenidleError):
    """The actor no longer takes messages."""


class ActorRestarted(WhenidleError):
    """The actor was restarted while this ask waited in its mailbox (SPEC 2.9)."""


class AskTimeout(WhenidleError):
    """No answer came before the ask's deadline."""


class MailboxFull(WhenidleError):
    """A bounded mailbox with overflow policy *reject* has no room (SPEC 2.9)."""


class MailboxDeadlock(WhenidleError):
    """An ask would have waited for itself, directly or through other actors (SPEC 2.9).

    `cycle` names the actors in the order they wait for one another; the first and
    the last are the same.
    """

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle: tuple[str, ...] = tuple(cycle)
        super().__init__(f"this ask would wait for itself: {' -> '.join(self.cycle)}")


# Stores -----------------------------------------------------------------------------------


class StoreError(WhenidleError):
    """Base of everything a store reports."""


class StoreClosed(StoreError):
    """The store is not open."""


class StoreLocked(StoreError):
    """Another host schedules from this store already (SPEC 3.4).

    `pid` is the process id of that host, 0 where it could not be found out.
    """

    def __init__(self, store: str, pid: int) -> None:
        self.pid = pid
        super().__init__(f"{store} is in use by the host with process id {pid}; stop that host first")


class StoreDamaged(StoreError):
    """The store holds something that cannot be what was written; nothing was changed (SPEC 3.4)."""


class NotAStore(StoreError):
    """The file is not a whenidle store: another format, or another application's database."""


class StoreTooNew(StoreError):
    """The store's schema is newer than this version of whenidle knows (SPEC 3.4)."""


class StoreUnavailable(StoreError):
    """The path cannot be opened: missing folder, no permission, or a folder instead of a file."""


class UnknownSession(StoreError, LookupError):
    """The store has no session of that id."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"there is no session {session_id!r}")


class UnknownTask(StoreError, LookupError):
    """The store has no task of that id."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        super().__init__(f"there is no task {task_id!r}")


class CommitRefused(StoreError):
    """The commit did not happen and changed nothing (SPEC 3.2)."""


class SequenceConflict(CommitRefused):
    """The log has grown since it was read: somebody else appended first."""

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        self.session_id = session_id
        self.expected = expected
        self.actual = actual
        super().__init__(f"session {session_id!r} has {actual} events, not the expected {expected}")


class SessionExists(CommitRefused):
    """A session of that id exists already."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id!r} exists already")


class TaskConflict(CommitRefused):
    """The task is not as it was read: somebody else wrote, made or deleted it first (SPEC 6.5).

    `expected` and `actual` are versions, in milliseconds since the epoch; None stands for no such task.
    """

    def __init__(self, task_id: str, expected: int | None, actual: int | None) -> None:
        self.task_id = task_id
        self.expected = expected
        self.actual = actual
        if actual is None:
            why = "does not exist any more"
        elif expected is None:
            why = "exists already"
        else:
            why = f"was updated at {actual}, and the write is based on {expected}"
        super().__init__(f"task {task_id!r} {why}")


class StoreFull(CommitRefused):
    """The disk (or the configured limit) has no room for the commit."""


class StoreBusy(CommitRefused):
    """Another process held the write lock longer than the busy timeout."""


class CorruptImport(StoreError, ValueError):
    """An exported session cannot be imported as it is; nothing was imported (SPEC 3.5).

    `line` counts from 1; None if the complaint is about the file as a whole.
    """

    def __init__(self, file: str, line: int | None, why: str) -> None:
        self.file = file
        self.line = line
        self.why = why
        super().__init__(f"{file}: {why}" if line is None else f"{file}, line {line}: {why}")


class CommitUncertain(StoreError):
    """Whether the commit happened is not known; read back before deciding anything (SPEC 3.2)."""
