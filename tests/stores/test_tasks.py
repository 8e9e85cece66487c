"""What every store promises of tasks (`whenidle_actors.stores.base`)."""

import pytest
import trio

from whenidle_actors.errors import CommitRefused, InvalidArgument, StoreClosed, TaskConflict, UnknownTask
from whenidle_actors.stores.base import (
    Append,
    Batch,
    DueTask,
    Role,
    Store,
    StoreStatistics,
    TaskPage,
    TaskRow,
    TaskWrite,
)
from whenidle_actors.stores.paging import MAX_LIMIT
from whenidle_clock.instants import MAX_MILLIS, MIN_MILLIS

from .helpers import appends, contents, creates, deletes, header, puts, receipt, records, task

FULL_ROW = TaskRow(
    id="task: \N{SNOWMAN}/\U0001f600'\"\0",
    data='"\N{SNOWMAN}\U0001f600 \\u0000"',
    updated_millis=MAX_MILLIS,
    next_millis=MIN_MILLIS,
    session_id="se\u00e9ssion",
    creator="creator",
)


async def ids(store: Store, **arguments: int | bool | None) -> list[str]:
    """Return the ids of a page of tasks."""
    return [row.id for row in (await store.tasks(**arguments)).rows]  # type: ignore[arg-type]  # the filters are of different types


async def test_a_new_store_has_no_tasks(store: Store) -> None:
    """A store opened for the first time lists nothing, and nothing comes due."""
    async with store.opened(Role.HOST):
        for active in (None, True, False):
            assert await store.tasks(active=active) == TaskPage((), 0)
        assert await store.due_tasks(MAX_MILLIS) == ()
        assert await store.next_due() is None
        assert await store.count_active_tasks() == await store.count_active_tasks("") == 0


async def test_a_task_reads_back_as_it_was_written(store: Store) -> None:
    """Every field of a row comes back as it was given, from each way to read it."""
    rows = (FULL_ROW, task("plain"))
    async with store.opened(Role.HOST):
        await store.commit(puts(*rows))
        for row in rows:
            assert await store.task(row.id) == row
        assert await store.tasks() == TaskPage(rows, 2)
        assert await store.due_tasks(MAX_MILLIS) == (FULL_ROW,)
        assert await store.due_tasks(MAX_MILLIS, session_id="se\u00e9ssion") == (FULL_ROW,)


async def test_a_write_replaces_the_whole_row(store: Store) -> None:
    """A task that is written again has the new row's fields only, in every order it is found by."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 5, session_id="s", creator="c")))
        after = task("t", 9, 2, session_id="other", creator="d", data="[]")
        await store.commit(puts(after, expected=1))
        assert await store.task("t") == after
        assert await store.tasks() == TaskPage((after,), 1)
        assert await store.due_tasks(8) == await store.due_tasks(9, session_id="s") == ()
        assert await store.due_tasks(9) == await store.due_tasks(9, session_id="other") == (after,)
        assert (await store.count_active_tasks("c"), await store.count_active_tasks("d")) == (0, 1)


async def test_a_deleted_task_is_gone(store: Store) -> None:
    """A deleted task is not listed, not due and not counted, after a restart neither (CASES 24)."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 5, session_id="s"), task("stays")))
        await store.commit(deletes("t", 1))
    async with store.opened(Role.HOST):
        with pytest.raises(UnknownTask, match="no task 't'"):
            await store.task("t")
        assert await store.tasks() == TaskPage((task("stays"),), 1)
        assert await store.next_due() is None
        assert await store.due_tasks(9) == await store.due_tasks(9, session_id="s") == ()
        assert await store.count_active_tasks() == 0


@pytest.mark.parametrize(
    ("batch", "expected", "actual", "why"),
    [
        (puts(task("t", 5, 9)), None, 3, "exists already"),
        (puts(task("t", 5, 9), expected=2), 2, 3, "was updated at 3, and the write is based on 2"),
        (puts(task("t", 5, 9), expected=4), 4, 3, "was updated at 3, and the write is based on 4"),
        (deletes("t", 2), 2, 3, "was updated at 3, and the write is based on 2"),
        (puts(task("u", 5, 9), expected=4), 4, None, "does not exist any more"),
        (deletes("u", 0), 0, None, "does not exist any more"),
    ],
)
async def test_a_write_to_another_version_is_refused(
    store: Store, batch: Batch, expected: int | None, actual: int | None, why: str
) -> None:
    """The version is checked at the commit, the error tells both, and the task stays as it is."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 7, 3)))
        with pytest.raises(TaskConflict, match=why) as caught:
            await store.commit(batch)
        assert caught.value.task_id == batch.tasks[0].task_id
        assert (caught.value.expected, caught.value.actual) == (expected, actual)
        assert await store.tasks() == TaskPage((task("t", 7, 3),), 1)


async def test_a_batch_may_write_a_task_more_than_once(store: Store) -> None:
    """Writes of one batch see each other's versions, through deletion and making anew; the last one stays."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 5, creator="a")))
        await store.commit(
            Batch(
                tasks=(
                    TaskWrite("t", 1, task("t", None, 2, creator="b")),
                    TaskWrite("t", 2, None),
                    TaskWrite("t", None, task("t", 8, 1, creator="c")),
                    TaskWrite("brief", None, task("brief", 1)),
                    TaskWrite("brief", 1, None),
                )
            )
        )
        assert await store.tasks() == TaskPage((task("t", 8, 1, creator="c"),), 1)
        assert [await store.count_active_tasks(name) for name in (None, "a", "b", "c")] == [1, 0, 0, 1]
        with pytest.raises(TaskConflict):
            await store.commit(Batch(tasks=(TaskWrite("t", 1, task("t", 9, 2)), TaskWrite("t", 1, None))))
        assert (await store.task("t")).next_millis == 8


@pytest.mark.parametrize(
    "last",
    [
        Batch(tasks=(TaskWrite("t", 7, task("t", 5, 8)),)),
        Batch(tasks=(TaskWrite("t", 1, task("t", 5, 2)), TaskWrite("t", None, task("t")))),
        puts(task("u", data='"\ud800"')),
        puts(task("\udfff", data="1")),
        puts(task("u", 2**63)),
        puts(task("u", 5, -(2**63) - 1)),
        puts(task("u", session_id="\ud800")),
        puts(task("u", 5, creator="\ud800")),
        Batch(receipts=(receipt("nowhere"),)),
        Batch(tasks=(TaskWrite("t", 1, None),), receipts=(receipt("t"),)),
        Batch(receipts=(receipt("t", delivered_millis=2**63),)),
        Batch(receipts=(receipt("t"), receipt("t", scheduled_millis=-(2**63) - 1))),
        appends("a", 7),
        creates("a"),
    ],
)
async def test_a_refused_batch_changes_no_task_and_no_session(store: Store, last: Batch) -> None:
    """Sessions, tasks and receipts of one batch stand or fall together, whichever of them is refused."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(puts(task("t", 3, creator="c")))
        await store.commit(Batch(receipts=(receipt("t"),)))
        before = await contents(store), await store.tasks(), await store.receipts("t")
        with pytest.raises((CommitRefused, UnknownTask)):
            await store.commit(
                Batch(
                    appends=(Append("a", 0, records(1)), *last.appends),
                    created=(header("new"), *last.created),
                    tasks=(TaskWrite("first", None, task("first", 1, creator="c")), *last.tasks),
                    receipts=(receipt("t", 1), *last.receipts),
                )
            )
        assert (await contents(store), await store.tasks(), await store.receipts("t")) == before
        assert await store.count_active_tasks("c") == 1
        assert await store.next_due() == 3
        assert list(await store.check()) == []
        await store.commit(puts(task("t", 4, 2), expected=1))
        assert store.statistics() == StoreStatistics(commits=4, refused=1, groups=4)


async def test_only_one_of_two_writes_of_a_version_wins(store: Store) -> None:
    """Of two commits based on the same version, one returns and the other is told so (CASES 31)."""
    outcomes: list[str] = []
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 1)))

        async def write(data: str, version: int) -> None:
            try:
                await store.commit(puts(task("t", 1, version, data=data), expected=1))
                outcomes.append(data)
            except TaskConflict as conflict:
                outcomes.append(f"conflict {conflict.actual}")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, "5", 5)
            nursery.start_soon(write, "6", 6)
        winner = await store.task("t")
        assert sorted(outcomes) == [winner.data, f"conflict {winner.updated_millis}"]


async def test_lists_have_active_tasks_by_time_and_then_the_others_by_change(store: Store) -> None:
    """Active tasks by next occurrence, the others the latest update first, ties by code points of the id."""
    rows = [
        task("\U0001f600", 20),
        task("\uffff", 20),
        task("B", 20),
        task("a", 20),
        task("far", MAX_MILLIS),
        task("past", -5),
        task("old", None, -3),
        task("new-b", None, 9),
        task("new-a", None, 9),
    ]
    order = ["past", "B", "a", "\uffff", "\U0001f600", "far", "new-a", "new-b", "old"]
    async with store.opened(Role.HOST):
        await store.commit(puts(*rows))
        assert await ids(store) == order
        assert await ids(store, active=True) == order[:6]
        assert await ids(store, active=False) == order[6:]


async def test_pages_begin_where_they_are_asked_to(store: Store) -> None:
    """Any limit and offset give that part of the list, across its two halves, and always its whole length."""
    active = [task(f"a{number}", number) for number in range(4)]
    others = [task(f"o{number}", None, 9 - number) for number in range(3)]
    lists = {None: [*active, *others], True: active, False: others}
    async with store.opened(Role.HOST):
        await store.commit(puts(*reversed(active), *others))
        for kind, rows in lists.items():
            for offset in (*range(9), 2**70):
                for limit in (*range(1, 9), MAX_LIMIT):
                    page = await store.tasks(active=kind, limit=limit, offset=offset)
                    assert page == TaskPage(tuple(rows[offset : offset + limit]), len(rows)), (kind, offset, limit)


async def test_a_page_holds_a_hundred_unless_told_otherwise(store: Store) -> None:
    """The default limit of a list is 100, as the list tool's is (SPEC 6.4)."""
    async with store.opened(Role.HOST):
        await store.commit(puts(*(task(f"{number:03}", number) for number in range(120))))
        page = await store.tasks()
        assert (len(page.rows), page.total, page.rows[-1].id) == (100, 120, "099")


async def test_arguments_that_name_no_part_of_a_list_are_refused(store: Store) -> None:
    """A limit below 1 and an offset below 0 are the caller's mistake and are named."""
    async with store.opened(Role.HOST):
        with pytest.raises(InvalidArgument, match="limit is 0"):
            await store.tasks(limit=0)
        with pytest.raises(InvalidArgument, match="limit is 2147483648; ask for 1 to 2147483647"):
            await store.tasks(limit=MAX_LIMIT + 1)
        with pytest.raises(InvalidArgument, match="offset is -1"):
            await store.tasks(offset=-1)
        with pytest.raises(InvalidArgument, match="limit is -1"):
            await store.due_tasks(0, limit=-1)
        with pytest.raises(InvalidArgument, match="limit is 0"):
            await store.receipts("t", limit=0)


async def test_totals_are_right_while_tasks_change(store: Store) -> None:
    """Pages taken while tasks are paused, resumed, made and deleted have the right total each (CASES 32)."""
    async with store.opened(Role.HOST):
        await store.commit(puts(*(task(f"{number:03}", number) for number in range(100))))
        for number in range(0, 100, 5):
            await store.commit(puts(task(f"{number:03}", None, 2), expected=1))
            await store.commit(deletes(f"{number + 1:03}", 1))
            await store.commit(puts(task(f"new{number}", None, 2)))
            await store.commit(puts(task(f"new{number}", number, 3), expected=2))
            done = number // 5 + 1
            assert (await store.tasks(limit=10, offset=90)).total == 100
            assert (await store.tasks(active=True, limit=1)).total == await store.count_active_tasks() == 100 - done
            assert (await store.tasks(active=False, limit=1)).total == done


async def test_due_tasks_are_those_at_or_before_an_instant(store: Store) -> None:
    """A task is due at its very instant, the earliest comes first, and others never do."""
    rows = [task("b", 10), task("a", 10), task("early", -7), task("late", 11), task("paused", None, 5)]
    async with store.opened(Role.HOST):
        await store.commit(puts(*rows))
        assert [row.id for row in await store.due_tasks(9)] == ["early"]
        assert [row.id for row in await store.due_tasks(10)] == ["early", "a", "b"]
        assert [row.id for row in await store.due_tasks(10, limit=2)] == ["early", "a"]
        assert [row.id for row in await store.due_tasks(MAX_MILLIS)] == ["early", "a", "b", "late"]
        assert await store.due_tasks(-8) == ()


async def test_due_tasks_are_read_on_behind_one(store: Store) -> None:
    """Reading on behind a task skips it and all before it, and does not need it to be there still."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("a", 1), task("b", 5), task("c", 5), task("d", 9)))
        assert [row.id for row in await store.due_tasks(9, after=(5, "b"))] == ["c", "d"]
        assert [row.id for row in await store.due_tasks(5, after=(5, "b"), limit=5)] == ["c"]
        assert [row.id for row in await store.due_tasks(9, after=(4, "zzz"), limit=1)] == ["b"]
        assert await store.due_tasks(4, after=(5, "b")) == await store.due_tasks(9, after=(9, "d")) == ()


async def test_destinations_are_those_of_due_tasks(store: Store) -> None:
    """The same tasks in the same order and pages, each with no more than where it goes."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("b", 5), task("a", 5, session_id="s"), task("late", 9), task("paused", None, 2)))
        first, second = DueTask("a", 5, "s"), DueTask("b", 5, None)
        assert await store.due_destinations(8) == (first, second)
        assert await store.due_destinations(8, limit=1) == (first,)
        assert await store.due_destinations(8, after=(5, "a")) == (second,)
        with pytest.raises(InvalidArgument, match="limit"):
            await store.due_destinations(8, limit=0)


async def test_due_tasks_of_one_session_are_found(store: Store) -> None:
    """Only tasks that go to the session are given, in the same order; those without a session are nobody's."""
    async with store.opened(Role.HOST):
        await store.commit(
            puts(
                task("b", 5, session_id="s"),
                task("a", 5, session_id="s"),
                task("first", 1, session_id="s"),
                task("late", 9, session_id="s"),
                task("other", 2, session_id="t"),
                task("none", 3),
                task("paused", session_id="s"),
            )
        )
        assert [row.id for row in await store.due_tasks(5, session_id="s")] == ["first", "a", "b"]
        assert [row.id for row in await store.due_tasks(9, session_id="s", after=(1, "first"), limit=2)] == ["a", "b"]
        assert await store.due_tasks(9, session_id="u") == ()
        assert len(await store.due_tasks(9)) == 6
        await store.commit(deletes("a", 1))
        assert [row.id for row in await store.due_tasks(5, session_id="s")] == ["first", "b"]


async def test_the_next_due_instant_is_the_earliest(store: Store) -> None:
    """The earliest of all, or of those after an instant that has passed, so that an alarm can be set for it."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("a", 5), task("b", 5), task("c", 9), task("d", None, 1), task("e", MIN_MILLIS)))
        found = [await store.next_due(after) for after in (None, MIN_MILLIS, 4, 5, 8, 9)]
        assert found == [MIN_MILLIS, 5, 5, 9, 9, None]


async def test_active_tasks_are_counted_by_creator(store: Store) -> None:
    """The counts follow each creation, pause, change of creator and deletion."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("1", 5, creator="a"), task("2", 5, creator="a"), task("3", 5), task("4")))

        async def counts() -> list[int]:
            return [await store.count_active_tasks(name) for name in (None, "a", "b", "")]

        assert await counts() == [3, 2, 0, 1]
        await store.commit(puts(task("1", None, 2, creator="a"), expected=1))
        assert await counts() == [2, 1, 0, 1]
        await store.commit(puts(task("2", 6, 2, creator="b"), expected=1))
        assert await counts() == [2, 0, 1, 1]
        await store.commit(deletes("3", 1))
        assert await counts() == [1, 0, 1, 0]
        assert list(await store.check()) == []


async def test_tasks_outlive_closing(store: Store) -> None:
    """A store opened again has the tasks that were committed, whatever the role."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t", 5, creator="c")))
        await store.commit(Batch(receipts=(receipt("t"),)))
    for role in Role:
        async with store.opened(role):
            assert await store.tasks() == TaskPage((task("t", 5, creator="c"),), 1)
            assert (await store.receipts("t")).receipts == (receipt("t"),)
            assert await store.count_active_tasks("c") == 1


async def test_ids_that_cannot_be_stored_are_unknown(store: Store) -> None:
    """Asking for an id that has no UTF-8 is asking for a task that is not there."""
    async with store.opened(Role.HOST):
        for task_id in ("\ud800", "", "t\0"):
            with pytest.raises(UnknownTask) as caught:
                await store.task(task_id)
            assert caught.value.task_id == task_id
            with pytest.raises(UnknownTask):
                await store.receipts(task_id)


async def test_a_closed_store_tells_nothing_of_tasks(store: Store) -> None:
    """Every question about tasks to a store that is not open raises `StoreClosed`."""
    for ask in (
        lambda: store.task("t"),
        store.tasks,
        store.count_active_tasks,
        lambda: store.due_tasks(0),
        store.next_due,
        lambda: store.receipts("t"),
    ):
        with pytest.raises(StoreClosed):
            await ask()


@pytest.mark.parametrize(
    ("expected", "row", "why"),
    [
        (None, None, "must say which version"),
        (None, task("u"), "row of task 'u' cannot be written as task 't'"),
        (1, task("t"), "updated_millis is 1; each write raises it, here above 1"),
        (5, task("t", None, 4), "updated_millis is 4; each write raises it, here above 5"),
    ],
)
def test_writes_that_cannot_be_meant_are_refused(expected: int | None, row: TaskRow | None, why: str) -> None:
    """A write that could not be told from another one later, or that contradicts itself, is never made."""
    with pytest.raises(InvalidArgument, match=why):
        TaskWrite("t", expected, row)


def test_a_task_is_active_while_it_has_a_next_occurrence() -> None:
    """Whether a task is active is not a field of its own, so that the two cannot disagree."""
    assert task("t", 0).active
    assert not task("t").active
