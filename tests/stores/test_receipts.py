"""What every store promises of receipts: their order, their pages, how long they are kept."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from whenidle_actors.errors import InvalidArgument, UnknownTask
from whenidle_actors.stores.base import Batch, Receipt, ReceiptPage, Retention, Role, Store, TaskWrite
from whenidle_actors.stores.memory import MemoryStore
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_actors.stores.task_rows import DEFAULT_RETENTION, MAX_DROPPED

from .helpers import deletes, puts, receipt, task

DAY = 24 * 60 * 60 * 1000

StoreMaker = Callable[[Retention], Store]


@pytest.fixture(params=["memory", "sqlite"])
def keeping(request: pytest.FixtureRequest, path: Path) -> StoreMaker:
    """What opens a store of each kind, the same contents each time, with a retention."""
    memory = MemoryStore()

    def make(retention: Retention) -> Store:
        if request.param == "sqlite":
            return SqliteStore(path, retention=retention)
        memory._tasks._retention = retention
        return memory

    return make


async def add(store: Store, *receipts: Receipt) -> None:
    """Add receipts in one commit."""
    await store.commit(Batch(receipts=receipts))


async def kept(store: Store, task_id: str = "t") -> list[int]:
    """Return what is kept of a task, by when it was scheduled, the last one added first."""
    return [found.scheduled_millis for found in (await store.receipts(task_id, limit=10_000)).receipts]


async def test_receipts_come_the_last_one_added_first(store: Store) -> None:
    """Receipts read back whole, newest first by order of commit, whatever the clock said."""
    receipts = [receipt("t", 3), receipt("t", 1, delivered_millis=-5), Receipt("t", 2, 2, '"\N{SNOWMAN}\U0001f600"')]
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t"), task("u")))
        await add(store, receipts[0], receipt("u", 9))
        await add(store, *receipts[1:])
        assert await store.receipts("t") == ReceiptPage(tuple(reversed(receipts)), None)
        assert await kept(store, "u") == [9]


async def test_a_task_without_deliveries_has_no_receipts(store: Store) -> None:
    """A task that was never delivered has an empty page; a task that is not there has none at all."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t")))
        assert await store.receipts("t") == ReceiptPage((), None)
        with pytest.raises(UnknownTask, match="no task 'u'") as caught:
            await store.receipts("u")
        assert caught.value.task_id == "u"


@pytest.mark.parametrize("limit", range(1, 8))
async def test_receipts_are_read_page_by_page(store: Store, limit: int) -> None:
    """Following `before` gives every receipt once, and those added meanwhile do not shift the pages."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t")))
        await add(store, *(receipt("t", number) for number in range(6)))
        page = await store.receipts("t", limit=limit)
        found = list(page.receipts)
        while page.before is not None:
            await add(store, receipt("t", 99))
            page = await store.receipts("t", before=page.before, limit=limit)
            assert page.receipts
            found += page.receipts
        assert found == [receipt("t", number) for number in reversed(range(6))]


async def test_a_cursor_outlives_what_it_points_to(keeping: StoreMaker) -> None:
    """Behind receipts that were dropped meanwhile there are none; behind ones not made yet there are all."""
    async with keeping(Retention(records=3)).opened(Role.HOST) as store:
        await store.commit(puts(task("t")))
        await add(store, *(receipt("t", number) for number in range(3)))
        page = await store.receipts("t", limit=1)
        await add(store, *(receipt("t", number) for number in range(3, 6)))
        assert await store.receipts("t", before=page.before) == ReceiptPage((), None)
        assert await store.receipts("t", before=10**6, limit=3) == await store.receipts("t")


async def test_deleting_a_task_deletes_its_receipts(store: Store) -> None:
    """A deleted task's receipts are gone, and a task made later with its id does not inherit them."""
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t"), task("u")))
        await add(store, receipt("t"), receipt("u"))
        await store.commit(deletes("t", 1))
        with pytest.raises(UnknownTask):
            await store.receipts("t")
        await store.commit(puts(task("t")))
        assert (await kept(store), await kept(store, "u")) == ([], [0])
        await add(store, receipt("t", 5))
        anew = (TaskWrite("t", 1, None), TaskWrite("t", None, task("t")))
        await store.commit(Batch(tasks=anew, receipts=(receipt("t", 7),)))
        assert await kept(store) == [7]
        assert list(await store.check()) == []


async def test_a_receipt_may_be_of_a_task_made_in_its_batch(store: Store) -> None:
    """Receipts are added behind the writes of the same batch."""
    async with store.opened(Role.HOST):
        batch = puts(task("t"))
        await store.commit(Batch(tasks=batch.tasks, receipts=(receipt("t"),)))
        assert await kept(store) == [0]


async def test_so_many_receipts_are_kept_of_each_task(keeping: StoreMaker) -> None:
    """Beyond the number to keep, each new receipt drops the oldest of its own task."""
    async with keeping(Retention(records=3)).opened(Role.HOST) as store:
        await store.commit(puts(task("t"), task("u")))
        for number in range(5):
            await add(store, receipt("t", number), receipt("u", number + 10))
            assert await kept(store) == list(range(number, max(-1, number - 3), -1))
        assert await kept(store, "u") == [14, 13, 12]


async def test_the_default_keeps_two_hundred_for_thirty_days(store: Store) -> None:
    """Unless told otherwise 200 receipts are kept, and none that is older than 30 days at the next delivery."""
    assert Retention(records=200, age=timedelta(days=30)) == DEFAULT_RETENTION
    async with store.opened(Role.HOST):
        await store.commit(puts(task("t"), task("u")))
        await add(store, *(receipt("t", number) for number in range(205)))
        assert await kept(store) == list(range(204, 4, -1))
        for day in (0, 29, 30):
            await add(store, receipt("u", day, delivered_millis=day * DAY))
        assert await kept(store, "u") == [30, 29, 0]
        await add(store, receipt("u", 31, delivered_millis=30 * DAY + 1))
        assert await kept(store, "u") == [31, 30, 29]


async def test_the_newest_receipt_always_stays(keeping: StoreMaker) -> None:
    """A task that is delivered once a year has the receipt of its last delivery; the clock may go back."""
    async with keeping(Retention(age=timedelta(milliseconds=10))).opened(Role.HOST) as store:
        await store.commit(puts(task("t")))
        await add(store, receipt("t", 1, delivered_millis=500))
        await add(store, receipt("t", 2, delivered_millis=100))
        assert await kept(store) == [2, 1]
        await add(store, receipt("t", 3, delivered_millis=105))
        assert await kept(store) == [3, 2, 1]
        await add(store, receipt("t", 4, delivered_millis=10_000))
        assert await kept(store) == [4]


async def test_a_shortened_retention_takes_effect_step_by_step(keeping: StoreMaker) -> None:
    """However many receipts are too many, one new receipt drops a bounded number of them."""
    async with keeping(Retention(records=100)).opened(Role.HOST) as store:
        await store.commit(puts(task("t")))
        await add(store, *(receipt("t", number) for number in range(100)))
    left = 100
    async with keeping(Retention(records=5)).opened(Role.HOST) as store:
        for number in range(100, 110):
            await add(store, receipt("t", number))
            left = max(5, left + 1 - MAX_DROPPED)
            assert await kept(store) == list(range(number, number - left, -1))
        assert left == 5
        assert list(await store.check()) == []


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Retention(records=0), "records is 0"),
        (lambda: Retention(age=timedelta(0)), "age is 0:00:00"),
        (lambda: Retention(age=timedelta(days=-1)), "age is -1 day"),
    ],
)
def test_a_retention_that_keeps_nothing_is_refused(make: Callable[[], Retention], why: str) -> None:
    """A mistake in what to keep is told at once, not by receipts that are missing later."""
    with pytest.raises(InvalidArgument, match=why):
        make()


@given(
    st.builds(Retention, st.integers(1, 30), st.builds(timedelta, milliseconds=st.integers(1, 50))),
    st.lists(st.integers(0, 100), min_size=1, max_size=60),
)
def test_what_goes_is_a_bounded_run_of_the_oldest(retention: Retention, delivered: list[int]) -> None:
    """The newest stays; each one that goes is too many or too old; the first that stays is neither, or the limit."""
    kept_count, newest = len(delivered), delivered[-1]
    dropped = retention.surplus(kept_count, delivered[:MAX_DROPPED], newest)
    limit = newest - retention.age // timedelta(milliseconds=1)

    def goes(position: int) -> bool:
        return kept_count - position > retention.records or delivered[position] < limit

    assert 0 <= dropped < kept_count
    assert all(goes(position) for position in range(dropped))
    assert dropped == MAX_DROPPED or not goes(dropped)
