"""The contract of an engine: a store whose commits are one step, and can be made to fail."""

from __future__ import annotations

import enum
from abc import abstractmethod
from typing import TYPE_CHECKING

from whenidle_actors.errors import CommitRefused, CommitUncertain, StoreBusy, StoreError, StoreFull
from whenidle_actors.stores.base import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.stores.base import Batch


class Mishap(enum.Enum):
    """How a commit fails."""

    FULL = enum.auto()
    """`StoreFull`: nothing changed."""
    BUSY = enum.auto()
    """`StoreBusy`: nothing changed."""
    REFUSED = enum.auto()
    """`CommitRefused`: nothing changed."""
    UNCERTAIN_LOST = enum.auto()
    """`CommitUncertain`, and nothing changed."""
    UNCERTAIN_KEPT = enum.auto()
    """`CommitUncertain`, and all of it is there."""


_TOLD: dict[Mishap, tuple[type[StoreError], str]] = {
    Mishap.FULL: (StoreFull, "there is no room"),
    Mishap.BUSY: (StoreBusy, "another process holds the lock"),
    Mishap.REFUSED: (CommitRefused, "the commit changed nothing"),
    Mishap.UNCERTAIN_LOST: (CommitUncertain, "the answer was lost"),
    Mishap.UNCERTAIN_KEPT: (CommitUncertain, "the answer was lost"),
}


def told(mishap: Mishap) -> StoreError:
    """Return what a caller is told of a mishap; in the same words by every engine, so that runs are the same."""
    kind, words = _TOLD[mishap]
    return kind(words)


class Engine(Store):
    """A store for one run, that outlives the processes in it.

    Nothing in it takes time or depends on threads, so that a run with it can be repeated.
    """

    @abstractmethod
    def apply(self, batches: Sequence[Batch], mishap: Mishap | None = None) -> Sequence[StoreError | None]:
        """Commit `batches` as one group, and return what each is told: None for success.

        Args:
            batches: one or more, each by itself whole or not at all.
            mishap: befalls all of them; a batch that would be refused anyway is told so.
        """

    @abstractmethod
    def tear(self, batch: Batch) -> None:
        """Begin to write a batch, and lose the process in the middle of it: nothing of it stays."""

    @abstractmethod
    def begin_life(self) -> None:
        """Be found, closed, as a process that died has left it."""
