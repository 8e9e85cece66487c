"""Tasks as people are told of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from whenidle.cli.event_lines import TEXT_LIMIT
from whenidle.cli.rule_options import WEEKDAYS
from whenidle.cli.text import duration, shortened, until, visible
from whenidle_clock import format_instant
from whenidle_protocol.rules.kinds import Rule
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_local_time import format_local
from whenidle_protocol.task_record import Target, TargetKind, Task, TaskStatus
from whenidle_protocol.task_rules import timing_fields

_WITHOUT_ZONE = {"at", "after", "every"}

RULE_LIMIT = 60
"""Characters of a rule that a table shows."""


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Text]:
    """Return rows of unsafe text as lines below one of headings, each column as wide as its widest cell."""
    cells = [[visible(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(_padded, row, widths)).rstrip() for row in cells]
    return [Text(line, "" if number else "dim") for number, line in enumerate(lines)]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def rule_words(rule: Rule) -> str:
    """Return when a rule comes due, in few words."""
    words = _words(rule.kind, timing_fields(rule))
    return words if rule.kind in _WITHOUT_ZONE else f"{words} {rule.time_zone}"


def _words(kind: str, fields: Mapping[str, Any]) -> str:
    match kind:
        case "at":
            words = "once"
        case "after":
            words = f"once, after {fields['afterSeconds']} s"
        case "every":
            words = f"every {fields['everySeconds']} s"
        case "weekly":
            days: list[int] = fields["weekdays"]
            words = f"weekly {','.join(WEEKDAYS[day - 1][:3] for day in days)} {fields['time']}"
        case "rrule":
            words = str(fields["rrule"]).partition("RRULE:")[2]
        case _:
            words = f"{kind} {fields.get('time') or fields['expression']}"
    return words


def target_words(target: Target) -> str:
    """Return where a task is delivered, in few words."""
    if target.kind is TargetKind.THIS_SESSION:
        return f"session {target.session_id}"
    return "one new session" if target.kind is TargetKind.NEW_ONCE else "new sessions"


def state_line(task: Task, now: datetime) -> str:
    """Return what becomes of a task next, as one line."""
    name = visible(task.id)
    if task.status is TaskStatus.PAUSED:
        return f"{name} is paused"
    if task.status is TaskStatus.ENDED:
        return f"{name} has ended"
    return f"{name} is due {next_words(task, now)}"


def next_words(task: Task, now: datetime) -> str:
    """Return when a task comes due next; a dash if it does not."""
    if task.next_at is None:
        return "-"
    return f"{format_instant(task.next_at)} ({until(task.next_at, now)})"


def table(tasks: Sequence[Task], now: datetime) -> list[Text]:
    """Return tasks as a table."""
    heads = ("id", "status", "next occurrence", "rule", "target", "title")
    rows = [
        (
            task.id,
            task.status.value,
            next_words(task, now),
            _cut(rule_words(task.rule)),
            target_words(task.target),
            task.title,
        )
        for task in tasks
    ]
    return columns(heads, rows)


def damage_line(task: DamagedTask) -> str:
    """Return what is wrong with a task that cannot be read, and what to do about it."""
    name = visible(task.id)
    return f"{shortened(task.reason, TEXT_LIMIT)}; it does not come due, and `whenidle task delete {name}` removes it"


def _cut(text: str) -> str:
    return text if len(text) <= RULE_LIMIT else f"{text[:RULE_LIMIT]}…"


def details(task: Task, now: datetime) -> list[str]:
    """Return all that is to be known of a task, a line each."""
    local = format_local(task.scheduled_at, task.rule.time_zone)
    facts = {
        "title": task.title,
        "status": task.status.value,
        "next" if task.active else "last": next_words(task, now) if task.active else format_instant(task.scheduled_at),
        "local": local,
        "rule": rule_words(task.rule),
        "changes of clocks": _policies(task),
        "target": target_words(task.target),
        "session": task.target.session_id if task.target.kind is TargetKind.NEW_ONCE else None,
        "catch-up": None if task.catch_up_seconds is None else f"at most {task.catch_up_seconds} s late",
        "occurrences": counted(task),
        "last delivery": _last_delivery(task),
        "last failure": _last_failure(task),
        "updated": format_instant(task.updated_at),
        "prompt": task.prompt,
    }
    lines = [f"{name:<17}  {shortened(fact, TEXT_LIMIT)}" for name, fact in facts.items() if fact is not None]
    return [visible(task.id), *lines]


def counted(task: Task) -> str:
    """Return how often a task was delivered, and how often it was not."""
    counts = f"delivered {task.deliveries}, missed {task.missed}, skipped {task.skipped}"
    return f"{counts}, failed {task.failures}" if task.failures else counts


def _policies(task: Task) -> str | None:
    given = [
        *([] if task.gap is None else [f"gap {task.gap.value}"]),
        *([] if task.overlap is None else [f"overlap {task.overlap.value}"]),
    ]
    return ", ".join(given) or None


def _last_delivery(task: Task) -> str | None:
    last = task.last_delivery
    if last is None:
        return None
    late = duration((last.delivered_at - last.scheduled_at).total_seconds())
    return f"{format_instant(last.scheduled_at)}, {late} late, to session {last.target_session_id}"


def _last_failure(task: Task) -> str | None:
    last = task.last_failure
    if last is None:
        return None
    return f"{format_instant(last.scheduled_at)}, to session {last.target_session_id}: {last.reason}"
