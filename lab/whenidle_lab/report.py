"""What an exploration comes to, while it runs and at its end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from whenidle_lab.findings import Finding
    from whenidle_lab.gallery import Gallery
    from whenidle_lab.outcomes import Outcome
    from whenidle_lab.recording import Recording

MAX_TRACES = 1_000_000
"""Different traces that are told apart; of more, there are at least so many."""


@attrs.frozen
class Found:
    """A way to fail that was found."""

    recording: Recording
    """Of the lowest seed that fails so."""
    times: int
    """Runs that failed so."""
    runs: int
    """Runs that had been made when it failed so for the first time, that one included."""
    file: Path | None
    """Where the recording is; None if it was not to be written."""

    @property
    def finding(self) -> Finding:
        """What was found."""
        return self.recording.finding

    @property
    def seed(self) -> int:
        """The lowest seed that fails so."""
        return self.recording.seed


@attrs.frozen
class Report:
    """What an exploration has come to."""

    scenario: str
    strategy: str
    runs: int
    seconds: float
    """Real time since it began."""
    virtual_seconds: float
    """Of all runs together."""
    rounds: int
    """Of the event loop, in all runs together."""
    lives: int
    """Processes, in all runs together."""
    faults: Mapping[str, int]
    """In how many runs each kind of fault happened, by its name."""
    traces: int
    """Different traces; at least so many if it is `MAX_TRACES`."""
    found: tuple[Found, ...]
    """What was found, those alike only once, in the order of their seeds."""
    unrecorded: int
    """Runs that failed in a way of which there is no recording, because there were enough others."""
    is_finished: bool
    """Whether all was run that was to be run: the seeds, or the whole space of an exhaustive exploration."""
    is_interrupted: bool
    """Whether Ctrl-C ended it."""

    @property
    def runs_per_second(self) -> float:
        """Runs in a second of real time."""
        return self.runs / self.seconds if self.seconds else 0.0

    @property
    def virtual_rate(self) -> float:
        """Virtual seconds in a second of real time."""
        return self.virtual_seconds / self.seconds if self.seconds else 0.0


@attrs.define
class Tally:
    """Counts what becomes of runs."""

    runs: int = 0
    seconds: float = 0.0
    rounds: int = 0
    lives: int = 0
    faults: Counter[str] = attrs.Factory(Counter[str])
    traces: set[int] = attrs.Factory(set[int])

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.seconds += outcome.seconds
        self.rounds += outcome.rounds
        self.lives += outcome.lives
        self.faults.update(outcome.faults)
        if len(self.traces) < MAX_TRACES:
            self.traces.add(outcome.trace)

    def report(  # noqa: PLR0913 - what a report has that is not counted
        self,
        scenario: str,
        strategy: str,
        seconds: float,
        gallery: Gallery,
        *,
        is_finished: bool,
        is_interrupted: bool,
    ) -> Report:
        """Return what has been counted so far."""
        return Report(
            scenario,
            strategy,
            self.runs,
            seconds,
            self.seconds,
            self.rounds,
            self.lives,
            dict(sorted(self.faults.items())),
            len(self.traces),
            gallery.found(),
            gallery.unrecorded,
            is_finished,
            is_interrupted,
        )
