"""Folding a long log beside everything else a host does (SPEC 2.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs
import pytest
import trio

from whenidle_actors.errors import StoreDamaged
from whenidle_actors.session import Journal, Session
from whenidle_actors.stores.base import Append, Batch, Role, SessionHeader
from whenidle_clock import EPOCH
from whenidle_protocol.events import EventRecord

from .worlds import looks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.actors.faulty_store import FaultyStore

    from .worlds import Script

T = TypeVar("T")

PIECE = 500
HEADER = SessionHeader("a", EPOCH)


def note(number: int) -> tuple[EventRecord, EventRecord]:
    """Return a message that comes and goes, two events."""
    name = f'"m{2 * number}"'
    insert = f'{{"id":{name},"lane":"next-turn","wake":true,"text":"x","source":"user"}}'
    return EventRecord("inbox/insert", 0, insert), EventRecord("inbox/remove", 0, f'{{"ids":[{name}]}}')


def events(start: int, stop: int) -> tuple[EventRecord, ...]:
    """Return the events numbered from `start` up to `stop`, both even."""
    return tuple(record for number in range(start // 2, stop // 2) for record in note(number))


async def rounds(work: Callable[[], Awaitable[T]]) -> tuple[int, T]:
    """Return how often others came to run while `work` did, and its answer."""
    count = 0

    async def beat() -> None:
        nonlocal count
        while True:
            await trio.lowlevel.checkpoint()
            count += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        answer = await work()
        nursery.cancel_scope.cancel()
    return count, answer


async def test_others_run_while_a_long_log_is_folded(store: FaultyStore, script: Script) -> None:
    """When it is loaded, when it is read back, and when much was appended to it: a piece at a time."""
    length, more = 10 * PIECE, 20 * PIECE
    async with store.opened(Role.HOST):
        await store.commit(Batch((Append("a", 0, events(0, length)),), (HEADER,)))
        journal = Journal(store, script)
        count, session = await rounds(lambda: Session.load(journal, "a"))
        assert count >= 9
        session.drop()
        count, _ = await rounds(session.confirm)
        assert count >= 9
        await store.commit(Batch((Append("a", length, events(length, more)),)))
        count, state = await rounds(session.catch_up)
        assert (count >= 9, state.length) == (True, more)
        assert looks(state) == looks(await (await Session.load(journal, "a")).confirm())


async def test_a_short_log_is_folded_in_one_piece(store: FaultyStore, script: Script) -> None:
    """Nobody else runs in between but while the store reads."""
    async with store.opened(Role.HOST):
        await store.commit(Batch((Append("a", 0, events(0, PIECE - 2)),), (HEADER,)))
        count, _ = await rounds(lambda: Session.load(Journal(store, script), "a"))
        assert count <= 3


async def test_what_was_appended_and_cannot_be_folded_leaves_a_doubt(store: FaultyStore, script: Script) -> None:
    """A fold that is half way is not kept: the next use reads the log back, and is refused as well."""
    async with store.opened(Role.HOST):
        await store.commit(Batch((Append("a", 0, events(0, 4)),), (HEADER,)))
        session = await Session.load(Journal(store, script), "a")
        bad = EventRecord("future/event", 0, "{}")
        await store.commit(Batch((Append("a", 4, (*events(4, 6), bad)),)))
        with pytest.raises(StoreDamaged, match=r"session 'a': .*future/event"):
            await session.catch_up()
        assert session.confirmed_state is None
        with pytest.raises(StoreDamaged):
            await session.confirm()


async def test_a_fork_without_all_of_what_it_inherits_is_damaged(store: FaultyStore, script: Script) -> None:
    """Its header says how many events it inherited, and the log has fewer."""
    async with store.opened(Role.HOST):
        header = attrs.evolve(HEADER, seed_length=6, forked_from="b")
        await store.commit(Batch((Append("a", 0, events(0, 4)),), (header,)))
        with pytest.raises(StoreDamaged, match="session 'a'"):
            await Session.load(Journal(store, script), "a")
