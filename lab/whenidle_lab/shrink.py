"""Shrink: make a failing run smaller while it fails the same way.

A run is its choices, and 0 is the quiet one of each. So to make it smaller is to turn choices into 0, or into lower
ones, and to see whether it still fails. What is left tells what the failure needs: this fault, that task overtaking
another. It is delta debugging (Zeller, Hildebrandt: Simplifying and Isolating Failure-Inducing Input, TSE 2002) on
the choices that are not 0, faults before the order of tasks.

A run with other choices may soon ask for other ones than those that were recorded, so what is tried is not followed
strictly (see `Chooser`). What was tried and failed alike is gone on from with the choices that it made itself, so that
the recording that comes out of it is a strict one again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import attrs

from whenidle_lab import script
from whenidle_lab.choices import Choice, Topic
from whenidle_lab.recording import Recording
from whenidle_lab.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whenidle_lab.findings import Finding, Run
    from whenidle_lab.subjects import Subject

MAX_RUNS = 2_000
"""Runs in which a recording is made smaller."""

_ALL = frozenset(Topic)
_ORDERS = frozenset({Topic.TASK, Topic.ACTOR})
_OWN = frozenset({Topic.SCENARIO})
_FAULTS = _ALL - _ORDERS - _OWN

Choices = tuple[Choice, ...]


class NotReproduced(Exception):
    """A run to be made smaller does not fail as it was recorded to."""


@attrs.frozen
class Progress:
    """How far shrinking has come."""

    runs: int
    choices: int
    """That are not 0 in the smallest run so far."""


@attrs.frozen
class Shrunk:
    """What became of a recording."""

    recording: Recording
    """The smallest run that was found."""
    run: Run
    """That run, in detail."""
    runs: int
    """Runs that it took."""
    before: int
    """Choices that were not 0 in the first recording."""
    after: int
    """Those that are left."""
    is_minimal: bool
    """Whether no single choice that is left can be left out; not known if runs or time were out before."""


def shrink(  # noqa: PLR0913 - what bounds it, and who is told
    recording: Recording,
    subject: Subject,
    *,
    max_runs: int = MAX_RUNS,
    seconds: float = float("inf"),
    progress: Callable[[Progress], object] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Shrunk:
    """Make a recorded run smaller.

    Args:
        recording: of a run whose choices are known.
        subject: its scenario.
        max_runs: how many runs may be made, beside the first and the last one.
        seconds: of real time, after which no run begins any more.
        progress: called after each run.
        monotonic: the clock of `seconds`.

    Raises:
        NotReproduced: the recorded run does not fail as it should, or its choices are not known.
    """
    if recording.choices is None:
        raise NotReproduced("the choices of this run are not known, as its process did not live to tell")
    first = run(subject.make(), script=recording.choices)
    if first.finding is None or not first.finding.is_like(recording.finding):
        raise NotReproduced(f"the run no longer fails with {recording.finding.kind} {recording.finding.name}")
    ends = monotonic() + seconds
    shrinker = _Shrinker(subject, recording.finding, first.choices)

    def check() -> None:
        if progress is not None:
            progress(Progress(shrinker.runs, _size(shrinker.best)[0]))
        if shrinker.runs >= max_runs or monotonic() >= ends:
            raise _Spent

    is_minimal = shrinker.shrink(check)
    last = run(subject.make(), script=shrinker.best, detailed=True, digest=True)
    finding = last.finding or recording.finding
    return Shrunk(
        Recording.of(last, finding, subject, recording.strategy, recording.seed),
        last,
        shrinker.runs,
        _size(first.choices)[0],
        _size(last.choices)[0],
        is_minimal,
    )


class _Spent(Exception):
    """Runs or time are out."""


class _Shrinker:
    """The smallest run so far, and attempts to find a smaller one."""

    def __init__(self, subject: Subject, finding: Finding, choices: Choices) -> None:
        self.best: Choices = choices
        self.runs: int = 0
        self._subject = subject
        self._finding = finding
        self._tried: set[Choices] = set()
        self._check: Callable[[], None] = lambda: None

    def shrink(self, check: Callable[[], None]) -> bool:
        """Try until nothing makes it smaller any more, or `check` raises `_Spent`; return whether it came to that."""
        self._check = check
        try:
            while True:
                before = _size(self.best)
                self._cut_end()
                for topics in (_FAULTS, _OWN, _ORDERS):
                    self._leave_out(topics)
                self._lower()
                if _size(self.best) == before:
                    return True
        except _Spent:
            return False

    def _cut_end(self) -> None:
        """Leave out all from some choice on; first nearly all, then less and less."""
        kept = 0
        while kept < len(positions := _not_quiet(self.best, _ALL)):
            if self._fails_alike(_with(self.best, dict.fromkeys(positions[kept:], 0))):
                return
            kept = max(1, 2 * kept)

    def _leave_out(self, topics: frozenset[Topic]) -> None:
        """Leave out choices about some topics: all, half of them, a quarter, down to single ones."""
        size = len(_not_quiet(self.best, topics))
        while size:
            at = 0
            while chunk := _not_quiet(self.best, topics)[at : at + size]:
                if not self._fails_alike(_with(self.best, dict.fromkeys(chunk, 0))):
                    at += size
            size //= 2

    def _lower(self) -> None:
        """Take lower options: spans get shorter, and tasks overtake fewer."""
        at = 0
        while at < len(positions := _not_quiet(self.best, _ALL)):
            position = positions[at]
            picked = self.best[position].picked
            lower = sorted({1, picked // 2, picked - 1} - {0, picked})
            if not any(self._fails_alike(_with(self.best, {position: option})) for option in lower):
                at += 1

    def _fails_alike(self, attempt: Choices) -> bool:
        """Run an attempt, unless it was run before, and keep it if it is as bad and smaller."""
        attempt = tuple(script.without_tail(attempt))
        if attempt in self._tried:
            return False
        self._check()
        self._tried.add(attempt)
        self.runs += 1
        made = run(self._subject.make(), script=attempt, strict=False)
        if made.finding is None or not made.finding.is_like(self._finding) or _size(made.choices) >= _size(self.best):
            return False
        self.best = made.choices
        return True


def _size(choices: Choices) -> tuple[int, int, int]:
    """Return what a smaller run has less of: choices that are not 0, the sum of what they pick, and choices."""
    picked = [choice.picked for choice in choices if choice.picked]
    return len(picked), sum(picked), len(choices)


def _not_quiet(choices: Choices, topics: frozenset[Topic]) -> list[int]:
    return [position for position, choice in enumerate(choices) if choice.picked and choice.topic in topics]


def _with(choices: Choices, picks: Mapping[int, int]) -> Choices:
    changed = list(choices)
    for position, picked in picks.items():
        changed[position] = attrs.evolve(changed[position], picked=picked)
    return tuple(changed)
