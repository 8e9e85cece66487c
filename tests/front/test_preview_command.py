"""`whenidle preview`: what a person checks before a rule becomes a task."""

from typing import Any

import pytest

from .command_line import Call

NEW_YORK = r"DTSTART;TZID=America/New_York:20260306T023000\nRRULE:FREQ=DAILY"
SPRING = ("--after", "2026-03-07T00:00:00Z", "--count", "3")
AUTUMN = ("--zone", "America/New_York", "--after", "2026-11-01T05:00:00Z", "--count", "3")

SHIFTED = "shifted: clocks go forward over its own time"
FIRST = "first of two: clocks go back"
SECOND = "second of two: clocks have gone back"


def lines(call: Call, *argv: str, stdin: bytes = b"") -> list[str]:
    """Return what is previewed."""
    result = call("preview", *argv, stdin=stdin)
    assert (result.status, result.err) == (0, "")
    return result.out.splitlines()


def occurrences(call: Call, *argv: str) -> list[Any]:
    """Return what is previewed, for programs."""
    return list(call("preview", *argv, "--json").json["occurrences"])


def test_a_skipped_local_time_has_its_own_line(call: Call) -> None:
    """CASE 1, gap=skip: no occurrence that day, and the table says why."""
    assert lines(call, NEW_YORK, *SPRING) == [
        "DTSTART;TZID=America/New_York:20260306T023000  RRULE:FREQ=DAILY (gap skip, overlap first)",
        "   UTC                       local time in America/New_York",
        "1  2026-03-07T07:30:00.000Z  Sat 2026-03-07 02:30:00 -05:00",
        "   -                         Sun 2026-03-08 02:30:00         skipped: clocks go forward over it",
        "2  2026-03-09T06:30:00.000Z  Mon 2026-03-09 02:30:00 -04:00  the offset was -05:00",
        "3  2026-03-10T06:30:00.000Z  Tue 2026-03-10 02:30:00 -04:00",
        "and so on",
    ]
    assert occurrences(call, NEW_YORK, *SPRING)[1] == {
        "number": 2,
        "utc": "2026-03-09T06:30:00.000Z",
        "local": "2026-03-09T02:30:00.000-04:00[America/New_York]",
        "weekday": 1,
        "skipped": ["2026-03-08T02:30:00"],
    }


def test_a_shifted_local_time_says_so(call: Call) -> None:
    """CASE 1, gap=shift: one occurrence that day, at 07:30Z."""
    assert lines(call, NEW_YORK, *SPRING, "--gap", "shift")[3:5] == [
        f"2  2026-03-08T07:30:00.000Z  Sun 2026-03-08 03:30:00 -04:00  {SHIFTED}; the offset was -05:00",
        "3  2026-03-09T06:30:00.000Z  Mon 2026-03-09 02:30:00 -04:00",
    ]
    assert occurrences(call, NEW_YORK, *SPRING, "--gap", "shift")[1]["change"] == "shifted"


def test_equal_local_times_are_told_apart(call: Call) -> None:
    """By the policy both come, or the first alone, and the table says of each which it is."""
    cron = ("30 * * * *", *AUTUMN)
    assert lines(call, *cron)[0] == "cron 30 * * * * America/New_York (gap skip, overlap both)"
    assert lines(call, *cron)[2:5] == [
        f"1  2026-11-01T05:30:00.000Z  Sun 2026-11-01 01:30:00 -04:00  {FIRST}",
        f"2  2026-11-01T06:30:00.000Z  Sun 2026-11-01 01:30:00 -05:00  {SECOND}; the offset was -04:00",
        "3  2026-11-01T07:30:00.000Z  Sun 2026-11-01 02:30:00 -05:00",
    ]
    assert [each.get("change") for each in occurrences(call, *cron)] == ["first of two", "second of two", None]
    assert lines(call, *cron, "--overlap", "first")[2:4] == [
        f"1  2026-11-01T05:30:00.000Z  Sun 2026-11-01 01:30:00 -04:00  {FIRST}, the second is left out",
        "2  2026-11-01T07:30:00.000Z  Sun 2026-11-01 02:30:00 -05:00  the offset was -04:00",
    ]


def test_a_rule_is_given_as_an_argument_an_option_or_standard_input(call: Call) -> None:
    """RRULE text with a written or a real line break, and whatever `task create` takes that recurs."""
    expected = lines(call, NEW_YORK, *SPRING)
    text = NEW_YORK.replace(r"\n", "\n")
    assert lines(call, text, *SPRING) == expected
    assert lines(call, "-", *SPRING, stdin=f"{text}\r\n".encode()) == expected
    assert lines(call, "--rrule", "-", *SPRING, stdin=text.encode()) == expected
    assert lines(call, "--cron", "30 * * * *", *AUTUMN) == lines(call, " 30 * * * * ", *AUTUMN)
    weekly = lines(call, "--weekly", "09:00", "--days", "mon,fri", "--zone", "Europe/Paris", *SPRING)
    assert weekly[0] == "weekly mon,fri 09:00 Europe/Paris (gap skip, overlap first)"
    assert weekly[2:4] == [
        "1  2026-03-09T08:00:00.000Z  Mon 2026-03-09 09:00:00 +01:00",
        "2  2026-03-13T08:00:00.000Z  Fri 2026-03-13 09:00:00 +01:00",
    ]


def test_a_rule_without_local_time_has_no_policies(call: Call) -> None:
    """An interval counts from the instant given, to the millisecond, and nothing is said of clocks."""
    assert lines(call, "--every", "90", "--after", "2026-03-07T00:00:00.250Z", "--count", "2") == [
        "every 90 s",
        "   UTC                       local time in UTC",
        "1  2026-03-07T00:01:30.250Z  Sat 2026-03-07 00:01:30.250 +00:00",
        "2  2026-03-07T00:03:00.250Z  Sat 2026-03-07 00:03:00.250 +00:00",
        "and so on",
    ]
    document = call("preview", "--daily", "09:00", "--zone", "UTC", "--json").json
    assert document.keys() == {"rule", "timeZone", "after", "occurrences", "more"}
    assert (document["rule"], document["timeZone"], document["more"]) == (
        {"kind": "daily", "time": "09:00", "timeZone": "UTC"},
        "UTC",
        True,
    )


def test_where_a_rule_ends_the_table_does_and_says_so(call: Call) -> None:
    """Fewer than asked for, exactly as many, or none."""
    rule = r"DTSTART:20260307T090000Z\nRRULE:FREQ=DAILY;COUNT=2"
    after = ("--after", "2026-03-07T00:00:00Z")
    assert lines(call, rule, *after)[-1] == "the rule ends here"
    assert lines(call, rule, *after, "--count", "2")[-1] == "the rule ends here"
    assert lines(call, rule, *after, "--count", "1")[-1] == "and so on"
    assert call("preview", rule, *after, "--count", "2", "--json").json["more"] is False
    assert lines(call, rule, "--after", "2026-03-09T00:00:00+01:00")[1:] == [
        "no occurrence after 2026-03-08T23:00:00.000Z"
    ]


def test_it_goes_to_the_end_of_time(call: Call) -> None:
    """CASE 4: the year 9999 ends a rule without a fuss, in any zone."""
    rule = r"DTSTART;TZID=Asia/Tokyo:20260307T090000\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU"
    found = lines(call, rule, "--after", "9999-12-24T00:00:00Z")
    assert found[2].endswith("Sat 9999-12-25 09:00:00 +09:00")
    assert found[-1] == "the rule ends here"
    assert lines(call, "--every", "86400", "--after", "9999-12-30T12:00:00Z")[-1] == "the rule ends here"


def test_many_occurrences_take_little_time(call: Call) -> None:
    """The most that can be asked for are numbered in one column."""
    found = lines(call, "* * * * *", "--zone", "Europe/Paris", "--count", "10000")
    assert found[2].startswith("1      ")
    assert found[-2].startswith("10000  ")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["@daily", "--zone", "UTC"], "invalid_rule", 'write "0 0 * * *"'),
        (["0 9 * * 8", "--zone", "UTC"], "invalid_rule", "day of week"),
        (["0 9 * * 1", "--zone", "CEST"], "invalid_time_zone", "abbreviations and offsets are not zones"),
        (["FREQ=DAILY"], "invalid_rule", "write two lines like"),
        ([r"DTSTART:20260307T090000Z\nRRULE:FREQ=DAILY;COUNT=0"], "invalid_rule", "COUNT"),
        ([r"DTSTART;TZID=America/New_York:20260308T023000\nRRULE:FREQ=DAILY"], "invalid_rule", "clocks go forward"),
        ([r"DTSTART:20260307T090000Z\nRRULE:FREQ=DAILY\n\nX"], "invalid_rule", "Line 3 is empty"),
        (["--every", "60", "--after", "tomorrow"], "invalid_rule", "must be a string like"),
        (["--every", "60", "--after", "0001-01-01T00:00:00+01:00"], "time_out_of_range", "0001 to 9999"),
    ],
)
def test_what_is_no_rule_is_told_with_what_to_write_instead(
    call: Call, argv: list[str], code: str, message: str
) -> None:
    """Status 1, one line, and the code of the tools."""
    refused = call("preview", *argv)
    assert refused.status == 1
    assert message in refused.error
    assert call("preview", *argv, "--json").json["code"] == code


def test_a_rule_cannot_command_the_terminal(call: Call) -> None:
    """What is repeated of a text that is no rule is written out."""
    refused = call("preview", "\x1b[2J" + "x" * 10_000)
    assert refused.status == 2
    assert refused.error.startswith(r"'\x1b[2Jxxx")
    assert len(refused.error) < 400
