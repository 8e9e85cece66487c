"""The parts of an RRULE, each read and checked, then all of them together (RFC 5545 3.3.10, SPEC 6.6)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from whenidle_protocol.errors import ReminderCode

from .failures import RuleError, invalid, quoted
from .recur import WEEKDAYS, Frequency, Recur, Weekday

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NUMBER: Final = 999_999_999
"""The largest INTERVAL and COUNT: 1,900 years of minutes."""

DATE_TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})")
_DATE = re.compile(r"[0-9]{8}")
_WHOLE = re.compile(r"0*([0-9]{1,9})")
_SIGNED = re.compile(r"([+-]?)0*([0-9]{1,3})")
_WEEKDAY = re.compile(r"(?:([+-]?)([0-9]{1,2}))?(MO|TU|WE|TH|FR|SA|SU)")

_FREQUENCIES: Final = ", ".join(each.value for each in Frequency)
_RANGES: Final = {
    "BYMONTH": ("by_month", 1, 12),
    "BYWEEKNO": ("by_week_no", -53, 53),
    "BYYEARDAY": ("by_year_day", -366, 366),
    "BYMONTHDAY": ("by_month_day", -31, 31),
    "BYHOUR": ("by_hour", 0, 23),
    "BYMINUTE": ("by_minute", 0, 59),
    "BYSECOND": ("by_second", 0, 59),
    "BYSETPOS": ("by_set_pos", -366, 366),
}
_NAMES: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", *_RANGES, "BYDAY", "WKST")


def read_recur(text: str) -> Recur:
    """Return the rule that the value of an RRULE line states.

    Raises:
        RuleError: `invalid_rule`, or `frequency_too_high`: more often than once a minute.
    """
    parts = _split(text)
    read: dict[str, Any] = {"frequency": _frequency(parts.pop("FREQ", None))}
    for name, value in parts.items():
        if name in _RANGES:
            field, low, high = _RANGES[name]
            read[field] = _numbers(name, value, low, high)
        else:
            field, reader = _OTHERS[name]
            read[field] = reader(value)
    recur = Recur(**read)
    _check(recur)
    return recur


def _split(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = part.partition("=")
        name = name.upper()
        if not equals:
            raise invalid(
                f"RRULE has the part {quoted(part)}; parts look like INTERVAL=2 and are separated by one semicolon.",
            )
        if name not in _NAMES:
            raise invalid(f"RRULE has the part {quoted(name)}, which is not one of {', '.join(_NAMES)}; leave it out.")
        if name in parts:
            raise invalid(f"RRULE has {name} twice; give each part once, with a list like BYHOUR=9,17.")
        parts[name] = value.upper()
    return parts


def _frequency(value: str | None) -> Frequency:
    if value is None:
        raise invalid(f"RRULE has no FREQ; write for example FREQ=DAILY, or one of {_FREQUENCIES}.")
    if value == "SECONDLY":
        raise RuleError(
            ReminderCode.FREQUENCY_TOO_HIGH,
            "FREQ=SECONDLY is more often than once a minute; write FREQ=MINUTELY with an INTERVAL.",
        )
    try:
        return Frequency(value)
    except ValueError:
        raise invalid(f"FREQ={quoted(value)} is not a frequency; write one of {_FREQUENCIES}.") from None


def _number(name: str) -> Callable[[str], int]:
    def read(value: str) -> int:
        found = _WHOLE.fullmatch(value)
        number = int(found[1]) if found else 0
        if not number:
            raise invalid(
                f"{name}={quoted(value)} is not a whole number from 1 to {MAX_NUMBER}; write for example {name}=2.",
            )
        return number

    return read


def _until(value: str) -> datetime:
    example = "write the last instant in UTC, like UNTIL=20301231T235959Z"
    if _DATE.fullmatch(value):
        raise invalid(f"UNTIL={value} is a date without a time; {example}.")
    found = DATE_TIME.match(value)
    rest = value[found.end() :] if found else ""
    if found is None or rest not in {"", "Z"}:
        raise invalid(f"UNTIL={quoted(value)} is not a date and time; {example}.")
    if not rest:
        raise invalid(f"UNTIL={value} is in no time zone; {example}.")
    return read_date_time(found, "UNTIL").replace(tzinfo=UTC)


def read_date_time(found: re.Match[str], where: str) -> datetime:
    """Return the naive date and time of a match of `DATE_TIME`.

    Raises:
        RuleError: `invalid_rule`, there is no such date or time.
    """
    year, month, day, hour, minute, second = map(int, found.groups())
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - local time is naive
    except ValueError:
        raise invalid(
            f"{where} {found[0]} names a date or time that does not exist; hours go to 23, minutes and seconds to 59.",
        ) from None


def _numbers(name: str, value: str, low: int, high: int) -> tuple[int, ...]:
    """Return a list of numbers from `low` to `high`; where they may count from the end, 0 is none of them."""
    numbers = {_in_range(name, item, low, high) for item in value.split(",")}
    return tuple(sorted(numbers))


def _in_range(name: str, item: str, low: int, high: int) -> int:
    found = _SIGNED.fullmatch(item)
    if found and not (found[1] and low >= 0):
        number = int(f"{found[1]}{found[2]}")
        if low <= number <= high and (number or low >= 0):
            return number
    allowed = f"from {low} to {high}" if low >= 0 else f"from 1 to {high}, or from -1 to {low} counted from the end"
    raise invalid(f"{name} has the value {quoted(item)}; its values are whole numbers {allowed}.")


def _by_day(value: str) -> tuple[Weekday, ...]:
    return tuple(sorted({_weekday(item) for item in value.split(",")}, key=lambda each: (each.day, each.nth)))


def _weekday(item: str) -> Weekday:
    found = _WEEKDAY.fullmatch(item)
    nth = int(f"{found[1]}{found[2]}") if found and found[2] else 0
    if found is None or (found[2] and not 1 <= abs(nth) <= 53):  # noqa: PLR2004 - the weeks of a year
        raise invalid(
            f"BYDAY has the value {quoted(item)}; its values are {', '.join(WEEKDAYS)}, "
            "or with a number from 1 to 53 or from -53 to -1 in front, like -1FR for the last Friday.",
        )
    return Weekday(WEEKDAYS.index(found[3]), nth)


def _week_start(value: str) -> int:
    if value not in WEEKDAYS:
        raise invalid(f"WKST={quoted(value)} is not a weekday; write one of {', '.join(WEEKDAYS)}.")
    return WEEKDAYS.index(value)


_OTHERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "INTERVAL": ("interval", _number("INTERVAL")),
    "COUNT": ("count", _number("COUNT")),
    "UNTIL": ("until", _until),
    "BYDAY": ("by_day", _by_day),
    "WKST": ("week_start", _week_start),
}


def _check(recur: Recur) -> None:
    """Refuse parts that do not go together."""
    frequency = recur.frequency
    if recur.count is not None and recur.until is not None:
        raise invalid("RRULE has both COUNT and UNTIL; give the number of occurrences or the last instant, not both.")
    if recur.by_week_no and frequency is not Frequency.YEARLY:
        raise invalid(f"BYWEEKNO does not go with FREQ={frequency.value}; write FREQ=YEARLY or leave it out.")
    if recur.by_year_day and frequency in {Frequency.MONTHLY, Frequency.WEEKLY, Frequency.DAILY}:
        raise invalid(f"BYYEARDAY does not go with FREQ={frequency.value}; write FREQ=YEARLY or leave it out.")
    if recur.by_month_day and frequency is Frequency.WEEKLY:
        raise invalid("BYMONTHDAY does not go with FREQ=WEEKLY; write FREQ=MONTHLY or leave it out.")
    _check_numbered_days(recur)
    lists = [getattr(recur, field) for field, _, _ in _RANGES.values() if field != "by_set_pos"]
    if recur.by_set_pos and not recur.by_day and not any(lists):
        raise invalid(
            "BYSETPOS chooses among what another part gives and stands alone here; add one, "
            "as in BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1 for the last weekday.",
        )
    if len(recur.by_second) > 1:
        raise RuleError(
            ReminderCode.FREQUENCY_TOO_HIGH,
            "BYSECOND has several seconds of one minute, which is more often than once a minute; give one.",
        )


def _check_numbered_days(recur: Recur) -> None:
    numbered = next((each for each in recur.by_day if each.nth), None)
    if numbered is None:
        return
    if recur.frequency not in {Frequency.MONTHLY, Frequency.YEARLY}:
        raise invalid(
            f"BYDAY has the value {numbered}, and FREQ={recur.frequency.value} takes no numbers; "
            f"write {WEEKDAYS[numbered.day]}, or FREQ=MONTHLY.",
        )
    if recur.by_week_no:
        raise invalid(f"BYDAY has the value {numbered}, which does not go with BYWEEKNO; leave out the number.")
