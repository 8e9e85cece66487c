from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.preview import preview
from whenidle_protocol.recurrence.failures import RuleError
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.simple import read_rrule

from .oracle import Made, rules

NOW = datetime(2026, 6, 1, tzinfo=UTC)
START = "DTSTART:20260701T090000Z"
BOTH = 'write two lines like "DTSTART;TZID=Europe/Paris:20300131T090000" and "RRULE:FREQ=DAILY"'
DTSTART = 'write "DTSTART:20300131T090000Z" for UTC, or "DTSTART;TZID=Europe/Paris:20300131T090000" for local time'
ZONE = 'write "UTC" or an IANA zone like "Europe/Paris": abbreviations and offsets are not zones'
NAMES = "FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYHOUR, BYMINUTE, BYSECOND, BYSETPOS"
FREQUENCIES = "YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY"

LINES = [
    ("", f"The rule is empty or begins with an empty line: {BOTH}."),
    ("every day at nine", f"Line 1, 'every day at nine', is neither DTSTART nor RRULE: {BOTH}, and nothing else."),
    ("RRULE:FREQ=DAILY", f"The DTSTART line is missing, which says when the rule begins: {BOTH}."),
    (START, f"The RRULE line is missing, which says how the rule goes on: {BOTH}."),
    (
        f"{START}\nRRULE:FREQ=DAILY\nRRULE:FREQ=DAILY",
        "There is more than one RRULE line; a rule has one DTSTART line and one RRULE line.",
    ),
    (
        f"{START}\n{START}\nRRULE:FREQ=DAILY",
        "There is more than one DTSTART line; a rule has one DTSTART line and one RRULE line.",
    ),
    (
        f"{START}\nRRULE:FREQ=DAILY\n",
        "Line 3 is empty; leave out line breaks after the second line and between the two.",
    ),
    (
        f"{START}\nRRULE:FREQ=DAILY\nEXDATE:20260702T090000Z",
        f"Line 3, 'EXDATE:20260702T090000Z', is neither DTSTART nor RRULE: {BOTH}, and nothing else.",
    ),
    (f"{START}\nRRULE;X=1:FREQ=DAILY", "RRULE takes no parameters; write a colon, like RRULE:FREQ=DAILY."),
    ("DTSTART;TZID=UTC\nRRULE:FREQ=DAILY", f"The DTSTART line has no value: {DTSTART}."),
    ("DTSTART:20260701\nRRULE:FREQ=DAILY", f"DTSTART 20260701 is a date without a time: {DTSTART}."),
    ("DTSTART;VALUE=DATE:20260701\nRRULE:FREQ=DAILY", f"DTSTART 20260701 is a date without a time: {DTSTART}."),
    ("DTSTART:20260701T090000\nRRULE:FREQ=DAILY", f"DTSTART 20260701T090000 is in no time zone: {DTSTART}."),
    ("DTSTART:2026-07-01\nRRULE:FREQ=DAILY", f"DTSTART '2026-07-01' is not a date and time: {DTSTART}."),
    ("DTSTART:20260701t090000z\nRRULE:FREQ=DAILY", f"DTSTART '20260701t090000z' is not a date and time: {DTSTART}."),
    ("DTSTART:20260701T090000+\nRRULE:FREQ=DAILY", f"DTSTART '20260701T090000+' is not a date and time: {DTSTART}."),
    (
        "DTSTART;TZID=Europe/Paris:20260701T090000Z\nRRULE:FREQ=DAILY",
        f"DTSTART has both a TZID and a Z, which says UTC: {DTSTART}.",
    ),
    (
        "DTSTART;VALUE=DATE-TIME:20260701T090000Z\nRRULE:FREQ=DAILY",
        f"DTSTART;VALUE=DATE-TIME has a parameter that is not TZID alone: {DTSTART}.",
    ),
    (
        "DTSTART;TZID=UTC;X=1:20260701T090000\nRRULE:FREQ=DAILY",
        f"DTSTART;TZID=UTC;X=1 has a parameter that is not TZID alone: {DTSTART}.",
    ),
    (
        "DTSTART:20260230T090000Z\nRRULE:FREQ=DAILY",
        "DTSTART 20260230T090000 names a date or time that does not exist; hours go to 23, minutes and seconds to 59.",
    ),
    (
        "DTSTART;TZID=America/New_York:20260308T023000\nRRULE:FREQ=DAILY",
        "DTSTART 20260308T023000 does not exist in America/New_York: clocks go forward over it; choose another time.",
    ),
    ("X" * 10_001, "The rule has more than 10000 characters; shorten its lists."),
]

PARTS = [
    ("INTERVAL=2", f"RRULE has no FREQ; write for example FREQ=DAILY, or one of {FREQUENCIES}."),
    ("FREQ=FORTNIGHTLY", f"FREQ='FORTNIGHTLY' is not a frequency; write one of {FREQUENCIES}."),
    (
        "FREQ=DAILY;",
        "RRULE has the part ''; parts look like INTERVAL=2 and are separated by one semicolon.",
    ),
    ("FREQ=DAILY;EXDATE=1", f"RRULE has the part 'EXDATE', which is not one of {NAMES}, BYDAY, WKST; leave it out."),
    ("FREQ=DAILY;FREQ=DAILY", "RRULE has FREQ twice; give each part once, with a list like BYHOUR=9,17."),
    (
        "FREQ=DAILY;INTERVAL=0",
        "INTERVAL='0' is not a whole number from 1 to 999999999; write for example INTERVAL=2.",
    ),
    (
        "FREQ=DAILY;INTERVAL=\u0661",
        "INTERVAL='\\u0661' is not a whole number from 1 to 999999999; write for example INTERVAL=2.",
    ),
    ("FREQ=DAILY;COUNT=-1", "COUNT='-1' is not a whole number from 1 to 999999999; write for example COUNT=2."),
    (
        "FREQ=DAILY;COUNT=" + "9" * 5000,
        f"COUNT='{'9' * 37}...' is not a whole number from 1 to 999999999; write for example COUNT=2.",
    ),
    (
        "FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z",
        "RRULE has both COUNT and UNTIL; give the number of occurrences or the last instant, not both.",
    ),
    (
        "FREQ=DAILY;UNTIL=20270101",
        "UNTIL=20270101 is a date without a time; write the last instant in UTC, like UNTIL=20301231T235959Z.",
    ),
    (
        "FREQ=DAILY;UNTIL=20270101T000000",
        "UNTIL=20270101T000000 is in no time zone; write the last instant in UTC, like UNTIL=20301231T235959Z.",
    ),
    (
        "FREQ=DAILY;UNTIL=tomorrow",
        "UNTIL='TOMORROW' is not a date and time; write the last instant in UTC, like UNTIL=20301231T235959Z.",
    ),
    (
        "FREQ=DAILY;UNTIL=20270101T240000Z",
        "UNTIL 20270101T240000 names a date or time that does not exist; hours go to 23, minutes and seconds to 59.",
    ),
    ("FREQ=DAILY;BYMONTH=13", "BYMONTH has the value '13'; its values are whole numbers from 1 to 12."),
    ("FREQ=DAILY;BYHOUR=24", "BYHOUR has the value '24'; its values are whole numbers from 0 to 23."),
    ("FREQ=DAILY;BYHOUR=-1", "BYHOUR has the value '-1'; its values are whole numbers from 0 to 23."),
    ("FREQ=DAILY;BYSECOND=60", "BYSECOND has the value '60'; its values are whole numbers from 0 to 59."),
    (
        "FREQ=MONTHLY;BYMONTHDAY=0",
        (
            "BYMONTHDAY has the value '0'; its values are whole numbers from 1 to 31, "
            "or from -1 to -31 counted from the end."
        ),
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=1,,2",
        (
            "BYMONTHDAY has the value ''; its values are whole numbers from 1 to 31, "
            "or from -1 to -31 counted from the end."
        ),
    ),
    (
        "FREQ=WEEKLY;BYDAY=MONDAY",
        (
            "BYDAY has the value 'MONDAY'; its values are MO, TU, WE, TH, FR, SA, SU, "
            "or with a number from 1 to 53 or from -53 to -1 in front, like -1FR for the last Friday."
        ),
    ),
    (
        "FREQ=YEARLY;BYDAY=54MO",
        (
            "BYDAY has the value '54MO'; its values are MO, TU, WE, TH, FR, SA, SU, "
            "or with a number from 1 to 53 or from -53 to -1 in front, like -1FR for the last Friday."
        ),
    ),
    (
        "FREQ=WEEKLY;BYDAY=1MO",
        "BYDAY has the value 1MO, and FREQ=WEEKLY takes no numbers; write MO, or FREQ=MONTHLY.",
    ),
    (
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=-1MO",
        "BYDAY has the value -1MO, which does not go with BYWEEKNO; leave out the number.",
    ),
    ("FREQ=DAILY;WKST=1", "WKST='1' is not a weekday; write one of MO, TU, WE, TH, FR, SA, SU."),
    ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO does not go with FREQ=MONTHLY; write FREQ=YEARLY or leave it out."),
    ("FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY does not go with FREQ=DAILY; write FREQ=YEARLY or leave it out."),
    ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY does not go with FREQ=WEEKLY; write FREQ=MONTHLY or leave it out."),
    (
        "FREQ=DAILY;BYSETPOS=1",
        (
            "BYSETPOS chooses among what another part gives and stands alone here; add one, "
            "as in BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1 for the last weekday."
        ),
    ),
    (
        "FREQ=DAILY;UNTIL=20260701T085959Z",
        "The rule never comes due: UNTIL lies before its first occurrence; choose a later one.",
    ),
]

WORDS = [
    *("DTSTART", "RRULE", ":", ";", "=", ",", "\n", "\r\n", "TZID", "UTC", "20260701T090000Z"),
    *("FREQ", "DAILY", "YEARLY", "MINUTELY", "INTERVAL", "COUNT", "BYDAY", "BYMONTHDAY", "BYHOUR", "BYSETPOS"),
    *("MO", "-1", "0", "1", "53", "366", "999999999"),
]

NEVER = [
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MONTHLY;BYDAY=6MO",
    "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3",
    "FREQ=DAILY;BYHOUR=9,17;BYSETPOS=3",
    "FREQ=HOURLY;BYMINUTE=9,17;BYSETPOS=-3",
    "FREQ=MINUTELY;BYHOUR=9;BYSETPOS=2",
    "FREQ=WEEKLY;INTERVAL=999999999;BYDAY=MO;BYMONTH=1;BYSETPOS=2",
    "FREQ=DAILY;INTERVAL=7;BYDAY=TU",
    "FREQ=HOURLY;INTERVAL=24;BYHOUR=3",
    "FREQ=MINUTELY;INTERVAL=1440;BYHOUR=3",
    "FREQ=MINUTELY;INTERVAL=10080;BYDAY=MO",
    "FREQ=MINUTELY;INTERVAL=999999;BYMONTH=2;BYMONTHDAY=29;BYHOUR=4;BYMINUTE=0",
    "FREQ=YEARLY;BYWEEKNO=53;BYYEARDAY=100",
    "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",
]


def refusal(text: str) -> RuleError:
    """Return why a rule is refused."""
    with pytest.raises(RuleError) as error:
        read_rrule(text, now=NOW)
    return error.value


@pytest.mark.parametrize(("text", "message"), LINES)
def test_lines_that_are_no_rule(text: str, message: str) -> None:
    """CASES 27: the message says what is wrong and what to write instead."""
    error = refusal(text)
    assert (error.code, error.message) == (ReminderCode.INVALID_RULE, message)


@pytest.mark.parametrize(("parts", "message"), PARTS)
def test_parts_that_are_no_rule(parts: str, message: str) -> None:
    """CASES 3, 5: the message names the bad part and says what to write instead."""
    error = refusal(f"{START}\nRRULE:{parts}")
    assert (error.code, error.message) == (ReminderCode.INVALID_RULE, message)


@pytest.mark.parametrize("parts", NEVER)
def test_rules_that_never_come_due_are_refused_at_once(parts: str) -> None:
    """CASES 3: whatever makes them impossible, within a few milliseconds."""
    began = time.process_time()
    error = refusal(f"DTSTART;TZID=Africa/Casablanca:20260701T090000\nRRULE:{parts}")
    taken = time.process_time() - began
    assert (error.code, error.message) == (
        ReminderCode.INVALID_RULE,
        (
            "The rule never comes due: no date has all that its BY parts ask for, at its INTERVAL from DTSTART; "
            "leave out one of them."
        ),
    )
    assert taken < 0.05


def test_a_rule_all_of_whose_times_are_skipped_is_refused() -> None:
    """In New York the second Sunday of March never has a 02:30."""
    text = "DTSTART;TZID=America/New_York:20260701T090000\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU;BYHOUR=2;BYMINUTE=30"
    assert refusal(text).message == (
        "The rule never comes due: clocks in America/New_York skip each of its local times; choose another time."
    )


@pytest.mark.parametrize("name", ["Mars/Olympus", "EST", "+01:00", "", "../etc/passwd", "UTC+1", '"Europe/Paris"'])
def test_what_is_not_a_zone(name: str) -> None:
    """Abbreviations, offsets and paths are refused by name."""
    error = refusal(f"DTSTART;TZID={name}:20260701T090000\nRRULE:FREQ=DAILY")
    if ":" in name:
        assert error.code is ReminderCode.INVALID_RULE
        return
    assert (error.code, error.message) == (ReminderCode.INVALID_TIME_ZONE, f"TZID {name!r} is not a time zone; {ZONE}.")


def test_more_often_than_once_a_minute() -> None:
    """Seconds are too frequent, as a frequency and as a list."""
    error = refusal(f"{START}\nRRULE:FREQ=SECONDLY")
    assert (error.code, error.message) == (
        ReminderCode.FREQUENCY_TOO_HIGH,
        "FREQ=SECONDLY is more often than once a minute; write FREQ=MINUTELY with an INTERVAL.",
    )
    error = refusal(f"{START}\nRRULE:FREQ=DAILY;BYSECOND=0,30")
    assert (error.code, error.message) == (
        ReminderCode.FREQUENCY_TOO_HIGH,
        "BYSECOND has several seconds of one minute, which is more often than once a minute; give one.",
    )


@pytest.mark.parametrize("end", ["COUNT=1", "COUNT=5", "UNTIL=20260520T000000Z"])
def test_a_rule_that_has_ended_is_not_future(end: str) -> None:
    """It was a rule, and nothing comes due later than now."""
    error = refusal(f"DTSTART:20260501T090000Z\nRRULE:FREQ=DAILY;{end}")
    assert (error.code, error.message) == (
        ReminderCode.NOT_FUTURE,
        "The rule has no occurrence later than now; choose a later DTSTART, UNTIL or COUNT.",
    )


def test_a_dtstart_outside_the_years_that_can_be_written() -> None:
    """The first of January of year 1 in Tokyo is in no year of UTC."""
    error = refusal("DTSTART;TZID=Asia/Tokyo:00010101T000000\nRRULE:FREQ=DAILY")
    assert (error.code, error.message) == (
        ReminderCode.TIME_OUT_OF_RANGE,
        "DTSTART lies outside the years 0001 to 9999 in UTC; choose an instant within them.",
    )


def test_the_very_last_second_can_be_an_occurrence() -> None:
    """Of a rule that begins with it, and of one that reaches it (CASES 4)."""
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    for text in (
        "DTSTART:99991231T235959Z\nRRULE:FREQ=DAILY",
        "DTSTART:99991225T235959Z\nRRULE:FREQ=WEEKLY;BYDAY=FR",
        "DTSTART:99700101T235959Z\nRRULE:FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31",
        "DTSTART:99991231T235959Z\nRRULE:FREQ=MINUTELY;COUNT=9",
    ):
        rule = RRuleRule.parse(text)
        assert [each.utc for each in rule.preview(last - timedelta(seconds=1), 9)] == [last]


@pytest.mark.parametrize("text", ["{}\r\nRRULE:FREQ=HOURLY", "{}\nRRULE:FREQ=HOURLY", "{}\nrrule:freq=hourly"])
def test_line_ends_and_letter_case_of_names_do_not_matter(text: str) -> None:
    """LF and CRLF, either order, names in any case (RFC 5545 2)."""
    expected = RRuleRule.parse(f"{START}\nRRULE:FREQ=HOURLY")
    assert RRuleRule.parse(text.format(START)) == expected
    assert RRuleRule.parse(f"RRULE:FREQ=HOURLY\n{START}") == expected


def test_an_alias_of_a_zone_is_the_zone() -> None:
    """CASES 28: same instants, and the name stays as IANA writes it."""
    alias = RRuleRule.parse("DTSTART;TZID=us/eastern:20260301T093000\nRRULE:FREQ=DAILY;BYHOUR=2,9")
    canonical = RRuleRule.parse("DTSTART;TZID=America/New_York:20260301T093000\nRRULE:FREQ=DAILY;BYHOUR=2,9")
    assert alias.time_zone == "US/Eastern"
    found = [[each.utc for each in rule.preview(NOW.replace(month=3), 40)] for rule in (alias, canonical)]
    assert found[0] == found[1]


def test_several_hours_are_all_used() -> None:
    """CASES 26."""
    found = preview(f"{START}\nRRULE:FREQ=DAILY;BYHOUR=17,9,13", after=NOW, count=4)
    assert [each.utc.hour for each in found] == [9, 13, 17, 9]


def test_the_canonical_text_sorts_and_leaves_out_defaults() -> None:
    """Parts in one order, lists sorted and without doubles, defaults gone."""
    text = (
        "RRULE:WKST=SU;BYSETPOS=-1,+1;BYSECOND=07;BYMINUTE=30,0;BYHOUR=17,9,9;BYDAY=FR,-1su,+2MO;BYMONTHDAY=-1,+1,1;"
        "BYYEARDAY=200;BYMONTH=07;UNTIL=20300101T000000Z;INTERVAL=002;FREQ=yearly\nDTSTART;TZID=europe/paris:20260701T090000"
    )
    with pytest.raises(RuleError):
        RRuleRule.parse(text)  # the 200th day is no first or last of July
    assert RRuleRule.parse(text.replace("BYYEARDAY=200;", "BYYEARDAY=182,-154;")).rrule == (
        "DTSTART;TZID=Europe/Paris:20260701T090000\n"
        "RRULE:FREQ=YEARLY;INTERVAL=2;UNTIL=20300101T000000Z;BYMONTH=7;BYYEARDAY=-154,182;BYMONTHDAY=-1,1;"
        "BYDAY=2MO,FR,-1SU;BYHOUR=9,17;BYMINUTE=0,30;BYSECOND=7;BYSETPOS=-1,1;WKST=SU"
    )
    assert RRuleRule.parse(f"{START}\nRRULE:FREQ=DAILY;INTERVAL=1;WKST=MO").rrule == f"{START}\nRRULE:FREQ=DAILY"
    assert RRuleRule.parse("DTSTART;TZID=UTC:09990701T090000\nRRULE:FREQ=DAILY").rrule.startswith(
        "DTSTART:09990701T090000Z"
    )


@settings(max_examples=150, deadline=None)
@given(made=rules())
def test_canonical_text_reads_back_as_the_same_rule(made: Made) -> None:
    """Writing and reading changes nothing."""
    try:
        rule = RRuleRule.parse(made.text)
    except RuleError:
        return
    assert RRuleRule.parse(rule.rrule) == rule


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(max_size=200)
    | st.lists(
        st.sampled_from(WORDS),
        max_size=40,
    ).map("".join)
)
def test_any_text_is_taken_or_refused(text: str) -> None:
    """Nothing but a ToolError, with a message that is one printable line."""
    message = "taken."
    try:
        read_rrule(text, now=NOW)
    except ToolError as error:
        message = error.message
    assert message.isascii()
    assert message.isprintable()
    assert message.endswith(".")


@pytest.mark.parametrize(
    "parts",
    [
        "FREQ=DAILY;BYDAY=" + "MO," * 3000 + "XX",
        "FREQ=YEARLY;BYYEARDAY="
        + ",".join(map(str, [*range(-366, 0), *range(1, 367)]))
        + ";BYSETPOS="
        + ",".join(map(str, [*range(-366, 0), *range(1, 367)])),
        "FREQ=MINUTELY;BYSETPOS=-1;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=" + "59," * 2500 + "0",
        ";" * 9000,
        "FREQ=DAILY;COUNT=999999999",
        "FREQ=MINUTELY;INTERVAL=999999999",
        "FREQ=YEARLY;COUNT=9999;BYMONTH=1",
    ],
)
@pytest.mark.parametrize("start", ["DTSTART;TZID=Africa/Casablanca:00020101T090000", START])
def test_long_and_large_input_is_answered_quickly(start: str, parts: str) -> None:
    """No input of 10 kB takes more than 50 ms to accept or refuse, the first time too."""
    times: list[float] = []
    for _ in range(2):
        began = time.process_time()
        with contextlib.suppress(RuleError):
            read_rrule(f"{start}\nRRULE:{parts}", now=NOW)
        times.append(time.process_time() - began)
    assert min(times) < 0.05
