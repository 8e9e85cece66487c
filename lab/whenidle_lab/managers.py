"""Other processes that manage a store while a host has it open (SPEC 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import trio

from whenidle_actors.stores.base import Changes
from whenidle_lab.choices import Topic
from whenidle_lab.descriptions import described
from whenidle_lab.simulated_reads import SimulatedReads
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_actors.stores.base import Batch, Role
    from whenidle_lab.choices import Chooser
    from whenidle_lab.engines import Engine
    from whenidle_lab.machine import Machine

DONE = "done"
"""The `fate` of a commit that met nothing, but for a conflict with others."""

_LATEST = 0.9
"""Seconds until a host gets to know, if it does not at once: a real one does within a second."""

_TASKS = ""
"""Stands for the tasks among the sessions that changed."""


class News:
    """What managers have changed and the host was not told of, or did not deal with before it died."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._changed: dict[str, None] = {}
        self._told: str | None = None
        self._listening: trio.CancelScope | None = None

    def begin_life(self) -> None:
        """Forget what the host that died was told last: the next one is told again."""
        self._told = self._listening = None

    def add(self, batch: Batch) -> None:
        """Take note of a commit of a manager's."""
        changed = [header.id for header in batch.created] + [append.session_id for append in batch.appends]
        self._changed.update(dict.fromkeys(changed + [_TASKS] * bool(batch.tasks)))
        if self._listening is not None:
            self._listening.cancel()

    async def wait(self, engine: Engine) -> Changes:
        """Wait for something to tell the host that has `engine` open, and return one thing; see `Store`.

        One, because a set of more would be gone through in another order by another process.

        Raises:
            StoreClosed: the engine was closed meanwhile.
        """
        if self._told is not None:
            self._changed.pop(self._told, None)
            self._told = None
        if not self._changed:
            with trio.CancelScope() as self._listening:
                await engine.changed_elsewhere()
        if self._chooser.pick(Topic.READ, 2):
            await trio.sleep(_LATEST)
        self._told = told = next(iter(self._changed))
        return Changes(tasks=True) if told == _TASKS else Changes(frozenset({told}))


class ManagersStore(SimulatedReads):
    """The store of a run as a manager in another process has it open; no fault of its own befalls it there."""

    def __init__(self, machine: Machine, engine: Engine, begin: Callable[[], int], news: News) -> None:
        super().__init__(machine, engine)
        self._begin = begin
        self._news = news

    async def open(self, role: Role) -> None:
        """See `Store.open`: the host has it open."""

    async def aclose(self) -> None:
        """See `Store.aclose`."""

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        await trio.lowlevel.checkpoint()
        self._require_alive()
        number = self._begin()
        (error,) = self._engine.apply([batch])
        if error is None:
            self._machine.happened(What.COMMIT_DURABLE, commit=number, elsewhere=True, **described(batch))
            self._news.add(batch)
        name = None if error is None else type(error).__name__
        self._machine.happened(What.COMMIT_ENDED, commit=number, fate=DONE, error=name)
        if error is not None:
            raise error

    async def changed_elsewhere(self) -> NoReturn:
        """See `Store.changed_elsewhere`: a manager is never told."""
        await trio.sleep_forever()
