"""A process that dies at any commit and at any await, and what the next one finds (SPEC 4; CASES 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.actors import crashes

from .lives import ReminderLife

if TYPE_CHECKING:
    from tests.actors.reminders.faults import Fate

COMMITS = crashes.count_commits(ReminderLife())
"""Commits of a life in which nothing goes wrong."""

EACH_COMMIT = pytest.mark.parametrize("number", range(1, COMMITS + 1))


def test_the_life_has_everything_in_it() -> None:
    """Reminders, messages, turns, a disposal and a restart: what the crash points are taken from."""
    life = ReminderLife()
    steps = crashes.live(life)
    ledger = crashes.recover(life)
    assert sorted(life.created) == [f"schedule-{number}" for number in range(1, 9)]
    assert (life.deleted, len(life.sent)) == ({"schedule-4"}, 2)
    assert len(ledger.deliveries) >= 10
    assert {"completed", "aborted", "interrupted"} <= set(ledger.outcomes)
    assert COMMITS >= 30
    assert steps >= 250


@EACH_COMMIT
@crashes.DEATHS
def test_a_process_that_dies_at_a_commit_loses_and_repeats_nothing(fate: Fate, number: int) -> None:
    """Dead before a commit, or after it is durable and before anybody knows: each occurrence is admitted once."""
    crashes.die_at_commit(ReminderLife(), number, fate)


def test_a_process_that_dies_at_any_await_loses_and_repeats_nothing() -> None:
    """Killed before each step of each task of a whole life: each occurrence is admitted once."""
    assert crashes.die_at_each_step(ReminderLife) > 250


@EACH_COMMIT
@crashes.FAILURES
def test_a_commit_that_fails_or_may_have_failed_loses_and_repeats_nothing(fate: Fate, number: int) -> None:
    """Refused, or uncertain and in truth lost or kept: the life goes on in the same process and adds up."""
    crashes.fail_at_commit(ReminderLife(), number, fate)


@EACH_COMMIT
@crashes.WALL_STEPS
def test_a_wall_that_is_stepped_during_a_commit_loses_and_repeats_nothing(by: int, announce: bool, number: int) -> None:
    """Set back or forward between the decision and the commit: nothing early, nothing twice, nothing lost."""
    crashes.live_through_wall_step(ReminderLife(), number, by, announce=announce)
