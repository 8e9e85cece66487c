"""The writing thread: takes what waits, has it committed as one group, hands all answers back at once.

Trio's own threads would cost a hand-over per call. Here a lone commit costs a queue put and one wake-up
of trio, and a hundred cost the same one wake-up.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import trio

from whenidle_actors.errors import CommitUncertain
from whenidle_actors.stores.base import StoreStatistics
from whenidle_actors.stores.sqlite.failures import uncertainty
from whenidle_actors.stores.sqlite.requests import Close, Commit, Forget, Settle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whenidle_actors.errors import StoreError
    from whenidle_actors.stores.base import Batch
    from whenidle_actors.stores.sqlite.requests import Part
    from whenidle_actors.stores.sqlite.writing import WritingConnection

Item: TypeAlias = "Commit | Settle | Close | Forget"
ForeignChanges: TypeAlias = "list[tuple[int, str | None]]"

POLL_SECONDS = 0.25
"""How often the thread looks for changes by other processes: not after each commit, which would cost four locks.

Real seconds, whatever clock the host has: other processes live in real time.
"""

_GROUP_LIMIT = 500
"""Batches in one transaction, beside what is handed in together with the last of them.

Bounds how long the first waits, and how many a failed sync leaves in doubt.
"""


class Writer:
    """The thread and its queue. All methods but `_run` and below are for trio's thread."""

    def __init__(self, connection: WritingConnection, on_foreign: Callable[[ForeignChanges], object] | None) -> None:
        """Start the thread. `on_foreign` is called in trio's thread; None does not look for changes."""
        self._connection = connection
        self._on_foreign = on_foreign
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._put_back: Item | None = None
        self._look_at = 0.0
        self._token = trio.lowlevel.current_trio_token()
        self._waiting = 0
        self._committed = 0
        self._refused = 0
        self._uncertain = 0
        self._groups = 0
        # A daemon, so that a program that dies without closing its store can end.
        self._thread = threading.Thread(target=self._run, name="whenidle-store", daemon=True)
        self._thread.start()

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        (error,) = await self.commit_all([batch])
        if error is not None:
            raise error

    async def commit_all(self, batches: Sequence[Batch]) -> list[StoreError | None]:
        """See `Store.commit_all`."""
        commit = Commit(batches)
        self._waiting += len(commit.parts)
        try:
            self._queue.put(commit)
            await commit.wait()
        finally:
            self._waiting -= len(commit.parts)
        return [part.error for part in commit.parts]

    async def settle(self) -> None:
        """Return once no commit's outcome is in doubt: at once, usually.

        Raises:
            CommitUncertain: it cannot be told now.
        """
        if self._connection.in_doubt:
            settle = Settle()
            self._queue.put(settle)
            await settle.wait()

    def forget_changes(self, up_to: int) -> None:
        """Have the notes of foreign changes up to a number deleted, some time soon."""
        self._queue.put(Forget(up_to))

    async def aclose(self) -> None:
        """Finish what was handed in, close the connection and end the thread; not to be cancelled."""
        close = Close()
        self._queue.put(close)
        await close.wait()
        self._thread.join()

    def statistics(self) -> StoreStatistics:
        """See `Store.statistics`."""
        return StoreStatistics(
            commits=self._committed,
            refused=self._refused,
            uncertain=self._uncertain,
            groups=self._groups,
            waiting=self._waiting,
        )

    def _answer_commits(self, commits: Sequence[Commit], groups: int) -> None:
        self._groups += groups
        for commit in commits:
            for part in commit.parts:
                if part.error is None:
                    self._committed += 1
                elif isinstance(part.error, CommitUncertain):
                    self._uncertain += 1
                else:
                    self._refused += 1
            commit.answer()

    # In the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        with suppress(trio.RunFinishedError):  # trio ended and nobody closed the store: nobody to tell
            try:
                close = self._serve()
            finally:
                self._connection.close()
            self._token.run_sync_soon(close.answer)

    def _serve(self) -> Close:
        """Do what is asked until asked to close."""
        while True:
            item = self._next()
            if isinstance(item, Commit):
                self._commit(item)
            elif isinstance(item, Forget):
                self._connection.forget_changes(item.up_to)
            elif item is not None and item.claim():
                if isinstance(item, Close):
                    return item
                self._settle(item)
            if self._on_foreign is not None and time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + POLL_SECONDS
                changes = self._connection.foreign_changes()
                if changes:
                    self._token.run_sync_soon(self._on_foreign, changes)

    def _next(self) -> Item | None:
        """Return the next item, or None when it is time to look for changes."""
        if self._put_back is not None:
            item, self._put_back = self._put_back, None
            return item
        with suppress(queue.Empty):
            return self._queue.get(timeout=POLL_SECONDS if self._on_foreign else None)
        return None

    def _commit(self, first: Commit) -> None:
        taken: list[Commit] = []

        def take() -> list[Part]:
            taken.extend(commit for commit in self._waiting_commits(first) if commit.claim())
            return [part for commit in taken for part in commit.parts]

        groups = self._connection.commit(take)
        if taken:
            self._token.run_sync_soon(self._answer_commits, taken, groups)

    def _waiting_commits(self, first: Commit) -> list[Commit]:
        """Return `first` and the commits that wait directly behind it."""
        commits, batches = [first], len(first.parts)
        while batches < _GROUP_LIMIT and not self._queue.empty():
            item = self._queue.get_nowait()
            if not isinstance(item, Commit):
                self._put_back = item
                break
            commits.append(item)
            batches += len(item.parts)
        return commits

    def _settle(self, settle: Settle) -> None:
        try:
            self._connection.settle()
        except Exception as error:  # noqa: BLE001 - whatever it is, the task must get an answer
            settle.error = uncertainty(error, self._connection.name)
        self._token.run_sync_soon(settle.answer)
