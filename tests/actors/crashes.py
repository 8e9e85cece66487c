"""Lives of a host that go wrong at one point: at any commit, at any await, by a failure or a step of the clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pytest
import trio

from tests.actors.reminders.faults import Fate, FaultyStore
from tests.actors.reminders.worlds import World, seconds
from whenidle_actors.errors import StoreClosed, StoreError, UnknownSession
from whenidle_lab.adapter import controlled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.stores.base import Batch

WorldT = TypeVar("WorldT", bound=World)
AccountT = TypeVar("AccountT")


class Life(ABC, Generic[WorldT, AccountT]):
    """What users of the agent `root` did and were told, over as many processes as it takes."""

    rest: float
    """Seconds that a recovered host runs on: longer than anything of the life takes."""

    def __init__(self, world: WorldT) -> None:
        self.world = world
        self.world.turn_seconds = 4

    @abstractmethod
    async def events(self) -> None:
        """Do all that there is in this life; it may end anywhere."""

    @abstractmethod
    async def account(self) -> AccountT:
        """Check that nothing was lost, nothing came twice and nothing waits any more."""

    @property
    def is_dead(self) -> bool:
        return self.world.store.dead

    async def live(self) -> None:
        """Live; return early if the process dies."""
        try:
            with trio.CancelScope() as process:
                self.world.store.on_death = process.cancel
                await self.events()
        except StoreClosed:
            if not self.is_dead:
                raise

    async def recover(self, longer: float = 0) -> AccountT:
        """Be the next process: find what is durable, run on to the end, and give the audited account."""
        world = self.world
        world.store = FaultyStore(world.store.inner)
        async with world.host() as host:
            await self.obtain(host)
            await world.wait(self.rest + longer)
            return await self.account()

    async def obtain(self, host: Host) -> Agent:
        """Return the agent, new or restored, however often that fails."""
        while True:
            try:
                return await host.agent("root")
            except UnknownSession:
                pass
            try:
                return await host.create_agent("root")
            except StoreError:
                await trio.lowlevel.checkpoint()


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


def live(life: Life[Any, Any], *, die_at: int | None = None) -> int:
    """Live a life, up to the step given, and return the number of steps it took."""
    counter = StepCounter(die_at, life.world.store.die)
    with oldest_first():
        trio.run(life.live, clock=life.world, instruments=[counter])
    return counter.steps


def recover(life: Life[Any, AccountT], *, longer: float = 0) -> AccountT:
    """Be the next process, and return its account."""
    return trio.run(life.recover, longer, clock=life.world)


def count_commits(life: Life[Any, Any]) -> int:
    """Return how many commits a life takes in which nothing goes wrong."""
    live(life)
    return len(life.world.store.batches)


def judge_commit(life: Life[Any, Any], number: int, fate: Fate) -> None:
    """Let `fate` befall the commit of that number, and no other."""
    count = 0

    def judge(_: Batch) -> Fate:
        nonlocal count
        count += 1
        return fate if count == number else Fate.GOES_WELL

    life.world.store.judge = judge


def step_wall_at_commit(life: Life[Any, Any], number: int, by: float, *, announce: bool) -> None:
    """Step the wall clock by so many seconds during the commit of that number."""
    count = 0

    async def step(_: Batch) -> None:
        nonlocal count
        count += 1
        if count == number:
            life.world.step(seconds(by), announce=announce)

    life.world.store.before = step


DEATHS = pytest.mark.parametrize("fate", [Fate.DIE_BEFORE, Fate.DIE_AFTER])
FAILURES = pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.LOST, Fate.KEPT])
WALL_STEPS = pytest.mark.parametrize(("by", "announce"), [(-3600, True), (-2, False), (2, True), (3600, False)])


def die_at_commit(life: Life[Any, Any], number: int, fate: Fate) -> None:
    """Die at the commit of that number, and recover."""
    judge_commit(life, number, fate)
    live(life)
    assert life.is_dead
    recover(life)


def die_at_each_step(make: Callable[[], Life[Any, Any]]) -> int:
    """Die before each step of a life in turn, and recover each time; return how many there were, and one."""
    step, reached_the_end = 0, False
    while not reached_the_end:
        step += 1
        life = make()
        live(life, die_at=step)
        reached_the_end = not life.is_dead
        try:
            recover(life)
        except BaseException as error:
            error.add_note(f"the process died before step {step}")
            raise
    return step


def fail_at_commit(life: Life[Any, Any], number: int, fate: Fate) -> None:
    """Live on when the commit of that number fails, or seems to, and recover."""
    judge_commit(life, number, fate)
    live(life)
    assert not life.is_dead
    recover(life)


def live_through_wall_step(life: Life[Any, Any], number: int, by: float, *, announce: bool) -> None:
    """Live on when the wall is stepped during the commit of that number, and recover."""
    step_wall_at_commit(life, number, by, announce=announce)
    live(life)
    recover(life, longer=3600)
