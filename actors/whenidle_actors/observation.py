"""What a host tells of itself as it happens (SPEC 2.6, 2.7, 7.4)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class EventKind(enum.StrEnum):
    """What happened. Each is announced after the fact it tells of is durable or done.

    Behind each stands what `HostEvent.detail` holds. A kind may get further details later, and there may be
    further kinds: pass over what you do not know.
    """

    AGENT_STARTED = "agent-started"
    """An agent was created, or restored from its log."""
    AGENT_PASSIVATED = "agent-passivated"
    """An agent was dropped from memory after a quiet period."""
    AGENT_DISPOSED = "agent-disposed"
    """An agent has ended and left the registry."""
    AGENT_RESTARTED = "agent-restarted"
    """An agent's own code failed and it was started anew: `error`."""
    AGENT_FAULTED = "agent-faulted"
    """An agent failed too often and was given up: `error`."""

    SESSION_CREATED = "session-created"
    """A session is in the store: `parent` and `forked_from`, session ids or None."""
    SESSION_CHANGED_ELSEWHERE = "session-changed-elsewhere"
    """Another process has created the session or appended to it."""
    RESTORE_FAILED = "restore-failed"
    """A session that has something to do could not be read; other sessions go on: `error`."""

    MESSAGE_QUEUED = "message-queued"
    """A message is in the inbox: `message` (its id), `lane`, `source`."""
    MESSAGES_REMOVED = "messages-removed"
    """Pending messages left the inbox untaken: `messages` (ids)."""
    MESSAGE_REPLACED = "message-replaced"
    """A pending message has another text: `message`."""
    TURN_STARTED = "turn-started"
    """A turn took messages and runs: `turn` (its number), `attempt`, `messages`."""
    MESSAGES_TAKEN = "messages-taken"
    """Between two steps the turn took further messages: `turn`, `messages`."""
    TURN_NOTED = "turn-noted"
    """The turn function kept a record in the log: `turn`."""
    TURN_ABORTED = "turn-aborted"
    """A cancel was accepted while the turn runs: `turn`, `cause`, and `messages` that left the inbox by it."""
    TURN_ENDED = "turn-ended"
    """A turn has its durable outcome: `turn`, `outcome`, `cause`."""
    MAINTENANCE_STARTED = "maintenance-started"
    """The idle agent was claimed, by a delivery or by `run_maintenance`."""
    MAINTENANCE_ENDED = "maintenance-ended"
    """The claim was released: `outcome` is `completed`, `aborted` or `error`."""

    TOOL_ANSWERED = "tool-answered"
    """A tool call was answered: `tool`, `code` (of a refusal; None for a result), `millis` that it took."""
    REMINDER_CREATED = "reminder-created"
    """A reminder is active: `reminder` (its id), `due` (first target, wire form)."""
    REMINDER_DELETED = "reminder-deleted"
    """A reminder was deleted: `reminder`."""
    REMINDER_DELIVERED = "reminder-delivered"
    """A reminder's message is in the inbox and its dispatch in the log: `reminders` (ids), and in the same order
    `late_millis`, how long after its occurrence each was decided about."""

    TASK_CREATED = "task-created"
    """A task was created: `task` (its id), `due` (next occurrence, wire form; None unless active)."""
    TASK_CHANGED = "task-changed"
    """A task was edited, paused, resumed or moved on without a delivery: `task`, `due`."""
    TASK_DELETED = "task-deleted"
    """A task was deleted: `task`."""
    TASK_CHANGED_ELSEWHERE = "task-changed-elsewhere"
    """Another process has made, changed or deleted tasks."""
    TASK_DELIVERED = "task-delivered"
    """The message of one task, or of several, is in the session's inbox and the tasks have moved on: `tasks` (ids),
    and in the same order `late_millis` and `missed` (occurrences that each stands for besides its own)."""
    TASK_FAILED = "task-failed"
    """A task could not be delivered because its session is gone; it shows on the task: `tasks`, `error`."""
    DELIVERY_FAILED = "delivery-failed"
    """A delivery could not be committed and is tried again: `error`, and `task` where one is known."""

    COMMITTED = "committed"
    """A commit is durable: `events`, `sessions` (new ones), `tasks`, `receipts` (how many of each), `bytes` of their
    texts, and `millis` that it took. What it holds is told next. The session is the first it appends to or creates."""
    COMMIT_FAILED = "commit-failed"
    """A commit was refused, or its outcome is `uncertain` (a bool): `error` (the exception's type), `millis`."""
    CLOCK_STEPPED = "clock-stepped"
    """The wall clock was seen to move against monotonic time: `by_millis`, negative if set back."""
    HOST_STOPPED = "host-stopped"
    """No agent is left; the last event of a host."""


@attrs.frozen
class HostEvent:
    """One thing that happened on a host."""

    kind: EventKind
    session_id: str
    """The session it is about; of a task the one it is for, if it is known; empty if there is none."""
    at: datetime
    """Wall instant, UTC."""
    detail: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Further facts, by the kind; see `EventKind`. Never a prompt, title or message text, but `cause` and `error`
    are words of others and may repeat one."""
    sequence: int = 0
    """Counts the events of a host from 1, without a gap as long as somebody observes it."""


@attrs.frozen
class EventGap:
    """Stands in a stream for events that its reader was too slow for."""

    first: int
    """`HostEvent.sequence` of the first event that was lost."""
    last: int
    """That of the last."""

    @property
    def lost(self) -> int:
        """How many events were lost."""
        return self.last - self.first + 1
