"""Rules of RFC 5545 made at random, and python-dateutil's answers to them."""

from __future__ import annotations

import datetime as dt
import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import attrs
import dateutil.rrule
from hypothesis import strategies as st

from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.rules.rrule import RRuleRule

if TYPE_CHECKING:
    from collections.abc import Iterable


def expand(text: str) -> Iterable[datetime]:
    """Return all occurrences of a rule as python-dateutil finds them; they may have no end."""
    found: Iterable[datetime] = dateutil.rrule.rrulestr(text)
    return found


def parsed(text: str) -> tuple[RRuleRule | None, str]:
    """Return our reading of a rule, or None and why it is refused."""
    try:
        return RRuleRule.parse(text), ""
    except RuleError as error:
        return None, str(error)


class _Bounded:
    """The module `datetime` with an early last year: it is how python-dateutil knows when to stop searching."""

    def __init__(self, last_year: int) -> None:
        self.MAXYEAR = last_year

    def __getattr__(self, name: str) -> Any:
        return getattr(dt, name)


HORIZONS: Final = {
    "YEARLY": timedelta(days=366 * 30),
    "MONTHLY": timedelta(days=366 * 6),
    "WEEKLY": timedelta(days=366 * 3),
    "DAILY": timedelta(days=366 * 2),
    "HOURLY": timedelta(days=30),
    "MINUTELY": timedelta(days=3),
}
"""How far the oracle is asked to look: it goes through every period."""

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@attrs.frozen
class Made:
    """A rule in UTC."""

    start: datetime
    """Naive."""
    parts: dict[str, str]
    count: int | None

    def lines(self, extra: str) -> str:
        """Return the text with an end of one's own."""
        parts = ";".join(f"{name}={value}" for name, value in self.parts.items())
        return f"DTSTART:{self.start:%Y%m%dT%H%M%S}Z\nRRULE:{parts}{extra}"

    @property
    def text(self) -> str:
        """The rule as it is put to us."""
        return self.lines("" if self.count is None else f";COUNT={self.count}")

    @property
    def horizon(self) -> datetime:
        """Up to where the oracle answers."""
        return (self.start + HORIZONS[self.parts["FREQ"]]).replace(tzinfo=UTC)

    def oracle(self) -> list[datetime]:
        """Return python-dateutil's occurrences up to the horizon."""
        with mock.patch.object(dateutil.rrule, "datetime", _Bounded(self.horizon.year)):
            try:
                rule = expand(self.lines(f";UNTIL={self.horizon:%Y%m%dT%H%M%S}Z"))
                return list(itertools.islice(rule, self.count))
            except ValueError as error:
                assert "empty" in str(error)  # noqa: PT017 - how it says "never"
                return []


def _numbers(low: int, high: int, *, signed: bool = False) -> st.SearchStrategy[str]:
    values = st.integers(low, high)
    if signed:
        values = values | values.map(lambda value: -value)
    return st.lists(values, min_size=1, max_size=4, unique=True).map(lambda each: ",".join(map(str, each)))


@st.composite
def _days(draw: st.DrawFn, frequency: str, *, numbered: bool) -> str:
    days = draw(st.lists(st.sampled_from(_WEEKDAYS), min_size=1, max_size=4, unique=True))
    if not numbered:
        return ",".join(days)
    most = 5 if frequency == "MONTHLY" else 53
    numbers = st.integers(1, most) | st.integers(-most, -1)
    return ",".join(f"{draw(numbers)}{day}" for day in days)


def _lists(frequency: str) -> dict[str, st.SearchStrategy[str]]:
    """Return the parts that go with a frequency, apart from BYDAY and BYSETPOS."""
    lists = {
        "BYMONTH": _numbers(1, 12),
        "BYHOUR": _numbers(0, 23),
        "BYMINUTE": _numbers(0, 59),
        "BYSECOND": st.integers(0, 59).map(str),
    }
    if frequency == "YEARLY":
        lists["BYWEEKNO"] = _numbers(1, 51, signed=True)
    if frequency not in {"MONTHLY", "WEEKLY", "DAILY"}:
        lists["BYYEARDAY"] = _numbers(1, 366, signed=True)
    if frequency != "WEEKLY":
        lists["BYMONTHDAY"] = _numbers(1, 31, signed=True)
    return lists


@st.composite
def _starts(draw: st.DrawFn, frequency: str) -> datetime:
    start = draw(st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)))  # noqa: DTZ001 - local time
    start = start.replace(microsecond=0)
    if frequency in {"HOURLY", "MINUTELY"}:  # near the end of a year, where the oracle stops
        start = start.replace(month=12, day=31 - HORIZONS[frequency].days % 31)
    return start


@st.composite
def rules(draw: st.DrawFn) -> Made:
    """Any rule on which python-dateutil and the standard agree.

    Left out are: plain and numbered days in one BYDAY, which it takes to exclude each other; BYWEEKNO
    without days, where it takes all seven and the standard the one of DTSTART; week numbers beyond 51, which
    it gets wrong where the week reaches into another year; BYSETPOS with WEEKLY in a first week that DTSTART
    cuts, where it counts from DTSTART; the twelfth Monday of a month.
    """
    frequency = draw(st.sampled_from(list(HORIZONS)))
    start, lists, parts = draw(_starts(frequency)), _lists(frequency), {"FREQ": frequency}
    if draw(st.booleans()):
        parts["INTERVAL"] = str(draw(st.integers(1, 100) | st.sampled_from([24, 60, 168, 1440, 1441])))
    if draw(st.booleans()):
        parts["WKST"] = draw(st.sampled_from(_WEEKDAYS))
    for name in draw(st.lists(st.sampled_from(sorted(lists)), max_size=3, unique=True)):
        parts[name] = draw(lists[name])
    if draw(st.booleans()) or ("BYWEEKNO" in parts and not {"BYYEARDAY", "BYMONTHDAY"} & parts.keys()):
        numbered = frequency == "MONTHLY" or (frequency == "YEARLY" and "BYWEEKNO" not in parts)
        within = "MONTHLY" if "BYMONTH" in parts else frequency
        parts["BYDAY"] = draw(_days(within, numbered=numbered and draw(st.booleans())))
    if any(name.startswith("BY") for name in parts) and draw(st.booleans()):
        parts["BYSETPOS"] = draw(_numbers(1, 8, signed=True))
        if frequency == "WEEKLY":
            start -= timedelta(days=(start.weekday() - _WEEKDAYS.index(parts.get("WKST", "MO"))) % 7)
    return Made(start, parts, draw(st.none() | st.integers(1, 20)))
