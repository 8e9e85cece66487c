from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from whenidle_protocol.agent_state import (
    TRANSITIONS,
    Effect,
    Event,
    IllegalTransition,
    Phase,
    Status,
    Step,
    is_legal,
    status_of,
    transition,
)


@pytest.mark.parametrize(
    ("phase", "event", "step"),
    [
        (Phase.IDLE, Event.WAKE, Step(Phase.RUNNING, (Effect.START_TURN,))),
        (Phase.RUNNING, Event.WAKE, Step(Phase.RUNNING)),
        (Phase.RUNNING, Event.TURN_ENDED_MORE, Step(Phase.RUNNING, (Effect.START_TURN,))),
        (Phase.RUNNING, Event.TURN_ENDED, Step(Phase.IDLE, (Effect.NOTIFY_IDLE,))),
        (Phase.IDLE, Event.CLAIM, Step(Phase.MAINTENANCE)),
        (Phase.MAINTENANCE, Event.WAKE, Step(Phase.MAINTENANCE)),
        (Phase.MAINTENANCE, Event.RELEASED_MORE, Step(Phase.RUNNING, (Effect.START_TURN,))),
        (Phase.MAINTENANCE, Event.RELEASED, Step(Phase.IDLE, (Effect.NOTIFY_IDLE,))),
        (Phase.IDLE, Event.CANCEL, Step(Phase.IDLE)),
        (Phase.RUNNING, Event.CANCEL, Step(Phase.RUNNING, (Effect.ABORT_TURN,))),
        (Phase.MAINTENANCE, Event.CANCEL, Step(Phase.MAINTENANCE, (Effect.ABORT_MAINTENANCE,))),
        (Phase.IDLE, Event.DISPOSE, Step(Phase.DISPOSED, (Effect.FORGET,))),
        (Phase.RUNNING, Event.DISPOSE, Step(Phase.DISPOSING_TURN, (Effect.ABORT_TURN,))),
        (Phase.DISPOSING_TURN, Event.TURN_ENDED_MORE, Step(Phase.DISPOSED, (Effect.FORGET,))),
        (Phase.MAINTENANCE, Event.DISPOSE, Step(Phase.DISPOSING_MAINTENANCE, (Effect.ABORT_MAINTENANCE,))),
        (Phase.DISPOSING_MAINTENANCE, Event.RELEASED_MORE, Step(Phase.DISPOSED, (Effect.FORGET,))),
    ],
)
def test_the_table_says_what_the_contract_says(phase: Phase, event: Event, step: Step) -> None:
    """Each rule of SPEC 2.1 to 2.6 about phases, one line each."""
    assert transition(phase, event) == step
    assert is_legal(phase, event)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.IDLE])
def test_only_an_idle_agent_can_be_claimed(phase: Phase) -> None:
    """Everywhere else the claim is refused at once (SPEC 2.3)."""
    assert not is_legal(phase, Event.CLAIM)
    with pytest.raises(IllegalTransition) as caught:
        transition(phase, Event.CLAIM)
    assert (caught.value.phase, caught.value.event) == (phase, Event.CLAIM)
    assert str(caught.value) == f"'claim' cannot happen to an agent that is {phase.value}"


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", [Event.CANCEL, Event.DISPOSE])
def test_cancel_and_dispose_are_legal_everywhere(phase: Phase, event: Event) -> None:
    """Any owner may ask at any time, again and again (SPEC 2.5, 2.6)."""
    assert is_legal(phase, event)


@pytest.mark.parametrize("phase", [Phase.DISPOSING_TURN, Phase.DISPOSING_MAINTENANCE, Phase.DISPOSED])
def test_a_second_disposal_changes_nothing(phase: Phase) -> None:
    """It is idempotent."""
    assert transition(phase, Event.DISPOSE) == Step(phase)


def test_every_other_pair_raises_and_leaves_the_phase() -> None:
    """What is not in the table is illegal: the caller still holds the phase it had."""
    illegal = [(phase, event) for phase in Phase for event in Event if event not in TRANSITIONS[phase]]
    assert len(illegal) == len(Phase) * len(Event) - sum(map(len, TRANSITIONS.values()))
    for phase, event in illegal:
        held = phase
        with pytest.raises(IllegalTransition):
            held = transition(phase, event).phase
        assert held is phase


def test_maintenance_counts_as_idle() -> None:
    """The public status is running exactly while a turn is in flight (SPEC 2.1)."""
    running = {phase for phase in Phase if status_of(phase) is Status.RUNNING}
    assert running == {Phase.RUNNING, Phase.DISPOSING_TURN}


class AgentMachine(RuleBasedStateMachine):
    """A shell that carries out effects, against flags for what is in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.phase = Phase.IDLE
        self.turn = self.maintenance = self.disposing = self.forgotten = False
        self.work = 0

    def is_free(self) -> bool:
        return not (self.turn or self.maintenance or self.disposing)

    def feed(self, event: Event) -> tuple[Effect, ...]:
        step = transition(self.phase, event)
        self.phase = step.phase
        for effect in step.effects:
            if effect is Effect.START_TURN:
                assert self.is_free()
                assert self.work > 0
                self.turn, self.work = True, self.work - 1
            elif effect is Effect.FORGET:
                assert self.disposing
                assert not self.forgotten
                self.forgotten = True
            elif effect is Effect.NOTIFY_IDLE:
                assert self.is_free()
                assert not self.work
            elif effect is Effect.ABORT_TURN:
                assert self.turn
            else:
                assert self.maintenance
        return step.effects

    @precondition(lambda self: not self.forgotten)
    @rule()
    def wake(self) -> None:
        self.work += 1
        self.feed(Event.WAKE)

    @precondition(lambda self: self.turn)
    @rule()
    def end_turn(self) -> None:
        self.turn = False
        self.feed(Event.TURN_ENDED_MORE if self.work else Event.TURN_ENDED)

    @rule()
    def claim(self) -> None:
        assert is_legal(self.phase, Event.CLAIM) == self.is_free()
        if self.is_free():
            assert not self.work
            self.maintenance = True
            self.feed(Event.CLAIM)

    @precondition(lambda self: self.maintenance)
    @rule()
    def release(self) -> None:
        self.maintenance = False
        self.feed(Event.RELEASED_MORE if self.work else Event.RELEASED)

    @rule(empties=st.booleans())
    def cancel(self, empties: bool) -> None:
        if empties and (self.turn or self.maintenance):
            self.work = 0
        effects = self.feed(Event.CANCEL)
        assert bool(effects) == ((self.turn or self.maintenance) and not self.disposing)

    @rule()
    def dispose(self) -> None:
        self.disposing = True
        self.feed(Event.DISPOSE)

    @invariant()
    def agrees(self) -> None:
        assert not (self.turn and self.maintenance)
        assert (status_of(self.phase) is Status.RUNNING) == self.turn
        assert (self.phase is Phase.DISPOSED) == self.forgotten
        if self.phase is Phase.IDLE:
            assert self.is_free()
            assert not self.work


AgentMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestAgent = AgentMachine.TestCase
