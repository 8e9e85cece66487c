"""Who waits for whom: an ask that could never be answered is refused at once (SPEC 2.9).

While an actor's handler runs, a context variable names that actor, so a task the handler
starts is known to work for it. Each ask such a task makes is an edge *asker waits for target*.
A handler ends only when all its child tasks have ended, so any cycle of edges means that no
handler on it can ever end.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from whenidle_actors.errors import MailboxDeadlock

if TYPE_CHECKING:
    from collections.abc import Generator

    from whenidle_actors.mailbox import Mailbox

serving: ContextVar[Mailbox | None] = ContextVar("whenidle_actors.serving", default=None)
"""The actor whose handler this task works for; None outside of handlers."""


@contextmanager
def outside_mailbox() -> Generator[None]:
    """Mark what is started inside the block as work beside the mailbox, not part of the handler.

    A handler that starts a task which outlives it (in a nursery the handler does not own) starts it
    inside this block. The handler does not wait for such a task, so the task may ask the actor
    without being taken for a deadlock. It changes nothing else and never blocks.
    """
    token = serving.set(None)
    try:
        yield
    finally:
        serving.reset(token)


def asking_actor() -> Mailbox | None:
    """Return the actor whose handler the current task works for, or None outside of handlers."""
    asker = serving.get()
    if asker is None or asker.backlog is None:
        # A task that outlived its handler: the actor is idle, so nothing of it can be waiting.
        return None
    return asker


def refuse_deadlock(asker: Mailbox, target: Mailbox) -> None:
    """Raise `MailboxDeadlock` if `target` waits for `asker`, directly or through others, or is `asker`."""
    path = _path(target, asker)
    if path is not None:
        raise MailboxDeadlock([actor.name for actor in (asker, *path)])


def _path(start: Mailbox, goal: Mailbox) -> list[Mailbox] | None:
    """Return the actors from `start` to `goal` along wait-for edges, or None."""
    came_from: dict[Mailbox, Mailbox | None] = {start: None}
    stack = [start]
    while stack:
        actor = stack.pop()
        if actor is goal:
            return _walk_back(actor, came_from)
        for awaited in actor.busy.waits_for if actor.busy is not None else ():
            if awaited not in came_from:
                came_from[awaited] = actor
                stack.append(awaited)
    return None


def _walk_back(actor: Mailbox | None, came_from: dict[Mailbox, Mailbox | None]) -> list[Mailbox]:
    path: list[Mailbox] = []
    while actor is not None:
        path.append(actor)
        actor = came_from[actor]
    path.reverse()
    return path
