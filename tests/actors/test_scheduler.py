from __future__ import annotations

import itertools
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import CompositionError, InvalidArgument
from whenidle_actors.scheduler import Scheduler, SchedulerStatistics, open_scheduler

from .doubles import Scribe, sleeping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock

    from whenidle_actors.actor import Actor


async def test_actors_take_turns_in_the_order_they_became_ready() -> None:
    """FIFO between actors, whatever the number of their messages up to a batch."""
    seen: list[str] = []
    async with open_scheduler() as scheduler:
        a, b, c = (Scribe(name, scheduler, seen) for name in "abc")
        for actor, messages in ((b, 2), (a, 1), (c, 1), (b, 1)):
            for n in range(messages):
                actor.tell(n)
        await wait_all_tasks_blocked()
    assert seen == ["b0", "b1", "b0", "a0", "c0"]


async def test_an_actor_that_floods_goes_to_the_back_after_its_batch() -> None:
    """With batches of three, the others run after at most three of its messages; its order holds."""
    seen: list[str] = []
    async with open_scheduler(batch=3) as scheduler:
        flood, b, c = (Scribe(name, scheduler, seen) for name in "abc")
        for actor in (flood, b, c):
            actor.start()
        await wait_all_tasks_blocked()
        for n in range(7):
            flood.tell(n)
        for actor in (b, c):
            actor.tell(0)
        await wait_all_tasks_blocked()
    assert seen == ["a0", "a1", "a2", "b0", "c0", "a3", "a4", "a5", "a6"]


@pytest.mark.parametrize("batch", [1, 5, 64])
async def test_no_more_than_a_batch_is_handled_between_two_checkpoints(batch: int) -> None:
    """SPEC 2.9: how long actors hold the loop is bounded, so cancellation comes within two batches."""
    handled = 0

    def again(actor: Actor) -> None:
        nonlocal handled
        handled += 1
        actor.tell(again)

    async with open_scheduler(batch=batch) as scheduler:
        for name in "abc":
            actor = Scribe(name, scheduler)
            await actor.ask(0)
            for _ in range(3):
                actor.tell(again)
        for _ in range(10):
            before = handled
            await trio.lowlevel.checkpoint()
            # Trio runs the tasks of a round in any order, so one batch may lie at either side of our step.
            assert handled - before <= 2 * batch
        with trio.CancelScope() as scope:
            scope.cancel()
            before = handled
            await trio.sleep_forever()
        assert handled - before <= 2 * batch
        assert handled >= 9 * batch


async def test_a_deadline_passes_while_actors_flood(autojump_clock: MockClock) -> None:
    """An endless conversation keeps no other task from its time-out."""

    def again(actor: Actor) -> None:
        actor.tell(again)
        autojump_clock.jump(0.01)

    async with open_scheduler() as scheduler:
        Scribe("a", scheduler).tell(again)
        with trio.move_on_after(10) as scope:
            await trio.sleep_forever()
        assert scope.cancelled_caught
        assert trio.current_time() < 10 + 2 * 64 * 0.01


async def test_handlers_that_do_not_block_need_one_worker_and_no_task_switch() -> None:
    """A thousand actors, plain and async, are served in a few steps of one task."""

    class Steps(trio.abc.Instrument):
        def __init__(self) -> None:
            self.count = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.count += task.name.endswith("Worker.run")

    async def work(_: Actor) -> None: ...

    async with open_scheduler(batch=100) as scheduler:
        actors = [Scribe(str(n), scheduler) for n in range(1000)]
        for actor in actors:
            actor.start()
        await wait_all_tasks_blocked()
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        for actor in actors:
            actor.tell(work)
            actor.tell("plain")
        await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
        assert all(actor.statistics().processed == 2 for actor in actors)
        assert steps.count == 21  # 2000 messages in batches of 100, and one step to park
        assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=1, idle_workers=1)


async def test_a_blocked_handler_holds_up_nobody_else(autojump_clock: MockClock) -> None:
    """Other actors run meanwhile, on other workers; few of them stay when there is nothing to do."""
    async with open_scheduler(max_idle_workers=3) as scheduler:
        actors = [Scribe(str(n), scheduler) for n in range(10)]
        for actor in actors:
            actor.tell(sleeping(1))
        await wait_all_tasks_blocked()
        assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=10, idle_workers=0)
        for actor in actors:
            assert await actor.ask("after") == "after"
        assert trio.current_time() == 1
        await wait_all_tasks_blocked()
        assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=3, idle_workers=3)


async def test_many_handlers_that_block_begin_within_a_few_rounds_of_trio(autojump_clock: MockClock) -> None:
    """Workers are called by twos, fours and eights while one handler after the other blocks."""
    begun = 0

    async def block(_: Actor) -> None:
        nonlocal begun
        begun += 1
        await trio.sleep(1)

    async with open_scheduler(batch=50, max_idle_workers=200) as scheduler:
        actors = [Scribe(str(n), scheduler) for n in range(200)]
        for actor in actors:
            actor.start()
        await wait_all_tasks_blocked()
        for expected in (12, 6):
            begun = rounds = 0
            for actor in actors:
                actor.tell(block)
            while begun < len(actors):
                before = begun
                await trio.lowlevel.checkpoint()
                rounds += 1
                assert begun - before <= 2 * scheduler.batch
            assert rounds <= expected
            await trio.sleep(2)
        assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=200, idle_workers=200)


async def test_workers_called_for_nothing_are_not_called_again(autojump_clock: MockClock) -> None:
    """When handlers stop blocking, one worker is enough again."""

    class Steps(trio.abc.Instrument):
        def __init__(self) -> None:
            self.count = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.count += task.name.endswith("Worker.run")

    async with open_scheduler(max_idle_workers=40) as scheduler:
        actors = [Scribe(str(n), scheduler) for n in range(40)]
        for actor in actors:
            actor.tell(sleeping(1))
        await trio.sleep(2)
        counts: list[int] = []
        for _ in range(2):
            steps = Steps()
            actors[0].tell(sleeping(1))
            for actor in actors[1:]:
                actor.tell("plain")
            trio.lowlevel.add_instrument(steps)
            await trio.sleep(2)
            trio.lowlevel.remove_instrument(steps)
            counts.append(steps.count)
        assert counts[0] > 20
        assert counts[1] == 3  # one blocks, another serves all the rest, the first resumes


async def test_no_worker_stays_if_none_may_be_idle(autojump_clock: MockClock) -> None:
    """With `max_idle_workers=0` there is no task while there is nothing to do."""
    tasks = trio.lowlevel.current_statistics().tasks_living
    async with open_scheduler(max_idle_workers=0) as scheduler:
        actor = Scribe("a", scheduler)
        for message in ("plain", sleeping(1)):
            await actor.ask(message)
            await wait_all_tasks_blocked()
            assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=0, idle_workers=0)
            assert trio.lowlevel.current_statistics().tasks_living == tasks


async def test_messages_behind_a_blocked_handler_wait_and_keep_their_order(autojump_clock: MockClock) -> None:
    """The rest of the batch runs after the handler, behind whoever became ready meanwhile or not."""
    seen: list[str] = []

    async def nap(_: Actor) -> None:
        await trio.sleep(1)

    async with open_scheduler() as scheduler:
        a, b = Scribe("a", scheduler, seen), Scribe("b", scheduler, seen)
        for message in (nap, 1, nap, 2):
            a.tell(message)
        for message in (1, nap, 2, 3):
            b.tell(message)
        await trio.sleep(10)
    assert [entry for entry in seen if entry.startswith("a")] == ["a1", "a2"]
    assert [entry for entry in seen if entry.startswith("b")] == ["b1", "b2", "b3"]


async def test_a_handler_that_ends_while_another_worker_runs_actors_gets_in_line() -> None:
    """Its actor goes on in its turn, its worker parks: one worker at a time runs the ready list."""
    seen: list[str] = []
    stretches: list[int] = []

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            del task
            stretches.append(len(seen))

    def flood(actor: Actor) -> None:
        seen.append("flood")
        if seen.count("flood") < 400:
            actor.tell(flood)

    async with open_scheduler(batch=4) as scheduler:
        a, b = Scribe("a", scheduler), Scribe("b", scheduler, seen)
        await a.ask(0)
        await b.ask("-")
        trio.lowlevel.add_instrument(Steps())
        a.tell(flood)
        for n in range(20):
            b.tell(sleeping(0))
            b.tell(n)
        await wait_all_tasks_blocked()
        assert [entry for entry in seen if entry != "flood"] == ["b-", *(f"b{n}" for n in range(20))]
        assert seen.count("flood") == 400
        assert seen.index("b19") < 200  # they shared the loop
        assert all(later - earlier <= 4 for earlier, later in itertools.pairwise(stretches))
        assert scheduler.statistics() == SchedulerStatistics(ready=0, workers=2, idle_workers=2)


async def test_who_runs_next_is_the_choosers_decision() -> None:
    """The seam for exploring orders: it sees the ready actors and picks any; messages stay in order."""
    seen: list[str] = []
    offered: list[str] = []

    def last(ready: Sequence[Actor]) -> int:
        offered.append("".join(actor.name for actor in ready))
        return len(ready) - 1

    async with open_scheduler(choose=last) as scheduler:
        for name in "abcd":
            actor = Scribe(name, scheduler, seen)
            actor.tell(0)
            actor.tell(1)
        await wait_all_tasks_blocked()
    assert seen == ["d0", "d1", "c0", "c1", "b0", "b1", "a0", "a1"]
    assert offered == ["abcd", "abc", "ab", "a"]


async def test_messages_told_before_the_scheduler_is_open_wait_for_it() -> None:
    """Actors can be made and told things first."""
    scheduler = Scheduler()
    actor = Scribe("a", scheduler)
    actor.tell(1)
    await wait_all_tasks_blocked()
    assert (actor.seen, actor.statistics().depth) == ([], 1)
    async with scheduler.open() as opened:
        assert opened is scheduler
        await wait_all_tasks_blocked()
        assert actor.seen == ["a1"]


async def test_a_scheduler_opens_once() -> None:
    """A second time is a composition error."""
    scheduler = Scheduler()
    async with scheduler.open():
        with pytest.raises(CompositionError, match="opened before; make another one"):
            async with scheduler.open():
                pass
    with pytest.raises(CompositionError):
        async with scheduler.open():
            pass


@pytest.mark.parametrize(
    ("argument", "hint"),
    [({"batch": 0}, "write 1 or more"), ({"max_idle_workers": -1}, "write 0 or more")],
)
async def test_a_number_out_of_range_is_refused(argument: dict[str, int], hint: str) -> None:
    """The message says what to write instead."""
    with pytest.raises(InvalidArgument, match=hint):
        Scheduler(**argument)  # type: ignore[arg-type]  # one keyword at a time


async def test_handlers_see_no_context_of_whoever_told_them(autojump_clock: MockClock) -> None:
    """A worker or a restart inherits no context variable from the task that happened to start it."""
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    values: list[str] = []

    def fail(_: Actor) -> None:
        raise ValueError

    variable.set("of the opener")
    async with open_scheduler(max_idle_workers=0) as scheduler:
        actor = Scribe("a", scheduler)
        variable.set("of the teller")
        actor.tell(lambda _: values.append(variable.get()))
        await wait_all_tasks_blocked()
        actor.tell(fail)
        actor.tell(lambda _: values.append(variable.get()))
        await trio.sleep(1)
    assert values == ["of the opener", "of the opener"]
