"""Untrusted text on its way to a terminal, a log and a JSON document."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, Final

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target
from whenidle.cli.text import json_line, shortened, visible
from whenidle_actors.logs import printable
from whenidle_protocol.json_text import parse, stringify
from whenidle_protocol.task_json import canonical_json

_NEVER: Final = {"Cc", "Cs", "Zl", "Zp"}
_TURNING: Final = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What changes the direction of text (Unicode Standard Annex 9)."""


def _terminal(data: bytes) -> None:
    choices = Choices(data)
    text = choices.text()
    _check_line(visible(text))
    assert visible(visible(text)) == visible(text)
    limit = choices.byte()
    short = shortened(text, limit)
    _check_line(short)
    assert len(short) <= limit * len(r"\U00000000") + 30
    _check_line(printable(text))
    assert printable(text).isprintable()
    _check_json(choices.value())


def _check_line(line: str) -> None:
    assert not {unicodedata.category(each) for each in line} & _NEVER
    assert not set(line) & _TURNING
    assert len(line.splitlines()) <= 1
    line.encode()


def _check_json(value: Any) -> None:
    """Check each way of writing JSON, for a value that is JSON: all say the same, on one line."""
    try:
        text = stringify(value)
    except ValueError:
        return
    text.encode()
    assert "\n" not in text
    assert parse(canonical_json(value)) == parse(text)
    for ascii_only in (False, True):
        line = json_line(parse(text), ascii_only=ascii_only)
        _check_line(line)
        assert json.loads(line) == parse(text)


TERMINAL: Final = Target(
    "terminal",
    _terminal,
    (
        b"\0\0\5\0\1\2",
        b"\1\1\5\6\1\1\2\0\0\5",
        b"\1\6\2\2\0\12",
        b"\2\1\1\377\5\7\0\0\5\310",
        b"\3\5hello\4\5\2\0\1\10\2\0\21",
        b"\4\3\1\0\33\0\0\133\0\330\0\5\4\6",
    ),
)
