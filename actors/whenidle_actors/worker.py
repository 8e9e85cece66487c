"""Worker tasks: they run actors from the ready list, a batch at a time (SPEC 2.8, 2.9).

One worker at a time *holds* the ready list. A handler that completes without blocking costs no task
switch: the worker steps its coroutine itself. On the coroutine's first yield the worker gives the list
away and drives the rest of it as its own task, so whatever trio does to the task, the handler sees.
"""

from __future__ import annotations

import math
import types
from typing import TYPE_CHECKING, Any, cast

import trio

from whenidle_actors.backlog import Ask
from whenidle_actors.deadlock import serving
from whenidle_actors.mailbox import Lifecycle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from whenidle_actors.actor import Actor
    from whenidle_actors.mailbox import Busy
    from whenidle_actors.scheduler import Scheduler

# Each message is compared with these, and looking a member up in its enumeration costs 30 ns.
_NEW, _SERVING, _STOPPING = Lifecycle.NEW, Lifecycle.SERVING, Lifecycle.STOPPING


class Blocked:
    """Code of an actor that has yielded to trio."""

    __slots__ = ("ask", "coroutine", "trap", "was")

    def __init__(self, was: Lifecycle, ask: Ask | None, coroutine: Coroutine[Any, Any, Any], trap: Any) -> None:
        self.was: Lifecycle = was
        """STARTING and STOPPING for the hooks of those names, SERVING for `receive`."""
        self.ask: Ask | None = ask
        self.coroutine: Coroutine[Any, Any, Any] = coroutine
        self.trap: Any = trap
        """What it yielded, for trio."""


@types.coroutine
def _drive(coroutine: Coroutine[Any, Any, Any], trap: Any) -> Generator[Any, Any, Any]:
    """Run a coroutine that has just yielded `trap` to its end, as `await` would have done."""
    resume: Callable[[Any], Any]
    while True:
        try:
            answer = yield trap
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is meant for the coroutine
            resume, argument = coroutine.throw, error
        else:
            resume, argument = coroutine.send, answer
        try:
            trap = resume(argument)
        except StopIteration as stop:
            return stop.value


def _coroutine_of(result: Any) -> Coroutine[Any, Any, Any] | None:
    """Return the coroutine to run if a handler returned something to await, or None."""
    if type(result) is types.CoroutineType:
        return cast("Coroutine[Any, Any, Any]", result)
    return _await(result) if hasattr(result, "__await__") else None


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class Worker:
    """One task of a scheduler."""

    __slots__ = ("_budget", "_cancelled", "_limited", "_scheduler", "_scope", "_supervisor")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._supervisor = scheduler.supervisor
        # Only its scheduler may end it: what surrounds the scheduler still needs actors to clean up.
        self._scope = trio.CancelScope(shield=True)
        self._cancelled = self._limited = False  # to ask the scope, and to set its deadline, costs 5 us a handler
        self._budget = 0
        """Messages that may still be handled before the next checkpoint."""

    async def run(self) -> None:
        """Serve as the holder of the ready list whenever called, and park, until there are parked workers enough."""
        try:
            with self._scope:
                await self._hold()
                while not self._is_over() and await self._scheduler.park(self):
                    await self._hold()
        finally:
            self._scheduler.left(self)

    def limit(self, seconds: float) -> None:
        """Cancel the blocked handler, and this worker with it, unless it ends within `seconds`."""
        self._limited = True
        self._scope.deadline = trio.current_time() + seconds

    def cancel(self) -> None:
        """Cancel the blocked handler, if there is one, and this worker."""
        self._cancelled = True
        self._scope.cancel()

    def _is_over(self) -> bool:
        return self._cancelled or (self._limited and self._scope.cancel_called)

    async def _hold(self) -> None:
        scheduler = self._scheduler
        if not scheduler.answer_call(self):
            return
        self._budget = scheduler.allowance
        if self._budget <= 0:
            await self._pause()
        while scheduler.ready:
            actor = scheduler.take()
            serving.set(actor)
            blocked = self._serve(actor)
            while blocked is not None:
                await self._finish(actor, blocked)
                blocked = self._serve(actor)
            if scheduler.holder is not self:
                return
            if self._budget <= 0:
                await self._pause()
        scheduler.allowance = self._budget

    async def _pause(self) -> None:
        """Let other tasks run between two batches."""
        await trio.lowlevel.checkpoint()
        self._budget = self._scheduler.batch

    def _serve(self, actor: Actor) -> Blocked | None:  # noqa: C901, PLR0912 - a call costs 5 % of a message
        """Run an actor until it is idle, gone or in backoff, its code blocks, or the budget is spent."""
        result: Any
        while self._budget > 0:
            was = actor.lifecycle
            ask: Ask | None = None
            try:
                if was is _SERVING:
                    busy = actor.busy
                    backlog = actor.backlog if busy is None or not busy.system else busy.system
                    if not backlog:
                        break
                    self._budget -= 1
                    message = backlog.popleft()
                    if type(message) is Ask:
                        ask = message
                        if ask.done:
                            backlog.void -= 1
                            continue
                        ask.backlog = None
                        message = ask.message
                    actor.served += 1
                    result = actor.receive(message)
                elif was is _NEW or was is _STOPPING:
                    self._budget -= 1
                    result = self._supervisor.enter(actor)
                    was = actor.lifecycle
                else:
                    return None
                if result is not None:
                    coroutine = _coroutine_of(result)
                    if coroutine is not None:
                        try:
                            trap = coroutine.send(None)
                        except StopIteration as stop:
                            result = stop.value
                        else:
                            return Blocked(was, ask, coroutine, trap)
            except Exception as error:  # noqa: BLE001 - the supervisor decides about it
                self._supervisor.failed(actor, was, ask, error)
            except BaseException as error:
                self._supervisor.interrupted(actor, was, ask, error)
                raise
            else:
                if ask is not None:
                    ask.settle(result)
                elif was is not _SERVING:
                    self._supervisor.completed(actor, was)
        actor.let_go()
        return None

    async def _finish(self, actor: Actor, blocked: Blocked) -> None:
        """See blocked code to its end while another worker holds the ready list."""
        scheduler = self._scheduler
        busy = actor.carry()
        busy.worker = self
        if actor.lifecycle is _STOPPING:
            self.limit(actor.setup.supervision.shutdown_timeout)
        scheduler.give_away(self._budget)
        try:
            result = await _drive(blocked.coroutine, blocked.trap)
        except Exception as error:  # noqa: BLE001 - the supervisor decides about it
            self._resume(busy)
            self._supervisor.failed(actor, blocked.was, blocked.ask, error)
        except BaseException as error:
            self._resume(busy)
            rest = self._supervisor.interrupted(actor, blocked.was, blocked.ask, error)
            if rest is error:
                raise
            raise rest from None
        else:
            self._resume(busy)
            if blocked.ask is not None:
                blocked.ask.settle(result)
            elif blocked.was is not _SERVING:
                self._supervisor.completed(actor, blocked.was)

    def _resume(self, busy: Busy) -> None:
        """Hold the ready list again if nobody does; otherwise handle no more before parking."""
        busy.worker = None
        if self._is_over():
            self._budget = 0
            return
        if self._limited:
            self._limited = False
            self._scope.deadline = math.inf
        self._budget = self._scheduler.batch if self._scheduler.take_over(self) else 0
