from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import trio

from whenidle_actors.actor import Actor
from whenidle_actors.supervision import ActorExit, Supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from whenidle_actors.scheduler import Scheduler


def sleeping(seconds: float) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Return a message for an actor that runs what it is told: block in it for so long."""

    async def handler(_: Any) -> None:
        await trio.sleep(seconds)

    return handler


class Doer(Actor):
    """Runs what it is told: a message is a function of the actor, plain or async."""

    def __init__(self, name: str, scheduler: Scheduler, **options: Any) -> None:
        super().__init__(name, scheduler, **options)
        self.seen: list[Any] = []

    async def started(self) -> None:
        self.seen.append("started")

    def receive(self, message: Any) -> Any:
        self.seen.append(message)
        return message(self) if callable(message) else message

    async def stopped(self) -> None:
        self.seen.append("stopped")


def plain_seen(actor: Doer) -> list[Any]:
    """Return what the actor saw, without the functions it ran."""
    return [entry for entry in actor.seen if not callable(entry)]


class Scribe(Actor):
    """Runs the functions it is told, and writes everything else to a list that actors share."""

    def __init__(self, name: str, scheduler: Scheduler, seen: list[Any] | None = None, **how: Any) -> None:
        super().__init__(name, scheduler, **how)
        self.seen: list[Any] = [] if seen is None else seen

    def receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.seen.append(f"{self.name}{message}")
        return message


STEADY = Supervision(intensity=3, window=60.0, backoff_initial=1.0, backoff_max=30.0, jitter=0.0)


def seeded(seed: int) -> Random:
    """Return a generator of jitter."""
    return Random(seed)  # noqa: S311 - jitter is no secret


class Diarist(Actor):
    """Keeps a diary of its life with the times; runs the functions it is told."""

    def __init__(self, name: str, scheduler: Scheduler, supervision: Supervision = STEADY) -> None:
        super().__init__(name, scheduler, supervision=supervision)
        self.diary: list[tuple[float, object]] = []

    def note(self, entry: object) -> None:
        self.diary.append((trio.current_time(), entry))

    async def started(self) -> None:
        self.note("started")

    def receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.note(message)
        return message

    async def stopped(self) -> None:
        self.note("stopped")

    def restarting(self, error: Exception) -> None:
        self.note(f"restarting {error!r}")

    def faulted(self, error: Exception) -> None:
        self.note(f"faulted {error!r}")


def boom(_: Actor) -> None:
    """Fail."""
    raise ValueError


def leave(_: Actor) -> None:
    """End in the normal way."""
    raise ActorExit


async def outcome_of(outcomes: dict[object, object], actor: Actor, message: object, **how: Any) -> None:
    """Record what an ask came to."""
    try:
        outcomes[message] = await actor.ask(message, **how)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test asks about
        outcomes[message] = type(error)
