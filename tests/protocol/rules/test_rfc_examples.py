from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from whenidle_protocol.preview import preview

LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)
EVERY_DAY = "SU,MO,TU,WE,TH,FR,SA"

# DTSTART (in New York) and the rule; below, its first dates as the standard lists them: a day inherits year and month.
DATES = """
19970902 FREQ=DAILY;COUNT=10
    1997: Sep 2 3 4 5 6 7 8 9 10 11
19970902 FREQ=DAILY;INTERVAL=2
    1997: Sep 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 Oct 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 Nov 1 3 5 7 9 11
    13 15 17 19 21 23 25 27 29 Dec 1 3
19970902 FREQ=DAILY;INTERVAL=10;COUNT=5
    1997: Sep 2 12 22 Oct 2 12
19970902 FREQ=WEEKLY;COUNT=10
    1997: Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4
19970902 FREQ=WEEKLY;UNTIL=19971224T000000Z
    1997: Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4 11 18 25 Dec 2 9 16 23
19970902 FREQ=WEEKLY;INTERVAL=2;WKST=SU
    1997: Sep 2 16 30 Oct 14 28 Nov 11 25 Dec 9 23 1998: Jan 6 20 Feb 3 17
19970902 FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH
    1997: Sep 2 4 9 11 16 18 23 25 30 Oct 2
19970902 FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH
    1997: Sep 2 4 9 11 16 18 23 25 30 Oct 2
19970901 FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR
    1997: Sep 1 3 5 15 17 19 29 Oct 1 3 13 15 17 27 29 31 Nov 10 12 14 24 26 28 Dec 8 10 12 22
19970902 FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH
    1997: Sep 2 4 16 18 30 Oct 2 14 16
19970905 FREQ=MONTHLY;COUNT=10;BYDAY=1FR
    1997: Sep 5 Oct 3 Nov 7 Dec 5 1998: Jan 2 Feb 6 Mar 6 Apr 3 May 1 Jun 5
19970905 FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR
    1997: Sep 5 Oct 3 Nov 7 Dec 5
19970907 FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU
    1997: Sep 7 28 Nov 2 30 1998: Jan 4 25 Mar 1 29 May 3 31
19970922 FREQ=MONTHLY;COUNT=6;BYDAY=-2MO
    1997: Sep 22 Oct 20 Nov 17 Dec 22 1998: Jan 19 Feb 16
19970928 FREQ=MONTHLY;BYMONTHDAY=-3
    1997: Sep 28 Oct 29 Nov 28 Dec 29 1998: Jan 29 Feb 26
19970902 FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15
    1997: Sep 2 15 Oct 2 15 Nov 2 15 Dec 2 15 1998: Jan 2 15
19970930 FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1
    1997: Sep 30 Oct 1 31 Nov 1 30 Dec 1 31 1998: Jan 1 31 Feb 1
19970910 FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15
    1997: Sep 10 11 12 13 14 15 1999: Mar 10 11 12 13
19970902 FREQ=MONTHLY;INTERVAL=2;BYDAY=TU
    1997: Sep 2 9 16 23 30 Nov 4 11 18 25 1998: Jan 6 13 20 27 Mar 3 10 17 24 31
19970610 FREQ=YEARLY;COUNT=10;BYMONTH=6,7
    1997: Jun 10 Jul 10 1998: Jun 10 Jul 10 1999: Jun 10 Jul 10 2000: Jun 10 Jul 10 2001: Jun 10 Jul 10
19970310 FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3
    1997: Mar 10 1999: Jan 10 Feb 10 Mar 10 2001: Jan 10 Feb 10 Mar 10 2003: Jan 10 Feb 10 Mar 10
19970101 FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200
    1997: Jan 1 Apr 10 Jul 19 2000: Jan 1 Apr 9 Jul 18 2003: Jan 1 Apr 10 Jul 19 2006: Jan 1
19970519 FREQ=YEARLY;BYDAY=20MO
    1997: May 19 1998: May 18 1999: May 17
19970512 FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO
    1997: May 12 1998: May 11 1999: May 17
19970313 FREQ=YEARLY;BYMONTH=3;BYDAY=TH
    1997: Mar 13 20 27 1998: Mar 5 12 19 26 1999: Mar 4 11 18 25
19970605 FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8
    1997: Jun 5 12 19 26 Jul 3 10 17 24 31 Aug 7 14 21 28 1998: Jun 4 11 18 25 Jul 2 9 16 23 30 Aug 6 13 20 27 1999:
    Jun 3 10 17 24 Jul 1 8 15 22 29 Aug 5 12 19 26
# The standard excludes its DTSTART by an EXDATE; here DTSTART is no occurrence unless it matches.
19970902 FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13
    1998: Feb 13 Mar 13 Nov 13 1999: Aug 13 2000: Oct 13
19970913 FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13
    1997: Sep 13 Oct 11 Nov 8 Dec 13 1998: Jan 10 Feb 7 Mar 7 Apr 11 May 9 Jun 13
19961105 FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8
    1996: Nov 5 2000: Nov 7 2004: Nov 2
19970904 FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3
    1997: Sep 4 Oct 7 Nov 6
19970929 FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2
    1997: Sep 29 Oct 30 Nov 27 Dec 30 1998: Jan 29 Feb 26 Mar 30
19970805 FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO
    1997: Aug 5 10 19 24
19970805 FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU
    1997: Aug 5 17 19 31
20070115 FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5
    2007: Jan 15 30 Feb 15 Mar 15 30
"""

# The same for times of the day: DTSTART is 1997-09-02 at 09:00.
TIMES = [
    # As printed, UNTIL is 17:00 UTC, 13:00 in New York, before the listed 15:00; the standard's errata put it right.
    ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z", "09:00 12:00 15:00"),
    ("FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", "09:00 12:00"),
    ("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "09:00 09:15 09:30 09:45 10:00 10:15"),
    ("FREQ=MINUTELY;INTERVAL=90;COUNT=4", "09:00 10:30 12:00 13:30"),
]

# Examples that never end are listed as far as the standard goes.
ENDS = ("COUNT=", "UNTIL=")


def _examples(table: str) -> list[tuple[str, str, str]]:
    examples: list[tuple[str, str, str]] = []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            start, rule, listed = examples.pop()
            examples.append((start, rule, f"{listed}{line} "))
        elif not line.startswith("#"):
            start, rule = line.split()
            examples.append((start, rule, ""))
    return examples


def _listed(text: str) -> list[str]:
    year, month, found = "", "", []
    for word in text.split():
        if word.endswith(":"):
            year = word[:-1]
        elif word.isalpha():
            month = word
        else:
            found.append(f"{year} {month} {word}")
    return found


def _previewed(start: str, rule: str, count: int) -> list[datetime]:
    """Return the first occurrences, in local time, of a rule that begins on a day at nine in New York."""
    text = f"DTSTART;TZID=America/New_York:{start}T090000\nRRULE:{rule}"
    return [each.local for each in preview(text, after=LONG_AGO, count=count)]


def test_the_table_has_every_example() -> None:
    """None is lost in reading it, and each has dates."""
    examples = _examples(DATES)
    assert len(examples) == 34
    assert all(listed for _, _, listed in examples)


@pytest.mark.parametrize(("start", "rule", "listed"), _examples(DATES))
def test_dates_of_the_standard(start: str, rule: str, listed: str) -> None:
    """RFC 5545 3.8.5.3: each example has the dates that the standard lists, at nine in New York."""
    expected = _listed(listed)
    found = _previewed(start, rule, len(expected) + any(end in rule for end in ENDS))
    assert [f"{each:%Y %b} {each.day}" for each in found] == expected
    assert {each.hour for each in found} == {9}


@pytest.mark.parametrize(("rule", "listed"), TIMES)
def test_times_of_the_standard(rule: str, listed: str) -> None:
    """RFC 5545 3.8.5.3: the examples within a day."""
    assert [f"{each:%H:%M}" for each in _previewed("19970902", rule, 9)] == listed.split()


def test_every_day_until_christmas_eve() -> None:
    """113 days from 2 September to 23 December, at nine before and after the end of saving time."""
    found = _previewed("19970902", "FREQ=DAILY;UNTIL=19971224T000000Z", 200)
    first = datetime(1997, 9, 2, 9)  # noqa: DTZ001 - local time
    assert [each.replace(tzinfo=None) for each in found] == [first + timedelta(days=day) for day in range(113)]
    assert [f"{found[each]:%z}" for each in (53, 54)] == ["-0400", "-0500"]


@pytest.mark.parametrize("rule", [f"FREQ=YEARLY;BYMONTH=1;BYDAY={EVERY_DAY}", "FREQ=DAILY;BYMONTH=1"])
def test_every_day_in_january_for_three_years(rule: str) -> None:
    """Written by the year or by the day."""
    found = _previewed("19980101", f"{rule};UNTIL=20000131T140000Z", 200)
    expected = [f"{year}-01-{day:02}T09" for year in (1998, 1999, 2000) for day in range(1, 32)]
    assert [f"{each:%Y-%m-%dT%H}" for each in found] == expected


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
    ],
)
def test_every_twenty_minutes_of_the_working_day(rule: str) -> None:
    """From 09:00 to 16:40, on each day, written by the day or by the minute."""
    expected = [
        f"{day:02} {hour:02}:{minute:02}" for day in (2, 3, 4) for hour in range(9, 17) for minute in (0, 20, 40)
    ]
    assert [f"{each:%d %H:%M}" for each in _previewed("19970902", rule, 72)] == expected
