"""What goes wrong in a life is drawn before it begins."""

from __future__ import annotations

import pytest

from whenidle_lab.choices import Choice, Chooser, Quiet, Topic
from whenidle_lab.faults import NO_FAULTS, FaultKind, Faults
from whenidle_lab.faults.plan import Fault, draw_plan

from .worlds import RandomChoices


def drawn(faults: Faults, *choices: tuple[Topic, int, int]) -> list[Fault]:
    """Return the plan that some choices make."""
    script = [Choice(*choice) for choice in choices]
    return draw_plan(faults, Chooser(Quiet(), script), may_crash=True)


def test_without_kinds_nothing_is_drawn() -> None:
    """A scenario that bears no fault makes no choice about one."""
    chooser = Chooser(RandomChoices(0))
    assert draw_plan(NO_FAULTS, chooser, may_crash=True) == []
    assert chooser.made == []


def test_the_quiet_choices_are_no_fault() -> None:
    """With every choice 0 nothing goes wrong, whatever may."""
    chooser = Chooser(Quiet())
    assert draw_plan(Faults.all(lies=True), chooser, may_crash=True) == []
    assert [choice.topic for choice in chooser.made[::3]] == [
        Topic.CRASH,
        Topic.COMMIT,
        Topic.READ,
        Topic.CLOCK,
        Topic.TURN,
        Topic.AGENT,
    ]


def test_a_fault_taken_out_moves_nothing() -> None:
    """A draw takes three choices, whether it is a fault or not."""
    for seed in range(20):
        chooser = Chooser(RandomChoices(seed))
        draw_plan(Faults.all(), chooser, may_crash=True)
        assert [choice.topic for choice in chooser.made] == [
            topic
            for topic in (Topic.CRASH, Topic.COMMIT, Topic.READ, Topic.CLOCK, Topic.TURN, Topic.AGENT)
            for _ in range(3)
        ]


def test_a_fault_has_a_place_and_a_size() -> None:
    """The second choice is the place, the third the form and the size."""
    faults = Faults(frozenset({FaultKind.SLOW}), commits=5)
    assert drawn(faults, (Topic.COMMIT, 2, 1), (Topic.COMMIT, 5, 4), (Topic.COMMIT, 164, 2 * 41 + 10)) == [
        Fault(FaultKind.SLOW, 4, at_wake=False, exponent=10, variant=2)
    ]


def test_places_behind_the_rounds_are_wakes() -> None:
    """What happens in rounds happens, for one place in five, when time has just passed."""
    faults = Faults(frozenset({FaultKind.JUMP, FaultKind.AT_WAKE}), rounds=8)
    (fault,) = drawn(faults, (Topic.CLOCK, 2, 1), (Topic.CLOCK, 10, 9))
    assert (fault.at_wake, fault.place) == (True, 1)


def test_a_process_that_died_often_enough_dies_no_more() -> None:
    """Without leave to crash, crashes are not drawn."""
    chooser = Chooser(RandomChoices(1))
    plan = draw_plan(Faults(frozenset({FaultKind.CRASH}), chance=1.0), chooser, may_crash=False)
    assert (plan, chooser.made) == ([], [])


def test_several_faults_of_a_topic_may_be_asked_for() -> None:
    """`most` draws are made for each topic."""
    faults = Faults(frozenset({FaultKind.REFUSED}), chance=1.0, most=3)
    assert len(draw_plan(faults, Chooser(RandomChoices(0)), may_crash=True)) == 3


@pytest.mark.parametrize(
    ("exponent", "millis", "delay", "downtime"),
    [(0, 1, 0.001, 0.0), (10, 1024, 1.024, 1.024), (22, 1 << 22, 4194.304, 4194.304), (40, 1 << 40, 131.072, 0.256)],
)
def test_sizes_are_exponential(exponent: int, millis: int, delay: float, downtime: float) -> None:
    """Clocks move by up to 34 years; what only lasts does so for 70 minutes at most, and a host is down for days."""
    fault = Fault(FaultKind.JUMP, 0, at_wake=False, exponent=exponent, variant=0)
    assert (fault.millis, fault.delay, fault.downtime) == (millis, delay, downtime)
    if exponent == 40:
        assert 34 < millis / 1000 / 86_400 / 365 < 35
