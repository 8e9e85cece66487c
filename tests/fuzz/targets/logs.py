"""A session as JSON Lines, from whoever sends it: imported as it says, or refused with the line."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target, check_line
from whenidle_actors.errors import CorruptImport, InvalidArgument, StoreDamaged
from whenidle_actors.session import check_session_id, fold
from whenidle_actors.stores.base import IDLE_INDEX, SessionSlice
from whenidle_actors.stores.jsonl import export_lines, import_lines
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import Message, decode, encode
from whenidle_protocol.message_history import MessageHistories
from whenidle_protocol.trace_context import read_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.events import EventRecord

_AT: Final = "2026-01-05T08:00:00.000Z"
_HEADER: Final[dict[str, Any]] = {
    "id": "ada",
    "createdAt": _AT,
    "parent": None,
    "delegationDepth": 0,
    "cwd": "",
    "preset": "",
    "seedLength": 0,
    "forkedFrom": None,
}
_MESSAGE: Final = {"id": "m0", "lane": "next-turn", "wake": True, "text": "hi", "source": "user"}
_REMINDER: Final = {"id": "schedule-1", "kind": "at", "prompt": "tea", "scheduledAt": _AT}
_EVENTS: Final[Sequence[tuple[str, Any]]] = (
    ("inbox/insert", _MESSAGE),
    ("inbox/insert", {**_MESSAGE, "id": "m1", "lane": "next-step", "source": "schedule"}),
    ("inbox/replace", {"id": "m0", "text": "ho"}),
    ("inbox/remove", {"ids": ["m0"]}),
    ("turn/start", {"turn": 1, "claimed": ["m0"], "attempt": 1}),
    ("turn/claim", {"turn": 1, "ids": ["m1"]}),
    ("turn/note", {"turn": 1, "data": {"x": [1, None]}}),
    ("turn/abort", {"turn": 1, "cause": "stop", "removed": []}),
    ("turn/end", {"turn": 1, "outcome": "completed"}),
    ("turn/end", {"turn": 1, "outcome": "error", "cause": "boom"}),
    ("schedule/change", {"version": 1, "operation": "create", "schedule": _REMINDER}),
    ("schedule/change", {"version": 1, "operation": "delete", "id": "schedule-1"}),
    ("schedule/change", {"version": 1, "operation": "dispatch", "id": "schedule-1", "acceptedAt": _AT}),
    ("trace/context", {"version": 1, "schedule": "schedule-1", "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}),
    ("other/kind", None),
)


def _session_logs(data: bytes) -> None:
    choices = Choices(data)
    content = choices.rest() if choices.below(8) == 1 else _file(choices)
    try:
        header, records = import_lines(io.BytesIO(content), "the file")
    except CorruptImport as refusal:
        _check_refusal(refusal, content)
        return
    again = b"".join(_exported(header, records))
    assert import_lines(io.BytesIO(again), "the file") == (header, records)
    try:
        check_session_id(header.id)
    except InvalidArgument:
        return
    _check_fold(header, records)
    _check_readers(records)


def _check_refusal(refusal: CorruptImport, content: bytes) -> None:
    assert refusal.line is not None
    assert 1 <= refusal.line <= content.count(b"\n") + 1
    check_line(str(refusal))


def _exported(header: SessionHeader, records: Sequence[EventRecord]) -> list[bytes]:
    return list(export_lines(SessionSlice(header, IDLE_INDEX, 0, tuple(records))))


def _check_fold(header: SessionHeader, records: Sequence[EventRecord]) -> None:
    try:
        state = fold(header, records)
    except StoreDamaged as damage:
        check_line(str(damage))
        return
    assert state.length == len(records)


def _check_readers(records: Sequence[EventRecord]) -> None:
    """Check that whoever reads single events takes them, or says that they are corrupt."""
    histories = MessageHistories(lambda _: True)
    for record in records:
        read_trace(record)
        try:
            histories.apply(record)
            event = decode(record)
        except CorruptLog:
            continue
        assert decode(encode(event, record.at_millis)) == event
        if isinstance(event, Message):
            assert event.id in histories.found


def _file(choices: Choices) -> bytes:
    """Return a file that is nearly an export: some value of it is another, or some bytes are."""
    header = _changed(choices, _HEADER)
    chosen = [choices.of(_EVENTS) for _ in range(choices.below(12))]
    first = {"format": "whenidle-session", "version": 1, "session": header, "events": len(chosen)}
    lines = [_changed(choices, first)]
    for seq, (kind, value) in enumerate(chosen):
        event: dict[str, Any] = {"seq": seq, "at": _AT, "type": kind, "data": _changed(choices, value)}
        if kind not in {known for known, _ in _EVENTS[:-2]} or not choices.below(8):
            event["ignorable"] = True
        lines.append(_changed(choices, event))
    content = b"".join(_line(line) for line in lines)
    if choices.below(8) == 1:
        at = choices.byte() * 4
        content = content[:at] + choices.take(choices.below(8)) + content[at + choices.below(8) :]
    return content


def _changed(choices: Choices, value: Any) -> Any:
    """Return `value`, seldom with another value or key."""
    if choices.below(8) != 1 or not isinstance(value, dict):
        return value
    changed = dict(value)
    name = choices.of(tuple(value)) if choices.below(4) else choices.text()
    if choices.below(4) == 1:
        changed.pop(name, None)
    else:
        changed[name] = choices.value()
    return changed


def _line(value: Any) -> bytes:
    """Return a line of JSON, or of what Python takes for it."""
    try:
        return json.dumps(value).encode() + b"\n"
    except (TypeError, ValueError, RecursionError):
        return f"{value}\n".encode("utf-8", "replace")


SESSION_LOGS: Final = Target(
    "session-logs",
    _session_logs,
    (
        b"",
        b"\0\0\4\0\4\6\10\0",
        b"\0\0\3\12\14\13",
        b"\0\0\2\15\16",
        b"\0\1\0\0\1\21",
        b"\1" + b"[" * 5_000 + b"\n",
        b"\1"
        + json.dumps({"format": "whenidle-session", "version": 1, "session": _HEADER, "events": 0}).encode()
        + b"\n",
    ),
)
