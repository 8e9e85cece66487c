"""Every store against a plain dict, over generated lives of a store."""

import queue
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Thread
from typing import Any

import hypothesis.strategies as st
import pytest
import trio
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from whenidle_actors.errors import CommitRefused, UnknownSession
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Append,
    Attention,
    Batch,
    Role,
    SessionIndex,
    SessionSlice,
    Store,
)
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_protocol.events import EventRecord

from .helpers import contents, header

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

Model = dict[str, tuple[tuple[EventRecord, ...], SessionIndex]]


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
    run_state_machine_as_test(machine_of(MemoryStore), settings=SETTINGS)


def test_the_sqlite_store_behaves_as_the_model() -> None:
    """Any sequence of commits, refusals and reopenings leaves the SQLite store as the model says."""
    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder) / f"{number}.store" for number in range(10**6))
        run_state_machine_as_test(machine_of(lambda: SqliteStore(next(paths))), settings=SETTINGS)
