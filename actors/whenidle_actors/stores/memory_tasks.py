"""The tasks of a `MemoryStore`, kept in the orders in which they are asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import attrs

from whenidle_actors.errors import TaskConflict, UnknownTask
from whenidle_actors.stores.storable import require_storable
from whenidle_actors.stores.task_rows import MAX_DROPPED, Receipt, ReceiptPage, TaskPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whenidle_actors.stores.base import Batch
    from whenidle_actors.stores.task_rows import Retention, TaskRow

Place: TypeAlias = tuple[int, str]
"""Where a task stands in an order: a number, and its id among those with the same number."""


@attrs.define
class _History:
    """A task's receipts, numbered without gaps, the oldest first."""

    first: int = 1
    receipts: list[Receipt] = attrs.Factory(list[Receipt])


class MemoryTasks:
    """All tasks and their receipts."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._rows: dict[str, TaskRow] = {}
        self._due: list[Place] = []
        self._due_by_session: defaultdict[str, list[Place]] = defaultdict(list)
        self._others: list[Place] = []
        """Those that are not active, by the negative of their last update."""
        self._active_by_creator: Counter[str] = Counter()
        self._histories: dict[str, _History] = {}

    def require_applicable(self, batch: Batch) -> None:
        """Check that `apply` can follow.

        Raises:
            TaskConflict, UnknownTask, CommitRefused: a task is not as the batch expects, or cannot be stored.
        """
        versions: dict[str, int | None] = {}
        """Of the tasks that the batch writes, as they are behind its writes so far."""
        for write in batch.tasks:
            actual = self._version(write.task_id, versions)
            if actual != write.expected:
                raise TaskConflict(write.task_id, write.expected, actual)
            if write.row is not None:
                require_storable(*attrs.astuple(write.row))
            versions[write.task_id] = None if write.row is None else write.row.updated_millis
        for receipt in batch.receipts:
            if self._version(receipt.task_id, versions) is None:
                raise UnknownTask(receipt.task_id)
            require_storable(*attrs.astuple(receipt))

    def apply(self, batch: Batch) -> None:
        """Make the changes of a batch that is applicable."""
        for write in batch.tasks:
            before = self._rows.pop(write.task_id, None)
            if before is not None:
                self._take_out(before)
            if write.row is None:
                self._histories.pop(write.task_id, None)
            else:
                self._rows[write.task_id] = write.row
                self._put_in(write.row)
        for receipt in batch.receipts:
            self._add_receipt(receipt)

    def row(self, task_id: str) -> TaskRow:
        """See `Store.task`."""
        row = self._rows.get(task_id)
        if row is None:
            raise UnknownTask(task_id)
        return row

    def page(self, *, active: bool | None, limit: int, offset: int) -> TaskPage:
        """See `Store.tasks`."""
        lists = [self._due] if active else [self._others] if active is False else [self._due, self._others]
        total = sum(map(len, lists))
        first = min(offset, total)
        places = islice(chain.from_iterable(lists), first, min(first + limit, total))
        return TaskPage(self._rows_at(places), total)

    def count_active(self, creator: str | None) -> int:
        """See `Store.count_active_tasks`."""
        return len(self._due) if creator is None else self._active_by_creator[creator]

    def due(self, until_millis: int, session_id: str | None, after: Place | None, limit: int) -> tuple[TaskRow, ...]:
        """See `Store.due_tasks`."""
        places: Sequence[Place] = self._due if session_id is None else self._due_by_session.get(session_id, ())
        first = 0 if after is None else bisect_right(places, after)
        end = bisect_right(places, until_millis, key=itemgetter(0))
        return self._rows_at(places[first : min(end, first + limit)])

    def next_due(self, after_millis: int | None) -> int | None:
        """See `Store.next_due`."""
        first = 0 if after_millis is None else bisect_right(self._due, after_millis, key=itemgetter(0))
        return self._due[first][0] if first < len(self._due) else None

    def receipts(self, task_id: str, before: int | None, limit: int) -> ReceiptPage:
        """See `Store.receipts`."""
        self.row(task_id)
        history = self._histories.get(task_id, _History())
        end = len(history.receipts)
        if before is not None:
            end = max(0, min(end, before - history.first))
        start = max(0, end - limit)
        page = history.receipts[start:end]
        return ReceiptPage(tuple(reversed(page)), history.first + start if start else None)

    def _version(self, task_id: str, written: Mapping[str, int | None]) -> int | None:
        if task_id in written:
            return written[task_id]
        row = self._rows.get(task_id)
        return None if row is None else row.updated_millis

    def _rows_at(self, places: Iterable[Place]) -> tuple[TaskRow, ...]:
        return tuple(self._rows[task_id] for _, task_id in places)

    def _put_in(self, row: TaskRow) -> None:
        if row.next_millis is None:
            insort(self._others, (-row.updated_millis, row.id))
            return
        insort(self._due, (row.next_millis, row.id))
        if row.session_id is not None:
            insort(self._due_by_session[row.session_id], (row.next_millis, row.id))
        self._active_by_creator[row.creator] += 1

    def _take_out(self, row: TaskRow) -> None:
        if row.next_millis is None:
            _remove(self._others, (-row.updated_millis, row.id))
            return
        _remove(self._due, (row.next_millis, row.id))
        if row.session_id is not None:
            _remove(self._due_by_session[row.session_id], (row.next_millis, row.id))
            if not self._due_by_session[row.session_id]:
                del self._due_by_session[row.session_id]
        self._active_by_creator[row.creator] -= 1
        if not self._active_by_creator[row.creator]:
            del self._active_by_creator[row.creator]

    def _add_receipt(self, receipt: Receipt) -> None:
        history = self._histories.setdefault(receipt.task_id, _History())
        history.receipts.append(receipt)
        oldest = [old.delivered_millis for old in history.receipts[:MAX_DROPPED]]
        dropped = self._retention.surplus(len(history.receipts), oldest, receipt.delivered_millis)
        del history.receipts[:dropped]
        history.first += dropped


def _remove(places: list[Place], place: Place) -> None:
    del places[bisect_left(places, place)]
