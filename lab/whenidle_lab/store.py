"""A store that does what the lab says: commits that are slow, refused, uncertain, or outlive the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_actors.errors import StoreClosed
from whenidle_actors.stores.memory import MemoryStore
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Batch, SessionSlice
    from whenidle_lab.world import World


class SimulatedStore(MemoryStore):
    """A store for one run, whose contents outlive the processes in it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._commits = 0
        self.dead = False
        """Whether the process that has it open is dead: nothing becomes durable any more."""

    def die(self) -> None:
        """Let the process that has the store open die."""
        self.dead = True

    def begin_life(self) -> None:
        """Be found as the last process has left it."""
        self.dead = False
        self._is_open = False

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        self._require_alive()
        number, self._commits = self._commits, self._commits + 1
        self._world.happened(What.COMMIT_BEGAN, commit=number)
        await super().commit(batch)
        self._require_alive()
        self._world.happened(What.COMMIT_DURABLE, commit=number, **_described(batch))
        self._world.happened(What.COMMIT_ENDED, commit=number, fate="done", error=None)

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `Store.read`."""
        self._require_alive()
        return await super().read(session_id, start)

    def _require_alive(self) -> None:
        if self.dead:
            raise StoreClosed("the process is dead")


def _described(batch: Batch) -> dict[str, Any]:
    return {
        "created": [header.id for header in batch.created],
        "appends": [
            {
                "session": append.session_id,
                "expected": append.expected,
                "records": [
                    {"type": record.type, "at": record.at_millis, "data": record.data} for record in append.records
                ],
            }
            for append in batch.appends
        ],
        "tasks": [],
        "receipts": [],
    }
