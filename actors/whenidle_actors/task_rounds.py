"""Delivering to many sessions together, as far as they are idle (SPEC 6.8).

A thousand sessions that come due at once have little to say to one another and much in common: they are read
together, claimed together, decided about one after the other, and their commits are handed in together. Each session
still has a commit of its own, refused or made by itself, and each is claimed from before its tasks are read until
its commit has ended. Whatever is unusual about one of them is left to a pursuit of its own, which takes its time.

One-shots come one a claim. Those behind the first are kept, so that the next claims need not read and decode all of
them again: each commit insists on the version that was read, and what has changed since is refused.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle_actors.errors import CommitUncertain, StoreDamaged
from whenidle_actors.logs import report
from whenidle_actors.session import Draft
from whenidle_actors.stores.base import Batch
from whenidle_actors.task_commits import delivery_of
from whenidle_actors.task_rows import from_row, is_written, records_of
from whenidle_clock import to_millis
from whenidle_protocol.events import Outcome
from whenidle_protocol.task_admission import Admission, admit, delivery_order
from whenidle_protocol.task_timing import is_one_shot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from whenidle_actors.activity import Activity
    from whenidle_actors.agent import Agent
    from whenidle_actors.stores.task_rows import TaskRow
    from whenidle_actors.task_pursuit import Office
    from whenidle_protocol.task_record import Task

logger: logging.Logger = logging.getLogger("whenidle.tasks")

_AT_A_TIME = 40
"""Tasks decided about between two checkpoints: some 4 ms. Those of one session are not parted."""

MOST_TASKS = 100
"""Due tasks of one session that a round takes, some 10 ms of work at once; more are for a pursuit, unless those that
were read begin with a one-shot that is surely the first of all."""

_KEPT = 8 << 20
"""Most that is kept of one-shots in line, in characters: 10,000 of them as a rule, some 20 MB."""

_OF_A_TASK = 500
"""What a task counts as beside its texts."""


@attrs.define(eq=False)
class Place:
    """A session that something is due for, from when that was found until nothing is left to be delivered."""

    session_id: str
    waiting: deque[Task] = attrs.field(factory=deque)
    """One-shots as they were read, in the order they come, one each time the session is claimed."""
    unread: bool = True
    """Whether something may be due beside what is `waiting`."""
    size: int = 0
    """What is `waiting` counts as."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to be delivered."""
        return not self.waiting and not self.unread


@attrs.define(eq=False)
class Keeping:
    """Bounds what is kept of one-shots that wait, whatever the number of sessions and the length of prompts."""

    room: int = _KEPT

    def keep(self, place: Place, one_shots: Iterable[Task]) -> None:
        """Have one-shots, all there are and in order, wait at a place, as far as there is room.

        Those for which there is none, or that are too many for a round, will be read again.
        """
        self.drop(place)
        for task in one_shots:
            size = len(task.title) + len(task.prompt) + _OF_A_TASK
            if size > self.room or len(place.waiting) == MOST_TASKS:
                place.unread = True
                break
            self.room -= size
            place.size += size
            place.waiting.append(task)

    def drop(self, place: Place) -> None:
        """Forget what waits at a place."""
        self.room += place.size
        place.size = 0
        place.waiting.clear()


@attrs.define(eq=False)
class _Seat:
    """One claimed session of a round."""

    place: Place
    agent: Agent
    activity: Activity
    admission: Admission = attrs.field(factory=Admission)
    draft: Draft | Batch | None = None
    """What is to be committed; a bare batch if no message goes with it."""
    settled: bool = False
    """Whether its place says what is left to be done for the session, once this is durable."""

    @property
    def batch(self) -> Batch:
        """What is to be committed; nothing may be left out."""
        assert self.draft is not None  # noqa: S101 - those without one have left
        return self.draft.batch if isinstance(self.draft, Draft) else self.draft


class TaskRound:
    """One delivery to each of some sessions.

    Args:
        office: the task suite.
        places: where something is due.
        keeping: bounds what waits there.
    """

    def __init__(self, office: Office, places: Iterable[Place], keeping: Keeping) -> None:
        self._office = office
        self._services = office.services
        self._keeping = keeping
        self._places = {place.session_id: place for place in places}
        self._seats: dict[str, _Seat] = {}
        self._left_over: dict[str, Exception | None] = dict.fromkeys(self._places)
        self._nothing_due: list[str] = []
        """Sessions for which nothing was due after all."""
        self._now_millis = 0

    async def prepare(self) -> None:
        """Claim the sessions that are idle, and decide what each of them gets.

        What fails, and whoever cannot be claimed, is left over.
        """
        try:
            for session_id, agent in (await self._services.registry.restore_all(tuple(self._places))).items():
                self._claim(session_id, agent)
            if self._seats:
                await self._decide()
        except BaseException as error:
            self._release()
            if not isinstance(error, Exception):
                raise
            _report(error)

    async def commit(self) -> dict[str, Exception | None]:
        """Commit what was decided, and release the sessions.

        Returns those to be pursued, with the failure of their commit if there was one. Of the others their places
        say what is left to be delivered.
        """
        try:
            seats = [seat for seat in self._seats.values() if seat.draft is not None]
            if seats:
                answers = await self._services.journal.commit_all([seat.batch for seat in seats])
                for seat, error in zip(seats, answers, strict=True):
                    await self._settle(seat, error)
            if self._nothing_due:
                await self._look_ahead()
        except Exception as error:  # noqa: BLE001 - whatever it was, who is left over is pursued
            _report(error)
        finally:
            self._release()
        return self._left_over

    def _claim(self, session_id: str, agent: Agent) -> None:
        if agent.session.confirmed_state is None:
            return  # its log has to be read first
        activity = agent.claim()
        if activity is not None:
            self._seats[session_id] = _Seat(self._places[session_id], agent, activity)

    async def _decide(self) -> None:
        services = self._services
        found = await self._read_due()
        now = services.clock.now()
        self._now_millis = to_millis(now)
        self._office.decided(self._now_millis)
        decided = 0
        for session_id, seat in self._seats.items():
            rows = found.get(session_id, ())
            # A claim that was aborted meanwhile gets nothing, and neither does anybody once the host stops.
            if seat.activity.cause is None and not services.registry.closing:
                try:
                    self._decide_for(seat, rows, now)
                except Exception as error:  # noqa: BLE001 - whatever it was, it is pursued, and its neighbours go on
                    seat.draft = None
                    _report(error)
            decided += len(rows) or 1
            if decided >= _AT_A_TIME:
                decided = 0
                await trio.lowlevel.checkpoint()

    async def _read_due(self) -> dict[str, tuple[TaskRow, ...]]:
        """Return what is due for the sessions where nothing waits that was read before."""
        unknown = [session_id for session_id, seat in self._seats.items() if not seat.place.waiting]
        if not unknown:
            return {}
        for session_id in unknown:
            self._seats[session_id].place.unread = False  # what is found from here on may not be in this read
        until = self._services.clock.now_millis()
        found = await self._services.journal.store.due_tasks_of(unknown, until, limit=MOST_TASKS)
        return dict(zip(unknown, found, strict=True))

    def _decide_for(self, seat: _Seat, rows: Sequence[TaskRow], now: datetime) -> None:
        place = seat.place
        if place.waiting:
            admission = admit((place.waiting[0],), now, self._office.settings)
            seat.settled = bool(admission.delivered)
            place.waiting.popleft()
            if not place.waiting:
                self._keeping.drop(place)
        elif rows:
            admission = self._admit(seat, rows, now)
        else:
            self._nothing_due.append(place.session_id)
            return
        beside = records_of(admission)
        text = admission.text
        if text is not None:
            seat.draft = seat.agent.session.draft(delivery_of(text), beside)
        elif beside.tasks:
            seat.draft = Batch(tasks=beside.tasks)
        seat.admission = admission

    def _admit(self, seat: _Seat, rows: Sequence[TaskRow], now: datetime) -> Admission:
        """Return what of the due tasks of a session is delivered now, and have the other one-shots wait."""
        place, more = seat.place, len(rows) == MOST_TASKS
        if more:
            # What was not read is no earlier than the last. What comes at the same instant goes in another order.
            rows = [row for row in rows if row.next_millis != rows[-1].next_millis]
        tasks = self._read(rows)
        one_shots = sorted((task for task in tasks if is_one_shot(task.rule)), key=delivery_order)
        if more and not one_shots:
            return Admission()  # what recurs comes in one message
        admission = admit(tasks, now, self._office.settings)
        left = len(tasks) - len(admission.delivered) - len(admission.skipped)
        seat.settled = left == 0 < len(tasks)
        if one_shots and admission.delivered and admission.delivered[0].task is one_shots[0]:
            seat.settled = True
            place.unread = place.unread or more or left >= len(one_shots)
            self._keeping.keep(place, one_shots[1:])
        return admission

    def _read(self, rows: Iterable[TaskRow]) -> list[Task]:
        tasks: list[Task] = []
        for row in rows:
            try:
                tasks.append(from_row(row))
            except StoreDamaged as error:
                self._office.damaged(row, error)
        return tasks

    async def _settle(self, seat: _Seat, error: Exception | None) -> None:
        if error is None:
            if isinstance(seat.draft, Draft):
                seat.agent.session.keep(seat.draft)
        elif not isinstance(error, CommitUncertain) or not await is_written(
            self._services.journal.store, seat.batch.tasks[0]
        ):
            self._left_over[seat.agent.id] = error
            return
        self._office.admitted(seat.admission)
        if seat.settled:
            del self._left_over[seat.agent.id]

    async def _look_ahead(self) -> None:
        """Set the alarm for what comes next: it may have been moved, or the clock set back."""
        next_millis = await self._services.journal.store.next_due(self._now_millis)
        if next_millis is not None:
            self._office.arm(next_millis)
        for session_id in self._nothing_due:
            del self._left_over[session_id]

    def _release(self) -> None:
        """Release every session; one whose commit did not end well finds out from its log what is true."""
        seats, self._seats = self._seats, {}
        for seat in seats.values():
            seat.agent.release(Outcome.COMPLETED if seat.activity.cause is None else Outcome.ABORTED)


def _report(error: Exception) -> None:
    """Log a failure; what it left over is pursued, and that pursuit complains if it fails, too."""
    report(logger, logging.DEBUG, "task-round-failed", "some tasks are delivered one by one", error=error)
