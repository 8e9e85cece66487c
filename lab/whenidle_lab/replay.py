"""Replay: a recorded run again, choice by choice, and whether it was the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.comparison import parted_from
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.processes import Workers
from whenidle_lab.processes.workers import PATIENCE
from whenidle_lab.recording import versions
from whenidle_lab.run import run

if TYPE_CHECKING:
    from whenidle_lab.findings import Run
    from whenidle_lab.recording import Recording
    from whenidle_lab.subjects import Subject


@attrs.frozen
class Replay:
    """What became of a recording that was run again."""

    recording: Recording
    run: Run | None
    """The run; None if its process did not live to tell, as it did not when it was recorded."""
    difference: Finding | None
    """What was not as recorded, `DIVERGED` or `UNSTABLE`; None if it was the same run, byte for byte."""


def replay(recording: Recording, subject: Subject, *, detailed: bool = False, patience: float = PATIENCE) -> Replay:
    """Run what a recording says, strictly: the same choices, the same finding, the same trace.

    What was found `UNSTABLE` is run twice, and is to differ from what was recorded once more. What was found `HUNG` or
    `DIED` is run by its seed in another process, and is to end so again.

    Args:
        recording: what to run.
        subject: its scenario.
        detailed: whether the trace of the run also has what only pictures show.
        patience: seconds of real time after which a run that was found `HUNG` hangs again.

    Raises:
        WorkerError: a process does not start.
    """
    if recording.choices is None:
        return Replay(recording, None, _beside(recording, subject, patience))
    again = run(subject.make(), script=recording.choices, detailed=detailed, digest=True)
    difference = _difference(recording, again)
    if recording.finding.kind is FindingKind.UNSTABLE:
        once_more = difference or _difference(recording, run(subject.make(), script=recording.choices, digest=True))
        difference = None if once_more else _unstable("it was the recorded run, twice")
    return Replay(recording, again, difference)


def _beside(recording: Recording, subject: Subject, patience: float) -> Finding | None:
    """Run a seed in another process, and return how it ended if that was not as recorded."""
    with Workers(1, patience=patience) as workers:
        outcomes = workers.seeds(subject, recording.strategy, [recording.seed]).outcomes()
        found = [outcome.recording for outcome in outcomes if outcome is not None]
    finding = found[0].finding if found and found[0] is not None else None
    if finding is not None and finding.is_like(recording.finding):
        return None
    return _instead(finding, recording)


def _difference(recording: Recording, again: Run) -> Finding | None:
    found = again.finding
    if found is not None and found.kind is FindingKind.DIVERGED:
        return attrs.evolve(found, text=found.text + _other_versions(recording))
    is_unstable = recording.finding.kind is FindingKind.UNSTABLE
    if not is_unstable and (found is None or not found.is_like(recording.finding)):
        return _instead(found, recording)
    if again.digest != recording.digest:
        return _unstable(parted_from(recording.marks, again.trace) + _other_versions(recording))
    length = len(recording.choices or ()) + recording.then_quiet
    if len(again.choices) != length:
        return _unstable(f"{len(again.choices)} choices were made instead of {length}")
    return None


def _instead(found: Finding | None, recording: Recording) -> Finding:
    instead = "nothing" if found is None else f"{found.kind} {found.name}"
    return _unstable(
        f"found {instead} instead of {recording.finding.kind} {recording.finding.name}: the code has changed since, or"
        f" something depends on more than the choices of the run{_other_versions(recording)}"
    )


def _unstable(text: str) -> Finding:
    return Finding(FindingKind.UNSTABLE, "trace", text)


def _other_versions(recording: Recording) -> str:
    here = versions()
    others = [
        f"{name} {recorded} and not {here.get(name, 'none')}"
        for name, recorded in recording.versions.items()
        if recorded != here.get(name)
    ]
    return f"\nit was recorded with {', '.join(others)}" if others else ""
