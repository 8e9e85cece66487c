"""A process that dies at any commit and at any await, and what the next one finds (SPEC 4; CASES 9)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_lab.adapter import controlled

from .faults import Fate
from .lives import Life
from .worlds import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whenidle_actors.stores.base import Batch

    from .logs import Ledger


class StepCounter(trio.abc.Instrument):
    """Counts the steps of all tasks, and acts before one of them."""

    def __init__(self, at: int | None = None, act: Callable[[], object] = lambda: None) -> None:
        self.steps = 0
        self._at = at
        self._act = act

    def before_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002 - the signature is trio's
        self.steps += 1
        if self.steps == self._at:
            self._act()


@contextmanager
def oldest_first() -> Iterator[None]:
    """Let trio run its tasks in one order, so that a life has the same commits each time, in every process."""
    with controlled(lambda _: None):
        yield


def live(life: Life, *, die_at: int | None = None) -> int:
    """Live a life, up to the step given, and return the number of steps it took."""
    counter = StepCounter(die_at, life.world.store.die)
    with oldest_first():
        trio.run(life.live, clock=life.world, instruments=[counter])
    return counter.steps


def recover(life: Life) -> Ledger:
    """Be the next process, and return its account."""
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
    """Return how many commits a life takes in which nothing goes wrong."""
    life = Life()
    live(life)
    return len(life.world.store.batches)


COMMITS = count_commits()


def test_the_life_has_everything_in_it() -> None:
    """Reminders, messages, turns, a disposal and a restart: what the crash points are taken from."""
    life = Life()
    steps = live(life)
    ledger = recover(life)
    assert sorted(life.created) == [f"schedule-{number}" for number in range(1, 9)]
    assert (life.deleted, len(life.sent)) == ({"schedule-4"}, 2)
    assert len(ledger.deliveries) >= 10
    assert {"completed", "aborted", "interrupted"} <= set(ledger.outcomes)
    assert COMMITS >= 30
    assert steps >= 250


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
    assert step > 250


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
