"""Group commit: what makes many small commits cheap.

The commits that wait when the connection becomes free share one transaction, and so one sync of
the disk. Appends, and deliveries of tasks, are written together, in a few statements. If they cannot be,
or there is more to write, each commit has a savepoint, so that a refused one takes nothing with it; a
commit that is alone needs none. This file knows SQLite and no threads; `writer` is the thread around it.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from whenidle_actors.stores.sqlite.applying import apply_batch
from whenidle_actors.stores.sqlite.failures import leaves_doubt, refusal, uncertainty
from whenidle_actors.stores.sqlite.group_applying import apply_together, may_apply_together
from whenidle_actors.stores.sqlite.reading import read_foreign_changes
from whenidle_actors.stores.sqlite.schema import APPLICATION_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whenidle_actors.stores.base import Batch, Retention
    from whenidle_actors.stores.sqlite.opening import Place
    from whenidle_actors.stores.sqlite.requests import Part


class WritingConnection:
    """The one connection of a store that writes. Used by one thread at a time."""

    def __init__(self, place: Place, connection: sqlite3.Connection, retention: Retention, *, tell_host: bool) -> None:
        self._place = place
        self._connection: sqlite3.Connection | None = connection
        self._retention = retention
        self._tell_host = tell_host
        self._data_version: int | None = None
        self._last_change = 0
        self.in_doubt: bool = False
        """True from an uncertain commit until `settle`: what is read meanwhile may not be what stays."""

    @property
    def name(self) -> str:
        """The database's path."""
        return str(self._place.path)

    def close(self) -> None:
        """Close the connection; the write-ahead log goes into the database if nobody else has it open."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def commit(self, take: Callable[[], list[Part]]) -> int:
        """Commit what `take` returns, asked once the write lock is there; each gets its `error`, or None.

        Returns the number of transactions that committed something.
        """
        try:
            connection = self.settle()
            connection.execute("BEGIN IMMEDIATE")
        except Exception as error:  # noqa: BLE001 - nothing is written yet, whatever it is
            self._refuse(take(), error)
            return 0
        group = take()
        try:
            return self._commit_begun(connection, group)
        except Exception as error:  # noqa: BLE001 - even a rollback may fail, and each task must get an answer
            self._leave_in_doubt([part for part in group if part.error is None], error)
            return 0

    def settle(self) -> sqlite3.Connection:
        """Return a connection under which what is read is what stays, opening a new one if needed.

        After a failed sync the log file may end in a whole transaction that SQLite does not count: the
        next recovery would. One more write takes its place, and its sync settles the matter.

        Raises:
            sqlite3.Error: it cannot be settled now.
        """
        if self._connection is None:
            self._connection = self._place.connect_writer()
            self._data_version = None
        if self.in_doubt:
            try:
                # Writes one page, with what it holds already in every version of a store.
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            except BaseException:
                self.close()
                raise
            self.in_doubt = False
        return self._connection

    def foreign_changes(self) -> list[tuple[int, str | None]]:
        """Return number and session (None: tasks) of changes by other processes that were not returned before.

        What cannot be read now is returned by a later call.
        """
        if self._connection is None:
            return []
        try:
            # Changes exactly when another connection has committed; needs no lock and no read of a page.
            version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._data_version:
                return []
            changes = read_foreign_changes(self._connection, self._last_change)
        except sqlite3.Error:
            return []
        self._data_version = version
        if changes:
            self._last_change = changes[-1][0]
        return changes

    def forget_changes(self, up_to: int) -> None:
        """Delete the notes of changes numbered up to `up_to`; if that fails they are told once more."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("DELETE FROM foreign_changes WHERE change <= ?", (up_to,))

    def _commit_begun(self, connection: sqlite3.Connection, group: Sequence[Part]) -> int:
        """Write and commit `group` in the transaction that was begun."""
        if self._write_together(connection, group):
            return self._end(connection, group)
        if not connection.in_transaction:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except Exception as error:  # noqa: BLE001 - nothing is written, whatever it is
                self._refuse(group, error)
                return 0
        for position, part in enumerate(group):
            self._write(connection, part, alone=len(group) == 1)
            if not connection.in_transaction:
                # SQLite undid all of it (no room, for example). That one is refused, and the others try
                # again, those too that were refused for what a neighbour had done.
                return self._commit_again([*group[:position], *group[position + 1 :]])
        return self._end(connection, group)

    def _end(self, connection: sqlite3.Connection, group: Sequence[Part]) -> int:
        """Commit what was written of `group`."""
        good = [part for part in group if part.error is None]
        if not good:
            connection.execute("ROLLBACK")
            return 0
        try:
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it is, each task must get an answer
            if leaves_doubt(error):
                self._leave_in_doubt(good, error)
                return 0
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if len(group) > 1:
                return self._commit_again(group)
            self._refuse(group, error)
            return 0
        return 1

    def _write_together(self, connection: sqlite3.Connection, group: Sequence[Part]) -> bool:
        """Write all of `group` at once and return True, or leave no transaction if that cannot be done.

        Not tried, and the transaction is left, if it would gain nothing, or one of them does what is not done together.
        """
        batches = [part.batch for part in group]
        if self._tell_host or not _is_much(batches) or not all(map(may_apply_together, batches)):
            return False
        with suppress(Exception):  # each by itself shows whose fault it is
            if apply_together(connection, batches, self._retention):
                return True
        # Rather than to a savepoint: under one, each statement keeps copies of the pages it changes.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False

    def _write(self, connection: sqlite3.Connection, part: Part, *, alone: bool) -> None:
        """Write one batch; if it is refused, undo it and nothing else."""
        try:
            if not alone:
                connection.execute("SAVEPOINT batch")
            apply_batch(connection, part.batch, retention=self._retention, tell_host=self._tell_host)
            if not alone:
                connection.execute("RELEASE batch")
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not take the neighbours along
            part.error = refusal(error, self.name)
            if connection.in_transaction and not alone:
                connection.execute("ROLLBACK TO batch")
                connection.execute("RELEASE batch")

    def _commit_again(self, group: Sequence[Part]) -> int:
        """Commit each of `group` by itself, so that only those that cannot be are refused."""
        done = 0
        for part in group:
            part.error = None
            try:
                connection = self.settle()
                connection.execute("BEGIN IMMEDIATE")
            except Exception as error:  # noqa: BLE001 - nothing is written yet, whatever it is
                self._refuse([part], error)
            else:
                done += self._commit_begun(connection, [part])
        return done

    def _leave_in_doubt(self, group: Sequence[Part], error: Exception) -> None:
        self.in_doubt = True
        self.close()
        for part in group:
            part.error = uncertainty(error, self.name)

    def _refuse(self, group: Sequence[Part], error: Exception) -> None:
        for part in group:
            part.error = refusal(error, self.name)


def _is_much(batches: Sequence[Batch]) -> bool:
    """Return whether there is more to write than one row of a kind."""
    return len(batches) > 1 or any(len(batch.tasks) > 1 for batch in batches)  # none, if all were withdrawn
