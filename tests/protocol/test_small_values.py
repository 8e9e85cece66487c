from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from whenidle_protocol import errors
from whenidle_protocol.errors import CorruptLog, ReminderCode, ToolError, UnknownEvent
from whenidle_protocol.json_values import MAX_SAFE_INTEGER, json_object, safe_integer
from whenidle_protocol.white_space import ES_WHITE_SPACE, trim

NUMBERS: list[tuple[Any, int | None]] = [
    (5, 5),
    (5.0, 5),
    (-0.0, 0),
    (MAX_SAFE_INTEGER, MAX_SAFE_INTEGER),
    (-MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER),
    (float(MAX_SAFE_INTEGER), MAX_SAFE_INTEGER),
    (MAX_SAFE_INTEGER + 1, None),
    (-MAX_SAFE_INTEGER - 1, None),
    (1e300, None),
    (1.5, None),
    (float("nan"), None),
    (float("inf"), None),
    (True, None),
    ("5", None),
    (None, None),
]


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_a_safe_integer_is_a_whole_json_number(value: Any, number: int | None) -> None:
    """5.0 is the integer 5; booleans, strings, fractions and numbers beyond 2^53-1 are none."""
    found = safe_integer(value)
    assert found == number
    assert found is None or type(found) is int


def test_only_a_dict_is_an_object() -> None:
    """Arrays and null are not objects, though JavaScript's typeof says so."""
    cases: list[Any] = [[], None, "x", 5]
    assert json_object({"a": 1}) == {"a": 1}
    assert [json_object(value) for value in cases] == [None] * 4


def test_white_space_is_that_of_ecmascript() -> None:
    """All of category Zs, line terminators, TAB, VT, FF and U+FEFF; nothing else."""
    spaces = {chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) == "Zs"}
    assert set(ES_WHITE_SPACE) == spaces | set("\t\v\f\ufeff\n\r\u2028\u2029")


def test_trimming_differs_from_python_where_the_standard_does() -> None:
    """U+FEFF goes, U+0085 and U+001C stay, and what is inside is not touched."""
    assert trim("\ufeff\u00a0 a b \u3000\r\n") == "a b"
    assert trim("\x85a\x1c") == "\x85a\x1c"


def test_the_codes_are_a_closed_set() -> None:
    """The ten codes of SPEC 5.7 and no other."""
    assert [code.value for code in ReminderCode] == [
        "invalid_prompt",
        "invalid_selector",
        "invalid_rule",
        "invalid_time_zone",
        "not_future",
        "time_out_of_range",
        "frequency_too_high",
        "corrupt_schedule_log",
        "persistence_uncertain",
        "internal_error",
    ]


def test_a_tool_error_answers_code_message_and_details() -> None:
    """The answer is plain JSON in a fixed order; the exception's text names the code too."""
    error = ToolError(ReminderCode.PERSISTENCE_UNCERTAIN, "Try again.", operation="delete", id="schedule-1")
    assert list(error.answer().items()) == [
        ("code", "persistence_uncertain"),
        ("message", "Try again."),
        ("operation", "delete"),
        ("id", "schedule-1"),
    ]
    assert type(error.answer()["code"]) is str
    assert str(error) == "persistence_uncertain: Try again."


def test_a_corrupt_log_says_which_event_and_why() -> None:
    """The position is added by whoever knows it and keeps the reason."""
    error = CorruptLog("turn is missing")
    assert (str(error), error.seq, error.why) == ("turn is missing", None, "turn is missing")
    placed = error.at(7)
    assert (str(placed), placed.seq, placed.why) == ("event 7: turn is missing", 7, "turn is missing")


def test_an_unknown_event_keeps_its_type_and_kind() -> None:
    """It stays an UnknownEvent when its position is added, so that it can be told from damage."""
    placed = UnknownEvent("task/create").at(3)
    assert isinstance(placed, UnknownEvent)
    assert placed.type == "task/create"
    assert str(placed).startswith("event 3: type 'task/create' is not known")
    assert issubclass(errors.UnknownEvent, errors.CorruptLog)
