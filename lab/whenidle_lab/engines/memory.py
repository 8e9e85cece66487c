"""An engine without a codec: the fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.errors import StoreError
from whenidle_actors.stores.memory import MemoryStore
from whenidle_lab.engines.base import Engine, Mishap, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.stores.base import Batch


_BEFORE_THE_WRITE = (Mishap.FULL, Mishap.BUSY, Mishap.REFUSED)


class MemoryEngine(MemoryStore, Engine):
    """A `MemoryStore` as an engine."""

    def apply(self, batches: Sequence[Batch], mishap: Mishap | None = None) -> Sequence[StoreError | None]:
        """See `Engine.apply`."""
        self._require_open()
        return [self._meet(batch, mishap) for batch in batches]

    def tear(self, batch: Batch) -> None:
        """See `Engine.tear`. What is in memory is written at once or not at all."""

    def begin_life(self) -> None:
        """See `Engine.begin_life`."""
        self._is_open = False

    def _meet(self, batch: Batch, mishap: Mishap | None) -> StoreError | None:
        if mishap in _BEFORE_THE_WRITE:
            return told(mishap)
        try:
            if mishap is Mishap.UNCERTAIN_LOST:
                self._prepare(batch)
            else:
                self.apply_now(batch)
        except StoreError as error:
            return error
        return None if mishap is None else told(mishap)
