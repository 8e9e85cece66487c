"""The five fields of a crontab line as Vixie cron reads them, and their canonical text."""

from __future__ import annotations

import re
from typing import Final

import attrs

from whenidle_protocol.recurrence.failures import invalid, quoted

MAX_LENGTH: Final = 1_000
"""The longest expression that is looked at, in characters."""

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ITEM = re.compile(r"(\*|([0-9]{1,4}|[A-Z]{3})(?:-([0-9]{1,4}|[A-Z]{3}))?)(?:/([0-9]{1,4}))?")
_RUN = 3
"""Numbers in a row from which on the canonical text is a range."""


@attrs.frozen
class Field:
    """One field of an expression."""

    name: str
    low: int
    high: int
    names: dict[str, int] = attrs.field(factory=dict[str, int], eq=False)


FIELDS: Final = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    Field("day of week", 0, 7, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_SUNDAY_TOO = 7
_FORM = 'write five fields (minute, hour, day of month, month, day of week), like "30 9 * * 1-5"'
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@annually": "0 0 1 1 *",
    "@yearly": "0 0 1 1 *",
}


@attrs.frozen
class Numbers:
    """What a field allows."""

    values: tuple[int, ...]
    """The numbers, increasing; Sunday is 0."""
    star: bool
    """Whether its text begins with `*`, which decides how the two day fields go together."""
    text: str
    """Its canonical text."""


def read_fields(expression: str) -> tuple[Numbers, ...]:
    """Return what the five fields allow.

    Raises:
        RuleError: `invalid_rule`.
    """
    if len(expression) > MAX_LENGTH:
        raise invalid(f"The cron expression has more than {MAX_LENGTH} characters; shorten its lists.")
    texts = expression.split()
    if texts and texts[0].startswith("@"):
        written = _MACROS.get(texts[0].lower())
        instead = f'write "{written}"' if written else _FORM
        raise invalid(f"The cron expression {quoted(expression)} is a shorthand, which is not taken; {instead}.")
    if len(texts) != len(FIELDS) or not expression.isascii():
        raise invalid(f"The cron expression {quoted(expression)} does not have five fields; {_FORM}.")
    return tuple(_read(field, text.upper()) for field, text in zip(FIELDS, texts, strict=True))


def _read(field: Field, text: str) -> Numbers:
    values: set[int] = set()
    for item in text.split(","):
        values.update(_item(field, item))
    star = text.startswith("*")
    return Numbers(tuple(sorted(values)), star, _canonical(field, values, text.partition(",")[0] if star else ""))


def _item(field: Field, item: str) -> set[int]:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise invalid(
            f"The cron field {field.name} has the item {quoted(item)}; items look like *, */5, 3, 3-8 or 3-8/2.",
        )
    whole, first, last, step_text = found.groups()
    step = int(step_text or 1)
    if whole == "*":
        low, high = field.low, field.high - (field.high == _SUNDAY_TOO)
    else:
        low = _number(field, first)
        high = low if last is None else _number(field, last)
        if last is None and step_text is not None:
            raise invalid(
                f"The cron field {field.name} has the item {quoted(item)}, a step without a range; "
                f"write {low}-{field.high}/{step}.",
            )
    if high < low:
        raise invalid(
            f"The cron field {field.name} has the range {quoted(item)}, which runs backwards; write it as two ranges.",
        )
    if not 1 <= step <= field.high - field.low + 1:
        raise invalid(
            f"The cron field {field.name} has the item {quoted(item)}; its steps are from 1 to "
            f"{field.high - field.low + 1}, and start anew with each hour, day, month or year.",
        )
    return {0 if field.high == value == _SUNDAY_TOO else value for value in range(low, high + 1, step)}


def _number(field: Field, text: str) -> int:
    number = field.names.get(text, -1) if text.isalpha() else int(text)
    if not field.low <= number <= field.high:
        names = f" or {next(iter(field.names))} and so on" if field.names else ""
        raise invalid(
            f"The cron field {field.name} has the value {quoted(text)}; "
            f"its values are from {field.low} to {field.high}{names}.",
        )
    return number


def _canonical(field: Field, values: set[int], star_item: str) -> str:
    """Return the shortest text of the numbers that still begins with `*` if it did."""
    if not star_item:
        return _ranges(sorted(values))
    step = int(star_item[2:] or 1)
    covered = set(range(field.low, field.high + (field.high != _SUNDAY_TOO), step))
    if len(values) == field.high - field.low + (field.high != _SUNDAY_TOO):
        return "*"
    rest = _ranges(sorted(values - covered))
    return f"*/{step},{rest}" if rest else f"*/{step}"


def _ranges(values: list[int]) -> str:
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) >= _RUN else ",".join(map(str, run)) for run in runs)
