from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whenidle_protocol.json_text import MAX_DEPTH, parse, printable_string, stringify

from .strategies import json_values


class Colour(StrEnum):
    RED = "red"


whole_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def as_doubles(value: Any) -> Any:
    """Return `value` with each number as the double it stands for, as JavaScript would hold it."""
    if isinstance(value, dict):
        return {key: as_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_doubles(item) for item in value]
    return float(value) if type(value) is int else value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ("π 中文 \U0001f600", '"π 中文 \U0001f600"'),
        ('\b\t\n\f\r"\\/', '"\\b\\t\\n\\f\\r\\"\\\\/"'),
        ("\x00\x01\x0b\x1f\x7f\x85", '"\\u0000\\u0001\\u000b\\u001f\x7f\x85"'),
        ("\u2028\u2029", '"\u2028\u2029"'),
        ("lone \ud800 high", '"lone \\ud800 high"'),
        ("\udbff", '"\\udbff"'),
        ("\udc00\ud800", '"\\udc00\\ud800"'),
        ("\ud83d\ude00", '"\U0001f600"'),
        ("\ud83d\ud83d\ude00\ude00", '"\\ud83d\U0001f600\\ude00"'),
        ({"a": [1, None, True, False], "b": {}}, '{"a":[1,null,true,false],"b":{}}'),
        ([], "[]"),
        ([[], {}], "[[],{}]"),
        ((1, "x"), '[1,"x"]'),
        ({"\ud800": 1, "": 2}, '{"\\ud800":1,"":2}'),
        (Colour.RED, '"red"'),
        ({Colour.RED: 1}, '{"red":1}'),
    ],
)
def test_text_is_escaped_as_javascript_does(value: Any, text: str) -> None:
    """Non-ASCII is kept, controls are short or lower-case hex escapes, halves of a pair are escaped."""
    assert stringify(value) == text
    assert stringify(value).encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.0, "5"),
        (-0.0, "0"),
        (0, "0"),
        (-7, "-7"),
        (9007199254740993, "9007199254740993"),
        (0.1, "0.1"),
        (123.456, "123.456"),
        (-2.5, "-2.5"),
        (100.0, "100"),
        (1e16, "10000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-2.5e25, "-2.5e+25"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (0.00001234, "0.00001234"),
    ],
)
def test_numbers_print_as_javascript_prints_them(value: float, text: str) -> None:
    """Number::toString decides between plain digits and an exponent, and a whole float has no point."""
    assert stringify(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, b"x", {1, 2}, {1: "x"}, [object()]])
def test_what_is_not_json_is_refused(value: Any) -> None:
    """NaN, infinities, keys that are not strings and foreign objects raise instead of writing something."""
    with pytest.raises(ValueError, match="has no JSON text"):
        stringify(value)


@given(json_values)
@example([-0.0])
def test_what_was_written_reads_back(value: Any) -> None:
    """`parse(stringify(v))` is v, and it is text that any JSON reader and any UTF-8 file takes."""
    text = stringify(value)
    assert as_doubles(parse(text)) == as_doubles(value)
    assert parse(text.encode().decode()) == parse(text) == json.loads(text)
    assert stringify(parse(text)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_its_value(value: float) -> None:
    """However it is printed, it reads back as the same double."""
    assert float(stringify(value)) == value


@given(whole_json_values)
def test_text_without_floats_and_surrogates_equals_the_standard_encoder(value: Any) -> None:
    """Where Python's encoder and JavaScript's agree, so does this one."""
    assert stringify(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_of_a_key_given_twice_the_last_counts() -> None:
    """As `JSON.parse` does, so that a log reads the same everywhere."""
    assert parse('{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        "-Infinity",
        "",
        "{",
        "{'a':1}",
        "[1,]",
        "01",
        '"\n"',
        "1 2",
        "1e999",
        "9" * 309,
        "-" + "9" * 309,
        "9" * 5000,
        "\ufeff1",
    ],
)
def test_what_is_not_json_is_not_read(text: str) -> None:
    """Constants of JavaScript, numbers beyond a double and malformed text raise ValueError."""
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@pytest.mark.parametrize("text", ["9" * 308, "1" * 309, "-" + "1" * 309])
def test_a_long_integer_within_a_double_is_read(text: str) -> None:
    """Hundreds of digits are a legal JSON number and are all kept."""
    assert parse(text) == int(text)


def test_halves_of_a_pair_are_read_as_such() -> None:
    """A lone surrogate in a log is content; a pair of escapes is one character."""
    assert parse(r'"\ud800"') == "\ud800"
    assert parse(r'"\ud83d\ude00"') == "\U0001f600"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
def test_nesting_is_bounded_both_ways(opening: str, closing: str) -> None:
    """At the bound text is read and written back; one level more is a ValueError, not a RecursionError."""
    levels = opening.count("[") + opening.count("{")
    fitting = MAX_DEPTH // levels
    text = opening * fitting + "1" + closing * fitting
    assert stringify(parse(text)) == text
    with pytest.raises(ValueError, match="nests deeper than 200 levels"):
        parse(opening * 100_000)
    with pytest.raises(ValueError, match="nests deeper than 200 levels"):
        stringify([parse(text)])


def test_brackets_inside_strings_do_not_nest() -> None:
    """A prompt full of brackets, quotes and backslashes is as deep as any other string."""
    text = stringify(['[{"\\' * 1000, "]" * 1000])
    assert parse(text) == ['[{"\\' * 1000, "]" * 1000]


def test_an_unfinished_string_does_not_hide_depth() -> None:
    """Text that ends inside a string is refused as malformed, whatever it opened before."""
    with pytest.raises(ValueError, match="Unterminated"):
        parse("[" * 150 + '"' + "[" * 100)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_cannot_be_read_is_not_written(sign: int) -> None:
    """Just below what no double comes near it comes back with all its digits; from there on both ways are refused."""
    limit = 2**1024 - 2**970
    assert parse(stringify(sign * (limit - 1))) == sign * (limit - 1)
    for number in (limit, 10**400, 10**5_000):
        with pytest.raises(ValueError, match="too large for a double"):
            stringify({"n": [sign * number]})
    with pytest.raises(ValueError, match="too large for a double"):
        parse(str(sign * limit))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("colour", '"colour"'),
        ("né 漢", '"né 漢"'),
        ('"\n', r'"\"\n"'),
        ("\x9b\x7f\u202e\u2028", r'"\u009b\u007f\u202e\u2028"'),
        ("\ud800\U000e0041", r'"\ud800\udb40\udc41"'),
    ],
)
def test_a_string_in_a_message_only_shows_itself(text: str, shown: str) -> None:
    """What is not seen is escaped, also what JSON would leave as it is; it still is the JSON of the same text."""
    assert printable_string(text) == shown
    assert parse(shown) == text
