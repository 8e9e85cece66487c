"""What tells a client that tasks have changed: made, changed or deleted by whoever, or delivered.

The store is asked twice a second whether anything was committed, by this process or another one; only then are the
versions of the tasks compared. So there is one way to learn of a change, whoever made it and whatever this server is.
"""

import logging
import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import trio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, SubscriptionsListenRequestParams, SubscriptionsListenResult

from whenidle.mcp.post import Post, Stand
from whenidle.mcp.resources import URI, task_of, unreadable
from whenidle.mcp.task_versions import Found, TaskVersions
from whenidle_actors.errors import StoreError
from whenidle_actors.logs import report

logger: logging.Logger = logging.getLogger("whenidle.mcp")

LOOK_SECONDS = 0.5
"""Between two looks, in monotonic time: a client knows within a second."""
UNSEEN_SECONDS = 30.0
"""How long a client may have to wait for a change that only may have been: it has to read the list because of it."""
MOST_SUBSCRIPTIONS = 1_000
"""Resources that a client can subscribe to one by one."""
MOST_STREAMS = 16
"""Streams of changes that a client can have open."""


class ChangeFeed:
    """Watches the tasks, and tells the client in the form of the protocol's version that it speaks."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus, max_subscriptions=MOST_STREAMS)
        self._session: ServerSession | None = None
        self._subscribed: set[str] = set()
        """Tasks that the session is told of."""
        self._readers: Counter[str] = Counter()
        """Tasks that the session or streams are told of, and how many of them."""
        self._versions = TaskVersions()
        self._looked: tuple[Stand, int] | None = None
        self._in_doubt = False
        self._told_at = -math.inf

    def greet(self, session: ServerSession) -> None:
        """Tell this client from now on, in the form of the versions before 2026-07-28."""
        self._session = session

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve `subscriptions/listen`, from 2026-07-28 on, until the client ends it.

        Raises:
            MCPError: there are too many streams or resources, or the store cannot be read.
        """
        task_ids = _tasks_of(params.notifications.resource_subscriptions or ())
        await self._begin(task_ids)
        try:
            return await self._streams(ctx, params)
        finally:
            self._end(task_ids)

    async def subscribe(self, uri: str) -> None:
        """Tell the session of each change of one task.

        Raises:
            MCPError: it is no task's resource, there are too many, or the store cannot be read.
        """
        task_id = task_of(uri)
        if task_id not in self._subscribed:
            self._subscribed.add(task_id)
            try:
                await self._begin({task_id})
            except BaseException:
                self._subscribed.discard(task_id)
                raise

    def unsubscribe(self, uri: str) -> None:
        """End that."""
        task_id = uri.removeprefix(URI)
        if task_id in self._subscribed:
            self._subscribed.discard(task_id)
            self._end({task_id})

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look and tell until cancelled; started when it is known what there was before any client asked."""
        await self._look()
        task_status.started()
        while True:
            await trio.sleep(LOOK_SECONDS)
            found = await self._look()
            self._in_doubt |= found.may_have_changed
            waited = trio.current_time() - self._told_at
            if found.list_changed or (self._in_doubt and waited >= UNSEEN_SECONDS):
                self._in_doubt, self._told_at = False, trio.current_time()
                await self._tell(found.watched)

    async def _begin(self, task_ids: set[str]) -> None:
        """Have somebody be told of each change of these tasks that comes after this."""
        if len(self._readers.keys() | task_ids) > MOST_SUBSCRIPTIONS:
            raise MCPError(INTERNAL_ERROR, f"a client can subscribe to {MOST_SUBSCRIPTIONS} resources at most")
        self._readers.update(task_ids)
        try:
            async with self._post.work() as stand:
                await self._versions.watch(stand.store, task_ids)
        except BaseException as error:
            self._end(task_ids)
            if isinstance(error, StoreError):
                raise unreadable(error) from error
            raise

    def _end(self, task_ids: set[str]) -> None:
        self._readers.subtract(task_ids)
        unread = {task_id for task_id in task_ids if self._readers[task_id] <= 0}
        for task_id in unread:
            del self._readers[task_id]
        self._versions.forget(unread)

    async def _look(self) -> Found:
        """Return what is not as it was at the last look; a fault is looked at again."""
        async with self._post.work() as stand:
            try:
                revision = await stand.store.revision()
                if self._looked == (stand, revision):
                    return Found()
                found = await self._versions.look(stand.store)
            except StoreError as error:
                report(
                    logger,
                    logging.WARNING,
                    "changes-not-seen",
                    "changes of tasks cannot be seen, trying again",
                    error=error,
                )
                return Found()
        self._looked = (stand, revision)
        return found

    async def _tell(self, watched: frozenset[str]) -> None:
        """Tell that the list has changed, and that these tasks have."""
        await self._bus.publish(ResourcesListChanged())
        for task_id in sorted(watched):
            await self._bus.publish(ResourceUpdated(f"{URI}{task_id}"))
        if self._session is not None:
            await self._session.send_resource_list_changed()
            for task_id in sorted(watched & self._subscribed):
                await self._session.send_resource_updated(f"{URI}{task_id}")


def _tasks_of(uris: Iterable[str]) -> set[str]:
    """Return the ids of the tasks among some resources; of any other there is nothing to tell."""
    task_ids: set[str] = set()
    for uri in uris:
        with suppress(MCPError):
            task_ids.add(task_of(uri))
    return task_ids
