from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from whenidle_lab.invariants import standard_invariants
from whenidle_lab.invariants.books import Books
from whenidle_lab.run import run
from whenidle_lab.subjects import own_subjects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Candidate, Topic

SEEDS = 8
LONG = {"hourly"}
"""Scenarios of which one run says as much as many."""


class Chance:
    """Decides everything by a throw."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - see `Strategy`
        return self._random.randrange(len(candidates))

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:  # noqa: ARG002 - the same
        return self._random.choices(range(count), weights)[0] if weights else self._random.randrange(count)


@pytest.mark.parametrize("name", [subject.name for subject in own_subjects() if subject.name not in LONG])
def test_the_runtime_as_it_is_breaks_no_invariant(name: str) -> None:
    """Each scenario of the lab, with all its faults, holds in the first runs."""
    subject = next(each for each in own_subjects() if each.name == name)
    for seed in range(SEEDS):
        finding = run(subject.make(), Chance(seed)).finding
        assert finding is None, f"seed {seed}: {finding}"


def test_every_invariant_has_a_name_of_its_own_and_says_what_it_promises() -> None:
    """They are told apart by name, and documented where they are written."""
    invariants = standard_invariants()
    names = [invariant.name for invariant in invariants]
    assert len(set(names)) == len(names) == 13
    assert all(type(invariant).__doc__ for invariant in invariants)


def test_the_books_are_kept_first() -> None:
    """The invariant that keeps the books comes first, and hears of everything that is entered there."""
    books = Books()
    first, *_ = standard_invariants()
    assert first.name == "log-well-formed"
    assert first.listens == books.handlers.keys()


def test_every_run_has_fresh_invariants() -> None:
    """Nothing is carried over from one run to the next."""
    assert not set(map(id, standard_invariants())) & set(map(id, standard_invariants()))
