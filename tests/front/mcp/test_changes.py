"""Clients are told when tasks change, whoever changes them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from whenidle import AfterRule, Caller, CreateTask, DeleteTask, TargetKind, UpdateTask, open_manager
from whenidle.mcp import changes
from whenidle.mcp.changes import MOST_SUBSCRIPTIONS, ChangeFeed
from whenidle.mcp.post import Post, Stand
from whenidle.mcp.resources import URI

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
        task = await made(manager.tasks)
        assert await feed._look() == {task.id}
        await manager.send("ada", "hello")
        assert await feed._look() == set()
        await manager.tasks.edit(UpdateTask(task.id, title="Tea"), Caller(""))
        assert await feed._look() == set()


async def test_of_more_tasks_than_are_compared_the_number_counts(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more, or one less, is told of as a change of the list."""
    monkeypatch.setattr(changes, "MOST_WATCHED", 1)
    async with feed_at(store) as (feed, manager):
        first = await made(manager.tasks, 600)
        await feed._look()
        await made(manager.tasks, 900)
        assert await feed._look() == {""}
        await feed._tell({""})
        await manager.tasks.edit(DeleteTask(first.id), Caller(""))
        assert first.id in await feed._look()


async def test_a_store_that_cannot_be_read_is_looked_at_again(
    store: Path, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """The feed goes on, and tells then."""
    async with feed_at(store) as (feed, manager):
        await nursery.start(feed.watch)
        await manager.store.aclose()
        mock_clock.jump(changes.LOOK_SECONDS)
        await trio.testing.wait_all_tasks_blocked()
        async with open_manager(store) as again:
            feed._post._stand = Stand(again.tasks, again.store, 0)
            task = await made(again.tasks)
            await until(lambda: feed._seen == {task.id: to_millis(task)}, mock_clock)
            nursery.cancel_scope.cancel()


def to_millis(task: Task) -> int:
    """Return the version of a task."""
    return round(task.updated_at.timestamp() * 1000)


async def test_subscriptions_are_bounded(store: Path) -> None:
    """One that is there already can be asked for again; one that is none is refused."""
    async with feed_at(store) as (feed, _):
        for number in range(MOST_SUBSCRIPTIONS):
            feed.subscribe(f"{URI}task-{number}")
        feed.subscribe(f"{URI}task-0")
        with pytest.raises(MCPError, match="at most"):
            feed.subscribe(f"{URI}task-x")
        with pytest.raises(MCPError, match="with the id of a task"):
            feed.subscribe("file:///etc/passwd")
        feed.unsubscribe(f"{URI}task-0")
        feed.subscribe(f"{URI}task-x")
