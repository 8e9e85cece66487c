"""The names of everything that can go wrong."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from whenidle_lab.choices import Topic

if TYPE_CHECKING:
    from collections.abc import Mapping


class FaultKind(enum.StrEnum):
    """One kind of fault."""

    CRASH = "crash"
    """The process dies between two rounds of its event loop, so at any await, and is down for a while."""
    STOPPED = "stopped"
    """The host is stopped in order, with time for turns to finish or without, and another process begins."""
    CRASH_BEFORE_COMMIT = "crash-before-commit"
    """It dies when a commit is handed in; nothing of that is durable."""
    CRASH_IN_COMMIT = "crash-in-commit"
    """It dies while a commit is written; nothing of that is durable."""
    CRASH_AFTER_COMMIT = "crash-after-commit"
    """It dies when a commit has become durable, before anybody was told."""

    REFUSED = "refused"
    """A commit raises `StoreFull`, `StoreBusy` or `CommitRefused`, and changed nothing."""
    SLOW = "slow"
    """Commits and reads take time for a while; commits that wait meanwhile share a transaction."""
    UNCERTAIN_LOST = "uncertain-lost"
    """A commit raises `CommitUncertain`, and did not happen; reads may fail for a while."""
    UNCERTAIN_KEPT = "uncertain-kept"
    """A commit raises `CommitUncertain`, and did happen; reads may fail for a while."""
    DEFECT = "defect"
    """A commit raises what no store should: a fault of the actor that asked for it, which is restarted. It did not
    happen, or, if all it does is to append to a log, in half of all cases it did."""
    DISK_FULL = "disk-full"
    """Every commit of a stretch of time raises `StoreFull`."""
    UNREADABLE = "unreadable"
    """Every read of a stretch of time fails."""

    FAILED_KEPT = "failed-kept"
    """A commit raises `CommitRefused`, and did happen: a store that breaks its promise."""
    LOST = "lost"
    """A commit returns, and did not happen: a disk that lies."""
    PARTLY_KEPT = "partly-kept"
    """The process dies while a commit is written, and the first part of it is durable: a disk that tears."""

    ROLLBACK = "rollback"
    """The wall clock is set back."""
    JUMP = "jump"
    """The wall clock is set forward."""
    SUSPEND = "suspend"
    """The machine sleeps: the wall runs on, monotonic time does not."""
    DRIFT = "drift"
    """The wall runs faster or slower than monotonic time for a while."""
    UNANNOUNCED = "unannounced"
    """A step of the wall clock is told to nobody. Comes with one of the others."""
    AT_WAKE = "at-wake"
    """Whatever it is, it happens at the very instant at which waits end, before anybody runs."""

    TURN_RAISES = "turn-raises"
    """A turn function raises, before or after it did its work."""
    TURN_HANGS = "turn-hangs"
    """A turn function does nothing for a long time."""
    TURN_IGNORES_CANCEL = "turn-ignores-cancel"
    """A turn function goes on for a while when it is cancelled."""
    TURN_FLOODS = "turn-floods"
    """A turn function sends its own agent many messages."""

    AGENT_DISPOSED = "agent-disposed"
    """Somebody disposes an agent."""
    AGENT_RESTARTED = "agent-restarted"
    """Somebody disposes an agent and restores it at once."""
    AGENT_CANCELLED = "agent-cancelled"
    """Somebody cancels what an agent does, and keeps its inbox or not."""
    AGENT_FORKED = "agent-forked"
    """Somebody forks a session; the fork is an agent like others."""
    AGENT_PASSIVATED = "agent-passivated"
    """Agents are dropped from memory after a short time, or none, of quiet."""


MODIFIERS: Final = frozenset({FaultKind.UNANNOUNCED, FaultKind.AT_WAKE})
"""Kinds that say how others happen."""

LIES: Final = frozenset({FaultKind.FAILED_KEPT, FaultKind.LOST, FaultKind.PARTLY_KEPT})
"""What no runtime can bear, because the store breaks the promises that it is built on."""

AT_COMMITS: Final = frozenset(
    {
        FaultKind.CRASH_BEFORE_COMMIT,
        FaultKind.CRASH_IN_COMMIT,
        FaultKind.CRASH_AFTER_COMMIT,
        FaultKind.PARTLY_KEPT,
        FaultKind.REFUSED,
        FaultKind.SLOW,
        FaultKind.UNCERTAIN_LOST,
        FaultKind.UNCERTAIN_KEPT,
        FaultKind.DEFECT,
        FaultKind.DISK_FULL,
        FaultKind.FAILED_KEPT,
        FaultKind.LOST,
    }
)
"""Kinds that befall the n-th commit of a life."""

TOPICS: Final[Mapping[Topic, tuple[FaultKind, ...]]] = {
    Topic.CRASH: (
        FaultKind.CRASH,
        FaultKind.STOPPED,
        FaultKind.CRASH_BEFORE_COMMIT,
        FaultKind.CRASH_IN_COMMIT,
        FaultKind.CRASH_AFTER_COMMIT,
        FaultKind.PARTLY_KEPT,
    ),
    Topic.COMMIT: (
        FaultKind.REFUSED,
        FaultKind.SLOW,
        FaultKind.UNCERTAIN_LOST,
        FaultKind.UNCERTAIN_KEPT,
        FaultKind.DEFECT,
        FaultKind.DISK_FULL,
        FaultKind.FAILED_KEPT,
        FaultKind.LOST,
    ),
    Topic.READ: (FaultKind.UNREADABLE,),
    Topic.CLOCK: (FaultKind.ROLLBACK, FaultKind.JUMP, FaultKind.SUSPEND, FaultKind.DRIFT),
    Topic.TURN: (
        FaultKind.TURN_RAISES,
        FaultKind.TURN_HANGS,
        FaultKind.TURN_IGNORES_CANCEL,
        FaultKind.TURN_FLOODS,
    ),
    Topic.AGENT: (
        FaultKind.AGENT_DISPOSED,
        FaultKind.AGENT_RESTARTED,
        FaultKind.AGENT_CANCELLED,
        FaultKind.AGENT_FORKED,
        FaultKind.AGENT_PASSIVATED,
    ),
}
"""What each topic draws from, in the order in which they are drawn."""
