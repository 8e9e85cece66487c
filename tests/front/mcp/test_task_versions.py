"""Whether tasks have changed, seen by versions of a bounded number of them."""

from __future__ import annotations

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from whenidle import MemoryStore
from whenidle.mcp import task_versions
from whenidle.mcp.task_versions import TaskVersions
from whenidle_actors.stores.base import Batch, Role, TaskPage, TaskRow, TaskWrite

NAMES = "abcdefgh"


@attrs.frozen
class Step:
    """What becomes of one task between two looks."""

    name: str
    action: str
    next_millis: int
    newer: int
    """How far its version rises, in milliseconds."""


steps = st.builds(
    Step,
    st.sampled_from(NAMES),
    st.sampled_from(["write", "write", "edit", "pause", "delete"]),
    st.integers(1, 5),
    st.integers(1, 20),
)


def after(row: TaskRow | None, step: Step) -> TaskWrite | None:
    """Return the write that a step is, if it is one."""
    if row is None:
        born = TaskRow(step.name, "{}", step.newer, step.next_millis)
        return TaskWrite(step.name, None, born) if step.action == "write" else None
    if step.action == "delete":
        return TaskWrite(step.name, row.updated_millis, None)
    next_millis = {"write": step.next_millis, "pause": None}.get(step.action, row.next_millis)
    changed = attrs.evolve(row, updated_millis=row.updated_millis + step.newer, next_millis=next_millis)
    return TaskWrite(step.name, row.updated_millis, changed)


@given(
    st.lists(st.lists(steps, max_size=4), max_size=8), st.sets(st.sampled_from(NAMES), max_size=3), st.integers(1, 9)
)
@settings(max_examples=300)
def test_no_change_is_missed_and_none_is_seen_where_there_was_none(
    rounds: list[list[Step]], watched: set[str], compared: int
) -> None:
    """Against all versions: what may have changed covers what did, and what is watched is told of exactly."""

    async def compare() -> None:
        store, versions, model = MemoryStore(), TaskVersions(), dict[str, TaskRow]()
        async with store.opened(Role.HOST):
            await versions.look(store)
            await versions.watch(store, watched)
            for round_ in rounds:
                before = {name: row.updated_millis for name, row in model.items()}
                for step in round_:
                    write = after(model.pop(step.name, None), step)
                    if write is not None:
                        await store.commit(Batch(tasks=(write,)))
                        if write.row is not None:
                            model[step.name] = write.row
                now = {name: row.updated_millis for name, row in model.items()}
                found = await versions.look(store)
                assert found.watched == {name for name in watched if before.get(name) != now.get(name)}
                if before == now:
                    assert not found.list_changed
                else:
                    assert found.list_changed or found.may_have_changed
                halves = [sum(row.active is active for row in model.values()) for active in (True, False)]
                if max(halves) <= compared:
                    assert not found.may_have_changed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_versions, "COMPARED", compared)
        trio.run(compare)


class Counting(MemoryStore):
    """Counts the tasks that are read."""

    rows_read = 0

    async def tasks(self, *, active: bool | None = None, limit: int = 100, offset: int = 0) -> TaskPage:
        """See `Store.tasks`."""
        page = await super().tasks(active=active, limit=limit, offset=offset)
        self.rows_read += len(page.rows)
        return page

    async def task(self, task_id: str) -> TaskRow:
        """See `Store.task`."""
        self.rows_read += 1
        return await super().task(task_id)


async def test_a_look_reads_and_keeps_no_more_however_many_tasks_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of either half, and those that are watched and not among them."""
    monkeypatch.setattr(task_versions, "COMPARED", 10)
    store, versions = Counting(), TaskVersions()
    rows = [TaskRow(f"t{number:04}", "{}", 1, number if number % 2 else None) for number in range(1000)]
    async with store.opened(Role.HOST):
        await store.commit(Batch(tasks=tuple(TaskWrite(row.id, None, row) for row in rows)))
        await versions.watch(store, ["t0001", "t0999", "none"])
        store.rows_read = 0
        await versions.look(store)
        assert store.rows_read == 10 + 10 + 2
        assert len(versions._first) == 20
        versions.forget(["t0999", "none", "never"])
        store.rows_read = 0
        await versions.look(store)
        assert store.rows_read == 20
