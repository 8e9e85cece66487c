"""Texts of rules: what is taken goes on as it says, and the rest is refused in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tests.fuzz.choices import Choices, free_text
from tests.fuzz.target import Target, check_refusal
from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.preview import preview
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.simple import simplify
from whenidle_protocol.task_rules import decode_rule, encode_rule, read_rrule

if TYPE_CHECKING:
    from whenidle_protocol.rules.kinds import Rule

_CODES: Final = {"invalid_rule", "invalid_time_zone", "time_out_of_range", "frequency_too_high"}
_MOMENTS: Final = (
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2030, 3, 31, 0, 59, 59, 999_000, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
)
_STARTS: Final = (
    "DTSTART:20300101T090000Z",
    "DTSTART;TZID=Europe/Paris:20300331T033000",
    "DTSTART;TZID=America/New_York:20301103T013000",
    "DTSTART;TZID=Australia/Lord_Howe:20300407T013000",
    "DTSTART:00010101T000000Z",
    "DTSTART:99991231T235959Z",
    "DTSTART;TZID=../../etc/localtime:20300101T090000",
    "DTSTART;VALUE=DATE:20300101",
)
_PARTS: Final = (
    *(f"FREQ={each}" for each in ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")),
    *("INTERVAL=", "COUNT=", "UNTIL=20301231T235959Z", "BYMONTH=", "BYWEEKNO=", "BYYEARDAY=", "BYMONTHDAY="),
    *("BYDAY=", "BYHOUR=", "BYMINUTE=", "BYSECOND=", "BYSETPOS=", "WKST=", "X-EVIL="),
)
_ITEMS: Final = (
    *("1", "2", "-1", "0", "5", "12", "23", "29", "30", "31", "-31", "52", "53", "59", "60", "366", "-366"),
    *("MO", "SU", "1MO", "-1FR", "53TU", "+5SA", "999999999", "1000000000", "007", "1e3", " 1", "\u0661"),
)


def _rrule_text(choices: Choices) -> str:
    """Return two lines that are nearly always formed like a rule, or any text."""
    if choices.below(8) == 1:
        return free_text(choices.rest())
    parts = []
    for _ in range(1 + choices.below(6)):
        part = choices.of(_PARTS)
        items = ",".join(choices.of(_ITEMS) for _ in range(1 + choices.below(4))) if part.endswith("=") else ""
        parts.append(part + items)
    lines = [choices.of(_STARTS), f"RRULE:{';'.join(parts)}"]
    return choices.of(("\n", "\n", "\r\n", "\n\n", "\r")).join(lines if choices.below(8) else lines[::-1])


def _rrules(data: bytes) -> None:
    choices = Choices(data)
    after, gap, overlap = choices.of(_MOMENTS), choices.of((None, *Gap)), choices.of((None, *Overlap))
    text = _rrule_text(choices)
    try:
        rule = read_rrule(text)
    except RuleError as error:
        check_refusal(error, _CODES)
        return
    again = read_rrule(rule.rrule)
    assert (again, again.rrule) == (rule, rule.rrule)
    _check_rule(rule, after, gap, overlap)
    plain = simplify(rule, gap=gap, overlap=overlap)
    assert _instants(plain, after, gap, overlap) == _instants(rule, after, gap, overlap)


def _cron(data: bytes) -> None:
    choices = Choices(data)
    after, zone = choices.of(_MOMENTS), choices.of(("UTC", "Europe/Paris", "Pacific/Apia", "Mars/Base", "", "../x"))
    text = free_text(choices.rest()) if choices.flag() else " ".join(_cron_field(choices) for _ in range(5))
    try:
        rule = CronRule(text, zone)
    except RuleError as error:
        check_refusal(error, _CODES)
        return
    assert CronRule(rule.expression, zone) == rule
    _check_rule(rule, after, None, None)


def _cron_field(choices: Choices) -> str:
    return ",".join(choices.of(_CRON_ITEMS) for _ in range(1 + choices.below(3)))


_CRON_ITEMS: Final = (
    *("*", "*/5", "*/7", "0", "1", "7", "8", "12", "23", "29", "30", "31", "59", "60", "1-5", "5-1", "0-59/61", "9/2"),
    *("MON", "fri-SUN", "jan-MAR/2", "@daily", "*/0", "?", "L", "\u0661", "9999", "10000", "-1", ""),
)


def _check_rule(rule: Rule, after: datetime, gap: Gap | None, overlap: Overlap | None) -> None:
    """Check that what a rule answers to one question agrees with what it answers to others."""
    assert decode_rule(encode_rule(rule)) == rule
    found = _instants(rule, after, gap, overlap)
    assert found == sorted(set(found))
    assert rule.next(after, gap=gap, overlap=overlap) == (found[0] if found else None)
    if not found:
        return
    assert found[0] > after
    assert rule.next(found[0], gap=gap, overlap=overlap) == (found[1] if found[1:] else None)
    for now in (found[0], found[-1], found[-1] + timedelta(milliseconds=1)):
        due = rule.latest(found[0], now, gap=gap, overlap=overlap)
        assert due.occurrence_at == max(each for each in found if each <= now)
        assert due.missed == found.index(due.occurrence_at)
        assert due.next_at is None or due.next_at > now
    later = found[-1] + timedelta(days=400) if found[-1].year < 9000 else _MOMENTS[-1]
    far = rule.latest(found[0], later, gap=gap, overlap=overlap)
    assert found[-1] <= far.occurrence_at <= later
    assert far.missed >= len(found) - 1


def _instants(rule: Rule, after: datetime, gap: Gap | None, overlap: Overlap | None) -> list[datetime]:
    return [each.utc for each in preview(rule, after=after, count=4, gap=gap, overlap=overlap)]


RRULES: Final = Target(
    "rrules",
    _rrules,
    (
        b"\0\0\0\0\0\3",
        b"\0\1\2\0\2\1\15\3\22\23\24",
        b"\2\2\2\0\1\5\7\0\4",
        b"\3\0\0\0\3\0\12\1\6\10\0\3\21\0\0",
        b"\0\0\0\1DTSTART;TZID=Europe/Paris:20300131T090000\nRRULE:FREQ=DAILY",
        b"\0\0\0\1DTSTART:20300101T000000Z\r\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        b"\0\0\0\1DTSTART;X=\x1b[2J:20300101T000000Z\nRRULE:FREQ=DAILY",
        b"\0\0\0\1dtstart:20300101T000000Z\nrrule:freq=yearly;byweekno=53;byday=mo;wkst=su",
    ),
)
CRON: Final = Target(
    "cron",
    _cron,
    (
        b"\0\0\0\0\1\0\2\0\0\0\0\0\0",
        b"\0\1\x0130 9 * * 1-5",
        b"\2\2\1*/7 9-17 1,15 JAN-MAR MON",
        b"\0\0\1\x1b[31m * * * *",
        b"\0\0\x010 0 31 2 *",
    ),
)
