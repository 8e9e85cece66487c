"""Which actor runs next: the ready list and the worker tasks that serve it (SPEC 2.8)."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import attrs
import trio

from whenidle_actors.deadlock import serving
from whenidle_actors.errors import CompositionError, InvalidArgument
from whenidle_actors.logs import report
from whenidle_actors.mailbox import MailboxPolicy, Setup
from whenidle_actors.supervisor import Supervisor
from whenidle_actors.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from contextvars import Context
    from random import Random

    from whenidle_actors.actor import Actor
    from whenidle_actors.mailbox import DeadLetter
    from whenidle_actors.supervision import Supervision

logger: logging.Logger = logging.getLogger("whenidle.actors")


@attrs.frozen
class SchedulerStatistics:
    """What the scheduler is doing now (SPEC 2.12)."""

    ready: int
    """Actors that wait for their turn."""
    workers: int
    """Worker tasks alive: one that runs actors, those whose handler is blocked, and the idle ones."""
    idle_workers: int
    """Worker tasks parked; at most `max_idle_workers`."""


def _log_dead_letter(letter: DeadLetter) -> None:
    report(
        logger,
        logging.WARNING,
        "dead-letter",
        "dead letter for actor %r (%s): a %s",
        letter.actor,
        letter.reason.value,
        type(letter.message).__name__,
        actor=letter.actor,
        reason=letter.reason.value,
    )


class Scheduler:
    """Runs actors whose mailbox is not empty, on a few worker tasks in one nursery.

    Actors made, and messages told, before it is open wait until it is.

    Args:
        batch: the most messages handled between two checkpoints, of one actor or of many; an actor that has
            more goes to the back of the ready list. So a task that becomes runnable, or is cancelled, waits
            for at most twice `batch` handlers to run up to their first await: a batch that runs when that
            happens, and one that trio may run first in its next round.
        choose: given the ready actors, longest waiting first, returns the index of the one to run next.
            None takes the first. The order in which actors run depends on nothing else.
        max_idle_workers: how many worker tasks stay parked when there is nothing for them to do.
        random: where the jitter of restarts is drawn from; a generator seeded with 0 if None.
        on_dead_letter: called with each message that was accepted but never reached its handler. It must not
            block; what it raises is logged. None logs a warning for each.

    Raises:
        InvalidArgument: `batch` is below 1, or `max_idle_workers` below 0.
    """

    def __init__(
        self,
        *,
        batch: int = 64,
        choose: Callable[[Sequence[Actor]], int] | None = None,
        max_idle_workers: int = 8,
        random: Random | None = None,
        on_dead_letter: Callable[[DeadLetter], None] | None = None,
    ) -> None:
        if batch < 1:
            raise InvalidArgument(f"a batch of {batch} messages would never run anything; write 1 or more")
        if max_idle_workers < 0:
            raise InvalidArgument(f"max_idle_workers is {max_idle_workers}; write 0 or more")
        self.batch: int = batch
        self.supervisor: Supervisor = Supervisor(self, random)
        self.ready: deque[Actor] = deque()
        self.holder: Worker | None = None
        """The worker that serves the ready list; None while nothing is ready or a worker is called, or if closed."""
        self.allowance: int = 0
        """How many messages the next holder may handle before its first checkpoint."""
        self._choose = choose
        self._max_idle_workers = max_idle_workers
        self._on_dead_letter = on_dead_letter or _log_dead_letter
        self._setups: WeakValueDictionary[tuple[MailboxPolicy, Supervision], Setup] = WeakValueDictionary()
        self._context: Context | None = None
        self._start_soon: Callable[..., None]
        self._workers: dict[Worker, None] = {}
        self._parked: dict[Worker, trio.lowlevel.Task] = {}
        self._called = 0  # workers that trio is about to run; the first that finds no holder becomes it
        self._calls = 1
        self._is_open = False
        self.is_closed: bool = False

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Scheduler]:
        """Run the actors for as long as the block runs. Once only.

        On leaving the block, handlers that still run are cancelled, their asks and all that wait fail
        with `ActorStopped`, and tells that wait become dead letters. No task is left afterwards. Stop the
        actors first if they should end in order. Cancelling the block from outside leaves them running
        until the block has been left, so that its clean-up may still use them.

        Raises:
            CompositionError: it was opened before.
        """
        if self._context is not None:
            raise CompositionError("this scheduler was opened before; make another one")
        self._context = copy_context()
        try:
            async with trio.open_nursery() as nursery:
                self._start_soon = partial(self._context.run, cast("Callable[..., None]", nursery.start_soon))
                self._is_open = True
                try:
                    if self.ready:
                        self._call(1)
                    yield self
                finally:
                    self._close()
        except BaseExceptionGroup as group:
            # The nursery is not the caller's business: an error of the block leaves as it was raised.
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from group.exceptions[0].__cause__
            raise

    def statistics(self) -> SchedulerStatistics:
        """Return what the scheduler is doing now."""
        return SchedulerStatistics(len(self.ready), len(self._workers), len(self._parked))

    def setup(self, policy: MailboxPolicy, supervision: Supervision) -> Setup:
        """Return the one value that all actors with this policy and supervision share."""
        key = (policy, supervision)
        setup = self._setups.get(key)
        if setup is None:
            setup = self._setups[key] = Setup(self, policy, supervision)
        return setup

    # For mailboxes and the supervisor ---------------------------------------------------------

    def make_ready(self, actor: Actor) -> None:
        """Put an actor that nobody has in hand at the end of the ready list."""
        self.ready.append(actor)
        if self.holder is None:
            if self.is_closed:
                self._abandon_ready()
            elif self._is_open and not self._called:
                self._call(1)

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Start a task beside the workers, in a context of its own."""
        self._start_soon(function, *args)

    def bury(self, letter: DeadLetter) -> None:
        """Hand a dead letter to the hook."""
        try:
            self._on_dead_letter(letter)
        except Exception as error:  # noqa: BLE001 - a hook is nobody's business but its own
            report(logger, logging.ERROR, "dead-letter-hook-failed", "the dead-letter hook failed", error=error)

    # For workers ------------------------------------------------------------------------------

    def take(self) -> Actor:
        """Take the actor that runs next off the ready list."""
        if self._choose is None:
            return self.ready.popleft()
        index = self._choose(self.ready)
        actor = self.ready[index]
        del self.ready[index]
        return actor

    def answer_call(self, worker: Worker) -> bool:
        """Make `worker`, which was called, the holder if there is work and no holder, and tell whether it is."""
        self._called -= 1
        if self.holder is not None or not self.ready:
            self._calls = 1
            return False
        self.holder = worker
        return True

    def give_away(self, allowance: int) -> None:
        """Let another worker hold the ready list, because the code of an actor blocked its holder.

        While one handler after the other blocks, calling one worker at a time would cost a round of trio for
        each; so each time twice as many are called. Together they handle what is left of a batch.
        """
        self.holder = None
        self.allowance = allowance
        if self.ready and not self._called:
            self._call(min(len(self.ready), self._calls))
            self._calls = min(2 * self._calls, self.batch)

    def take_over(self, worker: Worker) -> bool:
        """Make `worker` the holder if there is none, and tell whether it is."""
        if self.holder is None:
            self.holder = worker
        return self.holder is worker

    async def park(self, worker: Worker) -> bool:
        """Wait until `worker` is the holder; return False if enough workers are parked already."""
        if self.holder is worker:
            self.holder = None
        if len(self._parked) >= self._max_idle_workers:
            return False
        serving.set(None)  # a parked worker must not keep its last actor alive
        self._parked[worker] = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            del self._parked[worker]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        return True

    def left(self, worker: Worker) -> None:
        """Take note that a worker's task is about to end."""
        del self._workers[worker]

    def _call(self, count: int) -> None:
        """Have `count` workers, parked or new ones, run in trio's next round."""
        self.allowance = self.batch
        self._called = count
        for _ in range(count):
            if self._parked:
                trio.lowlevel.reschedule(self._parked.popitem()[1])
            else:
                worker = Worker(self)
                self._workers[worker] = None
                self._start_soon(worker.run)

    def _close(self) -> None:
        self._is_open = False
        self.is_closed = True
        self.holder = None
        self._abandon_ready()
        self.supervisor.abandon_restarting()
        for worker in self._workers:
            worker.cancel()

    def _abandon_ready(self) -> None:
        while self.ready:
            self.supervisor.abandon(self.ready.popleft())


@asynccontextmanager
async def open_scheduler(
    *,
    batch: int = 64,
    choose: Callable[[Sequence[Actor]], int] | None = None,
    max_idle_workers: int = 8,
    random: Random | None = None,
    on_dead_letter: Callable[[DeadLetter], None] | None = None,
) -> AsyncGenerator[Scheduler]:
    """Make a `Scheduler` and run it for as long as the block runs; see there."""
    scheduler = Scheduler(
        batch=batch,
        choose=choose,
        max_idle_workers=max_idle_workers,
        random=random,
        on_dead_letter=on_dead_letter,
    )
    async with scheduler.open():
        yield scheduler
