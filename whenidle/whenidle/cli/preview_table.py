"""The occurrences of a rule, as a table that people can check and as a document for programs."""

from collections.abc import Iterator
from datetime import datetime

import attrs
from rich.text import Text

from whenidle.cli.rule_options import WEEKDAYS
from whenidle.cli.task_lines import columns, rule_words
from whenidle_clock import Gap, Overlap, format_instant
from whenidle_protocol.recurrence.occurrences import Change, Occurrence
from whenidle_protocol.rules.kinds import Rule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.shape import LocalRule
from whenidle_protocol.task_local_time import format_local
from whenidle_protocol.task_rules import timing_fields

_SKIPPED = "skipped: clocks go forward over it"


@attrs.frozen
class Preview:
    """Some occurrences of a rule."""

    rule: Rule
    after: datetime
    occurrences: tuple[Occurrence, ...]
    more: bool
    """Whether the rule goes on behind them."""
    gap: Gap | None
    overlap: Overlap | None

    def document(self) -> dict[str, object]:
        """Return them for programs."""
        return {
            "rule": {"kind": self.rule.kind, **timing_fields(self.rule)},
            "timeZone": self.rule.time_zone,
            "after": format_instant(self.after),
            **self._policies(),
            "occurrences": [self._entry(number, each) for number, each in enumerate(self.occurrences, 1)],
            "more": self.more,
        }

    def lines(self) -> list[str | Text]:
        """Return them for people."""
        policies = ", ".join(f"{name} {value}" for name, value in self._policies().items())
        head = f"{self._title()} ({policies})" if policies else self._title()
        if not self.occurrences:
            return [head, f"no occurrence after {format_instant(self.after)}"]
        heads = ("", "UTC", f"local time in {self.rule.time_zone}", "")
        foot = "and so on" if self.more else "the rule ends here"
        return [head, *columns(heads, list(self._rows())), foot]

    def _policies(self) -> dict[str, str]:
        """Return what holds for changes of clocks, where they matter."""
        if not isinstance(self.rule, LocalRule) or self.rule.time_zone == "UTC":
            return {}
        overlap = self.overlap or self.rule.default_overlap
        return {"gap": (self.gap or Gap.SKIP).value, "overlap": overlap.value}

    def _title(self) -> str:
        if isinstance(self.rule, RRuleRule):
            return self.rule.rrule.replace("\n", "  ")
        return rule_words(self.rule)

    def _entry(self, number: int, occurrence: Occurrence) -> dict[str, object]:
        entry: dict[str, object] = {
            "number": number,
            "utc": format_instant(occurrence.utc),
            "local": format_local(occurrence.utc, self.rule.time_zone),
            "weekday": occurrence.local.isoweekday(),
        }
        if occurrence.change is not None:
            entry["change"] = occurrence.change.value
        if occurrence.skipped:
            entry["skipped"] = [local.isoformat() for local in occurrence.skipped]
        return entry

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        before: datetime | None = None
        for number, each in enumerate(self.occurrences, 1):
            for local in each.skipped:
                yield "", "-", _local(local), _SKIPPED
            note = "; ".join(filter(None, (self._change(each), _offset_change(before, each.local))))
            yield str(number), format_instant(each.utc), _local(each.local), note
            before = each.local

    def _change(self, occurrence: Occurrence) -> str:
        match occurrence.change:
            case Change.SHIFTED:
                return "shifted: clocks go forward over its own time"
            case Change.FIRST_OF_TWO:
                left_out = self._policies().get("overlap") == Overlap.FIRST.value
                return f"first of two: clocks go back{', the second is left out' if left_out else ''}"
            case Change.SECOND_OF_TWO:
                return "second of two: clocks have gone back"
            case None:
                return ""


def _local(local: datetime) -> str:
    """Return `Sun 2026-03-08 03:30:00 -04:00`, without an offset if it has none."""
    naive = local.replace(tzinfo=None)
    text = naive.isoformat(" ", "milliseconds" if naive.microsecond else "seconds")
    return " ".join(part for part in (WEEKDAYS[local.weekday()][:3].title(), text, _offset(local)) if part)


def _offset(local: datetime) -> str:
    """Return the offset, `-04:00`; empty without one."""
    return local.isoformat().removeprefix(local.replace(tzinfo=None).isoformat())


def _offset_change(before: datetime | None, local: datetime) -> str:
    """Return what the offset was at the occurrence before, if it was another."""
    if before is None or before.utcoffset() == local.utcoffset():
        return ""
    return f"the offset was {_offset(before)}"
