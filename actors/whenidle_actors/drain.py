"""A drain of turns: the task that runs an agent's turns until there is no reason to run another."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from whenidle_actors.activity import inside
from whenidle_actors.errors import AgentDisposed, AgentFaulted, StoreDamaged, UnknownSession
from whenidle_actors.logs import report, text_of
from whenidle_actors.observation import EventKind
from whenidle_actors.patience import Patience
from whenidle_actors.probe import Work
from whenidle_actors.turn import Redelivery, Turn
from whenidle_protocol import turn_changes
from whenidle_protocol.agent_state import Effect, Event, Phase
from whenidle_protocol.events import Outcome, TurnEnded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("whenidle.turns")

LONGEST_CAUSE = 500
"""Characters of an exception that are kept in the log: enough to recognise it; the rest is in `logging`."""


async def drain(agent: Agent) -> None:
    """Run turns until the log gives no reason for another, or the agent is ending.

    What has to be written is tried until it is written. An agent that is ending does not insist: the turn
    stays open in the log, and is found so by whoever opens the session next.
    """
    writer = _Writer(agent)
    try:
        if _may_hold_orphan(agent):
            await writer.insist(lambda: _close_orphan(agent))
        more = True
        while more:
            if await _got_slot(agent):
                try:
                    more = await _run_next(agent, writer)
                finally:
                    agent.services.turn_slots.release()
            else:
                more = await writer.insist(lambda: _may_go_on(agent))
    except (AgentDisposed, AgentFaulted, _GaveUp):
        agent.activity = None
        if agent.phase is not Phase.DISPOSED:
            agent.step(Event.TURN_ENDED)


class _GaveUp(Exception):
    """The agent is ending, and its store does not take what there is to say or cannot be read."""


class _Writer:
    """Has things written, however often it takes."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._patience = Patience(agent.services.random)

    async def insist(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run `operation` in the mailbox until it succeeds."""
        agent = self._agent
        while True:
            try:
                answer = await agent.in_mailbox(operation)
            except (AgentDisposed, AgentFaulted):
                raise
            except (StoreDamaged, UnknownSession) as error:
                agent.lose_log(error)
                raise _GaveUp from error
            except Exception as error:  # noqa: BLE001 - whatever it was, it is logged
                report(
                    logger,
                    logging.WARNING,
                    "turn-not-recorded",
                    "session %s: a turn could not be recorded, trying again",
                    agent.name,
                    session=agent.name,
                    error=error,
                )
                await self._pause()
            else:
                self._patience.reset()
                return answer

    async def _pause(self) -> None:
        """Wait for the next try; a cancel or disposal ends the wait."""
        agent = self._agent
        if not agent.ending and agent.activity is not None:
            with agent.activity.guard():
                await self._patience.wait()
        if agent.ending:
            raise _GaveUp


async def _got_slot(agent: Agent) -> bool:
    """Take a slot to run a turn in (SPEC 2.11); return False if the agent was cancelled while it waited."""
    slots, activity = agent.services.turn_slots, agent.activity
    assert activity is not None  # noqa: S101 - a drain is an activity
    try:
        slots.acquire_nowait()
    except trio.WouldBlock:
        with activity.guard() as wait:
            await slots.acquire()
        return not wait.cancelled_caught
    return True


async def _run_next(agent: Agent, writer: _Writer) -> bool:
    """Run the next turn if there is a reason to, and return whether the drain goes on."""
    turn = await writer.insist(lambda: _begin(agent))
    if turn is None:
        return False
    facts = {"turn": turn.number, "attempt": turn.attempt, "messages": [message.id for message in turn.messages]}
    with agent.services.announcer.work(Work.TURN, agent.name, **facts) as note:
        end = await _run(agent, turn)
        note(outcome=end.outcome.value)
    return await writer.insist(partial(_end, agent, end))


def _redelivers(agent: Agent) -> bool:
    return agent.services.redelivery is Redelivery.AT_LEAST_ONCE


def _may_hold_orphan(agent: Agent) -> bool:
    """Return False only if the log holds no open turn; known without waiting for the mailbox, as in `rouse`."""
    state = agent.session.confirmed_state
    return state is None or state.turn is not None


async def _close_orphan(agent: Agent) -> None:
    """End a turn that nothing runs any more: this drain has not begun one."""
    redeliver = _redelivers(agent)
    end = await agent.session.decide(lambda state: turn_changes.close_orphan(state, redeliver=redeliver))
    if end is not None:
        _tell_of(agent, end)


async def _begin(agent: Agent) -> Turn | None:
    """Start the next turn, or let the agent become idle, in the mailbox: nothing can come in between."""
    session, activity = agent.session, agent.activity
    assert activity is not None  # noqa: S101 - a drain is an activity
    if not agent.ending:
        if (await session.confirm()).turn is None:
            activity.begin()
        await session.decide(turn_changes.begin_turn)
    turn = (await session.confirm()).turn
    if turn is None:
        _become_idle(agent)
        return None
    activity.handed = len(turn.claimed)
    if agent.services.announcer.heard:
        agent.services.announce(
            EventKind.TURN_STARTED,
            agent.name,
            turn=turn.number,
            attempt=turn.attempt,
            messages=[message.id for message in turn.claimed],
        )
    return Turn(agent, turn.number, turn.claimed, turn.attempt)


async def _may_go_on(agent: Agent) -> bool:
    """Return whether there is still a reason to run; if not, let the agent become idle."""
    if not agent.ending and (await agent.session.confirm()).has_reason_to_run:
        return True
    _become_idle(agent)
    return False


def _become_idle(agent: Agent) -> None:
    agent.activity = None
    agent.step(Event.TURN_ENDED)


async def _run(agent: Agent, turn: Turn) -> TurnEnded:
    """Run the turn function, unless it was cancelled before its first step, and say how it ended."""
    activity = agent.activity
    assert activity is not None  # noqa: S101 - a drain is an activity
    redeliver = True  # whatever the policy: what no turn function has seen must not be lost
    if activity.cause is None:
        redeliver = _redelivers(agent)
        # What a turn raises while it is cancelled may be a group that only the guard makes an error of.
        try:
            with activity.guard(), inside(activity):
                await agent.services.turn(turn)
                return TurnEnded(turn.number, Outcome.COMPLETED)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is logged
            if activity.cause is None:
                report(
                    logger,
                    logging.ERROR,
                    "turn-failed",
                    "session %s: turn %d failed",
                    agent.name,
                    turn.number,
                    session=agent.name,
                    turn=turn.number,
                    error=error,
                )
                return TurnEnded(turn.number, Outcome.ERROR, _describe(error))
    if activity.interrupted:
        return TurnEnded(turn.number, Outcome.INTERRUPTED, activity.cause, redeliver=redeliver)
    return TurnEnded(turn.number, Outcome.ABORTED, activity.cause)


async def _end(agent: Agent, end: TurnEnded) -> bool:
    """Record how the turn ended, and return whether the drain goes on."""
    end = await agent.session.decide(lambda state: turn_changes.end_turn(state, end))
    _tell_of(agent, end)
    more = (await agent.session.confirm()).has_reason_to_run
    if agent.ending or not more:
        agent.activity = None
    effects = agent.step(Event.TURN_ENDED_MORE if more else Event.TURN_ENDED)
    return Effect.START_TURN in effects


def _tell_of(agent: Agent, end: TurnEnded) -> None:
    agent.services.announce(EventKind.TURN_ENDED, agent.name, turn=end.turn, outcome=end.outcome.value, cause=end.cause)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {text_of(error)}"[:LONGEST_CAUSE]
