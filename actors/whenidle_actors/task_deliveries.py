"""Which due tasks are delivered when: one alarm for them all, and a sweep when it rings.

A sweep delivers to idle sessions in rounds, many at a time. What waits for something gets a pursuit of its own.

Tasks lie in the store. In memory there is only what is being delivered now.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whenidle_actors.logs import report
from whenidle_actors.observation import EventKind
from whenidle_actors.patience import Patience
from whenidle_actors.task_line import TaskLine
from whenidle_actors.task_pursuit import Destination, Office, TaskPursuit
from whenidle_clock import to_millis

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from whenidle_actors.errors import StoreDamaged
    from whenidle_actors.services import Services
    from whenidle_actors.stores.task_rows import TaskRow
    from whenidle_actors.task_rounds import Place
    from whenidle_protocol.task_admission import Admission
    from whenidle_protocol.task_delivery import Due, Skipped
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import TaskSettings

logger: logging.Logger = logging.getLogger("whenidle.tasks")

_SWEEP = 500
"""Tasks read at a time when many are due; of each only where it goes."""

_REMEMBERED = 10_000
"""Destinations of one sweep that are remembered, so that a session with many tasks is found once."""

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
        self._line = TaskLine(self._office, self._pursue)
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
        seen: set[Destination] = set()
        while not self._services.registry.closing:
            rows = await store.due_destinations(now_millis, after=after, limit=_SWEEP)
            found: dict[Destination, None] = {}
            # What is due for those that were found before in this sweep is read after it began. Whatever is
            # written in between has another sweep follow.
            roomy = self._find((each for row in rows if (each := Destination.of(row)) not in seen), found)
            self._deliver(found)
            seen.update(found)
            if len(seen) >= _REMEMBERED:
                seen.clear()
            await self._line.eased()
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
            after = (rows[-1].next_millis, rows[-1].id)

    def _find(self, due: Iterable[Destination], found: dict[Destination, None]) -> bool:
        """Add the destinations that nobody pursues to those that were `found`, while there is room."""
        for destination in due:
            pursuit = self._pursuits.get(destination)
            place = None if destination.session_id is None else self._line.find(destination.session_id)
            if pursuit is not None:
                pursuit.look_again()
            elif place is not None:
                place.unread = True
            elif destination not in found:
                if self._at_work + len(found) >= _MOST_PURSUITS:
                    self._crowded = True
                    return False
                found[destination] = None
        return True

    def _deliver(self, found: Iterable[Destination]) -> None:
        """Have what was found delivered: to sessions in rounds, and the rest each by a pursuit.

        A probe sees deliveries one by one, so that each stands for itself in a trace.
        """
        for destination in found:
            if destination.session_id is None or self._services.announcer.tracing is not None:
                self._begin(destination)
            else:
                self._line.join(destination.session_id)

    def _pursue(self, session_id: str, failure: Exception | None) -> None:
        if not self._services.registry.closing:
            self._begin(Destination(session_id, None), failure)

    def _begin(self, destination: Destination, failure: Exception | None = None) -> None:
        self._at_work += 1
        pursuit = self._pursuits[destination] = TaskPursuit(self._office, destination, self._line.keeping, failure)
        self._services.start(self._run_pursuit, destination, pursuit)

    async def _run_pursuit(self, destination: Destination, pursuit: TaskPursuit) -> None:
        place: Place | None = None
        try:
            place = await pursuit.run()
        finally:
            del self._pursuits[destination]
            if place is not None:
                self._line.follow(place)
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
