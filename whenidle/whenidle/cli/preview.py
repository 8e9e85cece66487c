"""`whenidle preview`: the next occurrences of a rule, so that nobody has to guess (SPEC 1.6)."""

import re
from datetime import datetime
from typing import Annotated

import attrs
import trio
from cyclopts import Parameter

from whenidle.cli.arguments import Json, text_argument
from whenidle.cli.exits import UsageError
from whenidle.cli.output import Output
from whenidle.cli.preview_table import Preview
from whenidle.cli.refusals import refusals
from whenidle.cli.rule_options import GapOption, OverlapOption, RecurringOptions, instant, read_rule, unfolded
from whenidle.cli.text import shortened
from whenidle.cli.values import check_within, whole_number
from whenidle_clock import Gap, Overlap, SystemClock
from whenidle_protocol.preview import preview as occurrences_of
from whenidle_protocol.rules.kinds import Rule

DEFAULT_COUNT = 10
MAX_COUNT = 10_000
"""Occurrences: more than anybody reads, and a matter of a second."""

_RFC_5545 = re.compile(r"DTSTART|RRULE|FREQ=", re.IGNORECASE)
_CRONTAB = re.compile(r"\s*(@\w+|(\S+\s+){4}\S+)\s*")


def preview(  # noqa: PLR0913 - one parameter an option
    rule: Annotated[
        str | None,
        Parameter(
            help="A DTSTART and an RRULE line (\\n may stand for the line break), or a cron expression with --zone;"
            " - reads standard input."
        ),
    ] = None,
    /,
    *,
    options: RecurringOptions = RecurringOptions(),  # noqa: B008 - frozen, and how the parser takes defaults
    count: Annotated[int, Parameter(converter=whole_number, metavar="N", help="How many occurrences.")] = DEFAULT_COUNT,
    after: Annotated[
        str | None,
        Parameter(metavar="INSTANT", show_default="now", help="Those later than this, like 2030-01-31T09:00:00Z."),
    ] = None,
    gap: GapOption = None,
    overlap: OverlapOption = None,
    json: Json = False,
) -> None:
    """Show when a rule comes due, in UTC and in local time, and what changes of clocks do to it.

    Give the rule as an argument, or with the options that `whenidle task create` takes.
    """
    check_within("--count", count, 1, MAX_COUNT)
    wanted = _Wanted(count, _after(after), gap, overlap)
    trio.run(_preview, rule, options, wanted, Output.standard(json=json))


@attrs.frozen
class _Wanted:
    """What is to be shown of a rule."""

    count: int
    after: datetime
    gap: Gap | None
    overlap: Overlap | None


async def _preview(text: str | None, options: RecurringOptions, wanted: _Wanted, output: Output) -> None:
    rule = await _rule(text, options)
    # One more than is shown tells whether the rule goes on.
    found = occurrences_of(rule, after=wanted.after, count=wanted.count + 1, gap=wanted.gap, overlap=wanted.overlap)
    shown = Preview(rule, wanted.after, found[: wanted.count], len(found) > wanted.count, wanted.gap, wanted.overlap)
    output.answer(shown.document(), *shown.lines())


async def _rule(text: str | None, options: RecurringOptions) -> Rule:
    if text is not None:
        if options.given:
            raise UsageError(f"give one rule, not {options.given[0]} and an argument besides")
        options = _as_option(unfolded(await text_argument(text, "RULE")), options)
    rule = await read_rule(options)
    if rule is None:
        raise UsageError("say which rule: as an argument, or with --rrule, --every, --daily, --weekly or --cron")
    return rule


def _as_option(text: str, options: RecurringOptions) -> RecurringOptions:
    """Return the option that a rule without one stands for."""
    if _RFC_5545.search(text):
        return attrs.evolve(options, rrule=text)
    if _CRONTAB.fullmatch(text):
        return attrs.evolve(options, cron=text)
    raise UsageError(
        f"'{shortened(text, 40)}' is no rule; write two lines like 'DTSTART;TZID=Europe/Paris:20300131T090000'"
        " and 'RRULE:FREQ=DAILY', or a cron expression like '30 9 * * 1-5' with --zone"
    )


def _after(text: str | None) -> datetime:
    if text is None:
        return SystemClock().now()
    with refusals():
        return instant(text)
