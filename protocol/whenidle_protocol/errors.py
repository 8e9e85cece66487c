"""What the pure floor raises on purpose.

Two readers are kept apart. A `ToolError` is read by the model or person who called a tool:
its code is one of a closed set, its message is stable, teaches what to write instead, and
shows nothing of the inside. A `CorruptLog` is read by whoever looks after the store: it says
which event is wrong and why.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class ReminderCode(StrEnum):
    """The closed set of codes a reminder tool may answer with (SPEC 5.7)."""

    INVALID_PROMPT = "invalid_prompt"
    INVALID_SELECTOR = "invalid_selector"
    INVALID_RULE = "invalid_rule"
    INVALID_TIME_ZONE = "invalid_time_zone"
    NOT_FUTURE = "not_future"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    FREQUENCY_TOO_HIGH = "frequency_too_high"
    CORRUPT_SCHEDULE_LOG = "corrupt_schedule_log"
    PERSISTENCE_UNCERTAIN = "persistence_uncertain"
    INTERNAL_ERROR = "internal_error"


class TaskCode(StrEnum):
    """The closed set of codes a task tool may answer with (SPEC 6.9)."""

    INVALID_TITLE = "invalid_title"
    INVALID_PROMPT = "invalid_prompt"
    INVALID_RULE = "invalid_rule"
    INVALID_TIME_ZONE = "invalid_time_zone"
    INVALID_TARGET = "invalid_target"
    NOT_FUTURE = "not_future"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    FREQUENCY_TOO_HIGH = "frequency_too_high"
    LIMIT_REACHED = "limit_reached"
    SCHEDULE_NOT_FOUND = "schedule_not_found"
    SCHEDULE_CONFLICT = "schedule_conflict"
    SUBAGENT_SESSION = "subagent_session"
    PERSISTENCE_UNCERTAIN = "persistence_uncertain"
    INTERNAL_ERROR = "internal_error"


class ToolError(Exception):
    """A tool call that is answered with a code instead of a result.

    `details` are further keys of the answer, in the order they are written; only
    `persistence_uncertain` has any (SPEC 5.6).
    """

    def __init__(self, code: ReminderCode | TaskCode, message: str, **details: str) -> None:
        self.code = code
        self.message = message
        self.details = details
        super().__init__(f"{code}: {message}")

    def answer(self) -> dict[str, Any]:
        """Return the answer of the tool: `{code, message}` and the details."""
        return {"code": self.code.value, "message": self.message, **self.details}


class CorruptLog(ValueError):
    """An event that cannot be what was written, or cannot follow the events before it.

    `seq` is the event's position in its log, None where the reader does not know it; `why`
    says what is wrong with it.
    """

    def __init__(self, why: str, seq: int | None = None) -> None:
        self.why = why
        self.seq = seq
        super().__init__(why if seq is None else f"event {seq}: {why}")

    def at(self, seq: int) -> CorruptLog:
        """Return the same complaint with the position of the event in it."""
        return CorruptLog(self.why, seq)


class UnknownEvent(CorruptLog):
    """An event of a type this version does not know, and that is not marked ignorable (SPEC 3.4)."""

    def __init__(self, event_type: str, seq: int | None = None) -> None:
        self.type = event_type
        super().__init__(
            f"type {event_type!r} is not known to this version of whenidle; a newer one may have written it",
            seq,
        )

    def at(self, seq: int) -> UnknownEvent:
        """Return the same complaint with the position of the event in it."""
        return UnknownEvent(self.type, seq)
