"""What a host sees to without being asked: whatever has something to do is woken, and what has nothing left rests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from whenidle_actors.errors import AgentDisposed, StoreDamaged, StoreError, UnknownSession
from whenidle_actors.logs import report
from whenidle_actors.observation import EventKind
from whenidle_actors.patience import Patience

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.services import Services
    from whenidle_actors.suites import Suite

logger: logging.Logger = logging.getLogger("whenidle.host")


class Attendance:
    """Brings to a host's suites and agents what the store, the alarm and other processes have for them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.suites: tuple[Suite, ...] = ()
        """The suites that are mounted."""
        self._attends = False
        self._retries: dict[str, Patience] = {}
        """How long to wait before a session that could not be restored is tried again."""

    def add(self, suite: Suite) -> None:
        """Attend to one more suite."""
        self.suites = (*self.suites, suite)
        if self._attends:
            self._services.start(self._attend_for, suite)

    async def begin(self) -> None:
        """Take up what the store says needs a host: set alarms, restore agents that have something to run."""
        async for attention in self._services.journal.store.attention():
            if attention.index.runnable:
                self._services.restore_soon(attention.session_id)
            elif attention.index.due_millis is not None:
                for suite in self.suites:
                    suite.attend(attention.session_id, attention.index.due_millis)
        self._attends = True
        for suite in self.suites:
            suite.look()

    async def _attend_for(self, suite: Suite) -> None:
        """Have a suite that was mounted late take up what the store holds for it."""
        live = self._services.registry.live
        async for attention in self._services.journal.store.attention():
            due_millis = attention.index.due_millis
            if due_millis is not None and attention.session_id not in live:
                suite.attend(attention.session_id, due_millis)
        suite.look()

    async def restore(self, session_id: str) -> None:
        """Make the agent live of a session that has something to do; if it cannot be restored, that is told."""
        try:
            agent = await self._services.registry.restore(session_id)
        except Exception as error:  # noqa: BLE001 - logged; other sessions go on
            report(
                logger,
                logging.ERROR,
                "session-not-restored",
                "session %s cannot be restored",
                session_id,
                session=session_id,
                error=error,
            )
            self._services.announce(EventKind.RESTORE_FAILED, session_id, error=str(error))
            if not isinstance(error, StoreDamaged | UnknownSession):
                self._services.start(self._restore_later, session_id)
        else:
            self._retries.pop(session_id, None)
            # It may have been in memory all along, or its log have grown while it was read.
            self._services.start(self._catch_up, agent)

    async def _restore_later(self, session_id: str) -> None:
        """Have a session restored again whose store did not answer: what is due in it must not be lost."""
        await self._retries.setdefault(session_id, Patience(self._services.random)).wait()
        self._services.restore_soon(session_id)

    async def ring(self) -> None:
        """Fire what comes due, for as long as the host runs."""
        await self._services.alarm.run(self._fire, self._stepped)

    def _fire(self, keys: list[tuple[str, str]]) -> None:
        """Pass on to the suites what the alarm says has come due."""
        suites = {suite.name: suite for suite in self.suites}
        for suite_name, session_id in keys:
            suites[suite_name].due(session_id)

    def _stepped(self, by_millis: float) -> None:
        self._services.announce(EventKind.CLOCK_STEPPED, "", by_millis=round(by_millis))

    async def passivate(self) -> None:
        """Drop quiet agents from memory, for as long as the host runs."""
        await self._services.registry.passivate()

    async def watch(self) -> None:
        """Take up what other processes append to the store (SPEC 3.4)."""
        while True:
            changes = await self._services.journal.store.changed_elsewhere()
            if changes.tasks:
                self._services.announce(EventKind.TASK_CHANGED_ELSEWHERE, "")
                for suite in self.suites:
                    suite.look()
            for session_id in changes.sessions:
                self._take_notice(session_id)

    def _take_notice(self, session_id: str) -> None:
        """Have the agent of a session that others appended to look at its log; `watch` must not hold on to it."""
        self._services.announce(EventKind.SESSION_CHANGED_ELSEWHERE, session_id)
        agent = self._services.registry.live.get(session_id)
        if agent is None:
            self._services.restore_soon(session_id)
        else:
            self._services.start(self._catch_up, agent)

    async def _catch_up(self, agent: Agent) -> None:
        """Have an agent look at its log anew, or its successor, if it is about to end."""

        async def look() -> None:
            try:
                await agent.session.catch_up()
            except StoreError:
                agent.session.drop()
            agent.rouse()
            agent.recompute()

        try:
            await agent.in_mailbox(look)
        except AgentDisposed:
            pass
        except Exception as error:  # noqa: BLE001 - logged; the agent is restored from its log later
            report(
                logger,
                logging.ERROR,
                "session-not-followed",
                "session %s could not look at what was appended",
                agent.id,
                session=agent.id,
                error=error,
            )
        registry = self._services.registry
        if agent.ending and not agent.is_faulted:
            while registry.live.get(agent.id) is agent:
                await agent.next_change()
            if not registry.closing:
                self._services.restore_soon(agent.id)
