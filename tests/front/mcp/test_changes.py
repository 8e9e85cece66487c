"""Clients are told when tasks change, whoever changes them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from whenidle import AfterRule, Caller, CreateTask, DeleteTask, TargetKind, UpdateTask, open_manager
from whenidle.mcp import changes, task_versions
from whenidle.mcp.changes import MOST_SUBSCRIPTIONS, ChangeFeed
from whenidle.mcp.post import Post, Stand
from whenidle.mcp.resources import URI
from whenidle.mcp.task_versions import Found

from .worlds import Told, place, posted, served, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.client.client import Client

    from whenidle import Task


async def made(desk: Any, seconds: int = 600, target: TargetKind = TargetKind.NEW) -> Task:
    """Make a task."""
    task: Task = await desk.create(CreateTask("Tea", "Make tea.", AfterRule(seconds), target), Caller(""))
    return task


class Heard:
    """What a client is told, whichever way its protocol has."""

    def __init__(self) -> None:
        self.news: list[Any] = []

    async def take(self, message: Any) -> None:
        """Take a notification of a handshake version."""
        await trio.lowlevel.checkpoint()
        uri = getattr(message.params, "uri", None)
        self.news.append(ResourcesListChanged() if uri is None else ResourceUpdated(str(uri)))

    async def follow(self, client: Client, uris: list[str], *, task_status: trio.TaskStatus[None]) -> None:
        """Listen to changes."""
        async with client.listen(resources_list_changed=True, resource_subscriptions=uris) as events:
            task_status.started()
            async for event in events:
                self.news.append(event)


@asynccontextmanager
async def listening(post: Post, mode: str, uris: list[str]) -> AsyncIterator[tuple[Client, Heard]]:
    """Connect a client that wants to be told of all changes of the list, and of some tasks."""
    heard = Heard()
    if mode == "legacy":
        async with served(post, "legacy", message_handler=heard.take) as client:
            for uri in uris:
                await client.subscribe_resource(uri)
            yield client, heard
        return
    async with served(post) as client, trio.open_nursery() as nursery:
        await nursery.start(heard.follow, client, uris)
        yield client, heard
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.filterwarnings("ignore:resources.*subscribe is removed")
async def test_a_client_is_told_what_others_change(store: Path, mode: str) -> None:
    """By another process, by another client, by a delivery: the list, and each task it asked for."""
    told = Told()
    async with posted(store, told) as post:
        task = await made(post.stand.desk)
        uri = f"{URI}{task.id}"
        async with listening(post, mode, [uri]) as (_, heard), open_manager(store) as manager:
            await manager.tasks.edit(UpdateTask(task.id, title="Coffee"), Caller(""))
            await until(lambda: set(heard.news) == {ResourcesListChanged(), ResourceUpdated(uri)})
            heard.news.clear()
            other = await made(manager.tasks)
            await until(lambda: heard.news == [ResourcesListChanged()])
            heard.news.clear()
            await manager.tasks.edit(DeleteTask(other.id), Caller(""))
            await until(lambda: heard.news == [ResourcesListChanged()])
            heard.news.clear()
            await manager.run_task(task.id)
            await until(lambda: ResourceUpdated(uri) in heard.news)


@pytest.mark.filterwarnings("ignore:resources.*subscribe is removed")
async def test_a_subscription_can_be_ended(store: Path) -> None:
    """Then only the list is told of."""
    async with posted(store) as post:
        task = await made(post.stand.desk)
        uri = f"{URI}{task.id}"
        async with listening(post, "legacy", [uri]) as (client, heard):
            await client.unsubscribe_resource(uri)
            await post.stand.desk.edit(UpdateTask(task.id, title="Coffee"), Caller(""))
            await until(lambda: heard.news)
            assert heard.news == [ResourcesListChanged()]


@asynccontextmanager
async def feed_at(store: Path) -> AsyncIterator[tuple[ChangeFeed, Any]]:
    """Return a feed, and the desk whose changes it sees."""
    async with open_manager(store) as manager:
        post = Post(place(store), Told().tell, lambda _: None)
        post._stand = Stand(manager.tasks, manager.store, 0)
        yield ChangeFeed(post), manager


async def test_what_is_no_change_of_tasks_is_not_told(store: Path) -> None:
    """A message, a turn, or an edit that changes nothing; the tasks are compared, not the commits."""
    async with feed_at(store) as (feed, manager):
        await made(manager.tasks)
        assert await feed._look() == Found(list_changed=True)
        await manager.send("ada", "hello")
        assert await feed._look() == Found()
        task = await made(manager.tasks)
        await feed._look()
        await manager.tasks.edit(UpdateTask(task.id, title="Tea"), Caller(""))
        assert await feed._look() == Found()


async def test_a_store_that_cannot_be_read_is_looked_at_again(
    store: Path, mock_clock: trio.testing.MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    """The feed goes on, and tells then."""
    told = trio.Event()

    async def tell(watched: frozenset[str]) -> None:
        assert not watched
        told.set()
        await trio.lowlevel.checkpoint()

    async with feed_at(store) as (feed, manager):
        feed._tell = tell  # type: ignore[method-assign]
        await nursery.start(feed.watch)
        await manager.store.aclose()
        mock_clock.jump(changes.LOOK_SECONDS)
        await until(lambda: caplog.records)
        assert not told.is_set()
        assert {record.__dict__["event"] for record in caplog.records} == {"changes-not-seen"}
        async with open_manager(store) as again:
            feed._post._stand = Stand(again.tasks, again.store, 0)
            await made(again.tasks)
            await until(told.is_set, mock_clock)
            nursery.cancel_scope.cancel()


class Stretched:
    """What a feed tells, and when, in seconds of its clock; time passes look by look."""

    def __init__(self, feed: ChangeFeed, clock: trio.testing.MockClock) -> None:
        self.told: list[tuple[float, frozenset[str]]] = []
        self._feed = feed
        self._clock = clock
        self._began = trio.current_time()
        self._looks = 0
        self._look, feed._look = feed._look, self._counted  # type: ignore[method-assign]
        feed._tell = self._tell  # type: ignore[method-assign]

    async def _counted(self) -> Found:
        found = await self._look()
        self._looks += 1
        return found

    async def _tell(self, watched: frozenset[str]) -> None:
        self.told.append((trio.current_time() - self._began, watched))
        await trio.lowlevel.checkpoint()

    def _has_looked(self, times: int) -> bool:
        return self._looks >= times

    async def looks(self, number: int = 1) -> None:
        """Let so many looks pass, and what they tell be told."""
        for _ in range(number):
            aim = self._looks + 1
            await trio.testing.wait_all_tasks_blocked()
            self._clock.jump(changes.LOOK_SECONDS)
            await until(partial(self._has_looked, aim))
        await trio.testing.wait_all_tasks_blocked()


async def test_an_edit_out_of_sight_is_told_and_other_work_seldom_taken_for_one(
    store: Path, mock_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    """At once after a time of quiet; then what may be a change waits for half a minute, and what is seen does not."""
    monkeypatch.setattr(task_versions, "COMPARED", 1)
    async with feed_at(store) as (feed, manager):
        await made(manager.tasks, 600)
        far = await made(manager.tasks, 900)
        await nursery.start(feed.watch)
        stretched = Stretched(feed, mock_clock)
        await stretched.looks(2)
        assert stretched.told == []
        await manager.tasks.edit(UpdateTask(far.id, title="Coffee"), Caller(""))
        await stretched.looks()
        assert stretched.told == [(1.5, frozenset())]
        for number in range(10):
            await manager.send("ada", f"hello {number}")
            await stretched.looks()
        assert stretched.told == [(1.5, frozenset())]
        await stretched.looks(round(changes.UNSEEN_SECONDS / changes.LOOK_SECONDS) - 10)
        assert stretched.told == [(1.5, frozenset()), (31.5, frozenset())]
        await made(manager.tasks, 900)
        await stretched.looks()
        assert stretched.told[2:] == [(32.0, frozenset())]
        await stretched.looks(100)
        assert len(stretched.told) == 3
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.filterwarnings("ignore:resources.*subscribe is removed")
async def test_a_task_that_is_subscribed_to_is_told_of_wherever_it_stands(
    store: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change of it, also its end, and none of the task beside it."""
    monkeypatch.setattr(task_versions, "COMPARED", 1)
    async with posted(store) as post:
        desk = post.stand.desk
        await made(desk, 600)
        beside, far = await made(desk, 900), await made(desk, 1200)
        uri = f"{URI}{far.id}"
        async with listening(post, mode, [uri, f"{URI}task-none"]) as (_, heard):
            await desk.edit(UpdateTask(beside.id, title="Coffee"), Caller(""))
            await until(lambda: heard.news == [ResourcesListChanged()])
            await desk.edit(UpdateTask(far.id, title="Coffee"), Caller(""))
            await until(lambda: heard.news[1:] == [ResourcesListChanged(), ResourceUpdated(uri)])
            await desk.edit(DeleteTask(far.id), Caller(""))
            await until(lambda: heard.news[3:] == [ResourcesListChanged(), ResourceUpdated(uri)])


async def test_a_subscription_that_cannot_begin_is_refused(store: Path) -> None:
    """The store did not say what there is; nothing is kept of it, so that it can be asked for again."""
    uri = f"{URI}task-{'0' * 32}"
    async with feed_at(store) as (feed, manager):
        await manager.store.aclose()
        with pytest.raises(MCPError, match="cannot be read now"):
            await feed.subscribe(uri)
        async with open_manager(store) as again:
            feed._post._stand = Stand(again.tasks, again.store, 0)
            await feed.subscribe(uri)
            assert list(feed._readers) == [uri.removeprefix(URI)]
            feed.unsubscribe(uri)
            feed.unsubscribe(uri)
            assert not feed._readers


async def test_streams_share_the_bound_of_subscriptions(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no task's resource counts for nothing, and a stream that ends makes room."""
    monkeypatch.setattr(changes, "MOST_SUBSCRIPTIONS", 2)
    first, second, third = (f"{URI}task-{number}" for number in range(3))
    async with posted(store) as post, served(post) as client:
        async with client.listen(resource_subscriptions=[first, second, "file:///etc/passwd"]):
            async with client.listen(resource_subscriptions=[second]):
                pass
            with pytest.raises(MCPError, match="at most"):
                async with client.listen(resource_subscriptions=[third]):
                    raise AssertionError
        while not await listens(client, third):  # noqa: ASYNC110 - the server hears of the end in its own time
            await trio.sleep(0.01)


async def listens(client: Client, uri: str) -> bool:
    """Return whether a stream can be opened now."""
    try:
        async with client.listen(resource_subscriptions=[uri]):
            return True
    except MCPError:
        return False


async def test_subscriptions_are_bounded(store: Path) -> None:
    """One that is there already can be asked for again; one that is none is refused."""
    async with feed_at(store) as (feed, _):
        for number in range(MOST_SUBSCRIPTIONS):
            await feed.subscribe(f"{URI}task-{number}")
        await feed.subscribe(f"{URI}task-0")
        with pytest.raises(MCPError, match="at most"):
            await feed.subscribe(f"{URI}task-x")
        with pytest.raises(MCPError, match="with the id of a task"):
            await feed.subscribe("file:///etc/passwd")
        feed.unsubscribe(f"{URI}task-0")
        await feed.subscribe(f"{URI}task-x")
