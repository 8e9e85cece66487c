from __future__ import annotations

import gc
import logging
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.actor import Actor
from whenidle_actors.errors import MailboxFull
from whenidle_actors.mailbox import Lifecycle, MailboxPolicy, Overflow
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.supervision import Supervision

from .doubles import Doer, plain_seen

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_an_actor_without_receive_says_so() -> None:
    """Forgetting to override `receive` is an error that names the class, as soon as an actor of it is made."""

    class Forgetful(Actor):
        pass

    async with open_scheduler() as scheduler:
        with pytest.raises(TypeError, match=r"Forgetful .*receive"):
            Forgetful("a", scheduler)  # type: ignore[abstract]  # which is what it is about


async def test_an_actor_may_do_without_hooks(autojump_clock: MockClock) -> None:
    """`started`, `stopped`, `restarting` and `faulted` do nothing unless overridden."""

    class Bare(Actor):
        def receive(self, message: Any) -> Any:
            return 1 / message

    async with open_scheduler() as scheduler:
        restarted = Bare("a", scheduler)
        with pytest.raises(ZeroDivisionError):
            await restarted.ask(0)
        assert await restarted.ask(2) == 0.5
        await restarted.stop()
        faulted = Bare("b", scheduler, supervision=Supervision(intensity=0))
        with pytest.raises(ZeroDivisionError):
            await faulted.ask(0)
        assert faulted.lifecycle is Lifecycle.FAULTED


async def test_started_runs_once_before_the_first_message() -> None:
    """The hook runs when the first message comes, not when the actor is made."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        await wait_all_tasks_blocked()
        assert actor.seen == []
        await actor.ask(1)
        await actor.ask(2)
        assert actor.seen == ["started", 1, 2]


async def test_start_runs_started_without_a_message() -> None:
    """`start` runs the hook at once, and only the first time."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        actor.start()
        actor.start()
        await wait_all_tasks_blocked()
        actor.start()
        await wait_all_tasks_blocked()
        assert actor.seen == ["started"]
        assert actor.backlog is None


async def test_start_loses_nothing_and_revives_nothing() -> None:
    """What waits already stays, and an actor that has stopped is not started."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        actor.tell(1)
        actor.start()
        await wait_all_tasks_blocked()
        assert actor.seen == ["started", 1]
        await actor.stop()
        actor.start()
        assert actor.backlog is None
        await actor.stop()
        assert actor.seen == ["started", 1, "stopped"]


async def test_a_message_that_comes_while_started_blocks_waits_for_it(autojump_clock: MockClock) -> None:
    """Nothing is handled before `started` has returned."""

    class Slow(Doer):
        async def started(self) -> None:
            await trio.sleep(1)
            await super().started()

    async with open_scheduler() as scheduler:
        actor = Slow("a", scheduler)
        actor.tell(1)
        await wait_all_tasks_blocked()
        assert await actor.ask(2) == 2
        assert actor.seen == ["started", 1, 2]


async def test_a_full_mailbox_of_one_starts_though_it_tells_itself_on_start() -> None:
    """CASE 20: what an actor tells itself while it starts is taken, whatever the capacity."""

    class SelfTeller(Doer):
        async def started(self) -> None:
            await super().started()
            self.tell("to myself")
            await trio.lowlevel.checkpoint()
            self.tell("again")

    for overflow in Overflow:
        async with open_scheduler() as scheduler:
            actor = SelfTeller("a", scheduler, mailbox=MailboxPolicy(1, overflow))
            actor.tell("from outside")
            await wait_all_tasks_blocked()
            assert actor.seen == ["started", "from outside", "to myself", "again"]
            statistics = actor.statistics()
            assert (statistics.accepted, statistics.processed, statistics.restarts) == (3, 3, 0)


async def test_only_its_own_messages_and_only_on_start_pass_a_full_mailbox() -> None:
    """Others are rejected while it starts, and so is the actor itself once it serves."""

    class SlowStarter(Doer):
        async def started(self) -> None:
            await gate.wait()
            await super().started()

    gate = trio.Event()

    def tell_two(actor: Actor) -> None:
        actor.tell("room for one")
        with pytest.raises(MailboxFull):
            actor.tell("too many")

    async with open_scheduler() as scheduler:
        actor = SlowStarter("a", scheduler, mailbox=MailboxPolicy(1))
        actor.tell(tell_two)
        await wait_all_tasks_blocked()
        with pytest.raises(MailboxFull):
            actor.tell("from outside")
        gate.set()
        await wait_all_tasks_blocked()
        assert plain_seen(actor) == ["started", "room for one"]


async def test_an_idle_actor_is_small() -> None:
    """SPEC 2.8: it holds no queue, no task and no counters beyond small integers."""

    class Slotted(Actor):
        __slots__ = ()

        def receive(self, message: Any) -> None: ...

    async with open_scheduler() as scheduler:
        actor = Slotted("a", scheduler)
        await actor.ask(1)
        assert sys.getsizeof(actor) <= 120
        assert not hasattr(actor, "__dict__")
        assert (actor.backlog, actor.busy, actor.record) == (None, None, None)
        assert actor.setup is Slotted("b", scheduler).setup


async def test_nothing_keeps_an_idle_actor_alive() -> None:
    """A parked worker, the ready list and the context of tasks hold no actor."""
    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler)
        await actor.ask(1)
        await wait_all_tasks_blocked()
        reference = weakref.ref(actor)
        del actor
        gc.collect()
        assert reference() is None


async def test_a_failed_ask_leaves_no_reference_cycle_behind(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception is freed with its last user."""
    caplog.set_level(logging.CRITICAL, "whenidle.actors")  # a captured record would hold the exception

    class Failure(Exception):
        pass

    def fail(_: Actor) -> None:
        raise Failure

    async with open_scheduler() as scheduler:
        actor = Doer("a", scheduler, supervision=Supervision(jitter=0))
        gc.collect()
        gc.disable()
        try:
            try:
                await actor.ask(fail)
            except Failure as error:
                reference = weakref.ref(error)
            await wait_all_tasks_blocked()
            assert reference() is None
        finally:
            gc.enable()
