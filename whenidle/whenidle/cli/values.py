"""How the text of an option becomes a value; which values are possible is said by whoever takes them."""

import enum
import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime

from cyclopts import Token

from whenidle.cli.exits import UsageError
from whenidle.cli.text import shortened
from whenidle_clock import parse_instant

_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")


def number(option: str, text: str) -> int | float:
    """Return `text` as the number that it is in JSON.

    Raises:
        UsageError: it is none.
    """
    if _NUMBER.fullmatch(text):
        value: int | float = float(text) if set(text) & set(".eE") else int(text)
        if math.isfinite(value):
            return value
    raise UsageError(f"{option} takes a whole number of seconds, not '{shortened(text, 40)}'")


def whole_number(_kind: object, tokens: Sequence[Token]) -> int:
    """Return the number of an option, as a converter; the parser's own conversion takes 1.5 for 1.

    Raises:
        ValueError: it is none.
    """
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{shortened(text, 40)} is not a whole number") from None


def one_of(kind: type[enum.Enum]) -> Callable[[object, Sequence[Token]], enum.Enum]:
    """Return what reads a member of `kind`, as a converter; the parser's own takes `none` for an option left out."""

    def read(_kind: object, tokens: Sequence[Token]) -> enum.Enum:
        text = tokens[0].value
        try:
            return kind(text)
        except ValueError:
            values = " or ".join(str(member.value) for member in kind)
            raise ValueError(f"'{shortened(text, 40)}' is not {values}") from None

    return read


def check_within(option: str, value: int, lowest: int, highest: int) -> None:
    """Check the number of an option.

    Raises:
        UsageError: it lies outside.
    """
    if not lowest <= value <= highest:
        raise UsageError(f"{option} takes a whole number from {lowest} to {highest}, not {value}")


def version(option: str, text: str | None) -> datetime | None:
    """Return the `updatedAt` that somebody has read.

    Raises:
        UsageError: it cannot be one.
    """
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError:
        raise UsageError(
            f"{option} takes the updatedAt of the task as you read it, like 2030-01-31T09:00:00.000Z,"
            f" not '{shortened(text, 40)}'"
        ) from None


def local_time(text: str, zone: str) -> dict[str, str]:
    """Return a local time, written with a `T` or a space, as the tools take it."""
    date, _, time = text.replace(" ", "T", 1).partition("T")
    return {"date": date, "time": time, "time_zone": zone}
