import itertools
from collections.abc import Callable
from typing import TypeVar

from whenidle_lab.choices import Chooser, Topic
from whenidle_lab.strategies import Exhaustive, RoundRobin
from whenidle_lab.strategies.exhaustive import Path

from .programs import run_actors, run_rounds

T = TypeVar("T")


def test_round_robin_lets_each_task_go_first_in_its_turn() -> None:
    """Three tasks lead one round each, then it begins again."""
    rounds = run_rounds(RoundRobin().strategy(0), 3, 9)
    leaders = [order[0] for order in rounds]
    assert sorted(leaders[:3]) == [0, 1, 2]
    assert leaders[3:6] == leaders[6:9]
    assert sorted(leaders[3:6]) == [0, 1, 2]


def test_round_robin_is_fair_to_actors() -> None:
    """Actors that are always ready take turns."""
    assert run_actors(RoundRobin().strategy(0), [3, 3, 3]) == [0, 1, 2] * 3


def test_the_seed_of_round_robin_says_who_begins() -> None:
    """There is no other chance in it, and no fault."""
    strategies = [RoundRobin().strategy(seed) for seed in range(3)]
    assert [run_actors(strategy, [1, 1, 1])[0] for strategy in strategies] == [0, 1, 2]
    assert {strategy.pick(Topic.CRASH, 5, None) for strategy in strategies} == {0}


def _explored(program: Callable[[Path], T], bound: int) -> list[T]:
    """Return what a program makes of each new path, as the search goes."""
    return [made for path in Exhaustive(bound).paths() for made in [program(path)] if path.is_new]


def _orders(bound: int, tasks: int, rounds: int = 1) -> list[tuple[int, ...]]:
    return _explored(lambda path: tuple(itertools.chain(*run_rounds(path, tasks, rounds))), bound)


def test_exhaustive_finds_every_order_of_some_tasks_once() -> None:
    """With a bound that leaves nothing out, the space is finished, and every order has been run."""
    assert sorted(_orders(9, 4)) == sorted(itertools.permutations(range(4)))


def test_exhaustive_finds_every_interleaving_of_two_rounds_once() -> None:
    """Six orders in each of two rounds are 36 runs."""
    found = _orders(9, 3, rounds=2)
    assert len(found) == len(set(found)) == 36


def test_exhaustive_goes_by_deviations() -> None:
    """First comes the quiet run, then those with one deviation, then those with two."""

    def deviations(order: tuple[int, ...]) -> int:
        left, count = sorted(order), 0
        for task in order:
            count += left.index(task) > 0
            left.remove(task)
        return count

    counts = [deviations(order) for order in _orders(9, 4)]
    assert counts == sorted(counts)
    assert [counts.count(number) for number in range(4)] == [1, 6, 11, 6]


def test_a_bound_leaves_out_what_deviates_more_often() -> None:
    """Three tasks have one order without a deviation, and three with one."""
    assert [len(_orders(bound, 3)) for bound in (0, 1, 2)] == [1, 4, 6]


def test_exhaustive_tries_faults_but_none_that_cannot_happen() -> None:
    """Options of weight 0 are left out."""
    assert _explored(lambda path: path.pick(Topic.COMMIT, 4, [0.9, 0, 0.1, 0]), 2) == [0, 2]


def test_exhaustive_does_not_try_what_makes_no_difference() -> None:
    """A choice that is skipped, like the place of a fault that does not happen, has its place and no other option."""

    def run(path: Path) -> list[int]:
        chooser = Chooser(path)
        if chooser.pick(Topic.CRASH, 2):
            chooser.pick(Topic.CRASH, 3)
        else:
            chooser.skip(Topic.CRASH, 3)
        return [choice.picked for choice in chooser.made]

    assert _explored(run, 9) == [[0, 0], [1, 0], [1, 1], [1, 2]]
