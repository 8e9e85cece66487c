"""Instants, local times and the names of zones, as texts."""

from __future__ import annotations

import zoneinfo
from datetime import UTC
from typing import Any, Final

from tests.fuzz.choices import Choices, free_text
from tests.fuzz.target import Target, check_message, check_refusal
from whenidle_clock.instants import format_instant, parse_instant
from whenidle_clock.zones import UnknownZone, load_zone
from whenidle_protocol.errors import ToolError
from whenidle_protocol.rules.at import read_instant

_ZONES: Final = zoneinfo.available_timezones()
_DATES: Final = ("2030-01-31", "2030-02-30", "0001-01-01", "9999-12-31", "2030-03-31", "2030-11-03", "0000-01-01")
_TIMES: Final = ("09:00:00", "02:30:00", "01:30:00.5", "23:59:59.999", "24:00:00", "23:59:60", "00:00:00")
_OFFSETS: Final = ("Z", "+00:00", "-00:00", "+23:59", "-23:59", "+24:00", "", "z", "+1:00")
_NAMES: Final = (
    *("UTC", "utc", "Europe/Paris", "europe/PARIS", "America/New_York", "Asia/Calcutta", "EST", "GMT+1", "+01:00"),
    *("../etc/passwd", "/etc/passwd", "Europe/../../etc", "posixrules", "localtime", "Europe/Paris\0", "Europe/"),
)


def _times(data: bytes) -> None:
    choices = Choices(data)
    match choices.below(4):
        case 0:
            _check_at(f"{choices.of(_DATES)}T{choices.of(_TIMES)}{choices.of(_OFFSETS)}{free_text(choices.rest())}")
        case 1:
            _check_at(free_text(choices.rest()))
        case 2:
            parts = {"date": choices.of(_DATES), "time": choices.of(_TIMES), "time_zone": choices.of(_NAMES)}
            if choices.flag():
                parts[choices.of(("date", "time", "time_zone", "x"))] = choices.value()
            _check_at(parts)
        case _:
            _check_zone(choices.of(_NAMES) if choices.flag() else free_text(choices.rest()))


def _check_at(value: Any) -> None:
    try:
        instant = read_instant(value)
    except ToolError as error:
        check_refusal(error, {"invalid_rule", "invalid_time_zone", "time_out_of_range"})
        return
    assert instant.tzinfo is UTC
    assert parse_instant(format_instant(instant)) == instant


def _check_zone(name: str) -> None:
    try:
        zone = load_zone(name)
    except UnknownZone as error:
        check_message(str(error))
        return
    assert zone.key in _ZONES
    assert zone.key.lower() == name.lower()
    assert load_zone(zone.key) is zone


TIMES: Final = Target(
    "times", _times, (b"\0\0\0\0", b"\0\3\3\4", b"\0012030-01-31T09:00:00.5+01:00", b"\2\4\1\2", b"\3\1\3", b"\3\0UTC")
)
