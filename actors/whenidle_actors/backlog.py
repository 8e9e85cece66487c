"""What lies in a mailbox: bare messages and asks, in the order they came."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whenidle_actors.mailbox import Mailbox

_SWEEP_ABOVE = 16
"""Withdrawn asks that may lie in a backlog before sweeping is considered; below it is not worth the walk."""


class Ask:
    """One message whose sender waits for the answer. A tell is queued as the bare message instead."""

    __slots__ = ("_target", "_task", "_waits_for", "backlog", "done", "error", "message", "reply")

    def __init__(self, message: Any, target: Mailbox, waits_for: list[Mailbox] | None) -> None:
        self.message: Any = message
        self.backlog: Backlog | None = None
        """The backlog it waits in; None before it was queued and after it was taken."""
        self.done: bool = False
        """True once answered or given up."""
        self.reply: Any = None
        self.error: BaseException | None = None
        self._target = target
        self._waits_for = waits_for
        """What the asking actor's handler waits for; None if no handler asks."""
        self._task: trio.lowlevel.Task | None = None

    async def answer(self) -> Any:
        """Return the reply or raise the error. Cancelled before its turn, the ask withdraws."""
        if self.done:  # a dead-letter hook stopped the actor while this ask was being queued
            await trio.lowlevel.checkpoint()
        else:
            self._task = trio.lowlevel.current_task()
            if self._waits_for is not None:
                self._waits_for.append(self._target)
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        error, self.error = self.error, None
        if error is None:
            return self.reply
        try:
            raise error
        finally:
            del error  # its traceback holds this frame

    def settle(self, reply: Any, error: BaseException | None = None) -> None:
        """Answer the caller; without effect if the caller has gone."""
        if self.done:
            return
        self.done = True
        self.reply = reply
        self.error = error
        if self._task is not None:
            # Cut now, not when the caller resumes: from here on its actor no longer waits for this one.
            self._cut_edge()
            trio.lowlevel.reschedule(self._task)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self.done = True
        self._cut_edge()
        if self.backlog is not None:
            self._target.account().withdrawn += 1
            self.backlog.void_one()
        return trio.lowlevel.Abort.SUCCEEDED

    def _cut_edge(self) -> None:
        if self._waits_for is not None:
            self._waits_for.remove(self._target)


class Backlog(deque[Any]):
    """A queue of one priority. Withdrawn asks stay in it until their turn, but no longer count."""

    void: int = 0
    """Withdrawn asks in the backlog."""

    @property
    def depth(self) -> int:
        """How many messages wait."""
        return len(self) - self.void

    def pop_live(self) -> Any:
        """Take the oldest message that is not withdrawn; raises `IndexError` if there is none."""
        while True:
            entry = self.popleft()
            if type(entry) is not Ask:
                return entry
            if not entry.done:
                entry.backlog = None
                return entry
            self.void -= 1

    def take_all(self) -> list[Any]:
        """Empty the backlog and return what was not withdrawn."""
        live = self._live()
        self._keep([])
        self._detach(live)
        return live

    def take_asks(self) -> list[Ask]:
        """Take the asks out, leave the tells in their order, and return the asks not withdrawn."""
        asks = [entry for entry in self._live() if type(entry) is Ask]
        self._keep([entry for entry in self if type(entry) is not Ask])
        self._detach(asks)
        return asks

    def void_one(self) -> None:
        """Take note that an ask in the backlog was withdrawn."""
        self.void += 1
        # Removing each at once would cost the length of the backlog each time; so they leave when their
        # turn comes, or together as soon as they are most of it.
        if self.void > _SWEEP_ABOVE and 2 * self.void > len(self):
            self._keep(self._live())

    def _live(self) -> list[Any]:
        return [entry for entry in self if type(entry) is not Ask or not entry.done]

    def _keep(self, entries: list[Any]) -> None:
        self.clear()
        self.extend(entries)
        self.void = 0

    @staticmethod
    def _detach(entries: Iterable[Any]) -> None:
        # Before any of them is told: that may cancel the caller of another one.
        for entry in entries:
            if type(entry) is Ask:
                entry.backlog = None
