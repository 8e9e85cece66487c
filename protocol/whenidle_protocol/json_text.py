"""JSON text exactly as ECMAScript reads and writes it (ECMA-262 25.5).

What the model sees must come out byte for byte as the reference wrote it, and a log must be
readable wherever it goes. Python's `json` differs in three ways that matter: it lets lone
surrogates through (which no UTF-8 file can hold), prints numbers in its own way, and accepts
`NaN` and `Infinity`.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final, cast

MAX_DEPTH: Final = 200
"""How deep arrays and objects may nest: far above any honest payload, far below the interpreter's stack."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)

# Number::toString (ECMA-262 6.1.6.1.20): plain digits for exponents in this range, else `1e+21`, `1e-7`.
_PLAIN_ABOVE = -6
_PLAIN_UP_TO = 21


def stringify(value: Any) -> str:
    r"""Return the JSON text of `value` as `JSON.stringify(value)` writes it: compact, in insertion order.

    Non-ASCII text is kept. Two adjacent surrogates that form a pair become the one character they
    stand for, others are escaped as `\ud800`, so the result is always valid Unicode. An int keeps all
    its digits. `parse` reads all that is written here.

    Raises:
        ValueError: `value` holds NaN, an infinity or a number that no double comes near, something that is not
            JSON, or nests too deep.
    """
    parts: list[str] = []
    _write(value, parts.append, MAX_DEPTH)
    return "".join(parts)


def printable_string(text: str) -> str:
    """Return the JSON text of a string, with each character that is not seen written out.

    It is for messages that repeat somebody's words: nothing in it moves a cursor or turns the direction of text.
    """
    quoted = stringify(text)
    if quoted.isprintable():
        return quoted
    return "".join(each if each.isprintable() else encode_basestring_ascii(each)[1:-1] for each in quoted)


def parse(text: str) -> Any:
    """Return the value of one JSON text, as `JSON.parse` does: of a key given twice, the last value counts.

    Raises:
        ValueError: it is not JSON (`NaN` and `Infinity` are not), a number does not fit a double, or it
            nests deeper than `MAX_DEPTH`.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ValueError(f"the text nests deeper than {MAX_DEPTH} levels")
    return _DECODER.decode(text)


def _write(value: Any, emit: Any, room: int) -> None:
    kind = cast("type[object]", type(value))
    if kind is str:
        emit(_quote(value))
    elif kind is dict:
        _write_object(value, emit, _less(room))
    elif kind is int:
        emit(_digits(value))
    elif value is True:
        emit("true")
    elif value is False:
        emit("false")
    elif value is None:
        emit("null")
    elif kind is list or kind is tuple:
        _write_array(value, emit, _less(room))
    elif kind is float:
        emit(_number(value))
    elif isinstance(value, str):
        emit(_quote(str.__str__(value)))
    else:
        raise ValueError(f"a value of type {kind.__name__} has no JSON text")


def _write_object(value: dict[Any, Any], emit: Any, room: int) -> None:
    separator = "{"
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValueError(f"a key of type {type(key).__name__} has no JSON text; keys are strings")  # noqa: TRY004 - as any value that is none
        emit(separator)
        emit(_quote(key))
        emit(":")
        _write(item, emit, room)
        separator = ","
    emit("}" if value else "{}")


def _write_array(value: list[Any] | tuple[Any, ...], emit: Any, room: int) -> None:
    separator = "["
    for item in value:
        emit(separator)
        _write(item, emit, room)
        separator = ","
    emit("]" if value else "[]")


def _less(room: int) -> int:
    if room == 0:
        raise ValueError(f"the value nests deeper than {MAX_DEPTH} levels")
    return room - 1


def _quote(text: str) -> str:
    quoted: str = encode_basestring(text)
    if text.isascii() or _SURROGATE.search(quoted) is None:
        return quoted
    joined = quoted.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", joined)


def _digits(value: int) -> str:
    if value.bit_length() > _FITTING_BITS:
        try:
            float(value)
        except OverflowError:
            raise ValueError("a number is too large for a double") from None
    return int.__repr__(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON text; JSON numbers are finite")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, exponent = _shortest(abs(value))
    return sign + _place_point(digits, exponent)


def _shortest(value: float) -> tuple[str, int]:
    """Return the shortest digits d1d2… and the n for which value = 0.d1d2… x 10^n."""
    mantissa, _, power = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = len(whole) + int(power or 0) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), exponent


def _place_point(digits: str, exponent: int) -> str:
    count = len(digits)
    if count <= exponent <= _PLAIN_UP_TO:
        return digits + "0" * (exponent - count)
    if 0 < exponent < count:
        return f"{digits[:exponent]}.{digits[exponent:]}"
    if _PLAIN_ABOVE < exponent <= 0:
        return "0." + "0" * -exponent + digits
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{exponent - 1:+d}"


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in _BRACKETS.finditer(text):
        if token[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in "]}":
            depth -= 1
    return deepest


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large for a double")
    return value


_FITTING_BITS: Final = 1023
"""A whole number of up to so many bits is below the largest double, which is a little less than 2**1024."""

_FITTING_DIGITS: Final = 308
"""A whole number of up to so many digits is below the largest double, about 1.8e308."""


def _integer(text: str) -> int:
    if len(text) > _FITTING_DIGITS:
        _finite(text)
    return int(text)


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, parse_int=_integer)
