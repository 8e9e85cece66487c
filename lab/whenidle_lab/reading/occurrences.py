"""Planned and admitted occurrences of reminders and tasks, read from what became durable."""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_clock.instants import to_millis
from whenidle_lab.reading.words import shortened
from whenidle_lab.trace import What
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import SCHEDULE_CHANGE
from whenidle_protocol.schedule_change import Create, Delete, EveryReminder, decode_change
from whenidle_protocol.task_codec import decode_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from whenidle_lab.trace import Happening
    from whenidle_protocol.schedule_change import Change, Reminder
    from whenidle_protocol.task_record import Task


@attrs.frozen
class Occurrence:
    """One instant at which something was to come due, and what became of it."""

    agent: str
    """The session whose inbox it is for; empty if that is not known."""
    source: str
    """Id of the reminder or task, visible."""
    prompt: str
    """Its prompt or title, shortened and visible."""
    due_millis: int
    """Wall instant."""
    planned: int
    """Position at which that was durable."""
    due: float | None
    """Position at which the wall clock first showed it; None if it never did."""
    admitted: int | None = None
    """Position at which its message was durable in the inbox; None if that did not happen."""
    dropped: int | None = None
    """Position at which it was deleted, paused or moved, before it was admitted; None if it was not."""
    missed: int = 0
    """How many earlier occurrences it stands for."""
    late_millis: int | None = None
    """How much later than due the wall showed when it was admitted; negative if that was too early."""


@attrs.define
class _Plan:
    """What is planned of one reminder or task."""

    agent: str
    source: str
    prompt: str
    due_millis: int
    planned: int
    every_millis: int = 0
    deliveries: int = 0
    missed: int = 0
    active: bool = True

    def next(self) -> tuple[int, bool]:
        """Return what must stay for the plan to stay."""
        return self.due_millis, self.active

    def occurrence(self, *, admitted: int | None = None, dropped: int | None = None, missed: int = 0) -> Occurrence:
        return Occurrence(
            self.agent,
            self.source,
            self.prompt,
            self.due_millis,
            self.planned,
            None,
            admitted=admitted,
            dropped=dropped,
            missed=missed,
        )


def occurrences(happenings: Sequence[Happening]) -> list[Occurrence]:
    """Return all occurrences that were planned, in the order in which they were due, admitted or not."""
    ledger = _Ledger()
    for position, happening in enumerate(happenings):
        if happening.what is What.COMMIT_DURABLE:
            ledger.take(position, happening)
    found = sorted(ledger.all(), key=lambda one: (one.due_millis, one.planned, one.agent, one.source))
    return [_placed(one, due, happenings) for one, due in zip(found, _due_positions(found, happenings), strict=True)]


def _placed(occurrence: Occurrence, due: float | None, happenings: Sequence[Happening]) -> Occurrence:
    admitted = occurrence.admitted
    late = None if admitted is None else happenings[admitted].wall_millis - occurrence.due_millis
    return attrs.evolve(occurrence, due=due, late_millis=late)


class _Ledger:
    """Follows plans from commit to commit."""

    def __init__(self) -> None:
        self._found: list[Occurrence] = []
        self._reminders: dict[tuple[str, str], _Plan] = {}
        self._tasks: dict[str, _Plan] = {}

    def all(self) -> list[Occurrence]:
        """Return what was admitted or dropped, and what is still planned."""
        pending = [*self._reminders.values(), *(plan for plan in self._tasks.values() if plan.active)]
        return [*self._found, *(plan.occurrence() for plan in pending)]

    def take(self, position: int, happening: Happening) -> None:
        """Read what became durable."""
        detail = happening.detail
        for session, records in owned(detail):
            for _, payload in payloads(records, SCHEDULE_CHANGE):
                self._reminder(position, session, payload)
        for write in detail.get("tasks") or ():
            self._task(position, str(write["id"]), write.get("task"))

    def _reminder(self, position: int, agent: str, payload: Any) -> None:
        change = _change(payload)
        if isinstance(change, Create):
            self._reminders[agent, change.schedule.id] = _planned_reminder(position, agent, change.schedule)
            return
        plan = None if change is None else self._reminders.pop((agent, change.id), None)
        if plan is None or change is None:  # a runtime that is broken may dispatch twice; the judge will say so
            return
        if isinstance(change, Delete):
            self._found.append(plan.occurrence(dropped=position))
            return
        missed = 0
        if plan.every_millis and change.accepted_at is not None:
            missed = max(0, (to_millis(change.accepted_at) - plan.due_millis) // plan.every_millis)
            plan.due_millis += missed * plan.every_millis
        self._found.append(plan.occurrence(admitted=position, missed=missed))
        if plan.every_millis:
            self._reminders[agent, change.id] = attrs.evolve(
                plan, due_millis=plan.due_millis + plan.every_millis, planned=position
            )

    def _task(self, position: int, task_id: str, data: Any) -> None:
        task, before = _task(data), self._tasks.pop(task_id, None)
        after = None if task is None else _planned_task(position, task)
        if after is not None:
            self._tasks[task_id] = after
        stays = before is not None and after is not None and before.next() == after.next()
        if stays:
            self._tasks[task_id].planned = position if before is None else before.planned
        last = None if task is None else task.last_delivery
        if after is not None and last is not None and after.deliveries > (before.deliveries if before else 0):
            delivered = attrs.evolve(
                after if stays or before is None else before,
                agent=last.target_session_id,
                due_millis=to_millis(last.scheduled_at),
            )
            missed = after.missed - (before.missed if before else 0)
            self._found.append(delivered.occurrence(admitted=position, missed=missed))
        elif before is not None and before.active and not stays:
            self._found.append(before.occurrence(dropped=position))


def _change(payload: Any) -> Change | None:
    try:
        return decode_change(payload)
    except CorruptLog:
        return None


def _task(data: Any) -> Task | None:
    try:
        return None if data is None else decode_task(data if isinstance(data, str) else json.dumps(data))
    except CorruptLog:
        return None


def _planned_reminder(position: int, agent: str, reminder: Reminder) -> _Plan:
    every = reminder.every_seconds * 1000 if isinstance(reminder, EveryReminder) else 0
    due = to_millis(reminder.scheduled_at)
    return _Plan(agent, shortened(reminder.id), shortened(reminder.prompt), due, position, every)


def _planned_task(position: int, task: Task) -> _Plan:
    return _Plan(
        task.target.session_id or "",
        shortened(task.id),
        shortened(task.title),
        to_millis(task.scheduled_at),
        position,
        deliveries=task.deliveries,
        missed=task.missed,
        active=task.active,
    )


def owned(commit: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Yield the sessions that a commit appends to, with the records that are not inherited by a fork."""
    seeds: Mapping[str, int] = commit.get("seeds") or {}
    for append in commit.get("appends") or ():
        inherited = max(0, seeds.get(append["session"], 0) - append["expected"])
        yield str(append["session"]), append["records"][inherited:]


def payloads(records: Iterable[Mapping[str, Any]], *types: str) -> Iterator[tuple[str, Any]]:
    """Yield type and payload of the records that are of one of these types, as far as they can be read."""
    for record in records:
        if record["type"] in types:
            try:
                yield record["type"], json.loads(record["data"])
            except ValueError:
                continue


def _due_positions(found: Sequence[Occurrence], happenings: Sequence[Happening]) -> list[float | None]:
    """Return for each occurrence where the wall clock first showed its instant, after it was planned."""
    by_plan: dict[int, list[int]] = {}
    for index, occurrence in enumerate(found):
        by_plan.setdefault(occurrence.planned, []).append(index)
    positions: list[float | None] = [None] * len(found)
    waiting: list[tuple[int, int]] = []
    for position, happening in enumerate(happenings):
        while waiting and waiting[0][0] <= happening.wall_millis:
            due, index = heapq.heappop(waiting)
            positions[index] = _between(happenings, position, due)
        for index in by_plan.get(position, ()):
            heapq.heappush(waiting, (found[index].due_millis, index))
    return positions


def _between(happenings: Sequence[Happening], position: int, due_millis: int) -> float:
    """Return the place, after the happening before `position`, at which the wall showed an instant."""
    before, after = happenings[position - 1], happenings[position]
    is_between_lives = after.what is What.LIFE_BEGAN
    passed = (
        after.wall_millis - before.wall_millis
        if is_between_lives
        else (after.monotonic_ns - before.monotonic_ns) / 1_000_000
    )
    if passed <= 0:
        return float(position)
    return position - 1 + min(1.0, max(0.0, (due_millis - before.wall_millis) / passed))
