"""What the lab has found, for people and for programs."""

from typing import Any

from rich.text import Text

from whenidle.cli.text import duration, shortened, visible
from whenidle_lab.findings import Finding
from whenidle_lab.report import MAX_TRACES, Found, Report

LONGEST_TEXT = 500
"""Characters of a finding's text that are shown."""


def report_document(report: Report, absent: list[str]) -> dict[str, Any]:
    """Return a report for programs; `absent` are the kinds of fault that could have happened and did not."""
    return {
        "scenario": report.scenario,
        "strategy": report.strategy,
        "runs": report.runs,
        "seconds": round(report.seconds, 3),
        "runsPerSecond": round(report.runs_per_second, 1),
        "virtualSeconds": report.virtual_seconds,
        "virtualSecondsPerSecond": round(report.virtual_rate),
        "rounds": report.rounds,
        "processes": report.lives,
        "traces": report.traces,
        "faults": dict(report.faults),
        "faultsAbsent": absent,
        "found": [_found_document(found) for found in report.found],
        "unrecorded": report.unrecorded,
        "finished": report.is_finished,
        "interrupted": report.is_interrupted,
    }


def _found_document(found: Found) -> dict[str, Any]:
    return {
        **finding_document(found.finding),
        "seed": found.seed,
        "times": found.times,
        "foundInRun": found.runs,
        "file": None if found.file is None else str(found.file),
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """Return a finding for programs."""
    return {"kind": finding.kind.value, "name": finding.name, "text": finding.text}


def report_lines(report: Report, absent: list[str]) -> list[str | Text]:
    """Return a report for people."""
    lines: list[str | Text] = [_head(report)]
    if report.faults or absent:
        lines.append(_faults(report, absent))
    for found in report.found:
        lines += _found_lines(found)
    if report.unrecorded:
        lines.append(f"  {report.unrecorded} runs more failed in other ways, which were not kept")
    return lines


def progress_line(report: Report) -> Text:
    """Return how far an exploration is."""
    found = f"  found {len(report.found)}" if report.found else ""
    return Text.assemble(
        (report.scenario, "bold"),
        f"  {report.strategy}  {report.runs} runs  {report.runs_per_second:.0f}/s  {duration(report.seconds)}",
        (found, "bold red"),
        ("  Ctrl-C stops", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )


def finding_line(finding: Finding) -> Text:
    """Return a finding for people: its kind and name, and the line of its text that matters most."""
    lines = finding.text.strip().splitlines() or [""]
    # A traceback says at its end what was raised, and by which name.
    said = lines[-1].removeprefix(f"{finding.name}: ") if finding.text.startswith("Traceback") else lines[0]
    name = (f"{finding.kind} {visible(finding.name)}", "bold red")
    return Text.assemble(name, f": {shortened(said, LONGEST_TEXT)}")


def _head(report: Report) -> Text:
    traces = f"at least {report.traces}" if report.traces >= MAX_TRACES else str(report.traces)
    whole = "" if report.is_finished else ", not all that was asked for"
    if report.strategy.startswith("exhaustive"):
        whole = ", the whole space" if report.is_finished else ", not the whole space"
    return Text.assemble(
        (visible(report.scenario), "bold"),
        f"  {report.strategy}  {report.runs} runs{whole} in {duration(report.seconds)}, {report.runs_per_second:.0f}/s;"
        f" {traces} different traces; {report.virtual_rate:.3g} virtual seconds a second",
    )


def _faults(report: Report, absent: list[str]) -> str:
    happened = ", ".join(f"{kind} {count}" for kind, count in report.faults.items()) or "none"
    missing = f"; never: {', '.join(absent)}" if absent else ""
    return f"  runs with faults: {happened}{missing}"


def _found_lines(found: Found) -> list[str | Text]:
    times = "once" if found.times == 1 else f"{found.times} times"
    lines: list[str | Text] = [
        Text.assemble("  ", finding_line(found.finding)),
        f"    {times}, first in run {found.runs}; seed {found.seed}",
    ]
    if found.file is not None:
        lines.append(f"    whenidle lab replay {visible(str(found.file))}")
    return lines
