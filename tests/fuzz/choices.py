"""Choices made by bytes, so that each input means something and a small change of it has a small effect."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .words import NASTY, NUMBERS, WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_DEEPEST: Final = 4
_WIDEST: Final = 5
_LONGEST: Final = 70_000
"""Characters of a text: a little more than a prompt may have."""


class Choices:
    """Reads an input from its beginning; whatever it asks for beyond the end is 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """Return a number from 0 to 255."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def below(self, limit: int) -> int:
        """Return a number from 0 on."""
        return self.byte() % limit

    def of(self, options: Sequence[T]) -> T:
        """Return one of up to 256 options."""
        return options[self.below(len(options))]

    def flag(self) -> bool:
        """Return True or False."""
        return bool(self.byte() & 1)

    def take(self, length: int) -> bytes:
        """Return that many bytes, fewer at the end."""
        begin, self._at = self._at, self._at + length
        return self._data[begin : self._at]

    def rest(self) -> bytes:
        """Return what is left."""
        return self.take(len(self._data))

    def text(self) -> str:
        """Return any text: a word, a nasty one, many times the same, characters as they come, or all of them."""
        match self.below(6):
            case 0:
                return self.of(WORDS)
            case 1:
                return self.of(NASTY)
            case 2:
                word = self.of((*NASTY, *WORDS)) or " "
                return word * (self.byte() if self.below(8) else _LONGEST // len(word))
            case 3:
                return free_text(self.take(self.byte()))
            case 4:
                return "".join(map(chr, (self._code_point() for _ in range(self.below(16)))))
            case _:
                return self.text() + self.text() if self._at < len(self._data) else ""

    def number(self) -> float:
        """Return any number, NaN and the infinities included."""
        match self.below(4):
            case 0:
                return self.of(NUMBERS)
            case 1:
                return int.from_bytes(self.take(self.below(12)), "big", signed=True)
            case 2:
                value: float = struct.unpack("<d", self.take(8).ljust(8, b"\0"))[0]
                return value
            case _:
                return self.byte()

    def value(self, depth: int = 0) -> Any:
        """Return whatever a caller in Python can give where JSON is expected."""
        match self.below(8 if depth == 0 else 7 if depth < _DEEPEST else 5):
            case 5:
                return [self.value(depth + 1) for _ in range(self.below(_WIDEST))]
            case 6:
                return {self.text(): self.value(depth + 1) for _ in range(self.below(_WIDEST))}
            case 7:
                return nested(self.value(depth + 1), self.byte())
            case kind:
                return self._scalar(kind)

    def _scalar(self, kind: int) -> Any:
        match kind:
            case 2:
                return self.number()
            case 3:
                return self.of((None, True, False))
            case 4:
                return self.of((b"bytes", 1j, (), object, float("nan"), -0.0, 10**400, {1: 2}, {"a"}))
            case _:
                return self.text()

    def _code_point(self) -> int:
        return int.from_bytes(self.take(3), "big") % 0x110000


def free_text(data: bytes) -> str:
    """Return bytes as text: UTF-8 as it is, also where it stands for lone surrogates, anything else by its number."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def nested(value: Any, times: int) -> Any:
    """Return `value` inside that many arrays and objects."""
    for number in range(times):
        value = [value] if number % 2 else {"a": value}
    return value
