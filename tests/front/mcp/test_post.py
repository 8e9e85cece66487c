"""The server's place at its store: the host, or a manager until the host has gone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from whenidle import AfterRule, Caller, CreateTask, TargetKind, Tasks, open_host
from whenidle.mcp import post as posts
from whenidle.mcp.post import LOOK_SECONDS
from whenidle_actors.errors import NotAStore, StoreError, StoreFull
from whenidle_actors.host import Host

from .worlds import Told, idle, posted, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from whenidle import HostEvent, Turn


def tea(seconds: int = 1) -> CreateTask:
    """Return a request for a task that is due soon."""
    return CreateTask("Tea", "Make tea.", AfterRule(seconds), TargetKind.THIS_SESSION)


async def test_alone_it_is_the_host(store: Path) -> None:
    """It delivers, with its own turn function, to the session that stands for the client."""
    told = Told()
    turns: list[str] = []

    async def turn(turn: Turn) -> None:
        turns.append(turn.agent.id)

    async with posted(store, told, turn=turn) as post:
        assert post.stand.host_pid is None
        await post.stand.desk.create(tea(), Caller("mcp"))
        await until(lambda: turns)
    assert turns == ["mcp"]
    assert told.news == [("delivering", {"store": str(store), "took_over": False})]
    assert "task-delivered" in [event.kind for event in told.events]


async def test_beside_a_host_it_only_manages(store: Path, mock_clock: trio.testing.MockClock) -> None:
    """The host delivers what it makes, however often it looks whether that is still there."""
    told = Told()
    async with open_host(store=store, turn=idle, suites=[Tasks(presets=())]) as host:
        events: list[HostEvent] = []
        host.subscribe(events.append)
        async with posted(store, told) as post, trio.open_nursery() as nursery:
            assert post.stand.host_pid is not None
            managing = post.stand
            mock_clock.jump(LOOK_SECONDS)
            await trio.testing.wait_all_tasks_blocked()
            assert post.stand is managing
            await managing.desk.create(tea(), Caller("mcp"))
            await until(lambda: "agent-started" in [event.kind for event in events])
            nursery.cancel_scope.cancel()
        assert told.kinds == ["managing"]


async def test_it_takes_over_when_the_host_ends(store: Path, mock_clock: trio.testing.MockClock) -> None:
    """Work that was begun at the old desk is finished there before it is closed."""
    told = Told()
    async with posted(store) as first, posted(store, told) as second:
        async with second.work() as stand:
            first.stop()
            await until(lambda: told.kinds == ["managing", "delivering"], mock_clock)
            assert second.stand is not stand
            assert second.stand.host_pid is None
            await stand.store.sessions()
        await second.stand.desk.create(tea(), Caller("mcp"))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(StoreError):
            await stand.store.sessions()
    assert told.news[1] == ("delivering", {"store": str(store), "took_over": True})


@pytest.mark.parametrize("at", ["opening", "session"])
async def test_a_manager_that_cannot_take_over_goes_on_managing(
    store: Path,
    mock_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    at: str,
) -> None:
    """Its client is served all the same, the reason is logged once, and it takes over when that has gone."""
    told, failures = Told(), iter(range(3))

    async def create_agent(_: Host, session_id: str) -> None:
        raise StoreFull(f"no room for {session_id}")

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Host]:
        failing = next(failures, None) is not None
        if failing and at == "opening":
            raise StoreFull("no room")
        async with open_host(**options) as host:
            with monkeypatch.context() as patch:
                if failing:
                    patch.setattr(Host, "create_agent", create_agent)
                yield host

    async with posted(store) as first, posted(store, told) as second:
        monkeypatch.setattr(posts, "open_host", opened)
        first.stop()
        await until(lambda: caplog.messages, mock_clock)
        await second.stand.desk.create(tea(), Caller("mcp"))
        await until(lambda: told.kinds == ["managing", "delivering"], mock_clock)
    assert caplog.messages == ["the place of the host cannot be taken, trying again"]
    assert [(record.__dict__["event"], record.__dict__["error"]) for record in caplog.records] == [
        ("place-not-taken", "StoreFull")
    ]


async def test_a_host_whose_store_fails_does_not_go_on(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its desk is closed, so that there would be nowhere to work at."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Host]:
        async with open_host(**options) as host:
            yield host
        raise StoreFull("no room")

    monkeypatch.setattr(posts, "open_host", opened)
    with pytest.RaisesGroup(StoreFull, flatten_subgroups=True):
        async with posted(store):
            pass


async def test_a_stop_ends_it_in_either_place(store: Path) -> None:
    """A manager leaves without having been the host."""
    told = Told()
    async with posted(store), posted(store, told):
        pass
    assert told.kinds == ["managing"]


async def test_turns_that_run_may_be_interrupted(store: Path) -> None:
    """A server that has no time left does not wait for its turns; a manager has none."""
    begun = trio.Event()

    async def turn(_: Turn) -> None:
        begun.set()
        await trio.sleep_forever()

    async with posted(store, turn=turn, shutdown_timeout=1e6) as post, posted(store) as manager:
        manager.interrupt()
        await post.stand.desk.create(tea(), Caller("mcp"))
        await begun.wait()
        post.stop()
        post.interrupt()


async def test_a_store_that_cannot_be_used_is_an_error_at_once(store: Path) -> None:
    """Nothing is served from a file that is somebody else's."""
    await trio.Path(store).write_bytes(b"x" * 1000)
    with pytest.RaisesGroup(NotAStore, flatten_subgroups=True):
        async with posted(store):
            raise AssertionError


def test_a_manager_looks_within_a_second() -> None:
    """As a host notices other processes within one."""
    assert posts.LOOK_SECONDS <= 1
