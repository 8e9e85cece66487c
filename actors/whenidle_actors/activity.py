"""What an agent is busy with, and how a task knows that it is part of it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import trio

from whenidle_actors.deadlock import asking_actor, serving
from whenidle_actors.errors import WouldWaitForItself

if TYPE_CHECKING:
    from whenidle_actors.agent_core import AgentCore


class Activity:
    """A drain of turns, or one maintenance task, in flight."""

    __slots__ = ("_over", "_scope", "cause", "handed", "interrupted", "mark")

    def __init__(self) -> None:
        self._scope: trio.CancelScope | None = None
        self._over = False
        self.cause: str | None = None
        """Why the guarded work was aborted; None while it was not."""
        self.mark: object | None = None
        """Stands for the turn or task whose code runs now; None between two turns."""
        self.handed: int = 0
        """How many of the messages that the open turn has taken were given to the turn function."""
        self.interrupted: bool = False
        """True when it was aborted only because its host stops: its messages are still to be handled."""

    def begin(self) -> None:
        """Take note that a turn is about to begin: what was aborted before it was another."""
        if not self._over:
            self.cause = None

    def guard(self) -> trio.CancelScope:
        """Return a scope for the next piece of work or wait, which `abort` cancels."""
        self._scope = trio.CancelScope()
        if self._over:
            self._scope.cancel(self.cause)
        return self._scope

    def abort(self, cause: str) -> None:
        """Cancel the work that is guarded now; of several causes the first stays."""
        if self.cause is None:
            self.cause = cause
        if self._scope is not None:
            self._scope.cancel(cause)

    def end(self, cause: str, *, interrupted: bool) -> None:
        """Cancel the work that is guarded now, and all that would follow it."""
        self._over = True
        if self.cause is None:
            self.interrupted = interrupted
        self.abort(cause)


_inside: ContextVar[tuple[object, ...]] = ContextVar("whenidle_inside", default=())
"""The marks of the turns and maintenance tasks that the current task belongs to, or belonged to before they ended."""


class inside:  # noqa: N801 - used as a function; around every turn and delivery, for a third of a generator's cost
    """Mark the body, and the tasks started in it, as part of a turn or maintenance task that begins now."""

    __slots__ = ("_activity", "_token")

    def __init__(self, activity: Activity) -> None:
        self._activity = activity

    def __enter__(self) -> None:
        mark = self._activity.mark = object()
        self._token = _inside.set((*_inside.get(), mark))

    def __exit__(self, *_: object) -> None:
        _inside.reset(self._token)
        self._activity.mark = None


class beside_all:  # noqa: N801 - used as a function; around each task that is started, cheaper than a generator
    """Mark tasks started in the body as part of no agent's work and of no actor's handler."""

    __slots__ = ("_marks", "_serving")

    def __enter__(self) -> None:
        self._marks = _inside.set(())
        self._serving = serving.set(None)

    def __exit__(self, *_: object) -> None:
        serving.reset(self._serving)
        _inside.reset(self._marks)


def is_inside(agent: AgentCore) -> bool:
    """Return whether the current task is part of the agent's turn, maintenance task or mailbox handler."""
    activity = agent.activity
    if activity is not None and activity.mark is not None and activity.mark in _inside.get():
        return True
    return asking_actor() is agent


def refuse_inside(agent: AgentCore, what: str) -> None:
    """Return unless the current task is part of the agent's own work.

    Raises:
        WouldWaitForItself: it is, so that `what` could never happen.
    """
    if is_inside(agent):
        raise WouldWaitForItself(f"{agent.name!r} cannot {what} from inside its own turn, maintenance or tool")
