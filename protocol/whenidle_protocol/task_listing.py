"""A page of the list of tasks, with what cannot be read among them (SPEC 6.4)."""

from __future__ import annotations

import attrs

from whenidle_protocol.task_record import Task


@attrs.frozen
class DamagedTask:
    """A task whose stored text is not what was written. It can only be deleted."""

    id: str
    reason: str
    """What is wrong with it: one sentence for people, not for models."""


@attrs.frozen
class TaskListing:
    """A part of the list of tasks, in its order."""

    entries: tuple[Task | DamagedTask, ...]
    total: int
    """How many there are in the whole list, damaged ones included."""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Those that can be read."""
        return tuple(entry for entry in self.entries if isinstance(entry, Task))

    @property
    def damaged(self) -> tuple[DamagedTask, ...]:
        """Those that cannot."""
        return tuple(entry for entry in self.entries if isinstance(entry, DamagedTask))
