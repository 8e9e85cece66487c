"""Getting at the inbox a task is delivered to: the agent restored and claimed, or the session created (SPEC 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.errors import (
    AgentBusy,
    AgentDisposed,
    CommitUncertain,
    InvalidArgument,
    SessionExists,
    UnknownSession,
)
from whenidle_actors.task_commits import admit_to, admit_to_new, creates_session
from whenidle_actors.task_traces import delivering
from whenidle_protocol.task_admission import Admission

_SHOWN_OF_AN_ID = 128

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_actors.services import Services
    from whenidle_actors.task_commits import Choose, Note

    Wait = Callable[[Agent], Awaitable[object]]
    """Waits until the agent is idle; raises as `Agent.when_idle`."""


async def admit_when_idle(
    services: Services, session_id: str | None, choose: Choose, note: Note, wait: Wait
) -> Admission:
    """Put what `choose` says into the inbox of a session, which is restored or created if need be.

    An empty admission says that nothing was to be delivered at that moment.

    Args:
        services: the host.
        session_id: where it goes; None for a session that the occurrence names.
        choose: asked when the agent is claimed, and asked again if that had to be put off.
        note: told of what was admitted.
        wait: waits for the agent while it is busy.

    Raises:
        UnknownSession: there is no such session, and it is not the tasks' to create.
        AgentDisposed: the agent ended meanwhile, and its session can be restored; or the host stops.
        AgentFaulted, MaintenanceAborted, TaskConflict, StoreError: nothing changed, unless it is CommitUncertain.
    """
    if session_id is not None:
        try:
            agent = await _restored(services, session_id)
        except UnknownSession as unknown:
            return await _admit_to_new(services, choose, note, wait, unknown)
        return await _admit_to_agent(services, agent, choose, note, wait)
    return await _admit_to_new(services, choose, note, wait, None)


async def _restored(services: Services, session_id: str) -> Agent:
    """Return the agent of a session, live.

    Raises:
        UnknownSession: there is no such session, nor could there be.
        AgentDisposed: the host stops.
        StoreError: it cannot be read.
    """
    if services.registry.closing:
        raise AgentDisposed(f"the host stops: agent {session_id!r} is not restored; its session is kept")
    try:
        return await services.registry.restore(session_id)
    except InvalidArgument:
        raise UnknownSession(session_id[:_SHOWN_OF_AN_ID]) from None


async def _admit_to_agent(services: Services, agent: Agent, choose: Choose, note: Note, wait: Wait) -> Admission:
    """Claim the agent as soon as it is idle, without a checkpoint between that and the claim."""

    async def admit(withdrawn: Callable[[], bool]) -> Admission:
        chosen = await choose()
        admission = Admission() if withdrawn() else chosen
        with delivering(services.journal.announcer, admission) as delivered:
            await admit_to(agent.session, services.journal, admission, note)
            await delivered(services.journal.store)
        return admission

    while True:
        try:
            return await agent.admit(admit)
        except AgentBusy:
            await wait(agent)


async def _admit_to_new(
    services: Services, choose: Choose, note: Note, wait: Wait, unknown: UnknownSession | None
) -> Admission:
    admission = await choose()
    if admission.delivered and not creates_session(admission):
        raise unknown or UnknownSession(admission.delivered[0].session_id)
    try:
        with delivering(services.journal.announcer, admission) as delivered:
            await admit_to_new(services.journal, admission, note)
            await delivered(services.journal.store)
    except SessionExists as found:
        return await _admit_to_found(services, found.session_id, choose, note, wait)
    except CommitUncertain:
        _take_up(services, admission)  # it may be there, and then it is to run
        raise
    _take_up(services, admission)
    return admission


async def _admit_to_found(services: Services, session_id: str, choose: Choose, note: Note, wait: Wait) -> Admission:
    """Deliver to a session that the occurrence names and that was there already, while it names that one."""
    moved = False

    async def choose_here() -> Admission:
        nonlocal moved
        admission = await choose()
        moved = any(due.session_id != session_id for due in admission.delivered)
        return Admission() if moved else admission

    admission = await _admit_to_agent(services, await _restored(services, session_id), choose_here, note, wait)
    return await _admit_to_new(services, choose, note, wait, None) if moved else admission


def _take_up(services: Services, admission: Admission) -> None:
    """Have the agent of a session that was created start to work."""
    for session_id in {due.session_id for due in admission.delivered}:
        services.restore_soon(session_id)
