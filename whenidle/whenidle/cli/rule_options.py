"""The options that say when a task comes due: one of the seven kinds of rules (SPEC 6.3)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

import attrs
import trio
from cyclopts import Group, Parameter

from whenidle.cli.arguments import text_argument
from whenidle.cli.exits import UsageError
from whenidle.cli.refusals import refusals
from whenidle.cli.text import shortened
from whenidle.cli.values import local_time, number, one_of
from whenidle_clock import Gap, Overlap
from whenidle_protocol.rules.at import read_instant
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.kinds import Rule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_rules import read_rrule

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

FILE_LIMIT = 1024 * 1024
"""Bytes read from a file that holds a rule; the longest rule that is taken is far shorter."""

_NEEDS_ZONE = ("--daily", "--weekly", "--cron")
_GROUP = Group("When (give one)", sort_key=1)


GapOption = Annotated[
    Gap | None, Parameter(converter=one_of(Gap), help="What becomes of local times that clocks skip.")
]
OverlapOption = Annotated[
    Overlap | None, Parameter(converter=one_of(Overlap), help="What becomes of local times that clocks show twice.")
]


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class RecurringOptions:
    """Rules that come due again and again."""

    rrule: Annotated[
        str | None,
        Parameter(
            group=_GROUP,
            metavar="TEXT",
            help="A DTSTART and an RRULE line of RFC 5545; \\n may stand for the line break, - reads standard input,"
            " @FILE a file.",
        ),
    ] = None
    every: Annotated[
        str | None, Parameter(group=_GROUP, metavar="SECONDS", help="At this interval of seconds (at least 60).")
    ] = None
    daily: Annotated[str | None, Parameter(group=_GROUP, metavar="HH:MM", help="Each day, with --zone.")] = None
    weekly: Annotated[
        str | None, Parameter(group=_GROUP, metavar="HH:MM", help="Each week, with --days and --zone.")
    ] = None
    days: Annotated[str | None, Parameter(group=_GROUP, metavar="DAYS", help="The days of --weekly, like mon,fri.")] = (
        None
    )
    cron: Annotated[
        str | None,
        Parameter(group=_GROUP, metavar="EXPR", help="Five fields as in a crontab, like '30 9 * * 1-5', with --zone."),
    ] = None
    zone: Annotated[
        str | None,
        Parameter(group=_GROUP, metavar="ZONE", help="The zone of local times: UTC or a name such as Europe/Paris."),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that were given and say a rule, each with its dashes."""
        kinds = (field.name for field in attrs.fields(type(self)) if field.name not in {"zone", "days"})
        return [f"--{kind}" for kind in kinds if getattr(self, kind) is not None]


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class RuleOptions(RecurringOptions):
    """All seven kinds."""

    at: Annotated[
        str | None,
        Parameter(
            group=_GROUP,
            metavar="TIME",
            help="Once, at an instant (2030-01-31T09:00:00Z) or, with --zone, at a local time (2030-01-31T09:00:00).",
        ),
    ] = None
    after: Annotated[
        str | None, Parameter(group=_GROUP, metavar="SECONDS", help="Once, this many seconds from now.")
    ] = None


async def read_rule(options: RecurringOptions) -> Rule | None:
    """Return the rule that the options say; None if they say none.

    Raises:
        UsageError: they say several, or what does not go together.
        CommandRefused: there can be no such rule.
    """
    given = options.given
    if len(given) > 1:
        raise UsageError(f"give one rule, not {' and '.join(given)}")
    _check_companions(options, given[0] if given else "")
    if options.rrule is not None:
        text = await _rrule(options.rrule)
        with refusals():
            return read_rrule(text)
    with refusals():
        return _rule(options)


def unfolded(text: str) -> str:
    r"""Return the text of a rule without line breaks at its end, and with one for each `\n` of two characters.

    In many shells that is easier to write than a real line break.
    """
    return text.rstrip("\r\n").replace("\\r\\n", "\n").replace("\\n", "\n")


async def _rrule(value: str) -> str:
    """Return the text of an RRULE: as given, of a file after `@`, or of standard input for `-`.

    Raises:
        UsageError: there is no such file, or it is not UTF-8, or too long.
    """
    if value.startswith("@"):
        return unfolded(await trio.to_thread.run_sync(_read_file, value[1:]))
    return unfolded(await text_argument(value, "--rrule"))


def _read_file(path: str) -> str:
    named = f"--rrule names the file '{shortened(path, 200)}', which"
    try:
        with Path(path).open("rb") as file:
            raw = file.read(FILE_LIMIT + 1)
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{named} cannot be read: {reason}") from error
    if len(raw) > FILE_LIMIT:
        raise UsageError(f"{named} is longer than {FILE_LIMIT} bytes", "too_long")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{named} is not UTF-8 text", "not_utf8") from error


def _check_companions(options: RecurringOptions, given: str) -> None:
    """Check that --zone and --days are there where they are needed, and only there."""
    if options.days is not None and given != "--weekly":
        raise UsageError("--days belongs to --weekly")
    if given in _NEEDS_ZONE and options.zone is None:
        raise UsageError(f"{given} is local time; say where with --zone, for example --zone Europe/Paris or --zone UTC")
    if given == "--weekly" and options.days is None:
        raise UsageError("--weekly needs --days, for example --days mon,fri")
    if options.zone is not None and given not in {*_NEEDS_ZONE, "--at"}:
        why = {
            "--rrule": "the zone of an RRULE is that of its DTSTART, like DTSTART;TZID=Europe/Paris:20300131T090000",
            "": "it says no rule by itself",
        }.get(given, f"{given} counts seconds")
        raise UsageError(f"--zone belongs to a local --at, --daily, --weekly or --cron; {why}")


def _rule(
    options: RecurringOptions,
) -> AfterRule | AtRule | EveryRule | DailyRule | WeeklyRule | CronRule | None:
    zone = options.zone or ""
    if options.every is not None:
        return EveryRule(_seconds("--every", options.every))
    if options.daily is not None:
        return DailyRule(options.daily, zone)
    if options.weekly is not None:
        return WeeklyRule(options.weekly, zone, _weekdays(options.days or ""))
    if options.cron is not None:
        return CronRule(options.cron, zone)
    return _one_shot(options) if isinstance(options, RuleOptions) else None


def _one_shot(options: RuleOptions) -> AfterRule | AtRule | None:
    if options.after is not None:
        return AfterRule(_seconds("--after", options.after))
    return None if options.at is None else AtRule(instant(options.at, options.zone))


def _seconds(option: str, text: str) -> int:
    return cast("int", number(option, text))  # what is no whole number is the rule's to refuse


def instant(text: str, zone: str | None = None) -> datetime:
    """Return an instant, written as one or as a local time of `zone`.

    Raises:
        ToolError: there is none like that.
    """
    return read_instant(text if zone is None else local_time(text, zone)).astimezone(UTC)


def _weekdays(text: str) -> tuple[int, ...]:
    return tuple(_weekday(word.strip().lower()) for word in text.split(","))


def _weekday(word: str) -> int:
    for day, name in enumerate(WEEKDAYS, 1):
        if word in {name, name[:3]}:
            return day
    raise UsageError(f"--days takes names of weekdays such as mon,wed,fri, not '{shortened(word, 40)}'")
