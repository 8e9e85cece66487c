"""A store as it is seen without its host: phases are derived from the logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle.status.upcoming import upcoming
from whenidle.status.view import AGENTS_SHOWN, COMING_SHOWN, DELIVERIES_SHOWN, AgentView, Delivered, View
from whenidle_actors.errors import StoreError
from whenidle_actors.session import Journal, Session
from whenidle_actors.task_rows import from_row
from whenidle_clock import to_millis

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Store, TaskRow
    from whenidle_clock import Clock
    from whenidle_protocol.session_state import SessionState

_LOGS_READ = 40
"""Sessions whose logs are read, those first that have something to do; of the others the index has to do."""


class StoreReader:
    """Looks at a store again and again. Logs are read once, and from then on what was appended.

    Args:
        store: open, as a manager.
        clock: says what time it is.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._journal = Journal(store, clock)
        self._sessions: dict[str, Session] = {}

    async def look(self) -> View:
        """Return what there is to see now.

        Raises:
            StoreError: the store cannot be read.
        """
        store, clock = self._journal.store, self._journal.clock
        agents: list[AgentView] = []
        running = 0
        async for each in store.attention():
            state = await self._state(each.session_id) if len(agents) < _LOGS_READ else None
            view = _of_log(each.session_id, state, runnable=each.index.runnable)
            running += view.turn is not None
            agents.append(view)
            if len(agents) == AGENTS_SHOWN:
                break
        self._sessions = {view.session: session for view in agents if (session := self._sessions.get(view.session))}
        coming, task_count = await upcoming(store, COMING_SHOWN)
        return View(
            store=store.name,
            now=clock.now(),
            agent_count=len(agents),
            running=running,
            task_count=task_count,
            agents=tuple(agents),
            coming=coming,
            deliveries=await self._deliveries(),
        )

    async def _state(self, session_id: str) -> SessionState | None:
        """Return the state of a session; None if its log cannot be read."""
        try:
            session = self._sessions.get(session_id)
            if session is None:
                session = self._sessions[session_id] = await Session.load(self._journal, session_id)
            return await session.catch_up()
        except StoreError:
            self._sessions.pop(session_id, None)
            return None

    async def _deliveries(self) -> tuple[Delivered, ...]:
        """Return the last delivery of each task that comes due next or ended last, the latest first."""
        store = self._journal.store
        active = await store.tasks(active=True, limit=DELIVERIES_SHOWN)
        others = await store.tasks(active=False, limit=DELIVERIES_SHOWN)
        found = [delivered for row in (*active.rows, *others.rows) if (delivered := _last_of(row)) is not None]
        return tuple(sorted(found, key=lambda each: each.at, reverse=True)[:DELIVERIES_SHOWN])


def _of_log(session_id: str, state: SessionState | None, *, runnable: bool) -> AgentView:
    view = AgentView(session_id, "waiting" if runnable else "asleep")
    if state is None:
        return view
    view = attrs.evolve(view, inbox=len(state.inbox))
    return view if state.turn is None else attrs.evolve(view, phase="turn open", turn=state.turn.number)


def _last_of(row: TaskRow) -> Delivered | None:
    try:
        task = from_row(row)
    except StoreError:
        return None
    last = task.last_delivery
    if last is None:
        return None
    late_millis = to_millis(last.delivered_at) - to_millis(last.scheduled_at)
    return Delivered(last.delivered_at, last.target_session_id, task.title, late_millis)
