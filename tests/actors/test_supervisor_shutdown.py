from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.actor import Actor
from whenidle_actors.errors import ActorStopped
from whenidle_actors.mailbox import Lifecycle
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.supervisor import Supervision, SupervisorStatistics

from .doubles import Diarist, outcome_of, sleeping

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_a_failing_stopped_hook_is_logged_and_the_actor_is_stopped(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a fault without a restart."""

    class Clumsy(Diarist):
        async def stopped(self) -> None:
            raise KeyError("at the end")

    async with open_scheduler() as scheduler:
        actor = Clumsy("a", scheduler)
        await actor.ask(1)
        await actor.stop()
        assert actor.lifecycle is Lifecycle.STOPPED
        assert scheduler.supervisor.statistics() == SupervisorStatistics(faults=1)
    assert "at the end" in caplog.text


async def test_a_fault_while_stopping_restarts_nothing(autojump_clock: MockClock) -> None:
    """The caller gets the error, `stopped` runs, and that is the end."""
    outcomes: dict[object, object] = {}

    async def fail(_: Actor) -> None:
        await trio.sleep(1)
        raise ValueError

    async with open_scheduler() as scheduler, trio.open_nursery() as nursery:
        actor = Diarist("a", scheduler)
        nursery.start_soon(outcome_of, outcomes, actor, fail)
        await wait_all_tasks_blocked()
        await actor.stop()
        await wait_all_tasks_blocked()
        assert outcomes == {fail: ValueError}
        assert actor.diary == [(0, "started"), (1, "stopped")]


async def test_a_start_that_fails_while_stopping_runs_no_stopped(autojump_clock: MockClock) -> None:
    """What never started has nothing to release."""

    class Hopeless(Diarist):
        async def started(self) -> None:
            await trio.sleep(1)
            raise ValueError

    async with open_scheduler() as scheduler:
        actor = Hopeless("a", scheduler)
        actor.start()
        await wait_all_tasks_blocked()
        await actor.stop()
        assert (actor.lifecycle, actor.diary) == (Lifecycle.STOPPED, [])


async def test_a_handler_that_outlasts_the_shutdown_timeout_is_cancelled(autojump_clock: MockClock) -> None:
    """After the timeout the handler gets `Cancelled`, its ask `ActorStopped`; `stopped` still runs."""
    outcomes: dict[object, object] = {}
    supervision = Supervision(shutdown_timeout=3.0)
    async with open_scheduler() as scheduler, trio.open_nursery() as nursery:
        actor, other = Diarist("a", scheduler, supervision), Diarist("b", scheduler)

        hang = sleeping(math.inf)
        nursery.start_soon(outcome_of, outcomes, actor, hang)
        await trio.sleep(1)
        await actor.stop()
        assert outcomes == {hang: ActorStopped}
        assert actor.diary == [(0, "started"), (4, "stopped")]
        assert await other.ask("untouched") == "untouched"
        assert scheduler.supervisor.statistics().faults == 0


async def test_a_handler_that_begins_the_stop_itself_is_held_to_the_timeout(
    autojump_clock: MockClock,
) -> None:
    """Before its first await, or after it."""

    async def hang_after_begin(actor: Actor) -> None:
        actor.begin_stop()
        await trio.sleep_forever()

    async def hang_after_a_while(actor: Actor) -> None:
        await trio.sleep(1)
        actor.begin_stop()
        await trio.sleep_forever()

    for work, end in ((hang_after_begin, 2.0), (hang_after_a_while, 3.0)):
        async with open_scheduler() as scheduler:
            actor = Diarist("a", scheduler, Supervision(shutdown_timeout=2.0))
            start = trio.current_time()
            with pytest.raises(ActorStopped, match="'a' was stopped while it handled this ask"):
                await actor.ask(work)
            assert trio.current_time() - start == end


async def test_a_stopped_hook_that_hangs_is_cancelled(autojump_clock: MockClock) -> None:
    """The timeout is for the handler and again for `stopped`."""

    class Hanging(Diarist):
        async def stopped(self) -> None:
            await trio.sleep_forever()

    async with open_scheduler() as scheduler:
        actor = Hanging("a", scheduler, Supervision(shutdown_timeout=2.0))
        actor.tell(sleeping(math.inf))
        await wait_all_tasks_blocked()
        await actor.stop()
        assert trio.current_time() == 4
        assert actor.lifecycle is Lifecycle.STOPPED


async def test_a_start_that_hangs_is_cancelled(autojump_clock: MockClock) -> None:
    """It never started, so `stopped` does not run."""

    class Hanging(Diarist):
        async def started(self) -> None:
            await trio.sleep_forever()

    async with open_scheduler() as scheduler:
        actor = Hanging("a", scheduler, Supervision(shutdown_timeout=2.0))
        actor.start()
        await wait_all_tasks_blocked()
        await actor.stop()
        assert (trio.current_time(), actor.diary) == (2, [])


async def test_a_handler_that_ends_in_time_leaves_its_worker_in_service(autojump_clock: MockClock) -> None:
    """The timeout of one stop cancels nothing that runs later on the same worker."""
    async with open_scheduler(max_idle_workers=1) as scheduler:
        actor, other = Diarist("a", scheduler, Supervision(shutdown_timeout=2.0)), Diarist("b", scheduler)
        actor.tell(sleeping(1))
        await wait_all_tasks_blocked()
        await actor.stop()
        assert await other.ask(sleeping(100)) is None
        assert trio.current_time() == 101


async def test_a_time_limit_ends_with_the_handler_though_another_worker_is_at_work(
    autojump_clock: MockClock,
) -> None:
    """A worker that parks behind the holder of the ready list may serve as long as it takes later on."""
    floods: list[Actor] = []

    def flood(actor: Actor) -> None:
        floods.append(actor)
        if len(floods) < 100:
            actor.tell(flood)

    async def stop_and_wake_the_flood(actor: Actor) -> None:
        actor.begin_stop()
        other.tell(flood)
        await trio.lowlevel.checkpoint()

    async with open_scheduler(batch=4) as scheduler:
        actor, other = Diarist("a", scheduler, Supervision(shutdown_timeout=2.0)), Diarist("b", scheduler)
        await actor.ask(stop_and_wake_the_flood)
        assert len(floods) < 100
        async with trio.open_nursery() as nursery:
            for name in "cd":
                nursery.start_soon(Diarist(name, scheduler).ask, sleeping(100))
        assert trio.current_time() == 100


async def test_a_stop_after_a_handler_had_blocked_limits_nobody_else(autojump_clock: MockClock) -> None:
    """The worker that once drove the actor's blocked handler serves others as long as they like."""
    async with open_scheduler(max_idle_workers=1) as scheduler:
        actor, other = Diarist("a", scheduler, Supervision(shutdown_timeout=2.0)), Diarist("b", scheduler)
        actor.tell(sleeping(1))
        actor.tell(Actor.begin_stop)
        await trio.sleep(1)
        await actor.stop()
        assert await other.ask(sleeping(100)) is None
        assert trio.current_time() == 101


async def test_a_handler_may_clean_up_when_it_is_cancelled(autojump_clock: MockClock) -> None:
    """A reply it still gives counts, and the worker whose time was up serves nobody else."""
    outcomes: dict[object, object] = {}

    async def clean_up(_: Actor) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            return "cleaned up"

    async with open_scheduler() as scheduler, trio.open_nursery() as nursery:
        actor, other = Diarist("a", scheduler, Supervision(shutdown_timeout=2.0)), Diarist("b", scheduler)
        nursery.start_soon(outcome_of, outcomes, actor, clean_up)
        await wait_all_tasks_blocked()
        await actor.stop()
        assert outcomes == {clean_up: "cleaned up"}
        assert actor.diary == [(0, "started"), (7, "stopped")]
        assert await other.ask(sleeping(1)) is None


async def test_an_error_during_the_cancellation_is_logged_as_a_fault(autojump_clock: MockClock) -> None:
    """From a nursery, trio gives a group of the cancellation and the error: each goes its own way."""
    outcomes: dict[object, object] = {}

    async def fail_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError

    async def work(_: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    async def both(_: Actor) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:
            raise BaseExceptionGroup("both", [cancelled, ValueError()]) from None

    for work_of in (work, both):
        async with open_scheduler() as scheduler, trio.open_nursery() as nursery:
            actor = Diarist("a", scheduler, Supervision(shutdown_timeout=1.0))
            nursery.start_soon(outcome_of, outcomes, actor, work_of)
            await wait_all_tasks_blocked()
            await actor.stop()
            assert outcomes.pop(work_of) is ExceptionGroup
            assert actor.diary[-1][1] == "stopped"
            assert scheduler.supervisor.statistics() == SupervisorStatistics(faults=1)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("blocking", [False, True])
async def test_an_interrupt_is_no_fault_and_ends_the_scheduler(interrupt: type[BaseException], blocking: bool) -> None:
    """KeyboardInterrupt and SystemExit leave the block as they are; callers are not left hanging."""
    outcomes: dict[object, object] = {}
    gate = trio.Event()

    async def raise_it(_: Actor) -> None:
        if blocking:
            await trio.lowlevel.checkpoint()
        raise interrupt

    async with trio.open_nursery() as nursery:
        with pytest.raises(interrupt):  # noqa: PT012 - the block is what it is raised from
            async with open_scheduler() as scheduler:
                actor = Diarist("a", scheduler)
                actor.tell(lambda _: gate.wait())
                for message in (raise_it, "waiting"):
                    nursery.start_soon(outcome_of, outcomes, actor, message)
                    await wait_all_tasks_blocked()
                gate.set()
                await trio.sleep_forever()
    assert outcomes == {raise_it: ActorStopped, "waiting": ActorStopped}
    assert scheduler.supervisor.statistics().faults == 0
