from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from whenidle_protocol.errors import CorruptLog, UnknownEvent
from whenidle_protocol.events import (
    KNOWN_TYPES,
    Event,
    EventRecord,
    Ignored,
    Lane,
    Message,
    MessageReplaced,
    MessagesRemoved,
    Outcome,
    ScheduleChanged,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
    decode,
    encode,
)
from whenidle_protocol.json_text import stringify
from whenidle_protocol.wire import unstructure

from .strategies import events

WIRE: list[tuple[Event, str, str]] = [
    (
        Message("m1", Lane.NEXT_TURN, True, "hi", Source.USER),
        "inbox/insert",
        '{"id":"m1","lane":"next-turn","wake":true,"text":"hi","source":"user"}',
    ),
    (
        Message("m2", Lane.NEXT_STEP, False, "", Source.SCHEDULE),
        "inbox/insert",
        '{"id":"m2","lane":"next-step","wake":false,"text":"","source":"schedule"}',
    ),
    (MessagesRemoved(("m1", "m2")), "inbox/remove", '{"ids":["m1","m2"]}'),
    (MessageReplaced("m1", "ho"), "inbox/replace", '{"id":"m1","text":"ho"}'),
    (TurnStarted(1, ("m1",), 1), "turn/start", '{"turn":1,"claimed":["m1"],"attempt":1}'),
    (StepClaimed(1, ("m2",)), "turn/claim", '{"turn":1,"ids":["m2"]}'),
    (TurnAborted(1, "user", ()), "turn/abort", '{"turn":1,"cause":"user","removed":[]}'),
    (TurnEnded(1, Outcome.COMPLETED), "turn/end", '{"turn":1,"outcome":"completed"}'),
    (TurnEnded(1, Outcome.ERROR, "boom"), "turn/end", '{"turn":1,"outcome":"error","cause":"boom"}'),
    (
        TurnEnded(1, Outcome.INTERRUPTED, redeliver=True),
        "turn/end",
        '{"turn":1,"outcome":"interrupted","redeliver":true}',
    ),
    (TurnNoted(1, {"exit": 0}), "turn/note", '{"turn":1,"data":{"exit":0}}'),
    (TurnNoted(1, None), "turn/note", '{"turn":1,"data":null}'),
    (ScheduleChanged({"version": 99}), "schedule/change", '{"version":99}'),
]


@pytest.mark.parametrize(("event", "type_", "data"), WIRE)
def test_an_event_has_exactly_this_wire_form(event: Event, type_: str, data: str) -> None:
    """The names, order and spelling of a log are a promise to whoever reads it."""
    record = encode(event, 1_000)
    assert record == EventRecord(type_, 1_000, data)
    assert decode(record) == event
    assert type(decode(record)) is type(event)


@given(events)
def test_decoding_undoes_encoding(event: Event) -> None:
    """Every event comes back equal, through bytes of UTF-8, and is then written as before."""
    record = encode(event, 0)
    again = decode(EventRecord(record.type, 0, record.data.encode().decode(), record.ignorable))
    assert type(again) is type(event)
    if not isinstance(event, TurnNoted | ScheduleChanged | Ignored):  # whose numbers may become doubles
        assert again == event
    assert encode(again, 0) == record


def test_read_members_are_members() -> None:
    """A lane, source or outcome that was read is the enum member, not a string that equals it."""
    message = decode(encode(Message("m1", Lane.NEXT_TURN, True, "hi", Source.USER), 0))
    assert isinstance(message, Message)
    assert message.lane is Lane.NEXT_TURN
    assert message.source is Source.USER


def test_json_5_0_is_the_turn_5() -> None:
    """Other writers may spell a whole number with a point."""
    event = decode(EventRecord("turn/claim", 0, '{"turn":5.0,"ids":["a"]}'))
    assert event == StepClaimed(5, ("a",))
    assert isinstance(event, StepClaimed)
    assert type(event.turn) is int


INSERT = {"id": "m1", "lane": "next-turn", "wake": True, "text": "hi", "source": "user"}


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in INSERT.items() if name != key}


@pytest.mark.parametrize(
    ("type_", "payload", "why"),
    [
        ("inbox/insert", None, "is null, not an object @ $"),
        ("inbox/insert", [], "is an array, not an object @ $"),
        ("inbox/insert", {**INSERT, "x": 1}, "no such field: 'x' @ $"),
        ("inbox/insert", _without("id"), "required field missing @ $.id"),
        ("inbox/insert", {**INSERT, "id": ""}, "id is empty @ $"),
        ("inbox/insert", {**INSERT, "id": 5}, "is a number, not a string @ $.id"),
        ("inbox/insert", {**INSERT, "text": None}, "is null, not a string @ $.text"),
        ("inbox/insert", {**INSERT, "wake": 1}, "is a number, not true or false @ $.wake"),
        ("inbox/insert", {**INSERT, "lane": "later"}, "is not one of next-turn, next-step @ $.lane"),
        ("inbox/insert", {**INSERT, "lane": 5}, "is not one of next-turn, next-step @ $.lane"),
        ("inbox/insert", {**INSERT, "source": "x"}, "is not one of user, schedule @ $.source"),
        (
            "inbox/insert",
            {**INSERT, "wake": {}, "text": 1.5},
            "is an object, not true or false @ $.wake; is a number, not a string @ $.text",
        ),
        ("inbox/remove", {"ids": []}, "ids names no message @ $"),
        ("inbox/remove", {"ids": ["a", "a"]}, "ids names a message twice @ $"),
        ("inbox/remove", {"ids": "ab"}, "is not an array of strings @ $.ids"),
        ("inbox/remove", {"ids": ["a", 1]}, "is not an array of strings @ $.ids"),
        ("turn/start", {"turn": 0, "claimed": ["a"], "attempt": 1}, "turn is 0, not 1 or more @ $"),
        ("turn/start", {"turn": 1, "claimed": ["a"], "attempt": 0}, "attempt is 0, not 1 or more @ $"),
        ("turn/start", {"turn": 1, "claimed": [], "attempt": 1}, "claimed names no message @ $"),
        (
            "turn/start",
            {"turn": True, "claimed": ["a"], "attempt": 1},
            "is a boolean, not a safe integer @ $.turn",
        ),
        ("turn/start", {"turn": 1.5, "claimed": ["a"], "attempt": 1}, "is 1.5, not a safe integer @ $.turn"),
        ("turn/end", {"turn": 1, "outcome": "done"}, "is not one of completed, aborted, error, interrupted"),
        ("turn/end", {"turn": 1, "outcome": "completed", "cause": None}, "is null, not a string @ $.cause"),
        (
            "turn/end",
            {"turn": 1, "outcome": "completed", "redeliver": True},
            "redeliver is true for a turn that is",
        ),
        ("turn/note", {"turn": 1}, "required field missing @ $.data"),
    ],
)
def test_another_shape_is_corrupt_and_says_where(type_: str, payload: Any, why: str) -> None:
    """A wrong key, type or value is refused with the event's type, the path and what is wrong there."""
    with pytest.raises(CorruptLog) as caught:
        decode(EventRecord(type_, 0, json.dumps(payload)))
    assert caught.value.why.startswith(f"{type_}: {why}")


def test_text_that_is_not_json_is_corrupt() -> None:
    """A torn record names its type and says that it holds no JSON."""
    with pytest.raises(CorruptLog, match=r"^turn/end holds no JSON: "):
        decode(EventRecord("turn/end", 0, '{"turn":1'))


def test_an_unknown_type_refuses_the_log() -> None:
    """A newer writer's event must not be skipped silently."""
    with pytest.raises(UnknownEvent, match="'task/create' is not known") as caught:
        decode(EventRecord("task/create", 0, "{}"))
    assert caught.value.type == "task/create"


def test_an_unknown_type_marked_ignorable_is_passed_over() -> None:
    """Its writer said that a reader may do without it."""
    record = EventRecord("task/hint", 5, '{"a":1}', ignorable=True)
    assert decode(record) == Ignored("task/hint", {"a": 1})
    assert encode(Ignored("task/hint", {"a": 1}), 5) == record


def test_a_known_type_is_read_strictly_even_if_ignorable() -> None:
    """The mark is for readers that do not know the type."""
    with pytest.raises(CorruptLog, match="inbox/remove"):
        decode(EventRecord("inbox/remove", 0, "{}", ignorable=True))


@pytest.mark.parametrize(
    "event",
    [
        Message("m1", Lane.NEXT_TURN, True, 5, Source.USER),  # type: ignore[arg-type]  # the wrong type is the point
        Message("m1", "soon", True, "x", Source.USER),  # type: ignore[arg-type]  # the wrong type is the point
        MessagesRemoved(("a", 5)),  # type: ignore[arg-type]  # the wrong type is the point
        MessageReplaced("m1", b"x"),  # type: ignore[arg-type]  # the wrong type is the point
        TurnStarted(2**53, ("a",), 1),
        TurnNoted(1, {"x": {1, 2}}),
        TurnNoted(1, float("nan")),
        ScheduleChanged(object()),
    ],
)
def test_nothing_unreadable_is_written(event: Event) -> None:
    """A field of the wrong type is refused before it reaches a store, not when the log is opened again."""
    with pytest.raises(ValueError, match=r"."):
        encode(event, 0)


def test_illegal_events_cannot_be_made() -> None:
    """What no log may hold is refused when it is put together."""
    with pytest.raises(ValueError, match="names a message twice"):
        TurnAborted(1, "user", ("a", "a"))
    with pytest.raises(ValueError, match="id is empty"):
        MessageReplaced("", "x")


def test_the_known_types_are_these() -> None:
    """The list a newer version must not shrink."""
    assert {type_ for _, type_, _ in WIRE} == KNOWN_TYPES


@given(events)
def test_a_payload_is_written_as_json_of_its_fields(event: Event) -> None:
    """The quick way of writing what is written most gives the same text, byte for byte."""
    payload = event.payload if isinstance(event, ScheduleChanged | Ignored) else unstructure(event)
    assert encode(event, 0).data == stringify(payload)


def test_what_is_not_made_of_plain_values_is_not_written_the_quick_way() -> None:
    """Long numbers come out the same, and what could not be read back is refused."""

    class Text(str):
        __slots__ = ()

    assert encode(TurnStarted(10**15, ("m1",), 10**15), 0).data == (
        '{"turn":1000000000000000,"claimed":["m1"],"attempt":1000000000000000}'
    )
    assert encode(TurnEnded(10**15, Outcome.COMPLETED), 0).data == '{"turn":1000000000000000,"outcome":"completed"}'
    other: Any = (1,)
    for claimed in (other, (Text("m1"),)):
        with pytest.raises(CorruptLog):
            encode(TurnStarted(1, claimed, 1), 0)
    with pytest.raises(CorruptLog):
        encode(TurnEnded(True, Outcome.COMPLETED), 0)
