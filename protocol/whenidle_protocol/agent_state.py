"""The phases of an agent as a table: (phase, event) to (phase, effects) (SPEC 2.1 to 2.6).

Theory
------
An agent does one thing at a time: it is *idle*, it runs a turn, or a maintenance task has claimed
it. Turns and maintenance exclude each other because one phase cannot be two. The table is the
whole behaviour; the shell owns tasks and waiters, feeds events in, and carries out the effects.

*Reason to run.* Whether the agent should run is durable state, not a phase: a redelivery, or the
wake latch together with a waking message (`SessionState.has_reason_to_run`). The shell reads it
whenever it feeds an event that ends something, and picks the event accordingly: `TURN_ENDED` or
`TURN_ENDED_MORE`, `RELEASED` or `RELEASED_MORE`. So nothing about waking is remembered here, and
nothing can be forgotten:

- a waking message at an idle agent is `WAKE`: a turn starts at once;
- one that lands during a turn or a maintenance task changes no phase. It is in the log, sets the
  latch, and is seen when the turn ends or the claim is released;
- a cancel clears the latch in the log and aborts what runs; a message that lands after it sets the
  latch again, so it is seen and runs; what was told to stay in the inbox is not, and waits.

Therefore in phase IDLE there is never a reason to run, and IDLE is the quiescence that `when_idle`
promises: `NOTIFY_IDLE` comes only with the step into it.

*Claim.* `CLAIM` is legal in IDLE alone and is one table look-up: there is no moment between the
test and the claim. Elsewhere the shell answers `AgentBusy` (ask `is_legal` first, or catch).

*Disposal.* What is in flight is aborted and then awaited in a phase of its own, so that the public
status stays true meanwhile; then the agent is forgotten: taken from the registry, its waiters ended,
and the end announced. Asking again changes nothing. Nothing starts any more: a waking message is
kept in the log for whoever opens the session next.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

import attrs


class Phase(enum.Enum):
    """What an agent is doing."""

    IDLE = "idle"
    RUNNING = "running"
    """A turn, or a drain of turns; between two turns of a drain the agent is not idle."""
    MAINTENANCE = "maintenance"
    DISPOSING_TURN = "disposing, turn in flight"
    DISPOSING_MAINTENANCE = "disposing, maintenance in flight"
    DISPOSED = "disposed"


class Event(enum.Enum):
    """What can happen to an agent."""

    WAKE = "wake"
    """There is a reason to run: a waking message became durable, or a restored log has one."""
    TURN_ENDED = "turn ended"
    """The turn's outcome is durable and there is no reason to run another."""
    TURN_ENDED_MORE = "turn ended, more to do"
    CLAIM = "claim"
    """A maintenance task wants the agent."""
    RELEASED = "released"
    """The maintenance task is over and there is no reason to run a turn."""
    RELEASED_MORE = "released, more to do"
    CANCEL = "cancel"
    DISPOSE = "dispose"


class Effect(enum.Enum):
    """What the shell does after a step, in the order given."""

    START_TURN = "start turn"
    ABORT_TURN = "abort turn"
    ABORT_MAINTENANCE = "abort maintenance"
    NOTIFY_IDLE = "notify idle"
    """Let those go who wait with `when_idle`."""
    FORGET = "forget"
    """Take the agent from the registry, end its waiters with `AgentDisposed`, announce the end."""


class Status(enum.StrEnum):
    """What the public sees of a phase."""

    IDLE = "idle"
    RUNNING = "running"


class IllegalTransition(Exception):
    """The event cannot happen in that phase: a defect of the shell, or a claim on a busy agent."""

    def __init__(self, phase: Phase, event: Event) -> None:
        self.phase = phase
        self.event = event
        super().__init__(f"{event.value!r} cannot happen to an agent that is {phase.value}")


@attrs.frozen
class Step:
    """Where an event leads, and what is to be done about it."""

    phase: Phase
    effects: tuple[Effect, ...] = ()


_Table: TypeAlias = dict[Phase, dict[Event, Step]]

TRANSITIONS: Final[_Table] = {
    Phase.IDLE: {
        Event.WAKE: Step(Phase.RUNNING, (Effect.START_TURN,)),
        Event.CLAIM: Step(Phase.MAINTENANCE),
        Event.CANCEL: Step(Phase.IDLE),
        Event.DISPOSE: Step(Phase.DISPOSED, (Effect.FORGET,)),
    },
    Phase.RUNNING: {
        Event.WAKE: Step(Phase.RUNNING),
        Event.TURN_ENDED: Step(Phase.IDLE, (Effect.NOTIFY_IDLE,)),
        Event.TURN_ENDED_MORE: Step(Phase.RUNNING, (Effect.START_TURN,)),
        Event.CANCEL: Step(Phase.RUNNING, (Effect.ABORT_TURN,)),
        Event.DISPOSE: Step(Phase.DISPOSING_TURN, (Effect.ABORT_TURN,)),
    },
    Phase.MAINTENANCE: {
        Event.WAKE: Step(Phase.MAINTENANCE),
        Event.RELEASED: Step(Phase.IDLE, (Effect.NOTIFY_IDLE,)),
        Event.RELEASED_MORE: Step(Phase.RUNNING, (Effect.START_TURN,)),
        Event.CANCEL: Step(Phase.MAINTENANCE, (Effect.ABORT_MAINTENANCE,)),
        Event.DISPOSE: Step(Phase.DISPOSING_MAINTENANCE, (Effect.ABORT_MAINTENANCE,)),
    },
    Phase.DISPOSING_TURN: {
        Event.WAKE: Step(Phase.DISPOSING_TURN),
        Event.TURN_ENDED: Step(Phase.DISPOSED, (Effect.FORGET,)),
        Event.TURN_ENDED_MORE: Step(Phase.DISPOSED, (Effect.FORGET,)),
        Event.CANCEL: Step(Phase.DISPOSING_TURN),
        Event.DISPOSE: Step(Phase.DISPOSING_TURN),
    },
    Phase.DISPOSING_MAINTENANCE: {
        Event.WAKE: Step(Phase.DISPOSING_MAINTENANCE),
        Event.RELEASED: Step(Phase.DISPOSED, (Effect.FORGET,)),
        Event.RELEASED_MORE: Step(Phase.DISPOSED, (Effect.FORGET,)),
        Event.CANCEL: Step(Phase.DISPOSING_MAINTENANCE),
        Event.DISPOSE: Step(Phase.DISPOSING_MAINTENANCE),
    },
    Phase.DISPOSED: {
        Event.CANCEL: Step(Phase.DISPOSED),
        Event.DISPOSE: Step(Phase.DISPOSED),
    },
}
"""Every legal step; what is not here is illegal."""


def is_legal(phase: Phase, event: Event) -> bool:
    """Return whether `event` can happen in `phase`."""
    return event in TRANSITIONS[phase]


def transition(phase: Phase, event: Event) -> Step:
    """Return the step that `event` causes in `phase`.

    Raises:
        IllegalTransition: there is none. Phases are values, so the caller's is as it was.
    """
    step = TRANSITIONS[phase].get(event)
    if step is None:
        raise IllegalTransition(phase, event)
    return step


def status_of(phase: Phase) -> Status:
    """Return the public status: maintenance counts as idle (SPEC 2.1), and so does a disposed agent."""
    return Status.RUNNING if phase in {Phase.RUNNING, Phase.DISPOSING_TURN} else Status.IDLE
