"""Text of the form `DTSTART…` and `RRULE:…` on two lines, read strictly (SPEC 6.6, RFC 5545 3.8.2.4, 3.8.5.3).

As RFC 5545 2 has it, letter case does not matter in names, and it does in dates.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import attrs

from whenidle_clock.instants import InstantOutOfRange
from whenidle_clock.zones import LocalTimeInGap, UnknownZone, load_zone, resolve_once
from whenidle_protocol.errors import ReminderCode

from .failures import RuleError, invalid, quoted
from .parts import DATE_TIME, read_date_time, read_recur

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from .recur import Recur

MAX_LENGTH: Final = 10_000
"""The longest text that is looked at, in characters; the longest useful one has some 6,000."""

_FORM: Final = 'write two lines like "DTSTART;TZID=Europe/Paris:20300131T090000" and "RRULE:FREQ=DAILY"'
_START: Final = (
    'write "DTSTART:20300131T090000Z" for UTC, or "DTSTART;TZID=Europe/Paris:20300131T090000" for local time'
)
_LINE_END = re.compile(r"\r?\n")
_NAME = re.compile(r"[A-Za-z-]*")
_DATE = re.compile(r"[0-9]{8}")


@attrs.frozen
class Start:
    """A DTSTART: the anchor of a rule."""

    local: datetime
    """Naive, in `zone`."""
    zone: ZoneInfo = attrs.field(eq=str)
    """Compared by name: a zone that was loaded again is the same zone."""

    def __str__(self) -> str:
        digits = f"{self.local:%Y%m%dT%H%M%S}".rjust(15, "0")
        return f"DTSTART:{digits}Z" if self.zone.key == "UTC" else f"DTSTART;TZID={self.zone.key}:{digits}"

    @property
    def instant(self) -> datetime:
        """The same in UTC, the earlier one where clocks show it twice."""
        return resolve_once(self.local, self.zone)


def read_rule(text: str) -> tuple[Start, Recur]:
    """Return what the two lines say, in either order.

    Raises:
        RuleError: `invalid_rule`, `invalid_time_zone`, `time_out_of_range`, or `frequency_too_high`.
    """
    if len(text) > MAX_LENGTH:
        raise invalid(f"The rule has more than {MAX_LENGTH} characters; shorten its lists.")
    lines = _lines(text)
    return _read_start(lines["DTSTART"]), read_recur(_value(lines["RRULE"]))


def _lines(text: str) -> dict[str, str]:
    """Return the two lines by name."""
    lines: dict[str, str] = {}
    for number, line in enumerate(_LINE_END.split(text), 1):
        name = _name(line)
        if name in lines:
            raise invalid(f"There is more than one {name} line; a rule has one DTSTART line and one RRULE line.")
        if name not in {"DTSTART", "RRULE"}:
            raise invalid(_unknown_line(number, line))
        lines[name] = line
    if "DTSTART" not in lines:
        raise invalid(f"The DTSTART line is missing, which says when the rule begins: {_FORM}.")
    if "RRULE" not in lines:
        raise invalid(f"The RRULE line is missing, which says how the rule goes on: {_FORM}.")
    return lines


def _name(line: str) -> str:
    found = _NAME.match(line)
    return found[0].upper() if found and line[found.end() : found.end() + 1] in {":", ";"} else ""


def _unknown_line(number: int, line: str) -> str:
    if number == 1 and line == "":
        return f"The rule is empty or begins with an empty line: {_FORM}."
    if line == "":
        return f"Line {number} is empty; leave out line breaks after the second line and between the two."
    return f"Line {number}, {quoted(line)}, is neither DTSTART nor RRULE: {_FORM}, and nothing else."


def _value(line: str) -> str:
    """Return what an RRULE line says, which takes no parameters."""
    if line[len("RRULE")] == ";":
        raise invalid("RRULE takes no parameters; write a colon, like RRULE:FREQ=DAILY.")
    return line[len("RRULE:") :]


def _read_start(line: str) -> Start:
    head, colon, value = line[len("DTSTART") :].partition(":")
    if not colon:
        raise invalid(f"The DTSTART line has no value: {_START}.")
    if _DATE.fullmatch(value):
        raise invalid(f"DTSTART {value} is a date without a time: {_START}.")
    found = DATE_TIME.match(value)
    rest = value[found.end() :] if found else ""
    if found is None or rest not in {"", "Z"}:
        raise invalid(f"DTSTART {quoted(value)} is not a date and time: {_START}.")
    if not head and not rest:
        raise invalid(f"DTSTART {value} is in no time zone: {_START}.")
    name = _zone_name(head)
    if head and rest:
        raise invalid(f"DTSTART has both a TZID and a Z, which says UTC: {_START}.")
    zone = _zone(name)
    start = Start(read_date_time(found, "DTSTART"), zone)
    try:
        _ = start.instant
    except LocalTimeInGap:
        raise invalid(
            f"DTSTART {value} does not exist in {zone.key}: clocks go forward over it; choose another time.",
        ) from None
    except InstantOutOfRange:
        raise RuleError(
            ReminderCode.TIME_OUT_OF_RANGE,
            "DTSTART lies outside the years 0001 to 9999 in UTC; choose an instant within them.",
        ) from None
    return start


def _zone_name(parameters: str) -> str:
    """Return the zone that the parameters of DTSTART name."""
    if not parameters:
        return "UTC"
    if parameters[:6].upper() != ";TZID=" or ";" in parameters[1:]:
        raise invalid(f"DTSTART{quoted(parameters)[1:-1]} has a parameter that is not TZID alone: {_START}.")
    return parameters[6:]


def _zone(name: str) -> ZoneInfo:
    try:
        return load_zone(name)
    except UnknownZone:
        raise RuleError(
            ReminderCode.INVALID_TIME_ZONE,
            f'TZID {quoted(name)} is not a time zone; write "UTC" or an IANA zone like "Europe/Paris": '
            "abbreviations and offsets are not zones.",
        ) from None
