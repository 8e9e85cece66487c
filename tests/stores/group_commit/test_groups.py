"""How commits of the SQLite store share transactions."""

from pathlib import Path

import pytest

from tests.stores.helpers import Gate, appends, contents, creates, header, record, records
from whenidle_actors.errors import CommitRefused, SequenceConflict, SessionExists, StoreError, UnknownSession
from whenidle_actors.stores.base import Batch, Role, SessionIndex, StoreStatistics
from whenidle_actors.stores.sqlite import SqliteStore, writer

from .crowds import gated, held_back


async def test_waiting_commits_share_one_transaction(store: SqliteStore, gate: Gate) -> None:
    """All commits that wait when the thread becomes free are one transaction, as the counters show."""
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            for number in range(50):
                await crowd.commit(f"c{number}", creates(f"s{number}"))
            assert store.statistics().waiting == 51
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics() == StoreStatistics(commits=51, groups=1)
        assert len(await store.sessions()) == 51


async def test_plain_appends_are_written_together(path: Path, gate: Gate) -> None:
    """Appends of a group take a few statements, and each session gets its own events and index."""
    statements: list[str] = []
    store = gated(path, gate, statements.append)
    async with store.opened(Role.HOST):
        names = [f"s{number}" for number in range(20)]
        await store.commit(creates(*names))
        await store.commit(appends("s1", 0, records(3), SessionIndex(7)))
        for index in (SessionIndex(7), SessionIndex(runnable=True), SessionIndex(7, runnable=True), SessionIndex()):
            before_them = await contents(store)
            async with held_back(store, gate, first=appends("s0", before_them["s0"].length, index=index)) as crowd:
                for number, name in enumerate(names[1:], 1):
                    length = before_them[name].length
                    await crowd.commit(name, appends(name, length, records(1 + number % 3, length), index))
                statements.clear()
            assert set(crowd.outcomes.values()) == {None}
            written = [statement for statement in statements if statement.startswith(("INSERT", "UPDATE"))]
            assert len(written) < len(names)
            for number, name in enumerate(names):
                part = before_them[name]
                after = await store.read(name)
                assert after.records == (*part.records, *records(1 + number % 3, part.length))
                assert after.index == index
        assert list(await store.check()) == []


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (appends("a", 1), SequenceConflict),
        (appends("unknown", 0), UnknownSession),
        (appends("a", 0, [record(data="\ud800")]), CommitRefused),
    ],
)
async def test_an_append_that_cannot_be_written_does_not_harm_plain_ones(
    store: SqliteStore, gate: Gate, wrong: Batch, reason: type[StoreError]
) -> None:
    """In a group of appends the one that is refused gets its reason, and the others become durable together."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a", "b", "c"))
        async with held_back(store, gate, first=appends("b", 0)) as crowd:
            await crowd.commit("wrong", wrong)
            await crowd.commit("last", appends("c", 0))
        assert type(crowd.outcomes.pop("wrong")) is reason
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics() == StoreStatistics(commits=3, refused=1, groups=2)
        assert [(await store.read(name)).length for name in "abc"] == [0, 1, 1]


async def test_a_refused_commit_does_not_harm_its_neighbours(store: SqliteStore, gate: Gate) -> None:
    """In one group, the commits around refused ones become durable, and each refusal has its own reason."""
    async with store.opened(Role.HOST):
        await store.commit(creates("a"))
        async with held_back(store, gate) as crowd:
            await crowd.commit("good", appends("a", 0))
            await crowd.commit("conflict", Batch(appends("a", 0).appends, (header("never"),)))
            await crowd.commit("exists", creates("new", "a"))
            await crowd.commit("unstorable", appends("a", 1, [record(1), record(data="\ud800")]))
            await crowd.commit("last", appends("a", 1))
        assert crowd.outcomes["good"] is crowd.outcomes["last"] is crowd.outcomes["first"] is None
        assert isinstance(crowd.outcomes["conflict"], SequenceConflict)
        assert isinstance(crowd.outcomes["exists"], SessionExists)
        assert type(crowd.outcomes["unstorable"]) is CommitRefused
        assert store.statistics() == StoreStatistics(commits=4, refused=3, groups=2)
        assert {name: part.length for name, part in (await contents(store)).items()} == {"a": 2, "first": 0}


async def test_a_group_of_refusals_writes_nothing(store: SqliteStore, gate: Gate) -> None:
    """A group in which every commit is refused is not a transaction that counts."""
    async with store.opened(Role.HOST):
        await store.commit(creates("first"))
        async with held_back(store, gate) as crowd:
            await crowd.commit("second", creates("first"))
        assert [type(error) for error in crowd.outcomes.values()] == [SessionExists, SessionExists]
        assert store.statistics() == StoreStatistics(commits=1, refused=2, groups=1)


async def test_appends_to_one_log_follow_one_another_within_a_group(store: SqliteStore, gate: Gate) -> None:
    """Several commits to the same session in one group see each other's events."""
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            for number in range(10):
                await crowd.commit(f"c{number}", appends("first", number))
        assert set(crowd.outcomes.values()) == {None}
        assert store.statistics().groups == 1
        assert (await store.read("first")).records == tuple(record(number) for number in range(10))


async def test_a_very_large_crowd_takes_several_transactions(
    store: SqliteStore, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group has a bound, so that the first of many waiters does not wait for all of them."""
    monkeypatch.setattr(writer, "_GROUP_LIMIT", 4)
    async with store.opened(Role.HOST):
        async with held_back(store, gate) as crowd:
            for number in range(9):
                await crowd.commit(f"c{number}", creates(f"s{number}"))
        assert store.statistics() == StoreStatistics(commits=10, groups=3)
