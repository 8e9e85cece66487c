"""Delivering to many sessions together, as far as they are idle (SPEC 6.8).

A thousand sessions that come due at once have little to say to one another and much in common: they are read
together, claimed together, decided about one after the other, and their commits are handed in together. Each session
still has a commit of its own, refused or made by itself, and each is claimed from before its tasks are read until
its commit has ended. Whatever is unusual about one of them is left to a pursuit of its own, which takes its time.
"""

from __future__ import annotations

import logging
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
from whenidle_protocol.task_admission import Admission, admit

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
"""Due tasks of one session that a round takes, some 10 ms of work at once; more are for a pursuit."""


@attrs.define(eq=False)
class _Seat:
    """One claimed session of a round."""

    agent: Agent
    activity: Activity
    admission: Admission = attrs.field(factory=Admission)
    draft: Draft | Batch | None = None
    """What is to be committed; a bare batch if no message goes with it."""
    settled: bool = False
    """Whether nothing is left to be done for the session."""

    @property
    def batch(self) -> Batch:
        """What is to be committed; nothing may be left out."""
        assert self.draft is not None  # noqa: S101 - those without one have left
        return self.draft.batch if isinstance(self.draft, Draft) else self.draft


class TaskRound:
    """One delivery to each of some sessions.

    Args:
        office: the task suite.
        session_ids: where something is due.
    """

    def __init__(self, office: Office, session_ids: Sequence[str]) -> None:
        self._office = office
        self._services = office.services
        self._session_ids = session_ids
        self._seats: dict[str, _Seat] = {}
        self._left_over: dict[str, Exception | None] = dict.fromkeys(session_ids)

    async def prepare(self) -> None:
        """Claim the sessions that are idle, and decide what each of them gets.

        What fails, and whoever cannot be claimed, is left over.
        """
        try:
            for session_id, agent in (await self._services.registry.restore_all(self._session_ids)).items():
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

        Returns those for which something is left to be done, with the failure of their commit if there was one.
        """
        try:
            seats = [seat for seat in self._seats.values() if seat.draft is not None]
            if seats:
                answers = await self._services.journal.commit_all([seat.batch for seat in seats])
                for seat, error in zip(seats, answers, strict=True):
                    await self._settle(seat, error)
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
            self._seats[session_id] = _Seat(agent, activity)

    async def _decide(self) -> None:
        services = self._services
        session_ids = tuple(self._seats)
        found = await services.journal.store.due_tasks_of(session_ids, services.clock.now_millis(), limit=MOST_TASKS)
        now = services.clock.now()
        self._office.decided(to_millis(now))
        decided = 0
        for session_id, rows in zip(session_ids, found, strict=True):
            seat = self._seats[session_id]
            # A claim that was aborted meanwhile gets nothing, and neither does anybody once the host stops.
            if len(rows) < MOST_TASKS and seat.activity.cause is None and not services.registry.closing:
                try:
                    self._decide_for(seat, rows, now)
                except Exception as error:  # noqa: BLE001 - the same, and its neighbours go on
                    seat.draft = None
                    _report(error)
            decided += len(rows)
            if decided >= _AT_A_TIME:
                decided = 0
                await trio.lowlevel.checkpoint()

    def _decide_for(self, seat: _Seat, rows: Iterable[TaskRow], now: datetime) -> None:
        tasks = self._read(rows)
        admission = admit(tasks, now, self._office.settings)
        beside = records_of(admission)
        text = admission.text
        if text is not None:
            seat.draft = seat.agent.session.draft(delivery_of(text), beside)
        elif beside.tasks:
            seat.draft = Batch(tasks=beside.tasks)
        seat.admission = admission
        seat.settled = len(tasks) == len(admission.delivered) + len(admission.skipped) > 0

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

    def _release(self) -> None:
        """Release every session; one whose commit did not end well finds out from its log what is true."""
        seats, self._seats = self._seats, {}
        for seat in seats.values():
            seat.agent.release(Outcome.COMPLETED if seat.activity.cause is None else Outcome.ABORTED)


def _report(error: Exception) -> None:
    """Log a failure; what it left over is pursued, and that pursuit complains if it fails, too."""
    report(logger, logging.DEBUG, "task-round-failed", "some tasks are delivered one by one", error=error)
