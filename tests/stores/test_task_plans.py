"""How the SQLite store finds tasks: by looking up, never by looking through."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from whenidle_actors.stores.base import Batch, Retention, Role, TaskWrite
from whenidle_actors.stores.sqlite import SqliteStore, applying, group_applying, task_reading
from whenidle_actors.stores.task_rows import DEFAULT_RETENTION

from .helpers import appends, connections, creates, deletes, puts, receipt, task

Read = Callable[[sqlite3.Connection], Any]

READS: dict[str, Read] = {
    "task": lambda connection: task_reading.read_task(connection, "t0"),
    "active page": lambda connection: task_reading.read_page(connection, active=True, limit=5, offset=2),
    "others page": lambda connection: task_reading.read_page(connection, active=False, limit=5, offset=2),
    "whole page": lambda connection: task_reading.read_page(connection, active=None, limit=5, offset=7),
    "count": lambda connection: task_reading.read_active_count(connection, None),
    "count of creator": lambda connection: task_reading.read_active_count(connection, "c"),
    "due": lambda connection: task_reading.read_due(connection, 10**9, None, None, 5),
    "due on": lambda connection: task_reading.read_due(connection, 10**9, None, (3, "t3"), 5),
    "due of session": lambda connection: task_reading.read_due(connection, 10**9, "s", None, 5),
    "next due": lambda connection: task_reading.read_next_due(connection, None),
    "destinations": lambda connection: task_reading.read_due_destinations(connection, 9, None, 5),
    "destinations on": lambda connection: task_reading.read_due_destinations(connection, 9, (2, "t2"), 5),
    "next due on": lambda connection: task_reading.read_next_due(connection, 3),
    "receipts": lambda connection: task_reading.read_receipts(connection, "t0", None, 5),
}

WRITES = {
    "new": puts(task("new", 5, creator="c")),
    "changed": puts(task("t0", None, 2), expected=1),
    "deleted": deletes("t0", 1),
    "receipt": Batch(receipts=(receipt("t0", 1),)),
}

ORDERED = {"SCAN tasks USING INDEX due_tasks", "SCAN tasks USING INDEX other_tasks"}
"""Walks along an index that end with the page; no other walk is allowed, and no sorting."""


async def fill(path: Path, active: int, others: int) -> None:
    """Make a store with tasks `t0`, `t1`, … that are active and as many as told that are not."""
    async with SqliteStore(path).opened(Role.HOST) as store:
        rows = [task(f"t{number}", number, session_id="s", creator="c") for number in range(active)]
        rows += [task(f"o{number}", None, number) for number in range(others)]
        await store.commit(
            Batch(
                tasks=tuple(TaskWrite(row.id, None, row) for row in rows),
                receipts=tuple(receipt("t0", number) for number in range(20)),
            )
        )


@pytest.fixture
async def filled(path: Path) -> Path:
    """A store with nine tasks of which five are active."""
    await fill(path, 5, 4)
    return path


def plans(path: Path, run: Read) -> Iterator[tuple[str, str]]:
    """Run something and yield each statement that it executed, with each line of its plan."""
    statements: dict[str, None] = {}
    watched = connections(lambda _connection, statement: statements.setdefault(statement))
    with closing(sqlite3.connect(path, isolation_level=None, factory=watched)) as connection:
        run(connection)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            if statement not in {"BEGIN", "ROLLBACK"}:
                explained = connection.execute(f"EXPLAIN QUERY PLAN {statement}", (1,) * statement.count("?"))
                yield from ((statement, str(row[3])) for row in explained)


@pytest.mark.parametrize("name", READS)
async def test_reads_use_an_index_and_sort_nothing(filled: Path, name: str) -> None:
    """Each statement looks up what it needs, or walks along the index that has the order asked for."""
    found = list(plans(filled, READS[name]))
    assert found
    for statement, line in found:
        # The counters are one row.
        assert line.startswith("SEARCH ") or line in ORDERED or line == "SCAN task_totals", (statement, line)


@pytest.mark.parametrize("name", WRITES)
async def test_writes_use_an_index(filled: Path, name: str) -> None:
    """Writing a task or a receipt looks nothing through, whatever else is stored."""

    def write(connection: sqlite3.Connection) -> None:
        applying.apply_batch(connection, WRITES[name], retention=Retention(records=3), tell_host=True)

    found = list(plans(filled, write))
    assert found
    for statement, line in found:
        # A correlated subquery is looked up in its turn; the maximum is the end of an index.
        assert line.startswith(("SEARCH ", "SCALAR SUBQUERY", "CORRELATED SCALAR SUBQUERY")) or (
            line == "SCAN task_totals"
        ), (statement, line)


async def test_a_group_uses_an_index(filled: Path) -> None:
    """Many deliveries written together look nothing through but the rows that are given."""
    await fill_sessions(filled)
    batches = [
        Batch(
            appends(f"t{number}", 0).appends,
            tasks=puts(task(f"t{number}", 9, 2, session_id="s", creator="c"), expected=1).tasks,
            receipts=(receipt(f"t{number}", 1), receipt(f"o{number}", 1)),
        )
        for number in range(3)
    ]

    def write(connection: sqlite3.Connection) -> None:
        assert group_applying.apply_together(connection, batches, Retention(records=3))

    found = list(plans(filled, write))
    assert len({statement for statement, _ in found}) > 4
    given = ("SCAN given", "MATERIALIZE", "CO-ROUTINE", "SCAN 2 CONSTANT ROWS", "SCAN 4 CONSTANT ROWS", "SCAN")
    for statement, line in found:
        looked_up = line.startswith(("SEARCH ", "SCALAR SUBQUERY", "CORRELATED SCALAR SUBQUERY"))
        table = line.startswith("SCAN ") and line.split()[1] in {"tasks", "sessions", "events", "receipts", "first"}
        assert looked_up or (line.startswith(given) and not table), (statement, line)


async def fill_sessions(path: Path) -> None:
    """Make the sessions `t0`, `t1` and `t2`."""
    async with SqliteStore(path).opened(Role.HOST) as store:
        await store.commit(creates("t0", "t1", "t2"))


async def test_a_page_and_its_total_are_of_one_moment(filled: Path) -> None:
    """What is committed between the statements of a read is in neither of them."""
    with closing(sqlite3.connect(filled, isolation_level=None)) as other:

        def change(_connection: sqlite3.Connection, statement: str) -> None:
            if "INDEXED BY other_tasks" in statement:
                applying.apply_batch(other, puts(task("new")), retention=DEFAULT_RETENTION, tell_host=False)

        with closing(sqlite3.connect(filled, isolation_level=None, factory=connections(change))) as connection:
            page = task_reading.read_page(connection, active=None, limit=100, offset=0)
            assert (len(page.rows), page.total) == (9, 9)
            page = task_reading.read_page(connection, active=True, limit=100, offset=0)
            assert task_reading.read_task(connection, "new") == task("new")
            assert not connection.in_transaction


def test_a_failure_that_ended_the_read_is_passed_on() -> None:
    """When SQLite has ended the transaction of a read by itself, its error is what is told."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:

        def read() -> None:
            with task_reading._snapshot(connection):
                connection.execute("ROLLBACK")
                connection.execute("nonsense")

        with pytest.raises(sqlite3.OperationalError, match="nonsense"):
            read()
        assert not connection.in_transaction


def steps(path: Path, run: Read) -> int:
    """Return how many steps SQLite's virtual machine takes for something."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run(connection)  # the schema is read once a connection
        connection.set_progress_handler(count, 1)
        run(connection)
    return taken


async def test_reads_cost_the_same_however_many_tasks_there_are(tmp_path: Path) -> None:
    """Every look-up and every first page takes as many steps among 4,000 tasks as among 40."""
    small, large = tmp_path / "small.store", tmp_path / "large.store"
    await fill(small, 20, 20)
    await fill(large, 2000, 2000)
    first_pages: dict[str, Read] = {
        "first active page": lambda connection: task_reading.read_page(connection, active=True, limit=5, offset=0),
        "first others page": lambda connection: task_reading.read_page(connection, active=False, limit=5, offset=0),
    }
    for name, read in (READS | first_pages).items():
        few, many = steps(small, read), steps(large, read)
        assert many <= few, name


async def test_writes_cost_the_same_however_many_tasks_there_are(tmp_path: Path) -> None:
    """Making, changing, deleting and delivering take as many steps among 4,000 tasks as among 40."""
    small, large = tmp_path / "small.store", tmp_path / "large.store"
    await fill(small, 20, 20)
    await fill(large, 2000, 2000)
    for name, batch in WRITES.items():

        def write_and_undo(connection: sqlite3.Connection, batch: Batch = batch) -> None:
            connection.execute("BEGIN")
            applying.apply_batch(connection, batch, retention=DEFAULT_RETENTION, tell_host=True)
            connection.execute("ROLLBACK")

        assert steps(large, write_and_undo) <= steps(small, write_and_undo), name
