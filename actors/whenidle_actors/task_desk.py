"""Managing tasks: what tools, the host's API and the command line do to them (SPEC 6.2 to 6.5).

A desk needs a store and a clock, no host: it works as well from another process. Each change is one
optimistic write; if somebody else was faster, the decision is made again of what is there now.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import attrs
import trio

from whenidle_actors.errors import CommitUncertain, StoreDamaged, TaskConflict, UnknownTask
from whenidle_actors.session import check_session_id
from whenidle_actors.stores.base import Batch
from whenidle_actors.stores.paging import check_limit, check_offset
from whenidle_actors.stores.task_rows import TaskWrite
from whenidle_actors.task_rows import change, entry_of, from_row, is_written
from whenidle_clock import to_millis
from whenidle_protocol import task_changes
from whenidle_protocol.task_answers import conflict, not_found
from whenidle_protocol.task_listing import TaskListing
from whenidle_protocol.task_record import Task
from whenidle_protocol.task_requests import DeleteTask, UpdateTask
from whenidle_protocol.task_settings import ActiveCounts, TaskSettings
from whenidle_protocol.task_tools import check_prompt, check_title

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from random import Random

    from whenidle_actors.session import Journal
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_actors.stores.task_rows import ReceiptPage, TaskRow
    from whenidle_protocol.task_requests import CreateTask, ListTasks
    from whenidle_protocol.task_settings import Caller

_PAGE = 10_000
"""Tasks read at a time where all are looked at: most lists are one consistent view then."""

_PAUSE = 500
"""Tasks looked at without letting others run: some ten milliseconds."""


@attrs.frozen(eq=False)
class TaskDesk:
    """The tasks of a store, to be managed.

    Args:
        journal: where they are, and the clock.
        settings: the host's choices.
        random: where ids are drawn from.
        on_change: told of each task that was written, or may have been, as it is then; None for one deleted.
    """

    journal: Journal
    settings: TaskSettings
    random: Random
    on_change: Callable[[Task | None], None] = lambda _: None
    _one_counts: trio.Lock = attrs.Factory(trio.Lock)

    async def create(self, request: CreateTask, caller: Caller, *, session: SessionHeader | None = None) -> Task:
        """Create a task and return it; it is durable then.

        Args:
            request: the task.
            caller: who asks.
            session: one that does not exist yet and is created with the task.

        Raises:
            ToolError: as `task_changes.create`.
            InvalidArgument: the caller's session id can be none.
            StoreError: as `Store.commit`.
        """
        if caller.session_id:
            check_session_id(caller.session_id)
        request = _checked(request, self.settings)
        while True:
            task_id = f"task-{self.random.getrandbits(128):032x}"
            async with self._counting():
                counts = await self._counts(caller.session_id)
                now = self.journal.clock.now()
                task = task_changes.create(request, caller, now, task_id, self.settings, counts)
                try:
                    await self._write(change(None, task), task, session)
                except TaskConflict:
                    continue  # drawn before: the generator was seeded alike in another process
            return task

    async def view(self, task_id: str) -> Task:
        """Return a task.

        Raises:
            ToolError: `schedule_not_found`.
            StoreError: it cannot be read.
        """
        return from_row(await self._row(task_id))

    async def page(
        self, request: ListTasks, sees: Callable[[Task], bool] | None = None
    ) -> tuple[tuple[Task, ...], int]:
        """Return a page of the list of tasks, and the length of the list (SPEC 6.4).

        A task on the page that is damaged is left out, and counted; `listing` tells of it.

        Args:
            request: which, and which part.
            sees: as for `listing`.

        Raises:
            StoreError: they cannot be read.
        """
        listing = await self.listing(request, sees)
        return listing.tasks, listing.total

    async def listing(self, request: ListTasks, sees: Callable[[Task], bool] | None = None) -> TaskListing:
        """Return a page of the list of tasks, with those that are damaged in their places (SPEC 6.4).

        Args:
            request: which, and which part.
            sees: leaves out what it answers False for, and what it cannot be asked about because it is damaged; then
                the whole list is read.

        Raises:
            InvalidArgument: the limit is not positive, or the offset is negative.
            StoreError: they cannot be read.
        """
        check_limit(request.limit)
        check_offset(request.offset)
        store = self.journal.store
        if sees is None:
            page = await store.tasks(active=request.active, limit=request.limit, offset=request.offset)
            return TaskListing(tuple(map(entry_of, page.rows)), page.total)
        shown: list[Task] = []
        seen, offset, total = 0, 0, 1
        while offset < total:
            page = await store.tasks(active=request.active, limit=_PAGE, offset=offset)
            for number, row in enumerate(page.rows, start=1):
                entry = entry_of(row)
                if isinstance(entry, Task) and sees(entry):
                    if request.offset <= seen < request.offset + request.limit:
                        shown.append(entry)
                    seen += 1
                if number % _PAUSE == 0:
                    await trio.lowlevel.checkpoint()
            offset, total = offset + _PAGE, page.total
        return TaskListing(tuple(shown), seen)

    async def edit(
        self, request: UpdateTask | DeleteTask, caller: Caller, *, session: SessionHeader | None = None
    ) -> Task | None:
        """Update or delete a task, and return it as it is now; None if it is deleted (SPEC 6.5).

        Args:
            request: the change.
            caller: who asks.
            session: one that does not exist yet and is created with the change, if there is one.

        Raises:
            ToolError: as `task_changes.update` and `check_delete`.
            StoreError: as `Store.commit`.
        """
        if isinstance(request, UpdateTask):
            request = _checked_change(request, self.settings)
        while True:
            try:
                if isinstance(request, DeleteTask):
                    await self._delete(request, session)
                    return None
                async with self._counting():
                    return await self._update(request, caller, session)
            except TaskConflict:
                continue

    async def _update(self, request: UpdateTask, caller: Caller, session: SessionHeader | None) -> Task:
        task = await self.view(request.id)
        counts = await self._counts(task.creator)
        after = task_changes.update(task, request, caller, self.journal.clock.now(), self.settings, counts)
        if after is not task:
            await self._write(change(task, after), after, session)
        return after

    async def _delete(self, request: DeleteTask, session: SessionHeader | None) -> None:
        row = await self._row(request.id)
        try:
            task_changes.check_delete(from_row(row), request)
        except StoreDamaged:
            expected = request.expected_updated_at
            if expected is not None and to_millis(expected) != row.updated_millis:
                raise conflict(row.id) from None
        await self._write(TaskWrite(row.id, row.updated_millis, None), None, session)

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """Return receipts of a task, the newest first; `before` is that of the page read last.

        Raises:
            ToolError: `schedule_not_found`.
        """
        try:
            return await self.journal.store.receipts(task_id, before=before, limit=limit)
        except UnknownTask:
            raise not_found(task_id) from None

    async def _row(self, task_id: str) -> TaskRow:
        try:
            return await self.journal.store.task(task_id)
        except UnknownTask:
            raise not_found(task_id) from None

    async def _counts(self, creator: str) -> ActiveCounts:
        """Return how many tasks are active, read only if there is a cap on them."""
        store, settings = self.journal.store, self.settings
        return ActiveCounts(
            0 if settings.max_active is None else await store.count_active_tasks(),
            0 if settings.max_active_per_session is None else await store.count_active_tasks(creator),
        )

    def _counting(self) -> AbstractAsyncContextManager[object]:
        """Return what keeps others from counting before a change that was decided by a count is there."""
        settings = self.settings
        capped = settings.max_active is not None or settings.max_active_per_session is not None
        return self._one_counts if capped else nullcontext()

    async def _write(self, write: TaskWrite, after: Task | None, session: SessionHeader | None) -> None:
        """Commit a change; of one whose outcome is unknown, read back whether it happened (SPEC 3.2)."""
        created = () if session is None else (session,)
        try:
            await self.journal.commit(Batch(created=created, tasks=(write,)))
        except CommitUncertain:
            if not await is_written(self.journal.store, write):
                raise
        finally:
            self.on_change(after)  # also in doubt: what may be there must come due


def _checked(request: CreateTask, settings: TaskSettings) -> CreateTask:
    """Return a request whose texts keep to the limits, wherever it comes from (SPEC 6.2).

    Raises:
        ToolError: `invalid_title` or `invalid_prompt`.
    """
    title, prompt = check_title(request.title), check_prompt(request.prompt, settings.max_prompt_bytes)
    return attrs.evolve(request, title=title, prompt=prompt)


def _checked_change(request: UpdateTask, settings: TaskSettings) -> UpdateTask:
    """Return a request of which the same is true."""
    title = None if request.title is None else check_title(request.title)
    prompt = None if request.prompt is None else check_prompt(request.prompt, settings.max_prompt_bytes)
    return attrs.evolve(request, title=title, prompt=prompt)
