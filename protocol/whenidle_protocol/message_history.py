"""What became of a message, read from its session's log (SPEC 2.5, 6.8).

Whether a message was handled is told by the turns that took it and by nothing else. So it is never kept a second
time: whoever wants to know reads the log, which is also right after a crash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import attrs

from whenidle_protocol.events import (
    Message,
    MessagesRemoved,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whenidle_protocol.events import Event, EventRecord

_TELLING: Final = frozenset(
    {"inbox/insert", "inbox/remove", "turn/start", "turn/claim", "turn/abort", "turn/note", "turn/end"}
)
"""The events that say something about a message's fate; the others are passed over unread."""


class Fate(StrEnum):
    """How far a message has come. The last four are outcomes of the turn that took it."""

    WAITING = "waiting"
    """It is in the inbox."""
    REMOVED = "removed"
    """It left the inbox untaken."""
    RUNNING = "running"
    """A turn has taken it and not ended; after a crash also one that nothing runs any more."""
    COMPLETED = "completed"
    ABORTED = "aborted"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    """The turn was interrupted; if messages are redelivered another one takes it."""


@attrs.frozen
class MessageHistory:
    """What became of one message so far."""

    fate: Fate = Fate.WAITING
    attempts: int = 0
    """How often a turn has taken it."""
    turn: int | None = None
    """Number of the last of those turns."""
    ended_millis: int | None = None
    """When its last turn ended or it was removed, in milliseconds since the epoch; None before."""
    cause: str | None = None
    """Why that turn failed or was cancelled."""
    note: Any = None
    """What was noted last by any turn that took it (`turn/note`), any JSON value; None if nothing was."""


class MessageHistories:
    """The histories of messages that are found in a log, fed with its records in their order.

    Args:
        wanted: asked of each message that was inserted; only those it answers True for are followed.
    """

    def __init__(self, wanted: Callable[[Message], bool]) -> None:
        self._wanted = wanted
        self._taken: tuple[str, ...] = ()
        """Those of the wanted messages that the open turn has taken."""
        self.found: dict[str, MessageHistory] = {}
        """By message id, for what was found so far."""

    def apply(self, record: EventRecord) -> None:
        """Take note of the next record.

        Raises:
            CorruptLog: it cannot be read.
        """
        if record.type in _TELLING:
            self._apply(decode(record), record.at_millis)

    def _apply(self, event: Event, at_millis: int) -> None:
        match event:
            case Message() if self._wanted(event):
                self.found[event.id] = MessageHistory()
            case MessagesRemoved() | TurnAborted():
                removed = event.ids if isinstance(event, MessagesRemoved) else event.removed
                self._change(removed, fate=Fate.REMOVED, ended_millis=at_millis)
            case TurnStarted():
                self._taken = ()
                self._take(event.turn, event.claimed)
            case StepClaimed():
                self._take(event.turn, event.ids)
            case TurnNoted():
                self._change(self._taken, note=event.data)
            case TurnEnded():
                fate = Fate(event.outcome.value)
                self._change(self._taken, fate=fate, ended_millis=at_millis, cause=event.cause)
                self._taken = ()
            case _:
                pass

    def _take(self, turn: int, ids: Iterable[str]) -> None:
        taken = tuple(each for each in ids if each in self.found)
        self._taken = (*self._taken, *taken)
        for each in taken:
            attempts = self.found[each].attempts + 1
            self._change((each,), fate=Fate.RUNNING, attempts=attempts, turn=turn, ended_millis=None, cause=None)

    def _change(self, ids: Iterable[str], **changes: Any) -> None:
        for each in ids:
            if each in self.found:
                self.found[each] = attrs.evolve(self.found[each], **changes)
