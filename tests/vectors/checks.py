"""One check for each file of reference answers: a row in, None or the difference out."""

from __future__ import annotations

import importlib
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from whenidle_clock import instants
from whenidle_protocol import framing, reminder_state, tools
from whenidle_protocol.errors import CorruptLog, ReminderCode, ToolError
from whenidle_protocol.events import SCHEDULE_CHANGE, EventRecord
from whenidle_protocol.json_text import stringify
from whenidle_protocol.preview import preview
from whenidle_protocol.reminder_state import NO_REMINDERS
from whenidle_protocol.rules import at, every
from whenidle_protocol.rules.simple import read_rrule
from whenidle_protocol.schedule_change import decode_change, decode_record, encode_record
from whenidle_protocol.session_state import replay

if TYPE_CHECKING:
    from collections.abc import Callable

Row: TypeAlias = "dict[str, Any]"
Check: TypeAlias = "Callable[[Row], str | None]"


def check_at(row: Row) -> str | None:
    """`at` and `now` in; `scheduledAt` or `code` out."""

    def answer() -> Row:
        target = at.first(at.read_instant(row["at"]), instants.parse_instant(row["now"]))
        return {"scheduledAt": instants.format_instant(target)}

    return _difference(row, answer, "scheduledAt", "code")


def check_delay(row: Row) -> str | None:
    """`kind`, `seconds` and `now` in; `scheduledAt` and the trimmed `prompt`, or `code` out."""

    def answer() -> Row:
        prompt = f" {row.get('prompt', 'p')}\n"
        request = tools.read_create({"prompt": prompt, f"{row['kind']}_seconds": row["seconds"]})
        record = tools.make_reminder(request, "schedule-1", instants.parse_instant(row["now"]))
        return {"scheduledAt": instants.format_instant(record.scheduled_at), "prompt": record.prompt}

    return _difference(row, answer, "scheduledAt", "prompt", "code")


def check_every_occurrence(row: Row) -> str | None:
    """An every `record` and `acceptedAt` in; `occurrenceAt` and `nextScheduledAt`, or `code` out."""

    def answer() -> Row:
        record = decode_record(row["record"])
        dispatch = {"version": 1, "operation": "dispatch", "id": record.id, "acceptedAt": row["acceptedAt"]}
        create = {"version": 1, "operation": "create", "schedule": row["record"]}
        state = _fold([create, dispatch])
        step = every.step(record.scheduled_at, row["record"]["everySeconds"], instants.parse_instant(row["acceptedAt"]))
        following = [encode_record(each)["scheduledAt"] for each in state]
        return {
            "occurrenceAt": instants.format_instant(step.occurrence_at),
            **({"nextScheduledAt": following[0]} if following else {}),
        }

    return _difference(row, answer, "occurrenceAt", "nextScheduledAt", "code")


def check_decode(row: Row) -> str | None:
    """A `schedule/change` payload in; `ok`, and `code` where not."""

    def answer() -> Row:
        decode_change(row["change"])
        return {"ok": True}

    return _difference({"ok": True, **row} if row["ok"] else {"code": row["code"]}, answer, "ok", "code")


def check_fold(row: Row) -> str | None:
    """`events` and `seedLength` in; `active`, `seenIds` and `nextId`, or `code` out."""
    # What else the reference keeps in its log means nothing to a reader of reminders.
    kept = {SCHEDULE_CHANGE: SCHEDULE_CHANGE}
    records = [
        EventRecord(kept.get(event["type"], "reference/other"), 0, stringify(event["data"]), ignorable=True)
        for event in row["events"]
    ]

    def answer() -> Row:
        state = replay(records, seed_length=row["seedLength"]).reminders
        state.check()
        return {
            "active": [encode_record(record) for record in state],
            "seenIds": sorted(state.seen),
            "nextId": state.next_id(),
        }

    expected = {**row, "seenIds": sorted(row["seenIds"])} if "seenIds" in row else row
    return _difference(expected, answer, "active", "seenIds", "nextId", "code")


def check_framing(row: Row) -> str | None:
    """A `record`, or `reminders`, in; the exact `text` out."""

    def answer() -> Row:
        if "record" in row:
            return {"text": framing.frame_one_shot(_due(row["record"], row["record"]["scheduledAt"]))}
        items = [_due(each["record"], each["occurrenceAt"]) for each in row["reminders"]]
        return {"text": framing.frame_batch(items)}

    return _difference(row, answer, "text")


def check_delivery(row: Row) -> str | None:
    """A whole life under the virtual clock: `start` and `ops` in; `results` and `log` out."""
    # Imported when asked for: this one drives the runtime, the others need nothing but pure code.
    delivery = importlib.import_module(".delivery", __package__)
    difference: str | None = delivery.check_row(row)
    return difference


ERRATA: Final = {
    "DTSTART;TZID=Asia/Tehran:20191226T180000\nRRULE:FREQ=MONTHLY;INTERVAL=1;BYDAY=SU,2SA": [
        "2020-09-27T14:30:00Z",
        "2020-10-04T14:30:00Z",
        "2020-10-10T14:30:00Z",
        "2020-10-11T14:30:00Z",
        "2020-10-18T14:30:00Z",
        "2020-10-25T14:30:00Z",
        "2020-11-01T14:30:00Z",
    ],
}
"""Rows of `rrule.jsonl` whose own answer is wrong, and the right one.

The engine behind the file takes plain and numbered days of one BYDAY to exclude each other, so that it finds
nothing here. They mix (RFC 5545 3.3.10, SPEC 6.6): all Sundays and the second Saturday, at 18:00 in Tehran.
"""


def check_rrule(row: Row) -> str | None:
    """`rule`, `after`, `count`, `gap`, perhaps `overlap` in; `utc` out. Or `rule` and `now` in; `code` out."""

    def answer() -> Row:
        if "now" in row:
            read_rrule(row["rule"], now=datetime.fromisoformat(row["now"]))
            return {}
        found = preview(
            row["rule"],
            after=datetime.fromisoformat(row["after"]),
            count=row["count"],
            gap=row["gap"],
            overlap=row.get("overlap"),
        )
        return {"utc": [f"{each.utc:%Y-%m-%dT%H:%M:%SZ}" for each in found]}

    corrected = ERRATA.get(row["rule"]) if row.get("utc") == [] else None
    return _difference({**row, "utc": corrected} if corrected else row, answer, "utc", "code")


CHECKS: Final[dict[str, Check]] = {
    "at": check_at,
    "delay": check_delay,
    "every_occurrence": check_every_occurrence,
    "decode": check_decode,
    "fold": check_fold,
    "framing": check_framing,
    "delivery": check_delivery,
    "rrule": check_rrule,
}
"""What is answered, by the name of the file."""


def _due(record: Row, occurrence_at: str) -> framing.Due:
    return framing.Due(record["id"], instants.parse_instant(occurrence_at), record["prompt"])


def _fold(changes: list[Any]) -> reminder_state.ReminderState:
    state = NO_REMINDERS
    for seq, change in enumerate(changes):
        state = reminder_state.fold(state, change, seq=seq)
    state.check()
    return state


def _difference(row: Row, answer: Callable[[], Row], *keys: str) -> str | None:
    try:
        got = answer()
    except ToolError as error:
        got = {"code": error.code.value}
    except CorruptLog:
        got = {"code": ReminderCode.CORRUPT_SCHEDULE_LOG.value}
    expected = {key: row[key] for key in keys if key in row}
    return None if got == expected else f"expected {expected!r}, got {got!r}"
