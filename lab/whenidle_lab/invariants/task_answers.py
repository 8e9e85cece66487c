"""Answers about tasks, compared with the rows that were stored meanwhile (SPEC 6.3 to 6.5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from whenidle_lab.invariants.frames import millis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whenidle_lab.invariants.calls import Call
    from whenidle_lab.invariants.facts import Row

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMING: Final = ("afterSeconds", "everySeconds", "time", "timeZone", "weekdays", "expression", "rrule")
"""The timing fields that are shown of a rule."""
_LIMIT: Final = 100
"""How many tasks a list shows if it is not told."""


def complaint_of_task_answer(call: Call, answer: dict[str, Any], *, hides: bool) -> str:
    """Return what is wrong with the answer of a task tool; empty if nothing is.

    Args:
        call: the call, with what was stored at every moment of it.
        answer: what it was answered.
        hides: whether the host may have hidden tasks from the agent.
    """
    if "items" in answer:
        return "" if hides else _complaint_of_list(call, answer)
    code, identity = answer.get("code"), answer["id"]
    if code == "schedule_not_found":
        missing = hides or any(identity not in moment for moment in call.tasks)
        return "" if missing else "it was there all the time"
    if code == "schedule_conflict":
        return _complaint_of_conflict(call, identity)
    if not _was_expected(call, identity):
        return "it was never the version that was expected"
    if answer.get("deleted"):
        return "" if identity in call.deleted else "it was not deleted meanwhile"
    return _complaint_of_task(call, answer)


def shown(row: Row) -> dict[str, Any]:
    """Return a task as the tools are to show it."""
    data = row.data
    rule, target = data["rule"], data["target"]
    fields = {
        "id": data["id"],
        "title": data["title"],
        "prompt": data["prompt"],
        "kind": rule["kind"],
        **{name: rule[name] for name in _TIMING if name in rule},
        "scheduledAt": data["scheduledAt"],
        "scheduledAtLocal": _local(data["scheduledAt"], rule.get("timeZone", "UTC")),
        "target": target["kind"],
        "status": data["status"],
        "updatedAt": data["updatedAt"],
    }
    if "sessionId" in target:
        fields["targetSessionId"] = target["sessionId"]
    return fields | {name: data[name] for name in ("lastDelivery", "lastFailure") if name in data}


def _local(instant: str, zone: str) -> str:
    local = (_EPOCH + timedelta(milliseconds=millis(instant))).astimezone(ZoneInfo(zone))
    return f"{local.isoformat(timespec='milliseconds')}[{zone}]"


def _complaint_of_task(call: Call, answer: dict[str, Any]) -> str:
    identity, arguments = answer["id"], call.arguments
    if call.tool == "schedule_create":
        versions = call.written.get(identity, [])[:1]
        if any(identity in moment for moment in call.tasks[:1]):
            return "it was there before"
    else:
        versions = [moment[identity] for moment in call.tasks if identity in moment]
    if not any(shown(version) == answer for version in versions):
        return f"what was stored is {[shown(version) for version in versions]}"
    for name in ("title", "prompt"):
        if name in arguments and answer[name] not in arguments[name]:
            return f"that is another {name}"
    wanted = arguments.get("active")
    if wanted is not None and wanted != (answer["status"] == "active"):
        return f"it is {answer['status']}"
    return ""


def _was_expected(call: Call, identity: str) -> bool:
    """Return whether the task had the version that the call expected, at some moment of it; if it expected one."""
    expected = call.arguments.get("expectedUpdatedAt")
    versions = [moment[identity].version for moment in call.tasks if identity in moment]
    return expected is None or millis(expected) in versions


def _complaint_of_conflict(call: Call, identity: str) -> str:
    expected = call.arguments.get("expectedUpdatedAt")
    if expected is None:
        return "no version was expected"
    versions = [moment[identity] for moment in call.tasks if identity in moment]
    if all(version.version == millis(expected) for version in versions):
        return "it has not changed since"
    return ""


def _complaint_of_list(call: Call, answer: dict[str, Any]) -> str:
    arguments = call.arguments
    limit, offset = arguments.get("limit", _LIMIT), arguments.get("offset", 0)
    for moment in call.tasks:
        rows = _in_order(moment, arguments.get("active"))
        items = [shown(row) for row in rows[offset : offset + limit]]
        expected = {"items": items, "shown": len(items), "total": len(rows), "limit": limit, "offset": offset}
        if expected == answer:
            return ""
    return f"stored were, at the end, {[shown(row) for row in call.tasks[-1].values()]}"


def _in_order(tasks: Mapping[str, Row], active: bool | None) -> list[Row]:  # noqa: FBT001 - as the tool takes it
    by_next: Callable[[Row], tuple[int, str]] = lambda row: (row.next or 0, row.data["id"])  # noqa: E731
    by_update: Callable[[Row], tuple[int, str]] = lambda row: (-row.version, row.data["id"])  # noqa: E731
    due = sorted((row for row in tasks.values() if row.next is not None), key=by_next)
    others = sorted((row for row in tasks.values() if row.next is None), key=by_update)
    return due if active else others if active is False else due + others
