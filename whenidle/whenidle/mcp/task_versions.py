"""What is kept of the tasks, to see which have changed: never much, however many there are.

A long list is not read whole at each look. Of either half of it, what is active and what is not, the first tasks are
compared, in the order of `schedule_list`, and how many there are. A delivery, a new task, a pause, an end or a deletion
shows there: each moves what is first, or a number. An edit of an active task further back does not, so that a look says
when there may have been one. Tasks that somebody watches are compared one by one wherever they stand.
"""

from collections.abc import Collection, Iterable

import attrs

from whenidle_actors.errors import UnknownTask
from whenidle_actors.stores.base import Store

COMPARED = 2_000
"""Tasks of either half of the list whose versions are compared: some ten milliseconds of reading a look."""


@attrs.frozen
class Found:
    """What a look at the tasks has found that is not as it was at the one before."""

    list_changed: bool = False
    """Whether any task was seen to be made, changed or deleted."""
    may_have_changed: bool = False
    """Whether one may have been changed without being seen."""
    watched: frozenset[str] = frozenset()
    """Ids of tasks that are watched and have changed."""


class TaskVersions:
    """The versions of tasks as they were last seen."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._totals: tuple[int, ...] = ()
        self._watched: dict[str, int | None] = {}

    async def watch(self, store: Store, task_ids: Iterable[str]) -> None:
        """Compare these tasks from now on; there need not be such tasks.

        Raises:
            StoreError: as `Store.task`; some of them are watched.
        """
        for task_id in task_ids:
            if task_id not in self._watched:
                version = await _version(store, task_id)
                self._watched.setdefault(task_id, version)

    def forget(self, task_ids: Iterable[str]) -> None:
        """End that."""
        for task_id in task_ids:
            self._watched.pop(task_id, None)

    async def look(self, store: Store) -> Found:
        """Read the tasks and return what has changed; the first look finds what there is.

        Cancelled, or failing, it has seen nothing.

        Raises:
            StoreError: as `Store.tasks`.
        """
        halves = [await store.tasks(active=active, limit=COMPARED) for active in (True, False)]
        first = {row.id: row.updated_millis for half in halves for row in half.rows}
        totals = tuple(half.total for half in halves)
        is_whole = len(first) == sum(totals)
        watched = await _versions(store, tuple(self._watched), first, is_whole=is_whole)
        changed = frozenset(
            task_id
            for task_id, version in watched.items()
            if task_id in self._watched and self._watched[task_id] != version
        )
        list_changed = first != self._first or totals != self._totals or bool(changed)
        self._first, self._totals = first, totals
        self._watched.update({task_id: watched[task_id] for task_id in changed})
        return Found(list_changed, not list_changed and not is_whole, changed)


async def _versions(
    store: Store, task_ids: Collection[str], known: dict[str, int], *, is_whole: bool
) -> dict[str, int | None]:
    """Return the versions of tasks, None for one that there is not, read where `known` has it not."""
    versions: dict[str, int | None] = {}
    for task_id in task_ids:
        in_hand = is_whole or task_id in known
        versions[task_id] = known.get(task_id) if in_hand else await _version(store, task_id)
    return versions


async def _version(store: Store, task_id: str) -> int | None:
    try:
        return (await store.task(task_id)).updated_millis
    except UnknownTask:
        return None
