"""A recording: the file that has a failed run happen again.

It is JSON: which scenario, which choices, what was found, and a digest of what happened on the way. The choices are all
there is to a run; strategy and seed say where they came from. A recording of one's own scenario names code that
is imported to replay it: it is as trustworthy as a program.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_lab import script
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from whenidle_lab.choices import Choice
    from whenidle_lab.findings import Finding, Run
    from whenidle_lab.subjects import Subject
    from whenidle_lab.trace import Happening, Trace

FORMAT = "whenidle lab recording"
FORMAT_VERSION = 1

MAX_TEXT = 20_000
"""Characters of a finding's text that are kept."""

MAX_MARKS = 50_000
"""Happenings whose mark is kept, so that a replay can say where it became another run."""

MARK = 4
"""Hexadecimal digits of a mark."""


def versions() -> dict[str, str]:
    """Return the versions that a run depends on."""
    return {"whenidle": version("whenidle"), "trio": version("trio"), "python": platform.python_version()}


def marks_of(trace: Trace) -> str:
    """Return a short mark for each happening that counts for the digest, one after the other."""
    lines = (happening.line() for happening in counted(trace))
    return "".join(mark(line) for line, _ in zip(lines, range(MAX_MARKS), strict=False))


def mark(line: str) -> str:
    """Return the mark of a happening by its line."""
    return hashlib.sha256(line.encode("utf-8", "surrogatepass")).hexdigest()[:MARK]


def counted(trace: Trace) -> Iterator[Happening]:
    """Iterate over the happenings that are in a trace whether it is a detailed one or not."""
    return (happening for happening in trace if happening.what is not What.DEPTH)


@attrs.frozen
class Recording:
    """One failed run."""

    scenario: str
    """The scenario's name."""
    reference: str | None
    """What `subject` finds it by; None if it was made where nothing finds it, as in a function."""
    strategy: str
    seed: int
    choices: tuple[Choice, ...] | None
    """Those up to the last one that is not 0; None if not known, since the process did not live to tell."""
    then_quiet: int
    """How many choices came after that."""
    finding: Finding
    digest: str
    """See `Trace.digest`; empty if not known."""
    marks: str
    """See `marks_of`."""
    versions: Mapping[str, str]

    @classmethod
    def of(cls, run: Run, finding: Finding, subject: Subject, strategy: str, seed: int) -> Recording:
        """Return what replays a run, which has its digest."""
        choices = tuple(script.without_tail(run.choices))
        return cls(
            subject.name,
            subject.reference,
            strategy,
            seed,
            choices,
            len(run.choices) - len(choices),
            _cut(finding),
            run.digest,
            marks_of(run.trace),
            versions(),
        )

    @classmethod
    def lost(cls, finding: Finding, subject: Subject, strategy: str, seed: int) -> Recording:
        """Return what is left of a run whose process did not live to tell."""
        return cls(subject.name, subject.reference, strategy, seed, None, 0, finding, "", "", versions())

    def to_text(self) -> str:
        """Return it as JSON for a file."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "scenario": self.scenario,
            "import": self.reference,
            "strategy": self.strategy,
            "seed": self.seed,
            "finding": {"kind": self.finding.kind.value, "name": self.finding.name, "text": self.finding.text},
            "choices": None if self.choices is None else script.written(self.choices),
            "then_quiet": self.then_quiet,
            "digest": self.digest,
            "marks": self.marks,
            "versions": dict(self.versions),
        }
        return json.dumps(document, indent=1) + "\n"


def _cut(finding: Finding) -> Finding:
    if len(finding.text) <= MAX_TEXT:
        return finding
    return attrs.evolve(
        finding, text=f"{finding.text[:MAX_TEXT]}\n… and {len(finding.text) - MAX_TEXT} characters more"
    )
