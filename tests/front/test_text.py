"""Untrusted text on its way to a terminal."""

import json
import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle.cli.text import duration, json_line, shortened, until, visible

NOW = datetime(2026, 3, 8, 10, 0, tzinfo=UTC)
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\r\n", r"two\nlines\r\n"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("\x00\x7f", r"\x00\x7f"),
        ("evil\u202etxt.exe", r"evil\u202etxt.exe"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("naïve 日本 👩\u200d🚀", "naïve 日本 👩\u200d🚀"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_control_characters_are_written_out_and_everything_else_is_kept(text: str, shown: str) -> None:
    """What could move a cursor, colour, hide or turn text becomes an escape; other text is not touched."""
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_no_text_lets_a_control_character_or_a_line_break_out(text: str) -> None:
    """Whatever the text, its visible form is one line without control characters."""
    assert not {unicodedata.category(character) for character in visible(text)} & CONTROLS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.booleans())
def test_json_for_programs_is_exact_and_safe(value: object, ascii_only: bool) -> None:
    """The JSON line reads back as the same value, without control characters, and in ASCII when asked."""
    line = json_line(value, ascii_only=ascii_only)
    assert json.loads(line) == value
    assert not {unicodedata.category(character) for character in line} & CONTROLS
    assert line.isascii() or not ascii_only


def test_json_keeps_readable_text_readable() -> None:
    """Only what is unsafe is escaped; an astral character becomes its two UTF-16 units."""
    assert json_line({"a": "né\x9b\U000e0041"}) == r'{"a": "né\u009b\udb40\udc41"}'


def test_a_long_text_is_cut_with_a_note() -> None:
    """A text above the limit says how much is missing, and the limit counts the text, not its escapes."""
    assert shortened("abc", 3) == "abc"
    assert shortened("a\nbcd", 2) == r"a\n… (+3 characters)"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-1, "0.0s"),
        (0.44, "0.4s"),
        (12.9, "12s"),
        (250, "4m 10s"),
        (3 * 3600 + 5 * 60, "3h 05m"),
        (12 * 86400 + 4 * 3600, "12d 4h"),
    ],
)
def test_lengths_of_time_are_told_in_two_units(seconds: float, told: str) -> None:
    """A person reads at most two units."""
    assert duration(seconds) == told


def test_targets_are_told_as_seen_from_now() -> None:
    """A target lies ahead or is overdue; at its very instant it is due."""
    assert until(NOW + timedelta(seconds=250), NOW) == "in 4m 10s"
    assert until(NOW - timedelta(seconds=12), NOW) == "overdue by 12s"
    assert until(NOW, NOW) == "due now"
