"""What a run can find, and what a run comes to."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from whenidle_lab.choices import Choice
    from whenidle_lab.trace import Trace


class FindingKind(enum.StrEnum):
    """How a run failed."""

    INVARIANT = "invariant"
    """Something does not hold; `name` is the invariant's."""
    ERROR = "error"
    """Code of the runtime or of the scenario raised; `name` is the exception's."""
    STUCK = "stuck"
    """Something did not end within its bound of virtual time; `name` says what: `play`, `settle` or `close`."""
    LIVELOCK = "livelock"
    """It ran on and on while no time passed; `name` is `rounds`."""
    DIVERGED = "diverged"
    """A replay met a choice that the recording did not make; `name` is `choices`."""
    UNSTABLE = "unstable"
    """Run again with the same choices, it was another run; `name` is `trace`."""


@attrs.frozen
class Finding:
    """Why a run failed."""

    kind: FindingKind
    name: str
    text: str
    """One line or more, for a person."""

    def is_like(self, other: Finding) -> bool:
        """Return whether both fail the same way: what a shrunk run must keep."""
        return (self.kind, self.name) == (other.kind, other.name)


@attrs.frozen
class Run:
    """What became of one run."""

    scenario: str
    choices: tuple[Choice, ...]
    """All that were made."""
    finding: Finding | None
    rounds: int
    """Rounds of the event loop."""
    seconds: float
    """Monotonic virtual time, over all lives."""
    lives: int
    faults: frozenset[str]
    """The kinds of fault that happened: names of fates, clock faults, `crash` and so on."""
    trace: Trace
    digest: str
    """See `Trace.digest`; empty if it was not asked for."""
