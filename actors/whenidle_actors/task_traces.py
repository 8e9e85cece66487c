"""Deliveries of tasks as a probe sees them (SPEC 7.4)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from whenidle_actors.probe import Work

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from whenidle_actors.announcer import Announcer
    from whenidle_actors.stores.base import Store
    from whenidle_protocol.task_admission import Admission


@contextmanager
def delivering(announcer: Announcer, admission: Admission) -> Generator[Callable[[Store], Awaitable[None]]]:
    """Wrap the commit of `admission`, if it delivers anything; yields what to call with the store behind it."""
    tracing, dues = announcer.tracing, admission.delivered
    if tracing is None or not dues:
        yield _nothing
        return
    with tracing.probe.work(Work.DELIVERY, dues[0].session_id, {}) as note:

        async def delivered(store: Store) -> None:
            note(
                schedules=[due.task.id for due in dues],
                traces=await tracing.traces(store, [(due.task.creator, due.task.id) for due in dues]),
                late_millis=[due.late_millis for due in dues],
            )

        yield delivered


async def _nothing(_: Store) -> None:
    """Take no notice."""
