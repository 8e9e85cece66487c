"""A host as it is seen from inside: what it says now, and the latest of what happened."""

from __future__ import annotations

import os
from collections import deque
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

import attrs

from whenidle.status.upcoming import upcoming
from whenidle.status.view import (
    AGENTS_SHOWN,
    COMING_SHOWN,
    DELIVERIES_SHOWN,
    STEPS_SHOWN,
    AgentView,
    ClockStep,
    Delivered,
    View,
)
from whenidle_actors.errors import StoreError
from whenidle_actors.observation import EventKind
from whenidle_protocol.agent_state import Phase

if TYPE_CHECKING:
    from collections.abc import Generator
    from datetime import datetime

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.observation import HostEvent


@contextmanager
def watching(host: Host) -> Generator[Board]:
    """Watch a host for as long as the block runs."""
    board = Board(host)
    leave = host.subscribe(board.observe)
    try:
        yield board
    finally:
        leave()


class Board:
    """What is remembered of a host between two looks; bounded, whatever happens."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._began = host.clock.now()
        self._turns: dict[str, tuple[int, datetime]] = {}
        self._deliveries: deque[Delivered] = deque(maxlen=DELIVERIES_SHOWN)
        self._steps: deque[ClockStep] = deque(maxlen=STEPS_SHOWN)

    def observe(self, event: HostEvent) -> None:
        """Take note of an event of the host."""
        detail = event.detail
        match event.kind:
            case EventKind.TURN_STARTED:
                self._turns[event.session_id] = (detail["turn"], event.at)
            case EventKind.TURN_ENDED | EventKind.AGENT_DISPOSED:
                self._turns.pop(event.session_id, None)
            case EventKind.REMINDER_DELIVERED:
                self._deliver(event, detail["reminders"])
            case EventKind.TASK_DELIVERED:
                self._deliver(event, detail["tasks"])
            case EventKind.CLOCK_STEPPED:
                self._steps.appendleft(ClockStep(event.at, detail["by_millis"]))
            case _:
                pass

    def _deliver(self, event: HostEvent, ids: list[str]) -> None:
        late_millis = max(event.detail["late_millis"], default=0)
        what = ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
        self._deliveries.appendleft(Delivered(event.at, event.session_id, what, late_millis))

    async def look(self) -> View:
        """Return what there is to see now; what the store does not give at the moment is left out.

        It takes two short reads of the store, and a look at the phase of each live agent.
        """
        host = self._host
        load = host.load()
        view = View(
            store=host.store.name,
            now=host.clock.now(),
            pid=os.getpid(),
            began=self._began,
            agent_count=load.agents,
            running=load.turns,
            waiting=load.turns_waiting,
            deliveries=tuple(self._deliveries),
            steps=tuple(self._steps),
            agents=self._agents(),
        )
        try:
            coming, task_count = await upcoming(host.store, COMING_SHOWN)
        except StoreError:
            return view
        return attrs.evolve(view, coming=coming, task_count=task_count)

    def _agents(self) -> tuple[AgentView, ...]:
        agents = self._host.agents
        busy = (agent for agent in agents if agent.phase is not Phase.IDLE)
        idle = (agent for agent in agents if agent.phase is Phase.IDLE)
        return tuple(self._agent(agent) for agent in islice(chain(busy, idle), AGENTS_SHOWN))

    def _agent(self, agent: Agent) -> AgentView:
        statistics = agent.statistics()
        turn, began = self._turns.get(agent.id, (None, None))
        phase = "faulted" if agent.is_faulted else statistics.phase.value
        return AgentView(agent.id, phase, statistics.depth, statistics.pending, turn, began)
