"""From the creation of a reminder or task to its delivery, however much later and in whatever process (SPEC 7.4)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from whenidle_actors.errors import StoreError
from whenidle_actors.logs import report
from whenidle_protocol.trace_context import read_trace, trace_event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.probe import Probe
    from whenidle_actors.session import Session
    from whenidle_actors.stores.base import Store
    from whenidle_protocol.events import Ignored

logger: logging.Logger = logging.getLogger("whenidle.telemetry")

_REMEMBERED = 10_000
"""Schedules whose trace is kept in memory, at some 300 bytes each; that of any other is looked up in its log."""


class Tracing:
    """An attached probe, and what is known of the traces in which schedules were created."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._traces: OrderedDict[tuple[str, str], str | None] = OrderedDict()

    def created(self, session_id: str, schedule_id: str) -> Ignored | None:
        """Return what is to be kept in the log of the session that creates a schedule; None if it is not traced."""
        trace = self.probe.trace()
        if trace is None:
            return None
        self._remember(session_id, schedule_id, trace)
        return trace_event(schedule_id, trace)

    async def keep(self, session: Session, schedule_id: str) -> None:
        """Keep the trace in which a task was created in the log of its creator, by a commit of its own.

        That one may fail: the task is durable, and a delivery without a link is a delivery.
        """
        event = self.created(session.header.id, schedule_id)
        if event is not None:
            try:
                await session.decide(lambda _: ((event,), None))
            except StoreError as error:
                report(
                    logger,
                    logging.DEBUG,
                    "trace-not-kept",
                    "session %s: a trace cannot be kept",
                    session.header.id,
                    session=session.header.id,
                    error=error,
                )

    async def traces(self, store: Store, schedules: Sequence[tuple[str, str]]) -> list[str | None]:
        """Return the traces in which schedules were created, given as session id and schedule id.

        A log is read once for all that it says. What cannot be read has no trace.
        """
        for session_id in dict.fromkeys(session for session, _ in schedules):
            wanted = [schedule for session, schedule in schedules if session == session_id]
            if any((session_id, schedule) not in self._traces for schedule in wanted):
                await self._look_up(store, session_id, wanted)
        return [self._traces.get(key) for key in schedules]

    async def _look_up(self, store: Store, session_id: str, wanted: Sequence[str]) -> None:
        found: dict[str, str] = {}
        if session_id:
            try:
                records = (await store.read(session_id)).records
            except StoreError as error:
                report(
                    logger,
                    logging.DEBUG,
                    "traces-not-read",
                    "session %s: the traces of its schedules cannot be read",
                    session_id,
                    session=session_id,
                    error=error,
                )
                return
            found = dict(filter(None, map(read_trace, records)))
        for schedule in wanted:
            self._remember(session_id, schedule, found.get(schedule))

    def _remember(self, session_id: str, schedule_id: str, trace: str | None) -> None:
        self._traces[session_id, schedule_id] = trace
        self._traces.move_to_end((session_id, schedule_id))
        if len(self._traces) > _REMEMBERED:
            self._traces.popitem(last=False)
