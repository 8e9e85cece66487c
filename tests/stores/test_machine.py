"""Every store against a plain dict, over generated lives of a store."""

import queue
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from threading import Thread
from typing import Any, Self

import attrs
import hypothesis.strategies as st
import pytest
import trio
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from whenidle_actors.errors import CommitRefused, UnknownSession, UnknownTask
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Append,
    Attention,
    Batch,
    DueTask,
    Receipt,
    ReceiptPage,
    Retention,
    Role,
    SessionIndex,
    SessionSlice,
    Store,
    TaskPage,
    TaskRow,
    TaskWrite,
)
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_protocol.events import EventRecord

from .helpers import contents, header, receipt

NAMES = st.sampled_from(["a", "b", "c", "d"])
RECORDS = st.lists(
    st.builds(
        EventRecord,
        type=st.sampled_from(["x/y", "z"]),
        at_millis=st.integers(-(2**40), 2**40),
        data=st.sampled_from(["{}", '"\N{SNOWMAN}"', "[1,2]"]),
        ignorable=st.booleans(),
    ),
    max_size=3,
).map(tuple)
INDEXES = st.builds(SessionIndex, st.none() | st.integers(-5, 5), runnable=st.booleans())
OFFSETS = st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1])
"""How far an append's expected length is from the true one: usually not at all."""
BATCHES = st.tuples(st.lists(NAMES, max_size=2), st.lists(st.tuples(NAMES, RECORDS, INDEXES, OFFSETS), max_size=3))
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["t", "u", "v", "w", "\U0001f600", "\uffff"]),
        st.sampled_from(["write", "write", "write", "delete", "deliver", "deliver"]),
        st.none() | st.integers(-3, 3),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from(["", "a", "b"]),
        OFFSETS,
    ),
    max_size=4,
)
"""Of tasks: which, what happens, next occurrence, session, creator, how far the version is from the true one."""
RETENTION = Retention(records=3, age=timedelta(milliseconds=4))

Model = dict[str, tuple[tuple[EventRecord, ...], SessionIndex]]


@attrs.define
class TaskModel:
    """Tasks as a dict, in no order, and their receipts, the oldest first."""

    rows: dict[str, TaskRow] = attrs.Factory(dict[str, TaskRow])
    receipts: dict[str, list[Receipt]] = attrs.Factory(dict[str, list[Receipt]])
    clock: int = 0

    def copy(self) -> Self:
        return type(self)(dict(self.rows), {name: list(found) for name, found in self.receipts.items()}, self.clock)

    def listed(self) -> list[TaskRow]:
        """Return all tasks in the order of a list."""
        active = [row for row in self.rows.values() if row.next_millis is not None]
        others = [row for row in self.rows.values() if row.next_millis is None]
        return sorted(active, key=attrgetter("next_millis", "id")) + sorted(
            others, key=lambda row: (-row.updated_millis, row.id)
        )

    def write(self, row: TaskRow) -> None:
        self.rows[row.id] = row
        self.receipts.setdefault(row.id, [])

    def delete(self, name: str) -> None:
        del self.rows[name], self.receipts[name]

    def deliver(self, added: Receipt) -> None:
        """Keep what is neither too many nor too old, as long as nothing before it is kept."""
        found = self.receipts[added.task_id]
        found.append(added)
        while len(found) > 3 or found[0].delivered_millis < added.delivered_millis - 4:
            del found[0]


class TrioThread:
    """A trio run in a thread of its own, to call into from code that is not async."""

    def __init__(self) -> None:
        tokens: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()

        async def serve() -> None:
            self._stop = trio.Event()
            tokens.put(trio.lowlevel.current_trio_token())
            await self._stop.wait()

        self._thread = Thread(target=trio.run, args=(serve,))
        self._thread.start()
        self._token = tokens.get()

    def run(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def stop(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join()


class StoreMachine(RuleBasedStateMachine):
    """What is committed, refused and kept, whatever the order of calls."""

    def __init__(self, make_store: Callable[[], Store]) -> None:
        super().__init__()
        self.trio = TrioThread()
        self.store = make_store()
        self.model: Model = {}
        self.tasks = TaskModel()
        self.commits = 0
        self.trio.run(self.store.open, Role.HOST)

    def teardown(self) -> None:
        try:
            assert list(self.trio.run(self.store.check)) == []
        finally:
            self.trio.run(self.store.aclose)
            self.trio.stop()

    @rule(parts=BATCHES)
    def commit(self, parts: Any) -> None:
        batch, after = self._planned(*parts)
        if after is None:
            with pytest.raises((CommitRefused, UnknownSession)):
                self.trio.run(self.store.commit, batch)
        else:
            self.trio.run(self.store.commit, batch)
            self.model = after
            self.commits += 1

    @rule(parts=BATCHES, changes=CHANGES)
    def commit_tasks(self, parts: Any, changes: Any) -> None:
        """Tasks are written together with sessions, or neither is."""
        batch, after = self._planned(*parts)
        writes, receipts, tasks = self._planned_tasks(changes)
        batch = attrs.evolve(batch, tasks=writes, receipts=receipts)
        if after is None or tasks is None:
            with pytest.raises((CommitRefused, UnknownSession, UnknownTask)):
                self.trio.run(self.store.commit, batch)
        else:
            self.trio.run(self.store.commit, batch)
            self.model, self.tasks = after, tasks
            self.commits += 1

    @rule(batches=st.lists(BATCHES, min_size=2, max_size=4))
    def commit_together(self, batches: Any) -> None:
        """Commits handed in at the same time take effect in that order, in one group or several."""
        outcomes: list[bool] = []

        async def commit_all() -> None:
            async def commit_one(position: int, batch: Batch) -> None:
                try:
                    await self.store.commit(batch)
                    outcomes[position] = True
                except (CommitRefused, UnknownSession):
                    pass

            async with trio.open_nursery() as nursery:
                for position, (batch, _) in enumerate(planned):
                    outcomes.append(False)
                    nursery.start_soon(commit_one, position, batch)

        # Only one of them touches each session, since trio starts the tasks in an order of its own.
        planned: list[tuple[Batch, Model | None]] = []
        touched: list[set[str]] = []
        for created, appended in batches:
            names = {*created, *(name for name, *_ in appended)}
            if not any(names & others for others in touched):
                touched.append(names)
                planned.append(self._planned(created, appended))
        self.trio.run(commit_all)
        assert outcomes == [after is not None for _, after in planned]
        for names, (_, after) in zip(touched, planned, strict=True):
            if after is not None:
                self.model |= {name: after[name] for name in names}
                self.commits += 1

    @rule(role=st.sampled_from(Role))
    def reopen(self, role: Role) -> None:
        self.trio.run(self.store.aclose)
        self.trio.run(self.store.open, role)
        self.commits = 0

    @invariant()
    def holds_what_was_committed(self) -> None:
        expected = {name: SessionSlice(header(name), index, 0, events) for name, (events, index) in self.model.items()}
        assert self.trio.run(contents, self.store) == expected
        assert self.store.statistics().commits == self.commits

    @invariant()
    def tells_who_needs_attention(self) -> None:
        async def attention() -> list[Attention]:
            return [item async for item in self.store.attention()]

        found = self.trio.run(attention)
        assert {item.session_id: item.index for item in found} == {
            name: index for name, (_, index) in self.model.items() if index != IDLE_INDEX
        }
        assert found == sorted(found, key=_urgency)

    @invariant()
    def lists_tasks_in_order(self) -> None:
        rows = self.tasks.listed()
        assert self.trio.run(self.store.tasks) == TaskPage(tuple(rows), len(rows))
        active = [row for row in rows if row.active]
        for creator in ("", "a", "b"):
            counted = self.trio.run(self.store.count_active_tasks, creator)
            assert counted == sum(row.creator == creator for row in active)
        assert self.trio.run(self.store.count_active_tasks) == len(active)

    @invariant()
    def tells_what_is_due(self) -> None:
        active = [row for row in self.tasks.listed() if row.active]
        assert self.trio.run(self.store.next_due) == next((row.next_millis for row in active), None)
        for until in (-1, 3):
            due = tuple(row for row in active if row.next_millis is not None and row.next_millis <= until)
            assert self.trio.run(self.store.due_tasks, until) == due
            destinations = tuple(DueTask(row.id, row.next_millis or 0, row.session_id) for row in due)
            assert self.trio.run(self.store.due_destinations, until) == destinations
            of_session = partial(self.store.due_tasks, until, session_id="a")
            assert self.trio.run(of_session) == tuple(row for row in due if row.session_id == "a")

    @invariant()
    def keeps_receipts(self) -> None:
        for name, receipts in self.tasks.receipts.items():
            found = self.trio.run(self.store.receipts, name)
            assert found == ReceiptPage(tuple(reversed(receipts)), None)

    def _planned_tasks(self, changes: Any) -> tuple[tuple[TaskWrite, ...], tuple[Receipt, ...], TaskModel | None]:
        """Return writes and receipts, and the tasks after them; None if they are to be refused."""
        self.tasks.clock += 1
        after = self.tasks.copy()
        good = True
        writes: list[TaskWrite] = []
        receipts: list[Receipt] = []
        for name, kind, next_millis, session_id, creator, offset in changes:
            known = after.rows.get(name)
            actual = None if known is None else known.updated_millis
            if kind == "deliver":
                receipts.append(receipt(name, self.tasks.clock, delivered_millis=self.tasks.clock + offset))
            elif kind == "write":
                expected = actual if offset == 0 else (actual or 0) + offset
                version = 0 if expected is None else expected + 1
                row = TaskRow(name, str(self.tasks.clock), version, next_millis, session_id, creator)
                writes.append(TaskWrite(name, expected, row))
                good &= expected == actual
                after.write(row)
            elif known is not None:
                writes.append(TaskWrite(name, known.updated_millis + offset, None))
                good &= offset == 0
                after.delete(name)
        for added in receipts:
            good &= added.task_id in after.rows
            if good:
                after.deliver(added)
        return tuple(writes), tuple(receipts), after if good else None

    def _planned(self, created: Any, appended: Any) -> tuple[Batch, Model | None]:
        """Return a batch, and the model after it; None if it is to be refused."""
        after: Model | None = dict(self.model)
        for name in created:
            if after is not None and name not in after:
                after[name] = ((), IDLE_INDEX)
            else:
                after = None
        batch: list[Append] = []
        lengths = {name: len(events) for name, (events, _) in self.model.items()}
        for name, events, index, offset in appended:
            length = lengths.get(name, 0)
            batch.append(Append(name, length + offset, events, index))
            lengths[name] = length + len(events)
            if after is not None and name in after and offset == 0:
                after[name] = (after[name][0] + events, index)
            else:
                after = None
        return Batch(tuple(batch), tuple(header(name) for name in created)), after


def _urgency(item: Attention) -> tuple[bool, int]:
    due = item.index.due_millis
    return (not item.index.runnable, 0 if item.index.runnable or due is None else due)


SETTINGS = settings(max_examples=25, stateful_step_count=20, deadline=None)


def machine_of(make_store: Callable[[], Store]) -> type[RuleBasedStateMachine]:
    """Return the machine that runs the stores that `make_store` makes."""

    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(make_store)

    return Machine


def test_the_memory_store_behaves_as_the_model() -> None:
    """Any sequence of commits, refusals and reopenings leaves the memory store as the model says."""
    run_state_machine_as_test(machine_of(lambda: MemoryStore(retention=RETENTION)), settings=SETTINGS)


def test_the_sqlite_store_behaves_as_the_model() -> None:
    """Any sequence of commits, refusals and reopenings leaves the SQLite store as the model says."""
    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder) / f"{number}.store" for number in range(10**6))
        run_state_machine_as_test(machine_of(lambda: SqliteStore(next(paths), retention=RETENTION)), settings=SETTINGS)
