"""A process that dies at any commit and at any await, and what the next one finds (SPEC 4; CASES 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actors import crashes

from .lives import TaskLife

if TYPE_CHECKING:
    from tests.actors.reminders.faults import Fate

COMMITS = crashes.count_commits(TaskLife())
"""Commits of a life in which nothing goes wrong."""

EACH_COMMIT = pytest.mark.parametrize("number", range(1, COMMITS + 1))


def test_the_life_has_everything_in_it() -> None:
    """All targets, one-shots and recurring tasks, edits, a deletion, runs by hand, a disposal and a restart."""
    life = TaskLife()
    steps = crashes.live(life)
    account = crashes.recover(life)
    assert len(life.made) == 9
    assert (life.deleted, life.runs) == ({"gone"}, 2)
    assert {each.title for each in account.deliveries} == {
        "often",
        "reserved",
        "afresh",
        "beside",
        "edited",
        "rested",
        "single",
        "later",
        "single once",
    }
    assert len(account.deliveries) >= 20
    assert COMMITS >= 44
    assert steps >= 350


@EACH_COMMIT
@crashes.DEATHS
def test_a_process_that_dies_at_a_commit_loses_and_repeats_nothing(fate: Fate, number: int) -> None:
    """Dead before a commit, or after it is durable and before anybody knows: each occurrence is admitted once."""
    crashes.die_at_commit(TaskLife(), number, fate)


def test_a_process_that_dies_at_any_await_loses_and_repeats_nothing() -> None:
    """Killed before each step of each task of a whole life: each occurrence is admitted once."""
    assert crashes.die_at_each_step(TaskLife) > 350


@EACH_COMMIT
@crashes.FAILURES
def test_a_commit_that_fails_or_may_have_failed_loses_and_repeats_nothing(fate: Fate, number: int) -> None:
    """Refused, or uncertain and in truth lost or kept: the life goes on in the same process and adds up."""
    crashes.fail_at_commit(TaskLife(), number, fate)


@EACH_COMMIT
@crashes.WALL_STEPS
def test_a_wall_that_is_stepped_during_a_commit_loses_and_repeats_nothing(by: int, announce: bool, number: int) -> None:
    """Set back or forward between the decision and the commit: nothing early, nothing twice, nothing lost."""
    crashes.live_through_wall_step(TaskLife(), number, by, announce=announce)
