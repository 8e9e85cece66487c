"""Session logs as JSON Lines."""

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from whenidle_actors.errors import CorruptImport, SessionExists, StoreDamaged
from whenidle_actors.stores import jsonl
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Role,
    SessionHeader,
    SessionIndex,
    SessionSlice,
    Store,
)
from whenidle_clock.instants import MAX_MILLIS, MIN_MILLIS, from_millis
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import EventRecord
from whenidle_protocol.json_text import stringify

from .helpers import creates, header, record

TEXT = st.text(max_size=20)
INSTANTS = st.integers(MIN_MILLIS, MAX_MILLIS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.builds(
    SessionHeader,
    id=st.text(min_size=1, max_size=20),
    created_at=INSTANTS.map(from_millis),
    parent=st.none() | TEXT,
    delegation_depth=st.integers(0, 9),
    cwd=TEXT,
    preset=TEXT,
    seed_length=st.just(0),
    forked_from=st.none() | TEXT,
)
LOGS = st.lists(
    st.builds(
        EventRecord,
        type=st.text(min_size=1, max_size=20),
        at_millis=INSTANTS,
        data=JSON.map(stringify),
        ignorable=st.booleans(),
    ),
    max_size=5,
)

EXPORTED = (
    '{"format":"whenidle-session","version":1,"session":{"id":"a","createdAt":"2026-01-05T08:00:00.000Z",'
    '"parent":null,"delegationDepth":0,"cwd":"","preset":"","seedLength":0,"forkedFrom":null},"events":2}\n'
    '{"seq":0,"at":"1970-01-01T00:00:01.000Z","type":"test/event","data":{"n":0}}\n'
    '{"seq":1,"at":"1970-01-01T00:00:01.001Z","type":"x","data":["\N{SNOWMAN}",null],"ignorable":true}\n'
)
LOG = (record(0), record(1, type="x", data='["\N{SNOWMAN}",null]', ignorable=True))


def exported(head: SessionHeader, log: Sequence[EventRecord]) -> bytes:
    """Return the bytes of an exported session."""
    return b"".join(jsonl.export_lines(SessionSlice(head, IDLE_INDEX, 0, tuple(log))))


def imported(content: bytes) -> tuple[SessionHeader, tuple[EventRecord, ...]]:
    """Return what the bytes of an exported session hold."""
    return jsonl.import_lines(io.BytesIO(content), "a.jsonl")


def test_an_exported_session_is_text_that_people_can_read() -> None:
    """The first line is the header, every other line one event with its data as JSON."""
    assert exported(header("a"), LOG).decode() == EXPORTED
    assert imported(EXPORTED.encode()) == (header("a"), LOG)


@given(HEADERS, LOGS)
def test_export_and_import_are_inverse(head: SessionHeader, log: list[EventRecord]) -> None:
    """What was exported imports as the same values, and exports as the same bytes."""
    content = exported(head, log)
    assert imported(content) == (head, tuple(log))
    assert exported(*imported(content)) == content
    assert content.count(b"\n") == len(log) + 1


def test_part_of_a_session_is_not_exported() -> None:
    """A read that does not begin at the first event is the caller's mistake."""
    with pytest.raises(ValueError, match="begins at event 1"):
        list(jsonl.export_lines(SessionSlice(header("a"), IDLE_INDEX, 1, LOG)))


def test_data_that_is_not_one_line_is_damage() -> None:
    """Data with a raw line feed cannot be compact JSON, and would tear the file."""
    with pytest.raises(StoreDamaged, match="data of event 0 is not compact JSON"):
        exported(header("a"), [record(data='"a\nb"')])


def without(*keys: str, **changes: Any) -> Any:
    """Return a change to a line: keys taken out, others set."""

    def change(value: dict[str, Any]) -> str:
        return json.dumps({key: item for key, item in value.items() if key not in keys} | changes)

    return change


def in_session(*keys: str, **changes: Any) -> Any:
    """Return the same kind of change to the header within the first line."""

    def change(value: dict[str, Any]) -> str:
        session = json.loads(without(*keys, **changes)(value["session"]))
        return json.dumps(value | {"session": session})

    return change


@pytest.mark.parametrize(
    ("number", "change", "complaint"),
    [
        (1, without(format="other"), 'no "format":"whenidle-session"'),
        (1, without("format"), 'no "format":"whenidle-session"'),
        (1, without(version=2), "format version 2 is not known; this whenidle reads 1"),
        (1, without(version=True), "format version True is not known"),
        (1, without("session"), "the first line has no 'session'"),
        (1, without("events"), "the first line has no 'events'"),
        (1, without(extra=1), "the first line has an unknown key 'extra'"),
        (1, without(events=-1), "'events' is -1, not a whole number of 0 or more"),
        (1, without(events=True), "'events' is True, not a whole number"),
        (1, without(session=[]), "the session header is not a JSON object"),
        (1, in_session("cwd"), "the session header has no 'cwd'"),
        (1, in_session(extra=1), "the session header has an unknown key 'extra'"),
        (1, in_session(id=""), "'id' of the session header is empty"),
        (1, in_session(id=5), "'id' of the session header is 5, not text"),
        (1, in_session(parent=5), "'parent' of the session header is 5, not text"),
        (1, in_session(seedLength=-1), "'seedLength' of the session header is -1, not a whole number"),
        (1, in_session(delegationDepth="1"), "'delegationDepth' of the session header is '1', not a whole"),
        (1, in_session(delegationDepth=True), "'delegationDepth' of the session header is True, not a whole"),
        (
            1,
            in_session(cwd="/\ud800"),
            "'cwd' of the session header has half a character at 2, which no store can hold",
        ),
        (2, without(type="x/\ud800"), "'type' has half a character at 3, which no store can hold"),
        (1, in_session(createdAt="today"), "'createdAt' of the session header is not an instant"),
        (2, without(seq=1), "event 0 is expected here, and this is event 1"),
        (3, without(seq=0), "event 1 is expected here, and this is event 0"),
        (3, without(seq=2), "event 1 is expected here, and this is event 2"),
        (2, without(seq="0"), "'seq' is '0', not a whole number"),
        (2, without("data"), "the event has no 'data'"),
        (2, without(extra=1), "the event has an unknown key 'extra'"),
        (2, without(type=""), "'type' is '', not text"),
        (2, without(type=None), "'type' is None, not text"),
        (2, without(ignorable=False), "'ignorable' is true, or absent"),
        (2, without(at=5), "'at' is 5, not an instant"),
        (2, without(at="1970-01-01T00:00:01Z"), "1970-01-01T00:00:01Z"),
        (2, lambda _: "[]", "the line is not a JSON object"),
        (3, lambda _: "", "the line is not JSON"),
        (3, lambda _: '{"seq":1,', "the line is not JSON"),
        (2, lambda _: '{"seq":NaN}', "the line is not JSON: NaN"),
    ],
)
def test_a_wrong_line_is_named(number: int, change: Any, complaint: str) -> None:
    """Whatever is wrong with a line, the error names the file, the line, and what it is."""
    lines = EXPORTED.splitlines()
    lines[number - 1] = change(json.loads(lines[number - 1]))
    with pytest.raises(CorruptImport) as caught:
        imported("".join(f"{line}\n" for line in lines).encode())
    assert (caught.value.file, caught.value.line) == ("a.jsonl", number)
    assert str(caught.value).startswith(f"a.jsonl, line {number}: ")
    assert complaint in str(caught.value)


def test_a_file_cut_off_anywhere_is_refused() -> None:
    """A torn last line, and a file that lost whole lines, are both told from a whole file."""
    content = EXPORTED.encode()
    for length in range(len(content)):
        with pytest.raises(CorruptImport) as caught:
            imported(content[:length])
        whole_lines = content[:length].count(b"\n")
        torn = length > 0 and content[length - 1] != ord("\n")
        assert caught.value.line == (whole_lines + 1 if torn else max(1, whole_lines)), length


def test_lines_after_the_announced_end_are_refused() -> None:
    """More events than the header announces are as wrong as fewer."""
    extra = '{"seq":2,"at":"1970-01-01T00:00:01.000Z","type":"x","data":0}\n'
    with pytest.raises(CorruptImport, match="line 4: the header announces 2 events, and the file has 3"):
        imported((EXPORTED + extra).encode())


def test_bytes_that_are_not_utf8_are_refused() -> None:
    """A file in another encoding is named with the line and the place in it."""
    with pytest.raises(CorruptImport, match=r"line 3: byte 62 of the line is not UTF-8"):
        imported(EXPORTED.encode().replace("\N{SNOWMAN}".encode(), b"\xff\xfe"))


def test_an_endless_line_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line above the limit is refused without reading more of it than the limit."""
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 300)

    class Endless(io.BytesIO):
        asked = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.asked += size or 0
            return super().readline(size)

    stream = Endless(EXPORTED.encode() + b" " * 10_000)
    with pytest.raises(CorruptImport, match="line 4: the line is longer than 300 bytes"):
        jsonl.import_lines(stream, "a.jsonl")
    assert stream.asked == 4 * 301


async def test_a_session_moves_from_store_to_store(store: Store) -> None:
    """An imported session is the exported one, with the index that the fold of its log gives."""
    seen: list[tuple[SessionHeader, Sequence[EventRecord]]] = []

    def validate(head: SessionHeader, log: Sequence[EventRecord]) -> SessionIndex:
        seen.append((head, log))
        return SessionIndex(77)

    async with store.opened(Role.HOST):
        stream = io.BytesIO(EXPORTED.encode())
        assert await jsonl.import_session(store, stream, file="a.jsonl", validate=validate) == header("a")
        assert await store.read("a") == SessionSlice(header("a"), SessionIndex(77), 0, LOG)
        assert seen == [(header("a"), LOG)]
        assert b"".join(jsonl.export_lines(await store.read("a"))).decode() == EXPORTED


async def test_an_import_never_touches_a_session_that_exists(store: Store) -> None:
    """A session of the same id is left as it is, and the import refused."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        with pytest.raises(SessionExists):
            await jsonl.import_session(
                store, io.BytesIO(EXPORTED.encode()), file="a.jsonl", validate=lambda *_: IDLE_INDEX
            )
        assert (await store.read("a")).length == 0


@pytest.mark.parametrize(
    ("complaint", "line", "text"),
    [
        (CorruptLog("no such message", 1), 3, "a.jsonl, line 3: no such message"),
        (CorruptLog("odd"), None, "a.jsonl: odd"),
        (StoreDamaged("session 'a': event 1: odd"), None, "a.jsonl: session 'a': event 1: odd"),
    ],
)
async def test_a_log_that_does_not_fold_is_not_imported(
    store: Store, complaint: Exception, line: int | None, text: str
) -> None:
    """When the events cannot follow one another, the error leads to the line, and nothing is imported."""

    def validate(_head: SessionHeader, _log: Sequence[EventRecord]) -> SessionIndex:
        raise complaint

    async with store.opened(Role.HOST):
        with pytest.raises(CorruptImport) as caught:
            await jsonl.import_session(store, io.BytesIO(EXPORTED.encode()), file="a.jsonl", validate=validate)
        assert (caught.value.line, str(caught.value)) == (line, text)
        assert await store.sessions() == ()


async def test_a_fork_longer_than_its_log_is_not_imported(store: Store) -> None:
    """A seed length above the number of events is told before the log is folded."""
    content = exported(header("a", seed_length=3), LOG)
    async with store.opened(Role.HOST):
        with pytest.raises(CorruptImport, match="line 1: seedLength is 3, and there are 2 events"):
            await jsonl.import_session(store, io.BytesIO(content), file="a.jsonl", validate=lambda *_: IDLE_INDEX)


def test_an_export_keeps_the_instant_to_the_millisecond() -> None:
    """Instants are written with three digits, from the first year to the last."""
    head = SessionHeader("a", datetime(1, 1, 1, tzinfo=UTC))
    content = exported(head, [record(at_millis=MIN_MILLIS), record(at_millis=MAX_MILLIS)])
    assert b'"createdAt":"0001-01-01T00:00:00.000Z"' in content
    assert b'"at":"9999-12-31T23:59:59.999Z"' in content
