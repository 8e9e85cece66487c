"""A store whose process can die."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.errors import StoreClosed
from whenidle_actors.stores.memory import MemoryStore

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Batch, Role


class MortalStore(MemoryStore):
    """A `MemoryStore` that takes nothing more once its process is dead, until the next one opens it."""

    dead: bool = False
    """Whether the process that has it open is dead."""

    async def open(self, role: Role) -> None:
        """See `Store.open`."""
        await super().open(role)
        self.dead = False

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`."""
        if self.dead:
            raise StoreClosed("the process is dead")
        await super().commit(batch)
