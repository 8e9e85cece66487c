"""What tells a client that tasks have changed: made, changed or deleted by whoever, or delivered.

The store is asked twice a second whether anything was committed, by this process or another one; only then are the
versions of the tasks compared. So there is one way to learn of a change, whoever made it and whatever this server is.
"""

import logging

import trio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from whenidle.mcp.post import Post, Stand
from whenidle.mcp.resources import URI, task_of
from whenidle_actors.errors import StoreError

logger: logging.Logger = logging.getLogger("whenidle.mcp")

LOOK_SECONDS = 0.5
"""Between two looks, in monotonic time: a client knows within a second."""
MOST_WATCHED = 10_000
"""Tasks whose versions are compared: the first of the list. Of more only the number is."""
MOST_SUBSCRIPTIONS = 1_000
"""Resources that a client can subscribe to one by one."""
MOST_STREAMS = 16
"""Streams of changes that a client can have open."""


class ChangeFeed:
    """Watches the tasks, and tells the client in the form of the protocol's version that it speaks."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._bus = InMemorySubscriptionBus()
        self.listen: ListenHandler = ListenHandler(self._bus, max_subscriptions=MOST_STREAMS)
        """Serves `subscriptions/listen`, from 2026-07-28 on."""
        self._session: ServerSession | None = None
        self._subscribed: set[str] = set()
        self._seen: dict[str, int] = {}
        self._total = 0
        self._looked: tuple[Stand, int] | None = None

    def greet(self, session: ServerSession) -> None:
        """Tell this client from now on, in the form of the versions before 2026-07-28."""
        self._session = session

    def subscribe(self, uri: str) -> None:
        """Tell it of each change of one task.

        Raises:
            MCPError: it is no task's resource, or there are too many.
        """
        task_of(uri)
        if len(self._subscribed) >= MOST_SUBSCRIPTIONS and uri not in self._subscribed:
            raise MCPError(INTERNAL_ERROR, f"a client can subscribe to {MOST_SUBSCRIPTIONS} resources at most")
        self._subscribed.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """End that."""
        self._subscribed.discard(uri)

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look and tell until cancelled; started when it is known what there was before any client asked."""
        await self._look()
        task_status.started()
        while True:
            await trio.sleep(LOOK_SECONDS)
            changed = await self._look()
            if changed:
                await self._tell(changed)

    async def _look(self) -> set[str]:
        """Return the ids of tasks that are not as they were at the last look; a fault is looked at again."""
        async with self._post.work() as stand:
            try:
                revision = await stand.store.revision()
                if self._looked == (stand, revision):
                    return set()
                page = await stand.store.tasks(limit=MOST_WATCHED)
            except StoreError as error:
                logger.warning("changes of tasks cannot be seen, trying again", exc_info=error)
                return set()
        self._looked = (stand, revision)
        now = {row.id: row.updated_millis for row in page.rows}
        changed = {task_id for task_id, _ in self._seen.items() ^ now.items()}
        if not changed and page.total != self._total:
            changed = {""}  # one beyond those that are compared
        self._seen, self._total = now, page.total
        return changed

    async def _tell(self, changed: set[str]) -> None:
        uris = [f"{URI}{task_id}" for task_id in sorted(changed) if task_id]
        await self._bus.publish(ResourcesListChanged())
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri))
        if self._session is not None:
            await self._session.send_resource_list_changed()
            for uri in self._subscribed.intersection(uris):
                await self._session.send_resource_updated(uri)
