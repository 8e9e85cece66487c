"""Carries an actor through its life: start, fault, backoff, restart, stop (SPEC 2.7)."""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, cast

import attrs
import trio

from whenidle_actors.backlog import Backlog
from whenidle_actors.errors import ActorStopped
from whenidle_actors.logs import report
from whenidle_actors.mailbox import NO_MORE_MESSAGES, Lifecycle
from whenidle_actors.supervision import (
    DEFAULT_SUPERVISION,
    ActorExit,
    Restart,
    Supervision,
    Verdict,
    backoff_delay,
    judge,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from whenidle_actors.actor import Actor
    from whenidle_actors.backlog import Ask
    from whenidle_actors.scheduler import Scheduler

__all__ = ["DEFAULT_SUPERVISION", "ActorExit", "Restart", "Supervision", "Supervisor", "SupervisorStatistics"]

logger: logging.Logger = logging.getLogger("whenidle.actors")


@attrs.frozen
class SupervisorStatistics:
    """Counters of all actors of one scheduler since it was made (SPEC 2.12)."""

    faults: int = 0
    """Exceptions out of actors' own code, including those that came while the actor was stopping."""
    restarts: int = 0
    """Restarts decided, including those still waiting for their backoff."""
    escalations: int = 0
    """Actors marked faulted; each was told to the host once."""
    restarting: int = 0
    """Actors that wait for their backoff now."""


def _split_faults(error: BaseException) -> tuple[Exception | None, BaseException]:
    """Return what an interrupt carries of faults, if anything, and the rest."""
    if not isinstance(error, BaseExceptionGroup):
        return None, error
    faults, rest = cast("BaseExceptionGroup[BaseException]", error).split(Exception)
    return faults, cast("BaseException", rest)  # of faults alone it would have been an ExceptionGroup


class Supervisor:
    """Supervises the actors of one scheduler; a fault of one never touches another."""

    def __init__(self, scheduler: Scheduler, random: Random | None) -> None:
        self._scheduler = scheduler
        # A fixed seed by default: nothing in the runtime may differ from run to run unless asked to.
        self._random = Random(0) if random is None else random  # noqa: S311 - jitter is no secret
        self._faults = 0
        self._restarts = 0
        self._escalations = 0
        self._restarting: dict[Actor, None] = {}

    def statistics(self) -> SupervisorStatistics:
        """Return the counters."""
        return SupervisorStatistics(self._faults, self._restarts, self._escalations, len(self._restarting))

    # Steps of a life, told by the worker that has the actor in hand --------------------------

    def enter(self, actor: Actor) -> Coroutine[Any, Any, None]:
        """Return the hook that must run before the actor can take a message, or can be gone."""
        if actor.lifecycle is Lifecycle.NEW:
            actor.lifecycle = Lifecycle.STARTING
            return actor.started()
        return actor.stopped()

    def completed(self, actor: Actor, was: Lifecycle) -> None:
        """Take note that the hook entered in lifecycle `was` returned."""
        if was is Lifecycle.STOPPING:
            self._finish(actor, Lifecycle.STOPPED)
        elif actor.lifecycle is Lifecycle.STARTING:
            actor.lifecycle = Lifecycle.SERVING

    def failed(self, actor: Actor, was: Lifecycle, ask: Ask | None, error: Exception) -> None:
        """Decide what follows an exception out of the actor's own code, run in lifecycle `was`."""
        if not isinstance(error, ActorExit):
            self._note_fault(actor, error)
        if self._scheduler.is_closed:
            self._finish(actor, Lifecycle.STOPPED)  # nobody is left to restart it
        elif actor.lifecycle is not Lifecycle.STOPPING:
            self._judge(actor, error)
        elif was is not Lifecycle.SERVING:  # it never started, or `stopped` itself failed
            self._finish(actor, Lifecycle.STOPPED)
        if ask is not None:
            ask.settle(None, self._answer(actor, error))

    def interrupted(self, actor: Actor, was: Lifecycle, ask: Ask | None, error: BaseException) -> BaseException:
        """Carry on after a cancellation or an interrupt of the actor's code; neither is a fault.

        Returns what must be raised further up: `error` without the faults that came together with it.
        """
        answer: BaseException = ActorStopped(f"{actor.name!r} was stopped while it handled this ask")
        faults, rest = _split_faults(error)
        if faults is not None:
            self._note_fault(actor, faults)
            answer = faults
        if actor.lifecycle is Lifecycle.STOPPING and was is Lifecycle.SERVING:
            self._scheduler.make_ready(actor)  # by its shutdown timeout: another worker runs `stopped`
        else:
            self._finish(actor, Lifecycle.STOPPED)
        if ask is not None:
            ask.settle(None, answer)
        return rest

    @staticmethod
    def _answer(actor: Actor, error: Exception) -> Exception:
        """Return what the ask whose handler ended with `error` fails with."""
        if not isinstance(error, ActorExit):
            return error
        return actor.restart_error() if actor.lifecycle is Lifecycle.RESTARTING else actor.end_error()

    def _note_fault(self, actor: Actor, error: BaseException) -> None:
        """Count and log an exception out of the actor's own code."""
        self._faults += 1
        report(logger, logging.ERROR, "actor-failed", "actor %r failed", actor.name, actor=actor.name, error=error)

    # Stopping ---------------------------------------------------------------------------------

    def begin_stop(self, actor: Actor) -> None:
        """Stop taking messages, discard those that wait, and have `stopped` run next."""
        lifecycle = actor.lifecycle
        if lifecycle in NO_MORE_MESSAGES:
            return
        if lifecycle is Lifecycle.NEW or lifecycle is Lifecycle.RESTARTING:
            self._finish(actor, Lifecycle.STOPPED)  # there is no state that `stopped` could release
            return
        actor.lifecycle = Lifecycle.STOPPING
        actor.discard()
        if actor.backlog is None:
            actor.backlog = Backlog()
            self._scheduler.make_ready(actor)
        elif actor.busy is not None and actor.busy.worker is not None:
            actor.busy.worker.limit(actor.setup.supervision.shutdown_timeout)

    def abandon(self, actor: Actor) -> None:
        """End an actor whose scheduler has closed."""
        self._finish(actor, Lifecycle.STOPPED)

    def abandon_restarting(self) -> None:
        """End the actors that wait for their backoff."""
        for actor in list(self._restarting):
            self.abandon(actor)

    def _finish(self, actor: Actor, lifecycle: Lifecycle) -> None:
        actor.lifecycle = lifecycle
        actor.discard()
        busy = actor.busy
        actor.backlog = actor.busy = None
        self._restarting.pop(actor, None)
        if busy is not None:
            if busy.backoff is not None:
                busy.backoff.cancel()
            if busy.ended is not None:
                busy.ended.set()

    # Faults -----------------------------------------------------------------------------------

    def _judge(self, actor: Actor, error: Exception) -> None:
        now = trio.current_time()
        restarts_at = actor.record.restarts_at if actor.record is not None else ()
        verdict = judge(actor.setup.supervision, restarts_at, now, error)
        if verdict is Verdict.RESTART:
            self._restart(actor, error, now)
        elif verdict is Verdict.STOP:
            self.begin_stop(actor)
        else:
            self._escalate(actor, error)

    def _escalate(self, actor: Actor, error: Exception) -> None:
        self._escalations += 1
        self._finish(actor, Lifecycle.FAULTED)
        self._tell_subclass(actor, actor.faulted, error)

    def _restart(self, actor: Actor, error: Exception, now: float) -> None:
        self._restarts += 1
        actor.lifecycle = Lifecycle.RESTARTING
        supervision = actor.setup.supervision
        record = actor.account()
        record.restarts += 1
        recent = [at for at in record.restarts_at if at > now - supervision.window]
        recent.append(now)
        delay = backoff_delay(supervision, len(recent), self._random)
        # Moved along, so that the time spent in backoff does not age the restarts out of the window.
        record.restarts_at = [at + delay for at in recent]
        self._restarting[actor] = None
        actor.fail_waiting_asks()
        self._tell_subclass(actor, actor.restarting, error)
        if actor.lifecycle is Lifecycle.RESTARTING:
            scope = actor.carry().backoff = trio.CancelScope(shield=True)
            self._scheduler.start_soon(self._back_off, actor, scope, delay)

    async def _back_off(self, actor: Actor, scope: trio.CancelScope, delay: float) -> None:
        with scope:
            await trio.sleep(delay)
        if actor.lifecycle is Lifecycle.RESTARTING:
            del self._restarting[actor]
            actor.lifecycle = Lifecycle.NEW
            self._scheduler.make_ready(actor)

    @staticmethod
    def _tell_subclass(actor: Actor, hook: Any, error: Exception) -> None:
        try:
            hook(error)
        except Exception as failure:  # noqa: BLE001 - logged
            report(
                logger,
                logging.ERROR,
                "actor-hook-failed",
                "%s of actor %r failed",
                hook.__name__,
                actor.name,
                actor=actor.name,
                error=failure,
            )
