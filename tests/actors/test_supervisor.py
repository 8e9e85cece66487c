from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import ActorRestarted, ActorStopped, AgentFaulted
from whenidle_actors.mailbox import Lifecycle, Undelivered
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.supervisor import Restart, Supervision, SupervisorStatistics

from .doubles import Diarist, boom, leave, outcome_of, seeded

if TYPE_CHECKING:
    from trio.testing import MockClock

    from whenidle_actors.actor import Actor
    from whenidle_actors.mailbox import DeadLetter


JITTER = {seed: seeded(seed).random() for seed in (1, 2)}


async def test_over_a_restart_tells_run_in_order_and_asks_fail(autojump_clock: MockClock) -> None:
    """CASE 19: with ten tells and two asks queued, the tells survive and the asks raise."""
    outcomes: dict[object, object] = {}
    letters: list[DeadLetter] = []

    async def fail(_: Actor) -> None:
        await trio.sleep(1)
        raise ValueError

    async with open_scheduler(on_dead_letter=letters.append) as scheduler, trio.open_nursery() as nursery:
        actor = Diarist("a", scheduler)
        nursery.start_soon(outcome_of, outcomes, actor, fail)
        await wait_all_tasks_blocked()
        for n in range(10):
            actor.tell(n)
            if n in {3, 7}:
                nursery.start_soon(outcome_of, outcomes, actor, f"ask {n}")
                await wait_all_tasks_blocked()
        await trio.sleep(5)
        assert outcomes == {fail: ValueError, "ask 3": ActorRestarted, "ask 7": ActorRestarted}
        assert actor.diary == [
            (0, "started"),
            (1, "restarting ValueError()"),
            (2, "started"),
            *((2, n) for n in range(10)),
        ]
        assert [(letter.message, letter.reason, letter.asked) for letter in letters] == [
            ("ask 3", Undelivered.RESTARTED, True),
            ("ask 7", Undelivered.RESTARTED, True),
        ]
        statistics = actor.statistics()
        assert (statistics.accepted, statistics.processed, statistics.dead_letters) == (13, 11, 2)
        assert statistics.restarts == 1


async def test_system_messages_wait_over_a_restart(autojump_clock: MockClock) -> None:
    """System tells and system asks are served by the restarted actor."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler)
        actor.tell(boom)
        await wait_all_tasks_blocked()
        actor.tell_system("system tell")
        assert await actor.ask_system("system ask") == "system ask"
        assert actor.diary[2:] == [(1, "started"), (1, "system tell"), (1, "system ask")]

        def fail_with_system_queued(actor: Diarist) -> None:
            actor.tell_system("kept")
            raise ValueError

        actor.tell(fail_with_system_queued)
        await trio.sleep(10)
        assert actor.diary[-1] == (3, "kept")


async def test_messages_that_come_during_backoff_wait_for_the_restart(autojump_clock: MockClock) -> None:
    """Asks too: they were not there when the actor failed."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler)
        actor.tell(boom)
        await wait_all_tasks_blocked()
        assert actor.lifecycle is Lifecycle.RESTARTING
        actor.tell("tell")
        assert await actor.ask("ask") == "ask"
        assert actor.diary[2:] == [(1, "started"), (1, "tell"), (1, "ask")]


async def test_backoff_grows_while_faults_come_close_together(autojump_clock: MockClock) -> None:
    """Waits of 1, 2 and 4 seconds; far apart, each fault waits the first again."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler)
        for _ in range(3):
            actor.tell(boom)
        await trio.sleep(1000)
        actor.tell(boom)
        await trio.sleep(1000)
        starts = [time for time, entry in actor.diary if entry == "started"]
        assert starts == [0, 1, 3, 7, 1001]


async def test_jitter_is_drawn_from_the_generator_given(autojump_clock: MockClock) -> None:
    """The same seed gives the same waits; they are within their share."""
    waits: list[float] = []
    for seed in (1, 1, 2):
        async with open_scheduler(random=seeded(seed)) as scheduler:
            actor = Diarist("a", scheduler, Supervision(backoff_initial=1.0, jitter=0.5))
            start = trio.current_time()
            actor.tell(boom)
            await trio.sleep(10)
            waits.append(actor.diary[-1][0] - start)
    assert waits[0] == pytest.approx(1 - 0.5 * JITTER[1])
    assert waits[1] == pytest.approx(waits[0])
    assert waits[2] == pytest.approx(1 - 0.5 * JITTER[2])


async def test_an_actor_that_always_fails_to_start_escalates_once(autojump_clock: MockClock) -> None:
    """CASE 22: without any message the intensity trips in time, and nothing runs afterwards."""

    class Hopeless(Diarist):
        async def started(self) -> None:
            self.note("starting")
            raise ValueError

    async with open_scheduler() as scheduler:
        actor, sibling = Hopeless("a", scheduler), Diarist("b", scheduler)
        actor.start()
        await trio.sleep(80_000)
        again = "restarting ValueError()"
        assert actor.diary == [
            *((0, "starting"), (0, again), (1, "starting"), (1, again), (3, "starting"), (3, again)),
            *((7, "starting"), (7, "faulted ValueError()")),
        ]
        assert await sibling.ask("untouched") == "untouched"
        assert scheduler.supervisor.statistics() == SupervisorStatistics(
            faults=4, restarts=3, escalations=1, restarting=0
        )


async def test_a_backoff_longer_than_the_window_does_not_hide_the_faults(autojump_clock: MockClock) -> None:
    """Time in backoff does not count towards the window, so the intensity always trips."""
    slow = Supervision(intensity=3, window=1.0, backoff_initial=100.0, backoff_max=1e6, jitter=0.0)

    class Hopeless(Diarist):
        async def started(self) -> None:
            await trio.sleep(0.1)
            raise ValueError

    async with open_scheduler() as scheduler:
        actor = Hopeless("a", scheduler, slow)
        actor.start()
        await trio.sleep(80_000)
        assert actor.lifecycle is Lifecycle.FAULTED
        assert actor.diary[-1][0] == pytest.approx(100 + 200 + 400 + 4 * 0.1)


async def test_faults_far_apart_never_escalate(autojump_clock: MockClock) -> None:
    """An actor that fails once a minute and a bit is restarted for ever."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler)
        for _ in range(50):
            actor.tell(boom)
            await trio.sleep(62)
        assert await actor.ask("still here") == "still here"
        assert actor.statistics().restarts == 50
        assert actor.record is not None
        assert len(actor.record.restarts_at) == 1


async def test_a_faulted_actor_fails_all_that_wait_and_takes_nothing_more(autojump_clock: MockClock) -> None:
    """Everybody who waits is told; tells become dead letters; the failing ask gets its own error."""
    outcomes: dict[object, object] = {}
    letters: list[DeadLetter] = []

    async def fail(_: Actor) -> None:
        await trio.sleep(1)
        raise ValueError

    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        actor = Diarist("a", scheduler, Supervision(intensity=0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outcome_of, outcomes, actor, fail)
            await wait_all_tasks_blocked()
            nursery.start_soon(outcome_of, outcomes, actor, "waiting")
            await wait_all_tasks_blocked()
            actor.tell("told")
        assert outcomes == {fail: ValueError, "waiting": AgentFaulted}
        actor.tell("late")
        with pytest.raises(AgentFaulted, match="'a' is faulted: its own code failed more often than allowed"):
            await actor.ask("late")
        await actor.stop()
        assert actor.lifecycle is Lifecycle.FAULTED
        assert actor.diary == [(0, "started"), (1, "faulted ValueError()")]
        assert [(letter.message, letter.reason) for letter in letters] == [
            ("waiting", Undelivered.FAULTED),
            ("told", Undelivered.FAULTED),
            ("late", Undelivered.FAULTED),
        ]


async def test_a_temporary_actor_is_not_restarted(autojump_clock: MockClock) -> None:
    """Its first fault marks it faulted."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler, Supervision(Restart.TEMPORARY))
        actor.tell(boom)
        await wait_all_tasks_blocked()
        assert actor.lifecycle is Lifecycle.FAULTED


@pytest.mark.parametrize("policy", [Restart.TRANSIENT, Restart.TEMPORARY])
async def test_a_normal_exit_stops_the_actor(policy: Restart, autojump_clock: MockClock) -> None:
    """`ActorExit` is an orderly stop and no fault; its ask raises `ActorStopped`."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler, Supervision(policy))
        with pytest.raises(ActorStopped):
            await actor.ask(leave)
        await actor.stop()
        assert actor.diary == [(0, "started"), (0, "stopped")]
        assert scheduler.supervisor.statistics().faults == 0


async def test_a_permanent_actor_is_restarted_after_a_normal_exit(autojump_clock: MockClock) -> None:
    """It counts towards the intensity, and its ask raises `ActorRestarted`."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler)
        for _ in range(3):
            with pytest.raises(ActorRestarted):
                await actor.ask(leave)
            await trio.sleep(4)
        assert await actor.ask("back") == "back"
        with pytest.raises(AgentFaulted):
            await actor.ask(leave)
        assert scheduler.supervisor.statistics().faults == 0


async def test_stopping_an_actor_in_backoff_ends_the_backoff(autojump_clock: MockClock) -> None:
    """It has dropped its state, so it is gone at once and no task waits for the restart."""
    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler, Supervision(backoff_initial=1000.0, backoff_max=1000.0))
        actor.tell(boom)
        await wait_all_tasks_blocked()
        assert scheduler.supervisor.statistics().restarting == 1
        await actor.stop()
        assert actor.lifecycle is Lifecycle.STOPPED
        assert actor.diary == [(0, "started"), (0, "restarting ValueError()")]
        assert scheduler.supervisor.statistics().restarting == 0
    assert trio.current_time() == 0


async def test_an_actor_may_stop_itself_while_it_is_being_restarted(autojump_clock: MockClock) -> None:
    """`restarting` may decide that enough is enough."""

    class Resigned(Diarist):
        def restarting(self, error: Exception) -> None:
            super().restarting(error)
            self.begin_stop()

    async with open_scheduler() as scheduler:
        actor = Resigned("a", scheduler)
        actor.tell(boom)
        await trio.sleep(100)
        assert actor.lifecycle is Lifecycle.STOPPED
        assert actor.diary == [(0, "started"), (0, "restarting ValueError()")]
        assert actor.busy is None


async def test_failing_hooks_are_logged_and_change_nothing(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An actor whose `restarting` and `faulted` fail is restarted and faulted all the same."""

    class Clumsy(Diarist):
        def restarting(self, error: Exception) -> None:
            raise KeyError from error

        def faulted(self, error: Exception) -> None:
            raise KeyError from error

    async with open_scheduler() as scheduler:
        actor = Clumsy("a", scheduler, Supervision(intensity=1))
        actor.tell(boom)
        await trio.sleep(1)
        assert await actor.ask("restarted") == "restarted"
        actor.tell(boom)
        await wait_all_tasks_blocked()
        assert actor.lifecycle is Lifecycle.FAULTED
    assert "restarting of actor 'a' failed" in caplog.text
    assert "faulted of actor 'a' failed" in caplog.text


async def test_a_group_of_errors_out_of_a_handler_is_one_fault(autojump_clock: MockClock) -> None:
    """What a nursery in a handler raises goes to the caller as the group it is."""

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError

    async def work(_: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    async with open_scheduler() as scheduler:
        actor = Diarist("a", scheduler)
        with pytest.raises(ExceptionGroup) as caught:
            await actor.ask(work)
        assert caught.group_contains(ValueError)
        assert await actor.ask("restarted") == "restarted"
