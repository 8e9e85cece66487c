"""What a run can find, and what a run comes to."""

from __future__ import annotations

import enum
import traceback
from typing import TYPE_CHECKING, Self, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whenidle_lab.choices import Choice
    from whenidle_lab.trace import Trace


class FindingKind(enum.StrEnum):
    """How a run failed."""

    INVARIANT = "invariant"
    """Something does not hold; `name` is the invariant's."""
    ERROR = "error"
    """Code of the runtime or of the scenario raised; `name` is the exception's, of several in a group the first's."""
    STUCK = "stuck"
    """Something did not end within its bound of virtual time; `name` says what: `play`, `settle` or `close`."""
    LIVELOCK = "livelock"
    """It ran on and on while no time passed; `name` is `rounds`."""
    DIVERGED = "diverged"
    """A replay met a choice that the recording did not make; `name` is `choices`."""
    UNSTABLE = "unstable"
    """Run again with the same choices, it was another run; `name` is `trace`."""
    HUNG = "hung"
    """It took real time without end, in a process beside; `name` is `run`."""
    DIED = "died"
    """The process that ran it ended; `name` is `process`."""


@attrs.frozen
class Finding:
    """Why a run failed."""

    kind: FindingKind
    name: str
    text: str
    """One line or more, for a person."""

    @classmethod
    def of(cls, error: Exception) -> Self:
        """Return what an exception that nobody caught is: an `ERROR`, with the traceback as its text."""
        leaves = list(_leaves(error))
        text = "".join(traceback.format_exception(leaves[0]))
        others = [f"and {type(leaf).__name__}: {leaf}\n" for leaf in leaves[1:]]
        return cls(FindingKind.ERROR, type(leaves[0]).__name__, "".join([text, *others]))

    @property
    def trace_text(self) -> str:
        """The text as far as it is the same in each process: a traceback has paths, and perhaps addresses, in it."""
        return self.name if self.kind is FindingKind.ERROR else self.text

    def is_like(self, other: Finding) -> bool:
        """Return whether both fail the same way: what a shrunk run must keep."""
        return (self.kind, self.name) == (other.kind, other.name)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Iterate over what a group holds: what is raised beside other tasks comes wrapped in one."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from _leaves(member)
    else:
        yield error


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
