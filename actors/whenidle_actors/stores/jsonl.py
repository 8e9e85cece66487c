"""A session log as JSON Lines: for people to read, diff and move (SPEC 3.5).

The first line is the header, and each further line one event::

    {"format":"whenidle-session","version":1,"session":{"id":…,"createdAt":…,…},"events":2}
    {"seq":0,"at":"2026-01-05T08:00:00.000Z","type":"inbox/insert","data":{…}}
    {"seq":1,"at":"2026-01-05T08:00:00.012Z","type":"turn/start","data":{…},"ignorable":true}

UTF-8, a line feed after each line, the last one included. `events` is how many there are, so that a
file that lost whole lines at its end is told from a whole one. Exporting what was imported gives the
same bytes.
"""

from __future__ import annotations

from itertools import count
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import trio

from whenidle_actors.errors import CorruptImport, StoreDamaged
from whenidle_actors.stores.base import Append, Batch
from whenidle_actors.stores.header_text import header_from_wire, header_to_wire, refuse_other_keys, whole_characters
from whenidle_clock.instants import format_instant, from_millis, parse_instant, to_millis
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import EventRecord
from whenidle_protocol.json_text import parse, stringify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whenidle_actors.stores.base import SessionHeader, SessionIndex, SessionSlice, Store

T = TypeVar("T")

FORMAT = "whenidle-session"
VERSION = 1

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is refused before it is read whole: far more than any event has."""

_HEADER_KEYS = ("format", "version", "session", "events")
_EVENT_KEYS = ("seq", "at", "type", "data")


def export_lines(session: SessionSlice) -> Iterator[bytes]:
    """Yield the lines of `session`, a read from 0 on, each with its line feed.

    Raises:
        ValueError: `session` does not begin at its first event.
        StoreDamaged: an event's data cannot stand in a line.
    """
    if session.start:
        raise ValueError(f"a session is exported whole; this read begins at event {session.start}")
    first = {
        "format": FORMAT,
        "version": VERSION,
        "session": header_to_wire(session.header),
        "events": session.length,
    }
    yield f"{stringify(first)}\n".encode()
    for seq, record in enumerate(session.records):
        yield _event_line(session.header, seq, record)


def import_lines(stream: IO[bytes], file: str) -> tuple[SessionHeader, tuple[EventRecord, ...]]:
    """Return the header and the records that `stream` holds; `file` is what to call it in a message.

    Raises:
        CorruptImport: a line is not what `export_lines` writes, torn, missing, or too long.
    """
    lines = _lines(stream, file)
    first = next(lines, None)
    if first is None:
        raise CorruptImport(file, 1, "the file is empty; it should begin with the session's header")
    header, announced = _at(file, 1, _read_header, first)
    records = tuple(_at(file, seq + 2, _read_event, line, seq) for seq, line in enumerate(lines))
    if len(records) != announced:
        why = f"the header announces {announced} events, and the file has {len(records)}"
        raise CorruptImport(file, len(records) + 1, why)
    return header, records


async def import_session(
    store: Store,
    stream: IO[bytes],
    *,
    file: str,
    validate: Callable[[SessionHeader, Sequence[EventRecord]], SessionIndex],
) -> SessionHeader:
    """Add the session that `stream` holds to `store`, all of it in one commit, and return its header.

    `validate` folds the log and returns the session's index; it raises `CorruptLog`, or `StoreDamaged`,
    if the events cannot follow one another. Reading and folding happen in a thread. Cancelled before the
    commit began, nothing is imported.

    Raises:
        CorruptImport: the file is not an exported session, or its log does not fold.
        SessionExists: the store has a session of that id; nothing is merged.
        StoreError: as `Store.commit`.
    """
    header, records, index = await trio.to_thread.run_sync(_import_validated, stream, file, validate)
    append = Append(header.id, 0, records, index)
    await store.commit(Batch(created=(header,), appends=(append,)))
    return header


def _import_validated(
    stream: IO[bytes], file: str, validate: Callable[[SessionHeader, Sequence[EventRecord]], SessionIndex]
) -> tuple[SessionHeader, tuple[EventRecord, ...], SessionIndex]:
    header, records = import_lines(stream, file)
    if header.seed_length > len(records):
        why = f"seedLength is {header.seed_length}, and there are {len(records)} events"
        raise CorruptImport(file, 1, why)
    try:
        return header, records, validate(header, records)
    except CorruptLog as error:
        line = None if error.seq is None else error.seq + 2
        raise CorruptImport(file, line, error.why) from error
    except StoreDamaged as error:
        raise CorruptImport(file, None, str(error)) from error


def _event_line(header: SessionHeader, seq: int, record: EventRecord) -> bytes:
    if "\n" in record.data:
        raise StoreDamaged(f"session {header.id!r} is damaged: the data of event {seq} is not compact JSON")
    at = format_instant(from_millis(record.at_millis))
    ignorable = ',"ignorable":true' if record.ignorable else ""
    # The data is JSON text already; reading it only to write it again would say nothing new.
    line = f'{{"seq":{seq},"at":"{at}","type":{stringify(record.type)},"data":{record.data}{ignorable}}}\n'
    return line.encode()


def _lines(stream: IO[bytes], file: str) -> Iterator[str]:
    for number in count(1):
        line = stream.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise CorruptImport(file, number, f"the line is longer than {MAX_LINE_BYTES} bytes")
        if not line.endswith(b"\n"):
            raise CorruptImport(file, number, "the line has no line feed at its end: the file is cut off")
        yield _at(file, number, _decode, line)


def _at(file: str, number: int, read: Callable[..., T], *arguments: object) -> T:
    try:
        return read(*arguments)
    except ValueError as error:
        raise CorruptImport(file, number, str(error)) from error


def _decode(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} of the line is not UTF-8") from error


def _read_header(line: str) -> tuple[SessionHeader, int]:
    fields = _read_object(line)
    if fields.get("format") != FORMAT:
        raise ValueError(f'this is not an exported session: its first line has no "format":"{FORMAT}"')
    if fields.get("version") is True or fields.get("version") != VERSION:
        raise ValueError(f"format version {fields.get('version')!r} is not known; this whenidle reads {VERSION}")
    refuse_other_keys(fields, required=_HEADER_KEYS, where="the first line")
    return header_from_wire(fields["session"]), _whole_number(fields, "events")


def _read_event(line: str, expected: int) -> EventRecord:
    fields = _read_object(line)
    refuse_other_keys(fields, required=_EVENT_KEYS, optional=("ignorable",), where="the event")
    seq = _whole_number(fields, "seq")
    if seq != expected:
        raise ValueError(f"event {expected} is expected here, and this is event {seq}")
    if not isinstance(fields["type"], str) or not fields["type"]:
        raise ValueError(f"'type' is {fields['type']!r}, not text")
    if fields.get("ignorable", True) is not True:
        raise ValueError("'ignorable' is true, or absent")
    try:
        kind = whole_characters(fields["type"])
    except ValueError as error:
        raise ValueError(f"'type' {error}") from error
    at = fields["at"]
    if not isinstance(at, str):
        raise ValueError(f"'at' is {at!r}, not an instant")  # noqa: TRY004 - a wrong file, not a wrong call
    return EventRecord(kind, to_millis(parse_instant(at)), stringify(fields["data"]), "ignorable" in fields)


def _read_object(line: str) -> dict[str, Any]:
    try:
        value = parse(line)
    except ValueError as error:
        raise ValueError(f"the line is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("the line is not a JSON object")  # noqa: TRY004 - a wrong file, not a wrong call
    return cast("dict[str, Any]", value)


def _whole_number(fields: dict[str, Any], key: str) -> int:
    value = fields[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{key!r} is {value!r}, not a whole number of 0 or more")
    return value
