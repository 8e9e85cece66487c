"""Every durable event of a session's log, and how it is written.

An event is a change to what the log's owner knows: which messages wait, which turn runs, which
reminders are active. `EventRecord` is what a store keeps; `encode` and `decode` go between the
two and are strict in both directions. The numbering, and what may follow what, is
`session_state`'s concern.

The payload of `schedule/change` stays raw here. A bad one must not make the session unreadable:
it only stops the reminders, whose fold reads it strictly (SPEC 5.3).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
from attrs import field
from msgspec import Struct

from whenidle_protocol.errors import CorruptLog, UnknownEvent
from whenidle_protocol.json_text import parse, stringify
from whenidle_protocol.task_json import struct_text
from whenidle_protocol.wire import structure, unstructure

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_protocol.schedule_change import Change

SCHEDULE_CHANGE = "schedule/change"


@attrs.frozen
class EventRecord:
    """One event as a store keeps it; its position in the log is the store's to know."""

    type: str
    at_millis: int
    """Wall instant of the decision to commit it, in milliseconds since the epoch."""
    data: str
    """The payload as compact JSON text; valid UTF-8, whatever the text in it."""
    ignorable: bool = False
    """True lets a reader that does not know `type` pass over the event (SPEC 3.4)."""


class Lane(StrEnum):
    """The two ordered lists of an inbox (SPEC 2.2)."""

    NEXT_TURN = "next-turn"
    NEXT_STEP = "next-step"


class Source(StrEnum):
    """Who put a message into the inbox."""

    USER = "user"
    SCHEDULE = "schedule"


class Outcome(StrEnum):
    """How a turn ended (SPEC 2.5)."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    ERROR = "error"
    INTERRUPTED = "interrupted"


def _not_empty(_: Any, attribute: attrs.Attribute[str], value: str) -> None:
    if not value:
        raise ValueError(f"{attribute.name} is empty")


def _positive(_: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 1:
        raise ValueError(f"{attribute.name} is {value}, not 1 or more")


def _distinct(_: Any, attribute: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    if len(value) > 1 and len(set(value)) != len(value):
        raise ValueError(f"{attribute.name} names a message twice")


def _some(_: Any, attribute: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    if not value:
        raise ValueError(f"{attribute.name} names no message")


@attrs.frozen
class Message:
    """A message that is, or was, in an inbox. As an event: it was inserted (`inbox/insert`)."""

    id: str = field(validator=_not_empty)
    lane: Lane
    wake: bool
    """Whether the message is a reason to run the agent (SPEC 2.2)."""
    text: str
    source: Source


class _MessageText(Struct, gc=False):
    """A message as it is written, which `wire` would do in the same order."""

    id: str
    lane: Lane
    wake: bool
    text: str
    source: Source


_MESSAGE_TYPES: Final = (str, Lane, bool, str, Source)


def _write_message(event: Message) -> str | None:
    """Return the payload of a message the quick way; None if it is not made of what its fields say."""
    values = event.id, event.lane, event.wake, event.text, event.source
    return struct_text(_MessageText(*values)) if tuple(map(type, values)) == _MESSAGE_TYPES else None


@attrs.frozen
class MessagesRemoved:
    """`inbox/remove`: these pending messages left the inbox untaken."""

    ids: tuple[str, ...] = field(validator=[_some, _distinct])


@attrs.frozen
class MessageReplaced:
    """`inbox/replace`: a pending message has a new text and keeps its place."""

    id: str = field(validator=_not_empty)
    text: str


@attrs.frozen
class TurnStarted:
    """`turn/start`: a turn took `claimed`; `attempt` above 1 means they were taken before (SPEC 4)."""

    turn: int = field(validator=_positive)
    claimed: tuple[str, ...] = field(validator=[_some, _distinct])
    attempt: int = field(validator=_positive)


class _TurnStartedText(Struct, gc=False):
    """The start of a turn as it is written, which `wire` would do in the same order."""

    turn: int
    claimed: tuple[str, ...]
    attempt: int


def _write_turn_started(event: TurnStarted) -> str | None:
    """Return the payload of a start the quick way; None if it is not made of what its fields say."""
    turn, claimed, attempt = event.turn, event.claimed, event.attempt
    if type(claimed) is not tuple or any(type(each) is not str for each in claimed):
        return None
    return struct_text(_TurnStartedText(turn, claimed, attempt)) if _is_plain(turn) and _is_plain(attempt) else None


@attrs.frozen
class StepClaimed:
    """`turn/claim`: between two steps the open turn took these next-step messages."""

    turn: int = field(validator=_positive)
    ids: tuple[str, ...] = field(validator=[_some, _distinct])


@attrs.frozen
class TurnAborted:
    """`turn/abort`: a cancel was accepted while the turn ran; `removed` left the inbox (SPEC 2.5)."""

    turn: int = field(validator=_positive)
    cause: str
    removed: tuple[str, ...] = field(validator=_distinct)


@attrs.frozen
class TurnEnded:
    """`turn/end`: the one durable outcome of a turn.

    `redeliver` is for an interrupted turn only: its messages are to be taken again (SPEC 4).
    """

    turn: int = field(validator=_positive)
    outcome: Outcome
    cause: str | None = None
    redeliver: bool = False

    def __attrs_post_init__(self) -> None:
        if self.redeliver and self.outcome is not Outcome.INTERRUPTED:
            raise ValueError(f"redeliver is true for a turn that is {self.outcome}, not interrupted")


class _TurnEndedText(Struct, gc=False, omit_defaults=True):
    """The end of a turn as it is written, which `wire` would do in the same order."""

    turn: int
    outcome: Outcome
    cause: str | None = None
    redeliver: bool = False


_END_TYPES: Final = ((int, Outcome, str, bool), (int, Outcome, type(None), bool))


def _write_turn_ended(event: TurnEnded) -> str | None:
    """Return the payload of an end the quick way; None if it is not made of what its fields say."""
    values = event.turn, event.outcome, event.cause, event.redeliver
    if tuple(map(type, values)) not in _END_TYPES or not _is_plain(event.turn):
        return None
    return struct_text(_TurnEndedText(*values))


_MOST_PLAIN: Final = 10**12


def _is_plain(number: int) -> bool:
    """Return whether every writer of JSON writes a number alike, and every reader takes it."""
    return type(number) is int and number < _MOST_PLAIN


@attrs.frozen
class TurnNoted:
    """`turn/note`: the host's own record about the open turn; any JSON value."""

    turn: int = field(validator=_positive)
    data: Any


@attrs.frozen
class ScheduleChanged:
    """`schedule/change`: the raw payload of SPEC 5.2, read by `schedule_change.decode_change`."""

    payload: Any
    change: Change | None = field(default=None, eq=False, repr=False)
    """What `payload` says, if it was just made of that; None has the fold read it."""


@attrs.frozen
class Ignored:
    """An event of an unknown type that its writer allowed readers to pass over."""

    type: str
    payload: Any


Event: TypeAlias = (
    Message
    | MessagesRemoved
    | MessageReplaced
    | TurnStarted
    | StepClaimed
    | TurnAborted
    | TurnEnded
    | TurnNoted
    | ScheduleChanged
    | Ignored
)

_SHAPES: dict[str, type[Any]] = {
    "inbox/insert": Message,
    "inbox/remove": MessagesRemoved,
    "inbox/replace": MessageReplaced,
    "turn/start": TurnStarted,
    "turn/claim": StepClaimed,
    "turn/abort": TurnAborted,
    "turn/end": TurnEnded,
    "turn/note": TurnNoted,
}
_TYPES = {shape: name for name, shape in _SHAPES.items()}
_QUICK_WRITERS: Final[dict[type[Any], Callable[[Any], str | None]]] = {
    Message: _write_message,
    TurnStarted: _write_turn_started,
    TurnEnded: _write_turn_ended,
}
"""How those are written that are written most: with each message one of each."""
KNOWN_TYPES = frozenset({*_SHAPES, SCHEDULE_CHANGE})
"""The event types this version writes and reads."""


def encode(event: Event, at_millis: int) -> EventRecord:
    """Return `event` as a store keeps it, decided at `at_millis` (milliseconds since the epoch).

    Raises:
        ValueError: a field or payload is not what `decode` would take back; nothing unreadable is written.
    """
    if isinstance(event, ScheduleChanged):
        return EventRecord(SCHEDULE_CHANGE, at_millis, stringify(event.payload))
    if isinstance(event, Ignored):
        return EventRecord(event.type, at_millis, stringify(event.payload), ignorable=True)
    write = _QUICK_WRITERS.get(type(event))
    text = None if write is None else write(event)
    if text is not None:
        return EventRecord(_TYPES[type(event)], at_millis, text)
    payload = unstructure(event)
    structure(payload, type(event))
    return EventRecord(_TYPES[type(event)], at_millis, stringify(payload))


def decode(record: EventRecord) -> Event:
    """Return the event that `record` holds.

    Raises:
        UnknownEvent: the type is not known and the record is not marked ignorable.
        CorruptLog: the data is not JSON, or not exactly the shape of its type.
    """
    try:
        payload = parse(record.data)
    except ValueError as error:
        raise CorruptLog(f"{record.type} holds no JSON: {error}") from error
    shape = _SHAPES.get(record.type)
    if shape is not None:
        try:
            event: Event = structure(payload, shape)
        except CorruptLog as error:
            raise CorruptLog(f"{record.type}: {error.why}") from error
        return event
    if record.type == SCHEDULE_CHANGE:
        return ScheduleChanged(payload)
    if record.ignorable:
        return Ignored(record.type, payload)
    raise UnknownEvent(record.type)
