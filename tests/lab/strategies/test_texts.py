import pytest

from whenidle_lab.strategies import Exhaustive, Pct, Plan, Pos, RandomWalk, RoundRobin, StrategyError, parse_plan


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("random", RandomWalk()),
        ("pct", Pct(3)),
        ("pct:2", Pct(2)),
        ("pct:5:700", Pct(5, 700)),
        ("pos", Pos()),
        ("round-robin", RoundRobin()),
        ("exhaustive", Exhaustive(2)),
        ("exhaustive:0", Exhaustive(0)),
    ],
)
def test_each_form_stands_for_a_strategy(text: str, plan: Plan | Exhaustive) -> None:
    """And what it says of itself stands for it too."""
    assert parse_plan(text) == plan
    assert parse_plan(plan.text) == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no strategy ''; write random, pct:DEPTH, pct:DEPTH:STEPS, pos, round-robin or exhaustive:BOUND"),
        ("Random", "there is no strategy 'Random'"),
        ("x" * 10_000, "there is no strategy 'xxx"),
        ("random:1", "'random:1' has 1 numbers; random takes none"),
        ("pct:1:2:3", "'pct:1:2:3' has 3 numbers; pct takes at most 2: pct:DEPTH:STEPS"),
        ("pct:0", "'pct:0': DEPTH is a whole number from 1 to 100, not '0'"),
        ("pct:101", "DEPTH is a whole number from 1 to 100"),
        ("pct:1.5", "not '1.5'"),
        ("pct:٣", "DEPTH is a whole number"),
        ("pct:" + "9" * 5000, "DEPTH is a whole number from 1 to 100"),
        ("pct:3:", "STEPS is a whole number from 1 to 1000000, not ''"),
        ("exhaustive:-1", "BOUND is a whole number from 0 to 100, not '-1'"),
    ],
)
def test_what_is_no_strategy_is_refused_with_the_forms(text: str, message: str) -> None:
    """The message says what is wrong and what to write, and does not grow with what was given."""
    with pytest.raises(StrategyError) as raised:
        parse_plan(text)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 300


def test_pct_is_told_how_many_steps_a_run_has_unless_it_knows() -> None:
    """What was measured is part of the text, so that a seed is the same run wherever it is run."""
    assert Pct(3).wants_steps
    assert Pct(3).with_steps(412).text == "pct:3:412"
    assert Pct(3).with_steps(0).text == "pct:3:1"
    assert not Pct(3, 5).wants_steps
    assert Pct(3, 5).with_steps(412) == Pct(3, 5)
    for plan in (RandomWalk(), Pos(), RoundRobin()):
        assert not plan.wants_steps
        assert plan.with_steps(412) == plan
