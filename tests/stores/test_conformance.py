"""What every store promises (`whenidle_actors.stores.base`)."""

import os
from datetime import UTC, datetime

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.errors import (
    CommitRefused,
    InvalidArgument,
    SequenceConflict,
    SessionExists,
    StoreClosed,
    StoreLocked,
    UnknownSession,
)
from whenidle_actors.stores import sqlite as sqlite_package
from whenidle_actors.stores.base import (
    IDLE_INDEX,
    Append,
    Attention,
    Batch,
    Role,
    SessionHeader,
    SessionIndex,
    SessionSlice,
    Store,
    StoreStatistics,
)
from whenidle_clock.instants import MAX_MILLIS, MIN_MILLIS

from .helpers import appends, contents, creates, header, record, records

FULL_HEADER = SessionHeader(
    id="child: \N{SNOWMAN}/\U0001f600'\"\0",
    created_at=datetime(2026, 1, 5, 8, 0, 0, 123_000, tzinfo=UTC),
    parent="parent",
    delegation_depth=2,
    cwd="/some where/\u00e9",
    preset="careful",
    seed_length=3,
    forked_from="origin",
)


async def test_a_new_store_is_empty(store: Store) -> None:
    """A store opened for the first time has no sessions, and nothing needs attention."""
    async with store.opened(Role.HOST):
        assert await store.sessions() == ()
        assert [item async for item in store.attention()] == []
        assert list(await store.check()) == []
        assert store.statistics() == StoreStatistics()


async def test_a_created_session_reads_back_with_its_whole_header(store: Store) -> None:
    """Every field of a header comes back as it was given, and the log is empty."""
    async with store.opened(Role.HOST):
        await store.commit(Batch(created=(FULL_HEADER,)))
        assert await store.read(FULL_HEADER.id) == SessionSlice(FULL_HEADER, IDLE_INDEX, 0, ())
        assert await store.sessions() == (FULL_HEADER,)


async def test_records_read_back_in_order_with_the_latest_index(store: Store) -> None:
    """A log reads back exactly, over several commits, and its index is the last one committed."""
    odd = (
        record(0, data='"\N{SNOWMAN}\U0001f600 \\u0000"', ignorable=True),
        record(1, at_millis=MIN_MILLIS),
        record(2, at_millis=MAX_MILLIS, data="x" * 100_000),
    )
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0, odd[:1], SessionIndex(5, runnable=True)))
        await store.commit(appends("a", 1, odd[1:], SessionIndex(-7)))
        assert await store.read("a") == SessionSlice(header("a"), SessionIndex(-7), 0, odd)
        await store.commit(appends("a", 3, ()))
        assert (await store.read("a")).index == IDLE_INDEX


@pytest.mark.parametrize(("start", "first", "count"), [(0, 0, 5), (3, 3, 2), (5, 5, 0), (9, 5, 0)])
async def test_a_read_begins_where_it_is_asked_to(store: Store, start: int, first: int, count: int) -> None:
    """Records before `start` are left out; a start past the end is clipped to the length."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0, records(5)))
        part = await store.read("a", start)
        assert (part.start, part.records, part.length) == (first, records(count, first), 5)


async def test_a_read_from_before_the_beginning_is_refused(store: Store) -> None:
    """A negative start is the caller's mistake and is named."""
    async with store.opened(Role.HOST):
        with pytest.raises(InvalidArgument, match="start is -1"):
            await store.read("a", -1)


async def test_a_long_log_reads_back_whole(store: Store) -> None:
    """A log longer than one piece of reading comes back complete, from any start."""
    log = records(2500)
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0, log))
        assert (await store.read("a")).records == log
        assert (await store.read("a", 400)).records == log[400:]


async def test_a_batch_touches_several_sessions_at_once(store: Store) -> None:
    """Sessions made in a batch take appends of the same batch, beside appends to older ones."""
    async with store.opened(Role.HOST):
        await store.commit(creates("old"))
        await store.commit(
            Batch(
                created=(header("new"),),
                appends=(
                    Append("old", 0, records(1)),
                    Append("new", 0, records(2)),
                    Append("old", 1, records(1, 1), SessionIndex(9)),
                ),
            )
        )
        assert (await store.read("old")).records == records(2)
        assert (await store.read("old")).index == SessionIndex(9)
        assert (await store.read("new")).records == records(2)


async def test_an_empty_batch_is_committed(store: Store) -> None:
    """A batch of nothing succeeds and changes nothing."""
    async with store.opened(Role.HOST):
        await store.commit(Batch())
        assert await store.sessions() == ()
        assert store.statistics().commits == 1


@pytest.mark.parametrize("expected", [0, 1, 3, -1])
async def test_an_append_to_a_log_of_another_length_is_refused(store: Store, expected: int) -> None:
    """The expected length is checked at the commit, and the error tells the actual one."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0, records(2)))
        with pytest.raises(SequenceConflict, match=f"2 events, not the expected {expected}") as caught:
            await store.commit(appends("a", expected))
        assert (caught.value.session_id, caught.value.expected, caught.value.actual) == ("a", expected, 2)
        assert (await store.read("a")).records == records(2)


async def test_a_session_is_created_once(store: Store) -> None:
    """Creating a session that exists, or twice in one batch, is refused by name."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        with pytest.raises(SessionExists, match="'a' exists already"):
            await store.commit(creates("a"))
        with pytest.raises(SessionExists, match="'b' exists already"):
            await store.commit(creates("b", "b"))
        assert await store.sessions() == (header("a"),)


async def test_an_unknown_session_is_named(store: Store) -> None:
    """Reading or appending to a session that is not there tells its id."""
    async with store.opened(Role.HOST):
        with pytest.raises(UnknownSession, match="no session 'a'"):
            await store.read("a")
        with pytest.raises(UnknownSession, match="no session 'a'"):
            await store.commit(appends("a", 0))


@pytest.mark.parametrize(
    "last",
    [
        appends("b", 7),
        appends("nowhere", 0),
        appends("b", 0, [record(data='"\ud800"')]),
        appends("b", 0, [record(type="\udfff")]),
        appends("b", 0, [record(at_millis=2**63)]),
        appends("b", 0, [record(), record(at_millis=-(2**63) - 1)]),
        appends("b", 0, [], SessionIndex(2**63)),
    ],
)
async def test_a_refused_batch_changes_nothing(store: Store, last: Batch) -> None:
    """When one part of a batch is refused, no other part of it is there, made sessions included."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b"))
        before = await contents(store)
        with pytest.raises((CommitRefused, UnknownSession)):
            await store.commit(
                Batch(
                    created=(header("new"),),
                    appends=(Append("a", 0, records(1)), Append("new", 0, records(1)), *last.appends),
                )
            )
        assert await contents(store) == before
        await store.commit(appends("a", 0))
        assert store.statistics() == StoreStatistics(commits=2, refused=1, groups=2)


async def test_an_id_without_utf8_is_refused(store: Store) -> None:
    """A session whose id no file could hold is not created."""
    async with store.opened(Role.HOST):
        with pytest.raises(CommitRefused, match="surrogates not allowed"):
            await store.commit(creates("a\ud800"))
        assert await store.sessions() == ()


async def test_sessions_are_paged_in_code_point_order(store: Store) -> None:
    """Headers come in order of id by code points, a page at a time."""
    ids = ["", "B", "a", "b", "\u00e9", "\uffff", "\U0001f600"]
    async with store.opened(Role.HOST):
        await store.commit(creates(*reversed(ids)))
        assert [head.id for head in await store.sessions()] == ids[1:]
        assert [head.id for head in await store.sessions(after="a", limit=2)] == ["b", "\u00e9"]
        assert await store.sessions(after="\U0001f600") == ()
        with pytest.raises(InvalidArgument, match="limit is 0"):
            await store.sessions(limit=0)


async def test_attention_goes_to_runnable_sessions_first_and_then_by_time(store: Store) -> None:
    """Runnable sessions in order of creation, then due ones by time, then creation; idle ones are left out."""
    indexes = {
        "late": SessionIndex(300),
        "idle": IDLE_INDEX,
        "runs": SessionIndex(runnable=True),
        "early-b": SessionIndex(-5),
        "early-a": SessionIndex(-5),
        "first": SessionIndex(MIN_MILLIS),
        "runs-and-waits": SessionIndex(100, runnable=True),
    }
    async with store.opened(Role.HOST):
        await store.commit(creates(*indexes))
        for session_id, index in indexes.items():
            await store.commit(appends(session_id, 0, index=index))
        found = [item async for item in store.attention()]
    order = ["runs", "runs-and-waits", "first", "early-b", "early-a", "late"]
    assert found == [Attention(session_id, indexes[session_id]) for session_id in order]


async def test_attention_may_be_left_in_the_middle(store: Store) -> None:
    """Leaving the iteration early needs no closing and leaves the store usable."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b"))
        await store.commit(appends("a", 0, index=SessionIndex(1)))
        await store.commit(appends("b", 0, index=SessionIndex(2)))
        async for item in store.attention():
            assert item.session_id == "a"
            break
        await store.commit(appends("a", 1))
        assert [item.session_id async for item in store.attention()] == ["b"]


async def test_attention_covers_many_sessions(store: Store) -> None:
    """All sessions that need attention are found, each once, however many there are."""
    ids = [f"s{number:04}" for number in range(2600)]
    async with store.opened(Role.HOST):
        await store.commit(creates(*ids))
        runs, waits = SessionIndex(runnable=True), SessionIndex(5)
        await store.commit(Batch(tuple(Append(name, 0, (), runs if name < "s1300" else waits) for name in ids)))
        assert [item.session_id async for item in store.attention()] == ids


async def test_what_was_committed_outlives_closing(store: Store) -> None:
    """A store opened again has what was committed before, index included."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        await store.commit(appends("a", 0, records(2), SessionIndex(4)))
        before = await contents(store)
    async with store.opened(Role.MANAGER):
        assert await contents(store) == before
        await store.commit(appends("a", 2))
    async with store.opened(Role.HOST):
        assert (await store.read("a")).length == 3


async def test_a_closed_store_says_so(store: Store) -> None:
    """Every use of a store that is not open raises `StoreClosed`; closing again does nothing."""
    await store.aclose()
    for _round in range(2):
        for use in (
            lambda: store.commit(Batch()),
            lambda: store.read("a"),
            store.sessions,
            store.changed_elsewhere,
            store.check,
            lambda: anext(store.attention()),
        ):
            with pytest.raises(StoreClosed):
                await use()
        async with store.opened(Role.HOST):
            await store.commit(Batch())
        await store.aclose()
    assert store.statistics().commits == 1


@pytest.mark.parametrize("second", Role)
async def test_a_store_object_is_opened_once_at_a_time(store: Store, second: Role) -> None:
    """Opening an open store is refused with this process's id, and leaves it open."""
    async with store.opened(Role.HOST):
        with pytest.raises(StoreLocked, match=f"process id {os.getpid()}") as caught:
            await store.open(second)
        assert caught.value.pid == os.getpid()
        await store.commit(Batch())


async def test_nothing_happens_in_a_cancelled_scope(store: Store) -> None:
    """A commit that is cancelled before it begins is withdrawn and changes nothing."""
    async with store.opened(Role.HOST):
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.commit(creates("a"))
        assert scope.cancelled_caught
        assert await store.sessions() == ()
        assert store.statistics() == StoreStatistics()


async def test_closing_is_not_cut_short_by_cancellation(store: Store) -> None:
    """A store is closed even in a cancelled scope, and can be opened again."""
    await store.open(Role.HOST)
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.aclose()
    with pytest.raises(StoreClosed):
        await store.commit(Batch())
    async with store.opened(Role.HOST):
        await store.commit(Batch())


async def test_closing_ends_the_wait_for_foreign_changes(store: Store) -> None:
    """Who waits for changes by other processes gets `StoreClosed` when the store closes, never a hang."""
    ended = trio.Event()

    async def watch() -> None:
        with pytest.raises(StoreClosed):
            await store.changed_elsewhere()
        ended.set()

    async with trio.open_nursery() as nursery:
        await store.open(Role.HOST)
        nursery.start_soon(watch)
        await wait_all_tasks_blocked()
        await store.aclose()
        await ended.wait()


async def test_concurrent_commits_all_arrive(store: Store) -> None:
    """Commits of many tasks at once are each answered for themselves."""
    async with store.opened(Role.HOST):
        await store.commit(creates(*(f"s{number}" for number in range(20))))

        async def write(session_id: str) -> None:
            for number in range(5):
                await store.commit(appends(session_id, number))

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(write, f"s{number}")
        assert {len(part.records) for part in (await contents(store)).values()} == {5}
        statistics = store.statistics()
        assert attrs.evolve(statistics, groups=0) == StoreStatistics(commits=101)


async def test_only_one_of_two_appends_to_the_same_place_wins(store: Store) -> None:
    """Of two commits that expect the same length, one returns and the other is told the new length."""
    outcomes: list[int | str] = []
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))

        async def write(name: str) -> None:
            try:
                await store.commit(appends("a", 0, [record(type=name)]))
                outcomes.append(name)
            except SequenceConflict as conflict:
                outcomes.append(conflict.actual)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, "one")
            nursery.start_soon(write, "two")
        (winner,) = (await store.read("a")).records
        assert sorted(outcomes, key=str) == [1, winner.type]


def test_a_store_has_a_name_for_messages(store: Store) -> None:
    """A store is called by its path, or `memory`."""
    is_file = isinstance(store, sqlite_package.SqliteStore)
    assert store.name.endswith("test.store") if is_file else store.name == "memory"


async def test_every_commit_changes_the_revision(store: Store) -> None:
    """One that is refused, a read and the time that passes do not."""
    async with store.opened(Role.HOST):
        first = await store.revision()
        await store.commit(creates("a"))
        second = await store.revision()
        with pytest.raises(SessionExists):
            await store.commit(creates("a"))
        await store.sessions()
        assert first != second == await store.revision()
        await store.commit(appends("a", 0, records(1)))
        assert await store.revision() != second
