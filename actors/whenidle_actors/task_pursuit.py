"""Delivering due tasks to one destination, for as long as it takes (SPEC 6.8)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle_actors.errors import (
    AgentDisposed,
    AgentFaulted,
    MaintenanceAborted,
    SequenceConflict,
    StoreDamaged,
    TaskConflict,
    UnknownSession,
    UnknownTask,
)
from whenidle_actors.logs import report
from whenidle_actors.observation import EventKind
from whenidle_actors.patience import Patience
from whenidle_actors.stores.base import Batch
from whenidle_actors.task_claims import admit_when_idle
from whenidle_actors.task_pieces import PIECE, admit_in_pieces
from whenidle_actors.task_rounds import Place
from whenidle_actors.task_rows import change, from_row
from whenidle_clock import EPOCH, to_millis
from whenidle_protocol.task_admission import delivery_order
from whenidle_protocol.task_delivery import Due, deliver, fail
from whenidle_protocol.task_timing import is_one_shot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

    from whenidle_actors.agent import Agent
    from whenidle_actors.services import Services
    from whenidle_actors.stores.task_rows import DueTask, TaskRow
    from whenidle_actors.task_commits import Note
    from whenidle_actors.task_rounds import Keeping
    from whenidle_protocol.task_admission import Admission
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import TaskSettings

logger: logging.Logger = logging.getLogger("whenidle.tasks")

_PAGE = 500
"""Rows read at a time."""


@attrs.frozen
class Destination:
    """What is delivered one after the other: the tasks for one session, or one task that makes its sessions."""

    session_id: str | None
    task_id: str | None

    @classmethod
    def of(cls, row: DueTask) -> Destination:
        """Return where a task goes."""
        return cls(None, row.id) if row.session_id is None else cls(row.session_id, None)


@attrs.frozen(eq=False)
class Office:
    """The task suite as its pursuits see it."""

    services: Services
    settings: TaskSettings
    arm: Callable[[int], None]
    """Has the alarm ring at that time (milliseconds since the epoch) at the latest."""
    admitted: Note
    """Told of each admission when it is durable."""
    aside: Callable[[], AbstractContextManager[None]]
    """Entered while a pursuit does nothing but wait for an agent, so that others go first."""
    damaged: Callable[[TaskRow, StoreDamaged], None]
    """Told of each due task that cannot be read."""
    decided: Callable[[int], None]
    """Told of the wall, in milliseconds since the epoch, at each decision about what is due."""


class TaskPursuit:
    """The work of delivering what is due for one destination, until nothing is or it goes on as usual.

    What is due is read from the store inside each claim, so that it is all there is at that moment.

    Args:
        office: the task suite.
        destination: where it goes.
        keeping: bounds what waits in line.
        failure: how an attempt ended that somebody else has made.
    """

    def __init__(
        self, office: Office, destination: Destination, keeping: Keeping, failure: Exception | None = None
    ) -> None:
        self._office = office
        self._services = office.services
        self._destination = destination
        self._keeping = keeping
        self._failure = failure
        self._patience = Patience(office.services.random)
        self._again = True
        self._decided_at: datetime = EPOCH
        self._left = 0
        self._behind: list[Task] = []
        """One-shots that were due with the one that was delivered last, in order."""
        self._known: dict[str, tuple[TaskRow, Task]] = {}
        """What was due at the last look, so that a one-shot that waits for its turn is decoded once."""

    def look_again(self) -> None:
        """Take note that something is due for the destination."""
        self._again = True

    async def run(self) -> Place | None:
        """Deliver until nothing is due; what fails is tried again.

        Returns a place in line if one-shots are left, which are nothing unusual: the first of them can be delivered as
        soon as the agent is idle.
        """
        more = False
        if self._failure is not None:
            await self._bear(self._failure)
        while (more or self._again) and not self._services.registry.closing:
            self._again = False
            more = await self._step()
            session_id = self._destination.session_id
            if self._behind and session_id is not None and self._services.announcer.tracing is None:
                return self._place(session_id)
        return None

    def _place(self, session_id: str) -> Place:
        place = Place(session_id, unread=self._again or self._left > len(self._behind))
        self._keeping.keep(place, self._behind)
        return place

    async def _step(self) -> bool:
        """Make one attempt, and return whether there is to be another."""
        try:
            more = await self._attempt()
        except Exception as error:  # noqa: BLE001 - whatever it was, what is due must not be lost
            await self._bear(error)
            return True
        self._patience.reset()
        return more

    async def _bear(self, error: Exception) -> None:
        """Wait until there is a point in another attempt."""
        if isinstance(error, AgentFaulted):
            await self._sit_out(error)
        elif not isinstance(error, AgentDisposed | MaintenanceAborted | TaskConflict | SequenceConflict):
            self._complain(error)
            with self._office.aside():
                await self._patience.wait()

    async def _attempt(self) -> bool:
        """Deliver a one-shot, or everything recurring, of what is due."""
        self._behind = []
        session_id = self._destination.session_id
        try:
            admission = await admit_when_idle(
                self._services, session_id, self._choose, self._office.admitted, self._wait
            )
        except UnknownSession as error:
            await self._fail(str(error))
            return True
        if not admission.delivered and not admission.skipped:
            return await self._nothing_due()
        if admission.delivered and is_one_shot(admission.delivered[0].task.rule):
            one_shots = (task for _, task in self._known.values() if is_one_shot(task.rule))
            self._behind = sorted(one_shots, key=delivery_order)[1:]
        return self._left > 0

    async def _choose(self) -> Admission:
        tasks = await self._due()
        now = self._services.clock.now()
        self._decided_at = now
        self._office.decided(to_millis(now))
        admission = await admit_in_pieces(tasks, now, self._office.settings)
        self._left = len(tasks) - len(admission.delivered) - len(admission.skipped)
        return admission

    async def _nothing_due(self) -> bool:
        """Set the alarm for what comes next: it may have been moved, or the clock set back."""
        next_millis = await self._services.journal.store.next_due(to_millis(self._decided_at))
        if next_millis is not None:
            self._office.arm(next_millis)
        return False

    async def _fail(self, reason: str) -> None:
        """Show on each task that its delivery could not be made, and go on with its next occurrence."""
        tasks = await self._due()
        now = self._services.clock.now()
        failures: list[tuple[Due, Task]] = []
        for number, task in enumerate(tasks, 1):
            due = deliver(task, now, self._office.settings)
            if isinstance(due, Due) and not due.creates:
                failures.append((due, fail(due, reason)))
            if number % PIECE == 0:
                await trio.lowlevel.checkpoint()
        if not failures:
            return
        await self._services.journal.commit(Batch(tasks=tuple(change(due.task, after) for due, after in failures)))
        for due, after in failures:
            report(
                logger,
                logging.WARNING,
                "task-undeliverable",
                "task %s could not be delivered to session %s: %s",
                after.id,
                due.session_id,
                reason,
                task=after.id,
                session=due.session_id,
            )
            self._services.announce(EventKind.TASK_FAILED, due.session_id, tasks=[after.id], error=reason)

    async def _due(self) -> list[Task]:
        """Return the tasks that are due for the destination; what cannot be read is left out."""
        store, now_millis = self._services.journal.store, self._services.clock.now_millis()
        session_id, task_id = self._destination.session_id, self._destination.task_id
        known, self._known = self._known, {}
        if task_id is not None:
            try:
                row = await store.task(task_id)
            except UnknownTask:
                return []
            # One that was given another target meanwhile is another pursuit's: whoever changed it has had it looked at.
            return self._read([row], known) if row.session_id is None else []
        tasks: list[Task] = []
        after: tuple[int, str] | None = None
        while True:
            rows = await store.due_tasks(now_millis, session_id=session_id, after=after, limit=_PAGE)
            for start in range(0, len(rows), PIECE):
                tasks += self._read(rows[start : start + PIECE], known)
                if start + PIECE < len(rows):
                    await trio.lowlevel.checkpoint()
            if len(rows) < _PAGE:
                return tasks
            after = (rows[-1].next_millis or 0, rows[-1].id)

    def _read(self, rows: Iterable[TaskRow], known: Mapping[str, tuple[TaskRow, Task]]) -> list[Task]:
        tasks: list[Task] = []
        for row in rows:
            before = known.get(row.id)
            try:
                task = before[1] if before is not None and before[0] == row else from_row(row)
            except StoreDamaged as error:
                self._office.damaged(row, error)
                continue
            self._known[row.id] = row, task
            tasks.append(task)
        return tasks

    async def _wait(self, agent: Agent) -> None:
        with self._office.aside():
            await agent.when_idle()

    async def _sit_out(self, error: AgentFaulted) -> None:
        """Wait until the faulted agent of the destination is disposed: what is due for it is not lost."""
        self._complain(error)
        agent = self._services.registry.live.get(self._destination.session_id or "")
        if agent is None:
            await self._patience.wait()
            return
        with self._office.aside():
            while self._services.registry.live.get(agent.id) is agent:
                await agent.next_change()

    def _complain(self, error: Exception) -> None:
        destination = self._destination
        where = f"task {destination.task_id}" if destination.session_id is None else f"session {destination.session_id}"
        report(
            logger,
            logging.WARNING,
            "task-delivery-failed",
            "%s: a delivery of tasks failed, trying again",
            where,
            task=destination.task_id,
            session=destination.session_id,
            error=error,
        )
        detail = {} if destination.task_id is None else {"task": destination.task_id}
        self._services.announce(EventKind.DELIVERY_FAILED, destination.session_id or "", error=repr(error), **detail)
