"""Sessions in line for a delivery: found due, or with a one-shot that waits for the end of a turn (SPEC 6.8).

Whoever is in line is delivered to in a round, with as many others as are in line by then. A session that has more due
is in line again when its agent is idle. Meanwhile it costs no task: the agent calls when it changes.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import trio

from whenidle_actors.task_rounds import Keeping, Place, TaskRound
from whenidle_protocol.agent_state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_actors.task_pursuit import Office

    Pursue = Callable[[str, Exception | None], None]
    """Has a session pursued, by its id; with the failure of its last attempt, if it failed."""

_ROUND = 100
"""Sessions that are delivered to together: a thousand tasks share an fsync, and are decided about in some 50 ms."""

_ROUNDS_AT_ONCE = 3
"""Rounds that may have claimed sessions: two wait for their commits while the next is prepared, so that the store
never waits for a decision."""


class TaskLine:
    """The sessions of a host that are delivered to in rounds.

    Args:
        office: the task suite.
        pursue: takes over a session whose delivery is not as usual.
    """

    def __init__(self, office: Office, pursue: Pursue) -> None:
        self._office = office
        self._services = office.services
        self._pursue = pursue
        self._places: dict[str, Place] = {}
        """Of those in line, those in a round, and those whose agent is at work."""
        self._ready: deque[Place] = deque()
        self._fresh: set[str] = set()
        """Sessions that were found due and are in line for the first time."""
        self._room = trio.lowlevel.ParkingLot()
        self._rounds = trio.Semaphore(_ROUNDS_AT_ONCE)
        self._moving = False
        self.keeping: Keeping = Keeping()
        """Bounds what waits in line."""

    def find(self, session_id: str) -> Place | None:
        """Return the place of a session, if it has one."""
        return self._places.get(session_id)

    def join(self, session_id: str) -> None:
        """Put a session that something is due for at the end of the line."""
        place = self._places[session_id] = Place(session_id)
        self._fresh.add(session_id)
        self._put(place)

    def follow(self, place: Place) -> None:
        """Put a session that has more due at the end of the line as soon as its agent is idle.

        If the agent ends instead, the session is pursued.
        """
        self._places[place.session_id] = place
        agent = self._services.registry.live.get(place.session_id)
        if agent is None or agent.phase is Phase.IDLE:
            self._put(place)
        elif agent.ending:
            self._hand_over(place, None)
        else:
            agent.call_on_change(partial(self.follow, place))

    async def eased(self) -> None:
        """Wait while there are enough for a round that were not in one yet, so that more need not be found."""
        while len(self._fresh) >= _ROUND and not self._services.registry.closing:
            await self._room.park()

    def _put(self, place: Place) -> None:
        self._ready.append(place)
        if not self._moving:
            self._moving = True
            self._services.start(self._move)

    async def _move(self) -> None:
        """Form rounds for as long as somebody is in line."""
        try:
            while self._ready and not self._services.registry.closing:
                # Before anybody is claimed: cancelled while it waits, a round has nobody to release.
                await self._rounds.acquire()
                await self._form()
        finally:
            self._moving = False
            self._room.unpark_all()

    async def _form(self) -> None:
        """Prepare a round of those at the head of the line, and have it finished by a task of its own."""
        places = [self._ready.popleft() for _ in range(min(_ROUND, len(self._ready)))]
        self._fresh.difference_update(place.session_id for place in places)
        self._room.unpark_all()
        if self._services.registry.closing or self._services.announcer.tracing is not None:
            # A probe that was attached meanwhile sees deliveries one by one.
            self._rounds.release()
            for place in places:
                self._hand_over(place, None)
            return
        prepared = TaskRound(self._office, places, self.keeping)
        try:
            await prepared.prepare()
        except BaseException:
            self._rounds.release()
            raise
        self._services.start(self._finish, prepared, places)

    async def _finish(self, prepared: TaskRound, places: list[Place]) -> None:
        """Commit a round; have what it leaves over pursued, and whoever has more due follow."""
        try:
            left_over = await prepared.commit()
        finally:
            self._rounds.release()
        for place in places:
            if place.session_id in left_over:
                self._hand_over(place, left_over[place.session_id])
            elif place.over:
                self._leave(place)
            else:
                self.follow(place)

    def _hand_over(self, place: Place, failure: Exception | None) -> None:
        self._leave(place)
        self._pursue(place.session_id, failure)

    def _leave(self, place: Place) -> None:
        self.keeping.drop(place)
        del self._places[place.session_id]
