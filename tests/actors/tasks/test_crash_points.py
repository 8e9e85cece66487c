"""A process that dies at any commit and at any await, and what the next one finds (SPEC 4; CASES 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.reminders.faults import Fate
from tests.actors.reminders.test_crash_points import StepCounter, oldest_first

from .lives import Life
from .worlds import seconds

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Batch

    from .accounts import Account


def live(life: Life, *, die_at: int | None = None) -> int:
    """Live a life, up to the step given, and return the number of steps it took."""
    counter = StepCounter(die_at, life.world.store.die)
    with oldest_first():
        trio.run(life.live, clock=life.world, instruments=[counter])
    return counter.steps


def recover(life: Life) -> Account:
    """Go on in another process."""
    return trio.run(life.recover, clock=life.world)


def judge_commit(life: Life, number: int, fate: Fate) -> None:
    """Let `fate` befall the commit of that number, and no other."""
    count = 0

    def judge(_: Batch) -> Fate:
        nonlocal count
        count += 1
        return fate if count == number else Fate.GOES_WELL

    life.world.store.judge = judge


def count_commits() -> int:
    """Count the commits of a life."""
    life = Life()
    live(life)
    return len(life.world.store.batches)


COMMITS = count_commits()
"""Commits of a life in which nothing goes wrong."""


def test_the_life_has_everything_in_it() -> None:
    """All targets, one-shots and recurring tasks, edits, a deletion, runs by hand, a disposal and a restart."""
    life = Life()
    steps = live(life)
    account = recover(life)
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
    assert steps >= 400


@pytest.mark.parametrize("number", range(1, COMMITS + 1))
@pytest.mark.parametrize("fate", [Fate.DIE_BEFORE, Fate.DIE_AFTER])
def test_a_process_that_dies_at_a_commit_loses_and_repeats_nothing(fate: Fate, number: int) -> None:
    """Dead before a commit, or after it is durable and before anybody knows: each occurrence is admitted once."""
    life = Life()
    judge_commit(life, number, fate)
    live(life)
    assert life.is_dead
    recover(life)


def test_a_process_that_dies_at_any_await_loses_and_repeats_nothing() -> None:
    """Killed before each step of each task of a whole life: each occurrence is admitted once."""
    step, reached_the_end = 0, False
    while not reached_the_end:
        step += 1
        life = Life()
        live(life, die_at=step)
        reached_the_end = not life.is_dead
        try:
            recover(life)
        except BaseException as error:
            error.add_note(f"the process died before step {step}")
            raise
    assert step > 400


@pytest.mark.parametrize("number", range(1, COMMITS + 1))
@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.LOST, Fate.KEPT])
def test_a_commit_that_fails_or_may_have_failed_loses_and_repeats_nothing(fate: Fate, number: int) -> None:
    """Refused, or uncertain and in truth lost or kept: the life goes on in the same process and adds up."""
    life = Life()
    judge_commit(life, number, fate)
    live(life)
    assert not life.is_dead
    recover(life)


@pytest.mark.parametrize("number", range(1, COMMITS + 1))
@pytest.mark.parametrize(("by", "announce"), [(-3600, True), (-2, False), (2, True), (3600, False)])
def test_a_wall_that_is_stepped_during_a_commit_loses_and_repeats_nothing(by: int, announce: bool, number: int) -> None:
    """Set back or forward between the decision and the commit: nothing early, nothing twice, nothing lost."""
    life = Life()
    count = 0

    async def step(_: Batch) -> None:
        nonlocal count
        count += 1
        if count == number:
            life.world.step(seconds(by), announce=announce)

    life.world.store.before = step
    live(life)
    trio.run(lambda: life.recover(longer=3600), clock=life.world)
