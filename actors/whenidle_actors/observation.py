"""What a host tells its observers as it happens (SPEC 2.6, 2.7)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class EventKind(enum.StrEnum):
    """What happened. Each is announced after the fact it tells of is durable or done."""

    AGENT_STARTED = "agent-started"
    """An agent was created, or restored from its log."""
    AGENT_PASSIVATED = "agent-passivated"
    AGENT_DISPOSED = "agent-disposed"
    AGENT_RESTARTED = "agent-restarted"
    AGENT_FAULTED = "agent-faulted"
    MESSAGE_QUEUED = "message-queued"
    TURN_STARTED = "turn-started"
    TURN_ENDED = "turn-ended"
    REMINDER_DELIVERED = "reminder-delivered"
    """A reminder's message is in the inbox and its dispatch in the log."""
    TASK_DELIVERED = "task-delivered"
    """The message of one task, or of several, is in the session's inbox and the tasks have moved on."""
    TASK_FAILED = "task-failed"
    """A task could not be delivered because its session is gone; it shows on the task."""
    RESTORE_FAILED = "restore-failed"
    """A session that has something to do could not be read; other sessions go on."""
    DELIVERY_FAILED = "delivery-failed"
    """A delivery could not be committed and is tried again."""


@attrs.frozen
class HostEvent:
    """One thing that happened on a host."""

    kind: EventKind
    session_id: str
    at: datetime
    """Wall instant, UTC."""
    detail: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Further facts, by the kind: turn number, outcome, message id, reminder id."""
