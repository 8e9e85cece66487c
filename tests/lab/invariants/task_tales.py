from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .tales import START, Tale, insert, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAY = 86_400_000
HOUR = 3_600_000


def at(instant: int) -> dict[str, Any]:
    """Return a rule for one instant."""
    return {"kind": "at", "scheduledAt": text_of(instant)}


def after(seconds: int, made: int = START) -> dict[str, Any]:
    """Return a rule for so many seconds after its making."""
    return {"kind": "after", "afterSeconds": seconds, "scheduledAt": text_of(made + seconds * 1000)}


def every(seconds: int, anchor: int) -> dict[str, Any]:
    """Return a rule for a fixed interval."""
    return {"kind": "every", "everySeconds": seconds, "anchor": text_of(anchor)}


def daily(hour: int, zone: str = "UTC") -> dict[str, Any]:
    """Return a rule for an hour of each day."""
    return {"kind": "daily", "time": f"{hour:02}:00", "timeZone": zone}


def row(
    identity: str,
    rule: Mapping[str, Any],
    next_at: int = START + 9 * HOUR,
    *,
    version: int = START,
    session: str | None = "ada",
    **more: Any,
) -> dict[str, Any]:
    """Return a task as a trace tells of it; `more` are fields of the task itself."""
    target = {"kind": "new"} if session is None else {"kind": "this_session", "sessionId": session}
    data = {
        "version": 1,
        "id": identity,
        "title": "Tea",
        "prompt": "tea",
        "rule": dict(rule),
        "target": target,
        "status": "active",
        "scheduledAt": text_of(next_at),
        "createdAt": text_of(START),
        "creator": "ada",
        **more,
        "updatedAt": text_of(version),
    }
    next_millis = next_at if data["status"] == "active" else None
    return {"id": identity, "data": data, "version": version, "next": next_millis, "session": session}


def changed(task: Mapping[str, Any], next_at: int | None = None, **more: Any) -> dict[str, Any]:
    """Return the next version of a task."""
    data: dict[str, Any] = {**task["data"], **more}
    if next_at is not None:
        data["scheduledAt"] = text_of(next_at)
    version = task["version"] + 1
    data["updatedAt"] = text_of(version)
    instant = next_at if next_at is not None else task["next"]
    if data["status"] == "active" and instant is None:
        raise ValueError("an active task has a next occurrence")
    session = data["target"].get("sessionId")
    return {
        "id": task["id"],
        "data": data,
        "version": version,
        "next": instant if data["status"] == "active" else None,
        "session": session,
    }


def write(expected: int | None, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the write of a task as a trace tells of it."""
    told = {key: value for key, value in task.items() if key != "data"}
    return {**told, "expected": expected, "task": json.dumps(task["data"])}


def deletion(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the deletion of a task."""
    return {"id": task["id"], "expected": task["version"], "task": None, "version": None, "next": None, "session": None}


def receipt(identity: str, occurrence: int, decided: int, missed: int = 0, skipped: int = 0) -> dict[str, Any]:
    """Return the receipt of a delivery to ada."""
    data = {
        "taskId": identity,
        "scheduledAt": text_of(occurrence),
        "deliveredAt": text_of(decided),
        "targetSessionId": "ada",
        "lateMillis": decided - occurrence,
        "missed": missed,
        "skipped": skipped,
    }
    return {"task": identity, "scheduled": occurrence, "delivered": decided, "data": json.dumps(data)}


def delivered(
    task: Mapping[str, Any],
    occurrence: int,
    next_at: int | None,
    *,
    decided: int,
    missed: int = 0,
    skipped: int = 0,
) -> dict[str, Any]:
    """Return a task after a delivery to ada; it has ended if there is no next occurrence."""
    data = task["data"]
    last = {"scheduledAt": text_of(occurrence), "deliveredAt": text_of(decided), "targetSessionId": "ada"}
    more: dict[str, Any] = {
        "deliveries": data.get("deliveries", 0) + 1,
        "missed": data.get("missed", 0) + missed,
        "skipped": data.get("skipped", 0) + skipped,
        "coveredAt": text_of(occurrence),
        "lastDelivery": last,
    }
    if next_at is None:
        return changed(task, occurrence, status="ended", **more)
    return changed(task, next_at, **more)


def task_text(*told: tuple[str, int, int], prompt: str = "tea") -> str:
    """Return the message that delivers tasks: of each the id, the occurrence, and how many it has missed."""
    items = [
        {"task_id": identity, "occurrence_at": text_of(occurrence), "prompt": prompt, "missed_occurrences": missed}
        for identity, occurrence, missed in told
    ]
    if len(items) > 1:
        return "\n".join(("[SCHEDULED TASK BATCH]", "Carry them out.", f"tasks_json: {json.dumps(items)}"))
    (item,) = items
    return "\n".join(
        (
            "[SCHEDULED TASK]",
            "Carry it out.",
            f"task_id_json: {json.dumps(item['task_id'])}",
            f"occurrence_at: {item['occurrence_at']}",
            f"missed_occurrences: {item['missed_occurrences']}",
            f"prompt_json: {json.dumps(prompt)}",
        )
    )


class TaskTale(Tale):
    """A tale of ada, who has tasks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.agent()
        self._messages = 0

    def make(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Let a task be created."""
        self.commit(tasks=[write(None, task)])
        return dict(task)

    def edit(self, task: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        """Let a task be written without a delivery."""
        self.commit(tasks=[write(task["version"], after)])
        return dict(after)

    def deliver_task(
        self,
        task: Mapping[str, Any],
        occurrence: int,
        next_at: int | None,
        *,
        missed: int = 0,
        skipped: int = 0,
        decided: int | None = None,
    ) -> dict[str, Any]:
        """Let an occurrence be delivered, and a turn take it."""
        decided = self.wall if decided is None else decided
        after = delivered(task, occurrence, next_at, decided=decided, missed=missed, skipped=skipped)
        self.deliver_tasks([(task, after, occurrence, missed, skipped)], decided)
        return after

    def deliver_tasks(
        self, told: Sequence[tuple[Mapping[str, Any], Mapping[str, Any], int, int, int]], decided: int | None = None
    ) -> None:
        """Let several be delivered in one message: each as it was, as it is, its occurrence, missed and skipped."""
        decided = self.wall if decided is None else decided
        message, self._messages = f"t{self._messages}", self._messages + 1
        self.claim()
        text = task_text(*[(task["id"], occurrence, missed) for task, _, occurrence, missed, _ in told])
        self.commit(
            "ada",
            insert(message, text, source="schedule"),
            tasks=[write(task["version"], after) for task, after, *_ in told],
            receipts=[
                receipt(task["id"], occurrence, decided, missed, skipped)
                for task, _, occurrence, missed, skipped in told
            ],
        )
        self.release()
        self.run(self._messages, [message])
