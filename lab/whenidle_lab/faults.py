"""What goes wrong in a run, and when: drawn at the start of each life, so that it can be left out again."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from whenidle_actors.host import Host
    from whenidle_lab.choices import Chooser
    from whenidle_lab.world import World


class Fate(enum.StrEnum):
    """What a commit meets."""

    DONE = "done"
    """It is durable, and its caller is told so."""


@attrs.frozen
class Faults:
    """Which faults a run may inject."""

    crashes: int = 0
    """The most process crashes in a run."""


class Mischief:
    """Injects the faults of one run."""

    def __init__(self, faults: Faults, chooser: Chooser) -> None:
        self._faults = faults
        self._chooser = chooser

    def begin_life(self, world: World) -> None:
        """Draw what goes wrong in a process that begins."""

    def downtime(self) -> float:
        """Draw the seconds between the death of a process and the next one."""
        return 0.0

    def happened(self) -> frozenset[str]:
        """Return the kinds of fault that have happened so far."""
        return frozenset()

    def begin_round(self, world: World, *, jumped: bool) -> None:
        """Do what is planned for this round of the event loop, before its tasks run.

        Args:
            world: the run.
            jumped: whether time has just moved to a deadline.
        """

    async def haunt(self, world: World, host: Host) -> None:
        """Do to agents what is planned, beside the scenario, until cancelled."""

    def commit_fate(self) -> Fate:
        """Draw what the commit that begins now meets."""
        return Fate.DONE

    def stop(self) -> None:
        """Let nothing go wrong from here on."""


NO_FAULTS = Faults()
