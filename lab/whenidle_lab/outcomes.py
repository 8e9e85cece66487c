"""What one run of many comes to: little enough to be sent from one process to another."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import attrs

from whenidle_lab.choices import Topic
from whenidle_lab.comparison import parted
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.recording import Recording
from whenidle_lab.run import run
from whenidle_lab.strategies.plan import MAX_SEED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_lab.choices import Choice, Strategy
    from whenidle_lab.findings import Run
    from whenidle_lab.strategies.plan import Plan
    from whenidle_lab.subjects import Subject
    from whenidle_lab.trace import Trace


@attrs.frozen
class Outcome:
    """What became of the run of one seed."""

    seed: int
    recording: Recording | None
    """Of what was found; None if nothing was."""
    rounds: int
    """Rounds of the event loop."""
    seconds: float
    """Virtual."""
    lives: int
    faults: frozenset[str]
    steps: int
    """Choices between tasks, and between actors."""
    trace: int
    """A number for what happened and when: the same for equal traces."""


def play(subject: Subject, plan: Plan, seed: int, *, twice: bool = False) -> Outcome:
    """Run a seed.

    Args:
        subject: the scenario.
        plan: the strategy.
        seed: of the run, from 0 to `MAX_SEED`.
        twice: whether to run it again, by the choices it made, and to find it unstable if that is another run.

    Raises:
        ValueError: there is no such seed.
    """
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"a seed is a whole number from 0 to {MAX_SEED}, not {seed}")
    return play_by(subject, plan.strategy(seed), plan.text, seed, twice=twice)


def play_by(subject: Subject, strategy: Strategy, text: str, seed: int, *, twice: bool = False) -> Outcome:
    """Run once, as a strategy decides; `text` and `seed` only say how it is called."""
    first = run(subject.make(), strategy)
    recording = None
    if twice or first.finding is not None:
        recording = _again(subject, first, text, seed)
    return Outcome(
        seed,
        recording,
        first.rounds,
        first.seconds,
        first.lives,
        first.faults,
        _steps(first.choices),
        fingerprint(first.trace),
    )


def _again(subject: Subject, first: Run, text: str, seed: int) -> Recording | None:
    """Run again what was run, and return what either found."""
    second = run(subject.make(), script=first.choices, digest=True)
    if second.trace.digest() == first.trace.digest() and first.choices == second.choices:
        return None if second.finding is None else Recording.of(second, second.finding, subject, text, seed)
    unstable = Finding(FindingKind.UNSTABLE, "trace", _why(first, second))
    return Recording.of(attrs.evolve(first, digest=first.trace.digest()), unstable, subject, text, seed)


def _why(first: Run, second: Run) -> str:
    if second.finding is not None and second.finding.kind is FindingKind.DIVERGED:
        return f"run again, {second.finding.text}"
    return parted(first.trace, second.trace)


def fingerprint(trace: Trace) -> int:
    """Return a number for what happened, to whom and when; cheaper than a digest, and the same in each process."""
    lines = [f"{happening.what} {happening.agent} {happening.monotonic_ns}" for happening in trace]
    digest = hashlib.blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest())


def _steps(choices: Sequence[Choice]) -> int:
    return sum(choice.topic is Topic.TASK or choice.topic is Topic.ACTOR for choice in choices)
