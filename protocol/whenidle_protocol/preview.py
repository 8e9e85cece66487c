"""The next occurrences of any rule, so that nobody has to guess (SPEC 1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_clock.zones import Gap, Overlap

from .rules.rrule import RRuleRule

if TYPE_CHECKING:
    from datetime import datetime

    from .recurrence.occurrences import Occurrence
    from .rules.kinds import Rule


def preview(
    rule: Rule | str,
    *,
    after: datetime,
    count: int,
    gap: Gap | str | None = None,
    overlap: Overlap | str | None = None,
) -> tuple[Occurrence, ...]:
    """Return the first `count` occurrences of a rule that are strictly later than `after`, in order.

    There are fewer where the rule ends, or the year 9999 does. Each has `.utc`, `.local` in the rule's zone, and
    tells what a change of clocks did: `.change`, and `.skipped` local times just before it.

    Args:
        rule: a rule of any kind, or the text of one: a DTSTART line and an RRULE line (SPEC 6.6).
        after: an aware instant. For `after` and `every` rules not yet made it is when they are made.
        count: how many occurrences, 0 or more.
        gap: `skip` or `shift` local times that clocks skip; `skip` if left out.
        overlap: take the `first` of two equal local times, or `both`; if left out, both for rules that go on
            by the hour or minute, and the first for others.

    Raises:
        RuleError: `rule` is text and cannot be taken; its message says what to write instead.
        ValueError: `after` is naive, `count` is negative, or there is no such policy.
    """
    if count < 0:
        raise ValueError(f"count is how many occurrences to show, 0 or more; it is {count}")
    known = RRuleRule.parse(rule) if isinstance(rule, str) else rule
    return known.preview(
        after,
        count,
        gap=None if gap is None else Gap(gap),
        overlap=None if overlap is None else Overlap(overlap),
    )
