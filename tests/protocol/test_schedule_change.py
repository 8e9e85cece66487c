from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from whenidle_clock.instants import parse_instant
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.json_text import parse, stringify
from whenidle_protocol.schedule_change import (
    AfterReminder,
    AtReminder,
    Change,
    Create,
    Delete,
    Dispatch,
    EveryReminder,
    Reminder,
    decode_change,
    decode_record,
    encode_change,
    encode_record,
)

from .strategies import changes, reminders

AT = "2026-01-01T00:00:00.000Z"
INSTANT = parse_instant(AT)
EVERY = {"id": "schedule-1", "kind": "every", "prompt": "p", "everySeconds": 300, "scheduledAt": AT}
CREATE = {"version": 1, "operation": "create", "schedule": EVERY}
DISPATCH = {"version": 1, "operation": "dispatch", "id": "schedule-1", "acceptedAt": AT}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            Create(AfterReminder("schedule-1", "p", 5, INSTANT)),
            (
                '{"version":1,"operation":"create","schedule":{"id":"schedule-1","kind":"after","prompt":"p",'
                f'"afterSeconds":5,"scheduledAt":"{AT}"}}}}'
            ),
        ),
        (
            Create(AtReminder("schedule-1", "p", INSTANT)),
            (
                '{"version":1,"operation":"create","schedule":{"id":"schedule-1","kind":"at","prompt":"p",'
                f'"scheduledAt":"{AT}"}}}}'
            ),
        ),
        (
            Create(EveryReminder("schedule-1", "p", 300, INSTANT)),
            (
                '{"version":1,"operation":"create","schedule":{"id":"schedule-1","kind":"every","prompt":"p",'
                f'"everySeconds":300,"scheduledAt":"{AT}"}}}}'
            ),
        ),
        (Delete("schedule-1"), '{"version":1,"operation":"delete","id":"schedule-1"}'),
        (Dispatch("schedule-1"), '{"version":1,"operation":"dispatch","id":"schedule-1"}'),
        (
            Dispatch("schedule-1", INSTANT),
            f'{{"version":1,"operation":"dispatch","id":"schedule-1","acceptedAt":"{AT}"}}',
        ),
    ],
)
def test_a_change_has_exactly_this_wire_form(change: Change, text: str) -> None:
    """Version 1 is fixed: logs of the reference and of this implementation are the same bytes."""
    assert stringify(encode_change(change)) == text
    assert decode_change(parse(text)) == change


@given(changes)
def test_decoding_undoes_encoding(change: Change) -> None:
    """Every change that can be made comes back equal, through JSON text."""
    assert decode_change(parse(stringify(encode_change(change)))) == change


@given(reminders)
def test_a_record_round_trips_on_its_own(record: Reminder) -> None:
    """Records also stand alone, in answers and exports."""
    assert decode_record(encode_record(record)) == record


def test_whole_floats_are_integers_and_true_is_not() -> None:
    """JSON 5.0 is the integer 5, wherever a number stands; a boolean never is."""
    change = decode_change({**CREATE, "version": 1.0, "schedule": {**EVERY, "everySeconds": 300.0}})
    assert change == Create(EveryReminder("schedule-1", "p", 300, INSTANT))
    with pytest.raises(CorruptLog, match=r"version is not 1 @ \$\.version"):
        decode_change({**CREATE, "version": True})


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ([], "is not an object @ $"),
        ({**CREATE, "version": 2}, "version is not 1 @ $.version"),
        ({"operation": "create", "schedule": EVERY}, "version is not 1 @ $.version"),
        ({**CREATE, "operation": "update"}, "operation is not create, delete or dispatch @ $.operation"),
        ({**CREATE, "operation": ["create"]}, "operation is not create, delete or dispatch @ $.operation"),
        ({"version": 1, "operation": "create"}, "a create has the keys version, operation and schedule"),
        ({**CREATE, "id": "x"}, "a create has the keys version, operation and schedule"),
        ({**CREATE, "schedule": []}, "is not an object whose kind is after, at or every @ $.schedule"),
        (
            {**CREATE, "schedule": {**EVERY, "kind": "cron"}},
            "is not an object whose kind is after, at or every @ $.schedule",
        ),
        (
            {**CREATE, "schedule": {**EVERY, "kind": {}}},
            "is not an object whose kind is after, at or every @ $.schedule",
        ),
        ({**CREATE, "schedule": {**EVERY, "afterSeconds": 5}}, "no such field: 'afterSeconds' @ $"),
        ({**CREATE, "schedule": {**EVERY, "everySeconds": 299}}, "every_seconds is 299, not between 300 and"),
        ({**CREATE, "schedule": {**EVERY, "prompt": " p"}}, "prompt is empty or has white space around it"),
        ({**CREATE, "schedule": {**EVERY, "id": ""}}, "id is empty or has white space around it"),
        ({**CREATE, "schedule": {**EVERY, "scheduledAt": "2026"}}, "not an instant: '2026'"),
        ({**CREATE, "schedule": {**EVERY, "scheduledAt": 5}}, "is a number, not a string @ $.scheduledAt"),
        ({**DISPATCH, "acceptedAt": None}, "is null, not a string @ $.acceptedAt"),
        ({**DISPATCH, "extra": 1}, "no such field: 'extra' @ $"),
        ({"version": 1, "operation": "delete"}, "required field missing @ $.id"),
        ({"version": 1, "operation": "delete", "id": "x\ufeff"}, "id is empty or has white space around it"),
        ({"version": 1, "operation": "delete", "id": 5}, "is a number, not a string @ $.id"),
    ],
)
def test_anything_else_is_corrupt_and_says_why(payload: Any, why: str) -> None:
    """Another version, operation, key, type or value makes the log corrupt, named by path."""
    with pytest.raises(CorruptLog) as caught:
        decode_change(payload)
    assert caught.value.why.startswith(f"schedule/change: {why}")


def test_intervals_go_as_far_as_milliseconds_are_safe() -> None:
    """What the reference accepts in a log: an interval whose milliseconds are a safe integer."""
    longest = (2**53 - 1) // 1000
    assert isinstance(decode_record({**EVERY, "everySeconds": longest}), EveryReminder)
    with pytest.raises(CorruptLog, match="every_seconds"):
        decode_record({**EVERY, "everySeconds": longest + 1})
