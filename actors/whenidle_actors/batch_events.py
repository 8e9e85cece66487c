"""What a commit changed, as events: whatever is durable is told of, whoever wrote it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from whenidle_actors.observation import EventKind
from whenidle_clock import format_instant, from_millis
from whenidle_protocol.json_text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whenidle_actors.stores.base import Append, Batch
    from whenidle_actors.stores.task_rows import TaskWrite

Told: TypeAlias = tuple[EventKind, str, dict[str, Any]]
"""Kind, session id and detail of an event."""

_Payload: TypeAlias = dict[str, Any]


TOLD_BY_COMMITS: Final = frozenset(
    {
        EventKind.COMMITTED,
        EventKind.COMMIT_FAILED,
        EventKind.SESSION_CREATED,
        EventKind.MESSAGE_QUEUED,
        EventKind.MESSAGES_REMOVED,
        EventKind.MESSAGE_REPLACED,
        EventKind.MESSAGES_TAKEN,
        EventKind.TURN_NOTED,
        EventKind.TURN_ABORTED,
        EventKind.REMINDER_CREATED,
        EventKind.REMINDER_DELETED,
        EventKind.TASK_CREATED,
        EventKind.TASK_CHANGED,
        EventKind.TASK_DELETED,
    }
)
"""The kinds of event that a commit is told of with: what became of it, and what `events_of` yields."""


def events_of(batch: Batch) -> Iterator[Told]:
    """Yield an event for each thing that `batch`, now durable, has changed.

    Turns that begin and end, and deliveries, are not among them: who runs those knows more of them than the log,
    and tells of them also when the outcome of their commit was found out later.
    """
    seeds = {header.id: header.seed_length for header in batch.created}
    for header in batch.created:
        yield EventKind.SESSION_CREATED, header.id, {"parent": header.parent, "forked_from": header.forked_from}
    for append in batch.appends:
        yield from _of_append(append, seeds.get(append.session_id, 0))
    delivered = {receipt.task_id for receipt in batch.receipts}
    for write in batch.tasks:
        if write.task_id not in delivered:
            yield _of_task(write)


def size_of(batch: Batch) -> int:
    """Return the length of the texts of a batch in bytes of UTF-8."""
    records = (record.data for append in batch.appends for record in append.records)
    rows = (write.row.data for write in batch.tasks if write.row is not None)
    receipts = (receipt.data for receipt in batch.receipts)
    return sum(map(_bytes, chain(records, rows, receipts)))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _of_append(append: Append, inherited: int) -> Iterator[Told]:
    """Tell of what a session owns itself: what a fork inherits happened to another (SPEC 3.1)."""
    for record in append.records[max(inherited - append.expected, 0) :]:
        tell = _TELLERS.get(record.type)
        if tell is not None:
            told = tell(parse(record.data))
            if told is not None:
                yield told[0], append.session_id, told[1]


def _of_task(write: TaskWrite) -> Told:
    row = write.row
    if row is None:
        return EventKind.TASK_DELETED, "", {"task": write.task_id}
    kind = EventKind.TASK_CREATED if write.expected is None else EventKind.TASK_CHANGED
    due = None if row.next_millis is None else format_instant(from_millis(row.next_millis))
    return kind, row.session_id or "", {"task": row.id, "due": due}


def _schedule(payload: _Payload) -> tuple[EventKind, _Payload] | None:
    match payload["operation"]:
        case "create":
            record = payload["schedule"]
            return EventKind.REMINDER_CREATED, {"reminder": record["id"], "due": record["scheduledAt"]}
        case "delete":
            return EventKind.REMINDER_DELETED, {"reminder": payload["id"]}
        case _:
            return None


_TELLERS: Final[dict[str, Callable[[_Payload], tuple[EventKind, _Payload] | None]]] = {
    "inbox/insert": lambda data: (
        EventKind.MESSAGE_QUEUED,
        {"message": data["id"], "lane": data["lane"], "source": data["source"]},
    ),
    "inbox/remove": lambda data: (EventKind.MESSAGES_REMOVED, {"messages": data["ids"]}),
    "inbox/replace": lambda data: (EventKind.MESSAGE_REPLACED, {"message": data["id"]}),
    "turn/claim": lambda data: (EventKind.MESSAGES_TAKEN, {"turn": data["turn"], "messages": data["ids"]}),
    "turn/note": lambda data: (EventKind.TURN_NOTED, {"turn": data["turn"]}),
    "turn/abort": lambda data: (
        EventKind.TURN_ABORTED,
        {"turn": data["turn"], "cause": data["cause"], "messages": data["removed"]},
    ),
    "schedule/change": _schedule,
}
