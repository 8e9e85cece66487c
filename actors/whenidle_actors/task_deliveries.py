"""Which due tasks are delivered when: one alarm for them all, and a sweep when it rings.

A sweep delivers to idle sessions in rounds, many at a time. What waits for something gets a pursuit of its own.

Tasks lie in the store. In memory there is only what is being delivered now.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio

from whenidle_actors.logs import report
from whenidle_actors.observation import EventKind
from whenidle_actors.patience import Patience
from whenidle_actors.task_pursuit import Destination, Office, TaskPursuit
from whenidle_actors.task_rounds import TaskRound
from whenidle_clock import to_millis

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from whenidle_actors.errors import StoreDamaged
    from whenidle_actors.services import Services
    from whenidle_actors.stores.task_rows import TaskRow
    from whenidle_protocol.task_admission import Admission
    from whenidle_protocol.task_delivery import Due, Skipped
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import TaskSettings

logger: logging.Logger = logging.getLogger("whenidle.tasks")

_SWEEP = 500
"""Rows read at a time when many tasks are due."""

_ROUND = 100
"""Sessions that are delivered to together: a thousand tasks share an fsync, and are decided about in some 50 ms."""

_ROUNDS_AT_ONCE = 3
"""Rounds that may have claimed sessions: two wait for their commits while the next is prepared, so that the store
never waits for a decision."""

_MOST_PURSUITS = 1_000
"""Destinations delivered to at once; more wait in the store until there is room.

Enough for a store to share each fsync among many. Those that only wait until an agent is idle do not count:
there are no more of them than agents at work.
"""


class TaskDeliveries:
    """Delivers the tasks of a host as they come due.

    Args:
        services: the host.
        settings: the host's choices.
        name: that of the suite, for its key with the host's alarm.
    """

    def __init__(self, services: Services, settings: TaskSettings, name: str) -> None:
        self._services = services
        self._key = (name, "")
        self._office = Office(services, settings, self._arm, self.admitted, self._aside, self._damaged, self._decided)
        self._pursuits: dict[Destination, TaskPursuit] = {}
        self._at_work = 0
        """How many of them do more than wait for an agent."""
        self._crowded = False
        """Whether something was due and there was no room for another pursuit."""
        self._sweeping = False
        self._again = False
        self._swept_millis = 0
        """What the wall showed at the last sweep."""
        self._reported: set[tuple[str, int]] = set()
        """Tasks that cannot be read, and in which version, that were complained about."""

    def look(self) -> None:
        """Look at what is due in the store, and when something is next. Never blocks."""
        self._again = True
        if not self._sweeping:
            self._sweeping = True
            self._services.start(self._sweep)

    def changed(self, task: Task | None) -> None:
        """Take note of a task that was written."""
        if task is not None and task.next_at is not None:
            self._arm(to_millis(task.next_at))

    def _arm(self, at_millis: int) -> None:
        """Have the alarm ring then at the latest; ringing early costs one look at the store."""
        alarm = self._services.alarm
        armed = alarm.target(self._key)
        alarm.arm(self._key, at_millis if armed is None else min(armed, at_millis))

    async def _sweep(self) -> None:
        """Begin a pursuit wherever something is due, and set the alarm for what comes next."""
        patience = Patience(self._services.random)
        try:
            while self._again and not self._services.registry.closing:
                self._again = False
                try:
                    await self._sweep_once()
                except Exception as error:  # noqa: BLE001 - whatever it was, what is due must not be lost
                    report(
                        logger, logging.WARNING, "tasks-not-read", "due tasks cannot be read, trying again", error=error
                    )
                    self._again = True
                    await patience.wait()
        finally:
            self._sweeping = False

    async def _sweep_once(self) -> None:
        store = self._services.journal.store
        now_millis = self._swept_millis = self._services.clock.now_millis()
        after: tuple[int, str] | None = None
        while not self._services.registry.closing:
            rows = await store.due_tasks(now_millis, after=after, limit=_SWEEP)
            found: dict[Destination, None] = {}
            roomy = self._find(rows, found)
            await self._deliver(found)
            if not roomy:
                if self._at_work >= _MOST_PURSUITS:
                    break  # `_leave` looks again
                self._crowded = False
                continue
            if len(rows) < _SWEEP:
                next_millis = await store.next_due(now_millis)
                if next_millis is not None:
                    self._arm(next_millis)
                break
            after = (rows[-1].next_millis or 0, rows[-1].id)

    def _find(self, rows: Iterable[TaskRow], found: dict[Destination, None]) -> bool:
        """Add the destinations of `rows` that nobody pursues to those that were `found`, while there is room."""
        for row in rows:
            destination = Destination.of(row)
            pursuit = self._pursuits.get(destination)
            if pursuit is not None:
                pursuit.look_again()
            elif destination not in found:
                if self._at_work + len(found) >= _MOST_PURSUITS:
                    self._crowded = True
                    return False
                found[destination] = None
        return True

    async def _deliver(self, found: Iterable[Destination]) -> None:
        """Deliver to what was found: to idle sessions in rounds, and to the others each by a pursuit.

        A probe sees deliveries one by one, so that each stands for itself in a trace.
        """
        together: list[str] = []
        for destination in found:
            if destination.session_id is None or self._services.announcer.tracing is not None:
                self._begin(destination)
            else:
                together.append(destination.session_id)
        places = trio.Semaphore(_ROUNDS_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for start in range(0, len(together), _ROUND):
                # Before anybody is claimed: cancelled while it waits, a round has nobody to release.
                await places.acquire()
                if self._services.registry.closing:
                    break
                next_round = TaskRound(self._office, together[start : start + _ROUND])
                await next_round.prepare()
                nursery.start_soon(self._finish, next_round, places)

    async def _finish(self, prepared: TaskRound, places: trio.Semaphore) -> None:
        """Commit a round, and have what it leaves over pursued."""
        try:
            for session_id, error in (await prepared.commit()).items():
                self._begin(Destination(session_id, None), error)
        finally:
            places.release()

    def _begin(self, destination: Destination, failure: Exception | None = None) -> None:
        self._at_work += 1
        pursuit = self._pursuits[destination] = TaskPursuit(self._office, destination, failure)
        self._services.start(self._run_pursuit, destination, pursuit)

    async def _run_pursuit(self, destination: Destination, pursuit: TaskPursuit) -> None:
        try:
            await pursuit.run()
        finally:
            del self._pursuits[destination]
            self._leave()

    @contextmanager
    def _aside(self) -> Generator[None]:
        self._leave()
        try:
            yield
        finally:
            self._at_work += 1

    def _decided(self, now_millis: int) -> None:
        """Look again if the clock was set back since the sweep: the alarm knows of nothing that is due in between."""
        if now_millis < self._swept_millis:
            self.look()

    def _leave(self) -> None:
        """Make room, and take up what there was no room for when half of it is free."""
        self._at_work -= 1
        if self._crowded and self._at_work <= _MOST_PURSUITS // 2:
            self._crowded = False
            self.look()

    def admitted(self, admission: Admission) -> None:
        """Tell of what is in an inbox now, and take note of what comes next."""
        decided: tuple[Due | Skipped, ...] = (*admission.delivered, *admission.skipped)
        following = [each.after.scheduled_at for each in decided if each.after.active]
        if following:
            self._arm(to_millis(min(following)))
        if admission.delivered and self._services.announcer.heard:
            self._services.announce(
                EventKind.TASK_DELIVERED,
                admission.delivered[0].session_id,
                tasks=[due.task.id for due in admission.delivered],
                late_millis=[due.late_millis for due in admission.delivered],
                missed=[due.missed for due in admission.delivered],
            )

    def _damaged(self, row: TaskRow, error: StoreDamaged) -> None:
        """Complain once about a task that is due and cannot be read; it stays as it is, and others go on."""
        version = (row.id, row.updated_millis)
        if version not in self._reported:
            self._reported.add(version)
            report(
                logger,
                logging.ERROR,
                "task-damaged",
                "task %s is due, cannot be read and is not delivered",
                row.id,
                task=row.id,
                error=error,
            )
            self._services.announce(EventKind.DELIVERY_FAILED, row.session_id or "", task=row.id, error=str(error))
