"""The reminder suite: session-local reminders, made by tools and delivered when due and idle (SPEC 5).

An agent's next target lies with the host's alarm. When it has come, a *pursuit* runs until nothing is
due: it claims the agent for maintenance as soon as it is idle, decides again inside the claim, and puts
the message and its dispatch into the log in one commit.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import trio

from whenidle_actors import reminder_calls
from whenidle_actors.errors import (
    AgentBusy,
    AgentDisposed,
    AgentFaulted,
    CompositionError,
    MaintenanceAborted,
    StoreDamaged,
    UnknownSession,
)
from whenidle_actors.logs import report
from whenidle_actors.observation import EventKind
from whenidle_actors.patience import Patience
from whenidle_actors.probe import Work
from whenidle_clock import from_millis, to_millis
from whenidle_protocol import reminder_changes
from whenidle_protocol.errors import ToolError
from whenidle_protocol.reminders import Batch, Nothing, OneShot
from whenidle_protocol.tool_schemas import reminder_tools
from whenidle_protocol.tools import MAX_PROMPT_BYTES, internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from whenidle_actors.agent import Agent
    from whenidle_actors.agent_core import AgentCore
    from whenidle_actors.services import Services
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.reminders import Decision
    from whenidle_protocol.session_state import SessionState
    from whenidle_protocol.tool_schemas import ToolSchema
    from whenidle_protocol.tools import Request
    from whenidle_protocol.turn_changes import Decided

logger: logging.Logger = logging.getLogger("whenidle.reminders")


class _Pursuit:
    """The delivery of what is due in one session."""

    __slots__ = ("nap", "scope")

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.nap = trio.CancelScope()
        """The wait before it tries again."""


class Reminders:
    """The suite of `schedule_create`, `schedule_list` and `schedule_delete` for reminders.

    Args:
        fixed_rate: False offers the one-shot protocol alone: no `every_seconds`, and a log that holds an
            `every` reminder is corrupt (SPEC 5.4).
        max_prompt_bytes: the longest prompt, in bytes of UTF-8; 64 KiB if not given.
        presets: the presets whose root agents get reminders; all root agents, if not given.
    """

    name = "reminders"

    def __init__(
        self,
        *,
        fixed_rate: bool = True,
        max_prompt_bytes: int = MAX_PROMPT_BYTES,
        presets: Sequence[str] | None = None,
    ) -> None:
        self.fixed_rate: bool = fixed_rate
        self.presets: frozenset[str] | None = None if presets is None else frozenset(presets)
        """See `Suite.presets`."""
        self._max_prompt_bytes = max_prompt_bytes
        self._tools = reminder_tools(fixed_rate=fixed_rate, max_prompt_bytes=max_prompt_bytes)
        self._services: Services | None = None
        self._pursued: dict[str, _Pursuit] = {}
        """The pursuit of each session that has one; a newer one may begin before the older has quite ended."""

    def mounted(self, services: Services) -> None:
        """See `Suite.mounted`.

        Raises:
            CompositionError: it is mounted already, or the host's other suites read logs differently.
        """
        if self._services is not None:
            raise CompositionError("this Reminders suite is mounted already; make one for each host")
        if services.journal.fixed_rate != self.fixed_rate:
            raise CompositionError(
                "Reminders(fixed_rate=False) changes how logs are read: give it to open_host, in suites"
            )
        self._services = services

    @property
    def services(self) -> Services:
        """The host it is mounted on.

        Raises:
            CompositionError: it is not mounted.
        """
        if self._services is None:
            raise CompositionError("this Reminders suite is not mounted on a host")
        return self._services

    def suits(self, header: SessionHeader) -> bool:
        """See `Suite.suits`: root agents only (SPEC 5.1), and by preset."""
        return header.delegation_depth == 0 and (self.presets is None or header.preset in self.presets)

    def tools(self) -> Sequence[ToolSchema]:
        """See `Suite.tools`."""
        return self._tools

    async def call(self, agent: Agent, tool: str, arguments: Mapping[str, Any]) -> Any:
        """See `Suite.call`."""
        try:
            request = reminder_calls.read(
                tool, arguments, fixed_rate=self.fixed_rate, max_prompt_bytes=self._max_prompt_bytes
            )
            return await agent.in_queue(lambda: self._serve(agent, request))
        except ToolError as error:
            if error.__cause__ is not None:
                _log_failure(agent, tool, error)
            return error.answer()
        except (AgentDisposed, AgentFaulted):
            raise
        except Exception as error:  # noqa: BLE001 - logged; what it says is no business of the model's
            _log_failure(agent, tool, error)
            return internal_error().answer()

    async def _serve(self, agent: AgentCore, request: Request) -> Any:
        """Answer a call in the agent's mailbox, and have what is due looked at once the log is no longer in doubt."""
        await reminder_calls.preflight(agent.session, request)
        try:
            return await reminder_calls.serve(agent.session, request, self.services.announcer.tracing)
        finally:
            self.recompute(agent)

    def look(self) -> None:
        """See `Suite.look`: reminders are the sessions' own."""

    def attend(self, session_id: str, due_millis: int) -> None:
        """See `Suite.attend`."""
        self.services.alarm.arm((self.name, session_id), due_millis)

    def due(self, session_id: str) -> None:
        """See `Suite.due`."""
        agent = self.services.registry.live.get(session_id)
        if agent is None:
            self.services.restore_soon(session_id)
        elif self in agent.suites:
            self.recompute(agent)

    def recompute(self, agent: AgentCore) -> None:
        """See `Suite.recompute`: begin a pursuit if something is due or in doubt, else set the alarm."""
        pursuit = self._pursued.get(agent.name)
        if pursuit is not None:
            if agent.session.confirmed_state is not None:
                pursuit.nap.cancel()  # the store answers again (SPEC 5.6)
        elif not agent.ending and self._wants_pursuit(agent):
            pursuit = self._pursued[agent.name] = _Pursuit()
            self.services.start(self._pursue, agent, pursuit)

    def release(self, session_id: str) -> None:
        """See `Suite.release`. A pursuit may be waiting to try again, and would outlive its agent."""
        self.services.alarm.disarm((self.name, session_id))
        pursuit = self._pursued.pop(session_id, None)
        if pursuit is not None:
            pursuit.scope.cancel("the agent is ending")

    def _wants_pursuit(self, agent: AgentCore) -> bool:
        """Return whether something is due, or the log is in doubt; if not, set the alarm for what comes next."""
        state = agent.session.confirmed_state
        if state is None:
            return True
        key, earliest = (self.name, agent.name), state.reminders.earliest_millis()
        if earliest is None:
            self.services.alarm.disarm(key)
            return False
        if earliest <= agent.session.now_millis:
            return True
        self.services.alarm.arm(key, earliest)
        return False

    async def _pursue(self, agent: Agent, pursuit: _Pursuit) -> None:
        """Deliver until nothing is due."""
        patience = Patience(self.services.random)
        try:
            with pursuit.scope:
                while await self._attempt(agent, pursuit, patience):
                    pass
        except (AgentDisposed, AgentFaulted):
            pass
        finally:
            if self._pursued.get(agent.name) is pursuit:
                del self._pursued[agent.name]

    async def _attempt(self, agent: Agent, pursuit: _Pursuit, patience: Patience) -> bool:
        """Try one delivery, and return whether there may be another."""
        try:
            if not await self._is_wanted(agent):
                return False
            await agent.admit(lambda withdrawn: self._admit(agent, withdrawn))
            patience.reset()
        except (AgentDisposed, AgentFaulted):
            raise
        except AgentBusy:
            await agent.when_idle()
        except MaintenanceAborted:
            pass
        except (StoreDamaged, UnknownSession) as error:
            agent.lose_log(error)
            return False
        except Exception as error:  # noqa: BLE001 - whatever it was, what is due must not be lost
            report(
                logger,
                logging.WARNING,
                "reminder-delivery-failed",
                "session %s: a delivery failed, trying again",
                agent.name,
                session=agent.name,
                error=error,
            )
            self.services.announce(EventKind.DELIVERY_FAILED, agent.name, error=repr(error))
            with trio.CancelScope() as pursuit.nap:
                await patience.wait()
        return True

    async def _is_wanted(self, agent: AgentCore) -> bool:
        """Return whether something is due; if not, the pursuit is over from this very moment on."""
        if agent.session.confirmed_state is not None:
            return self._look(agent)  # no need to wait for the mailbox: whoever changes the session leaves it in doubt
        return await agent.in_mailbox(lambda: self._read_back(agent))

    async def _read_back(self, agent: AgentCore) -> bool:
        await agent.session.confirm()
        return self._look(agent)

    def _look(self, agent: AgentCore) -> bool:
        wanted = not agent.ending and self._wants_pursuit(agent)
        if not wanted:
            self._pursued.pop(agent.name, None)
        return wanted

    async def _admit(self, agent: Agent, withdrawn: Callable[[], bool]) -> None:
        """Put what is due now into the inbox, by a decision of its own: the clock may have been set back."""
        session = agent.session

        # Asked when the fold is there: reading a log back takes time, and much can happen in it.
        def deliver(state: SessionState) -> Decided[Decision]:
            return ((), Nothing()) if withdrawn() else reminder_changes.deliver(state, from_millis(session.now_millis))

        announcer = self.services.announcer
        with announcer.work(Work.DELIVERY, agent.name) as note:
            delivered = _delivered(await session.decide(deliver))
            ids = [reminder for reminder, _ in delivered]
            late_millis = [session.now_millis - to_millis(due) for _, due in delivered]
            if delivered:
                self.services.announce(EventKind.REMINDER_DELIVERED, agent.name, reminders=ids, late_millis=late_millis)
            traces = await announcer.traces(self.services.journal.store, [(agent.name, reminder) for reminder in ids])
            note(schedules=ids, traces=traces, late_millis=late_millis)


def _log_failure(agent: AgentCore, tool: str, error: Exception) -> None:
    report(
        logger,
        logging.WARNING,
        "tool-failed",
        "session %s: %s failed",
        agent.name,
        tool,
        session=agent.name,
        tool=tool,
        error=error,
    )


def _delivered(decision: Decision) -> list[tuple[str, datetime]]:
    """Return what a decision has delivered: ids of reminders, and the occurrence of each."""
    if isinstance(decision, OneShot):
        return [(decision.record.id, decision.record.scheduled_at)]
    if isinstance(decision, Batch):
        return [(item.record.id, item.occurrence_at) for item in decision.items]
    return []
