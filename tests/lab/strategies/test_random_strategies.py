import itertools
from collections import Counter

import pytest

from whenidle_lab.choices import Topic
from whenidle_lab.strategies import Pct, Plan, Pos, RandomWalk, parse_plan

from .programs import Rounds, run_actors, run_rounds

CHANCES: list[Plan] = [RandomWalk(), Pct(3, 50), Pos()]


@pytest.mark.parametrize("plan", [*CHANCES, parse_plan("round-robin")], ids=str)
def test_a_seed_is_always_the_same_run(plan: Plan) -> None:
    """Strategies of one seed decide alike; those of others mostly do not."""
    first, second, other = (
        (run_rounds(strategy, 6, 20), [strategy.pick(Topic.CRASH, 7, None) for _ in range(20)])
        for strategy in (plan.strategy(4), plan.strategy(4), plan.strategy(5))
    )
    assert first == second
    assert first != other


@pytest.mark.parametrize("plan", CHANCES, ids=str)
def test_options_are_picked_by_their_weights(plan: Plan) -> None:
    """Whatever the strategy: an option is as likely as its weight says, and equally likely without."""
    strategy = plan.strategy(1)
    weighted = Counter(strategy.pick(Topic.COMMIT, 4, [0.5, 0, 0.25, 0.25]) for _ in range(4000))
    assert weighted[1] == 0
    assert 1900 < weighted[0] < 2100
    assert 900 < weighted[2] < 1100
    equal = Counter(strategy.pick(Topic.SCENARIO, 4, None) for _ in range(4000))
    assert all(900 < equal[option] < 1100 for option in range(4))


def test_weights_that_do_not_add_up_exactly_still_pick_an_option() -> None:
    """A sum of floats is rounded; what is left over goes to the last option that has a weight."""
    strategy = RandomWalk().strategy(1)
    strategy._draw = lambda: 1.0  # type: ignore[attr-defined]
    assert strategy.pick(Topic.COMMIT, 4, [0.1, 0.2, 0.3, 0.0]) == 2


@pytest.mark.parametrize("plan", [RandomWalk(), Pos()], ids=str)
def test_each_order_of_a_round_is_equally_likely(plan: Plan) -> None:
    """For tasks, which run once a round, a random walk and partial order sampling come to the same."""
    orders = Counter(tuple(run_rounds(plan.strategy(seed), 3, 2)[1]) for seed in range(6000))
    assert len(orders) == 6
    assert all(850 < count < 1150 for count in orders.values())
    two = [run_rounds(plan.strategy(seed), 3, 2) for seed in range(3000)]
    assert 900 < sum(first[-1] == second[-1] for first, second in two) < 1100  # whatever the last round was


# PCT ------------------------------------------------------------------------------------------------


def _is_before(rounds: Rounds, number: int, first: int, second: int) -> bool:
    return rounds[number].index(first) < rounds[number].index(second)


TASKS, ROUNDS = 4, 3
STEPS = (TASKS - 1) * ROUNDS
RUNS = 1500


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(range(TASKS), 2)))
def test_pct_finds_a_bug_of_depth_2_as_often_as_it_promises(first: int, second: int) -> None:
    """A task is to come before another one in one round, and behind it in a later one.

    For each two tasks and each two rounds, at least one in n * k runs does it: n tasks, k steps.
    """
    runs = [run_rounds(Pct(2, STEPS).strategy(seed), TASKS, ROUNDS) for seed in range(RUNS)]
    for early, late in itertools.combinations(range(ROUNDS), 2):
        hits = sum(_is_before(run, early, first, second) and _is_before(run, late, second, first) for run in runs)
        assert hits >= RUNS / (TASKS * STEPS)


def test_pct_finds_a_bug_of_depth_3_as_often_as_it_promises() -> None:
    """Three constraints take two changes of priority; at least one in n * k ** 2 runs has them."""
    runs = [run_rounds(Pct(3, STEPS).strategy(seed), TASKS, ROUNDS) for seed in range(2 * RUNS)]
    hits = sum(_is_before(run, 0, 0, 1) and _is_before(run, 1, 1, 0) and _is_before(run, 2, 0, 1) for run in runs)
    assert hits >= 2 * RUNS / (TASKS * STEPS**2)


def test_pct_keeps_a_task_that_was_put_behind_there() -> None:
    """A bug of depth 2 that needs a task to be behind another one from some round on, and before it until then."""
    steps = (TASKS - 1) * 8
    runs = [run_rounds(Pct(2, steps).strategy(seed), TASKS, 8) for seed in range(RUNS)]
    for change in range(1, 8):
        hits = sum(all(_is_before(run, number, 0, 1) == (number < change) for number in range(8)) for run in runs)
        assert hits >= RUNS / (TASKS * steps)


def test_pct_keeps_a_task_behind_all_others_throughout() -> None:
    """A bug of depth 1 that needs one task to be last in twenty rounds is found once in n runs; a random walk fails."""

    def hits(plan: Plan) -> int:
        runs = (run_rounds(plan.strategy(seed), TASKS, 20) for seed in range(400))
        return sum(all(order[-1] == 2 for order in run) for run in runs)

    assert hits(Pct(1, 60)) >= 400 / TASKS * 0.8
    assert hits(RandomWalk()) == 0


def test_pct_changes_priorities_no_more_often_than_its_depth_allows() -> None:
    """Between changes the order of all rounds is the same; depth 1 has none."""
    for seed in range(50):
        orders = run_rounds(Pct(1, 30).strategy(seed), 5, 6)
        assert len({tuple(order) for order in orders}) == 1
        orders = run_rounds(Pct(3, 24).strategy(seed), 5, 6)
        changes = sum(before != after for before, after in itertools.pairwise(orders))
        assert changes <= 4  # each of two changes shows in the round it is in, and again in the next one


def test_pct_has_priorities_for_actors_too() -> None:
    """An actor of low priority waits until the others have nothing to do."""
    lasts = [run_actors(Pct(1, 40).strategy(seed), [1, 10])[-1] for seed in range(200)]
    assert 70 < lasts.count(0) < 130


# POS ------------------------------------------------------------------------------------------------


def test_pos_lets_a_ready_actor_wait_for_long_more_often_than_a_random_walk() -> None:
    """One step and ten of another come in each of their orders alike: last with 1 / 11, and not with 1 / 1024."""

    def lasts(plan: Plan) -> int:
        return sum(run_actors(plan.strategy(seed), [1, 10])[-1] == 0 for seed in range(2200))

    assert 160 < lasts(Pos()) < 240
    assert lasts(RandomWalk()) < 15
