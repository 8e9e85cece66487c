"""`whenidle lab list` and `run`: scenarios, and explorations of them."""

import inspect
import itertools
import math
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import Annotated

import attrs
from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from whenidle.cli.arguments import Json
from whenidle.cli.exits import Exit, UsageError
from whenidle.cli.lab_lines import progress_line, report_document, report_lines
from whenidle.cli.lab_refusals import lab_refusals
from whenidle.cli.output import Output
from whenidle.cli.text import shortened
from whenidle.cli.values import check_within, whole_number
from whenidle_lab.explore import explore
from whenidle_lab.processes import Workers
from whenidle_lab.report import Report
from whenidle_lab.strategies import Exhaustive, parse_plan
from whenidle_lab.strategies.plan import MAX_SEED
from whenidle_lab.strategies.texts import FORMS
from whenidle_lab.subjects import Subject, own_subjects, subject
from whenidle_lab.testing import FOLDER

DEFAULT_SEEDS = 1_000
MAX_JOBS = 1_000

_SEEDS = re.compile(r"((?P<first>[0-9]{1,16})-)?(?P<last>[0-9]{1,16})")


def list_(*, json: Json = False) -> None:
    """List the scenarios that come with the lab."""
    found = own_subjects()
    width = max(len(each.name) for each in found)
    documents = [
        {"name": each.name, "summary": _summary(each), "faults": sorted(_possible_faults(each))} for each in found
    ]
    lines = [Text.assemble((each.name.ljust(width), "bold"), f"  {_summary(each)}") for each in found]
    Output.standard(json=json).answer({"scenarios": documents}, *lines)


def run(  # noqa: PLR0913 - one parameter an option
    *scenarios: Annotated[
        str,
        Parameter(
            name="SCENARIO",
            help="Names of the lab's own, path.py:Class or module:Class; the last two import code. All of the lab's own"
            " if none is given.",
        ),
    ],
    seeds: Annotated[
        str | None,
        Parameter(
            metavar="N",
            show_default=f"{DEFAULT_SEEDS}, or without end with --minutes",
            help="How many runs, of the seeds from 0 on; or which seeds, like 5000-5999.",
        ),
    ] = None,
    jobs: Annotated[
        int, Parameter(converter=whole_number, metavar="N", help="How many processes run them; 1 is this one.")
    ] = 1,
    strategy: Annotated[str, Parameter(help=f"How choices are made: {FORMS}.")] = "random",
    minutes: Annotated[
        float | None, Parameter(metavar="MINUTES", help="How long it may take, all scenarios together.")
    ] = None,
    twice: Annotated[
        bool, Parameter(negative=(), show_default=False, help="Run each seed twice, to see that it is the same run.")
    ] = False,
    out: Annotated[str, Parameter(metavar="FOLDER", help="Where recordings of what is found are written.")] = FOLDER,
    json: Json = False,
) -> Exit:
    """Run scenarios again and again, each time otherwise, and tell what is found.

    Each different finding is written to a file; `whenidle lab replay` has it happen again. The exit status is 1 if
    anything was found. With more than one process, a run that never ends is a finding too. Ctrl-C stops after the
    runs that are under way, and tells what was found so far.
    """
    check_within("--jobs", jobs, 1, MAX_JOBS)
    if minutes is not None and not (0 < minutes < math.inf):
        raise UsageError(f"--minutes takes a number above 0, not {minutes:g}")
    output = Output.standard(json=json)
    with lab_refusals(), ExitStack() as ended:
        if isinstance(parse_plan(strategy), Exhaustive) and jobs > 1:
            raise UsageError(f"{strategy} runs in one process; leave --jobs out")
        wanted = _Wanted(_seeds(seeds, minutes), strategy, minutes, twice, out)
        subjects = [subject(name) for name in scenarios] or own_subjects()
        ended.enter_context(redirect_stdout(sys.stderr))  # what scenarios print is no result
        workers = ended.enter_context(Workers(jobs)) if jobs > 1 else 1
        reports = _explore_all(subjects, wanted, workers, output)
    return _told(subjects, reports, output)


@attrs.frozen
class _Wanted:
    """How scenarios are to be explored."""

    seeds: Callable[[], Iterable[int]]
    strategy: str
    minutes: float | None
    twice: bool
    folder: str


def _explore_all(subjects: Sequence[Subject], wanted: _Wanted, jobs: int | Workers, output: Output) -> list[Report]:
    """Explore one scenario after the other, each with its share of the time that is left."""
    reports: list[Report] = []
    began = time.monotonic()
    for done, each in enumerate(subjects):
        left = None if wanted.minutes is None else max(0.0, wanted.minutes - (time.monotonic() - began) / 60)
        with _shown(output) as progress:
            report = explore(
                each,
                seeds=wanted.seeds(),
                strategy=wanted.strategy,
                jobs=jobs,
                minutes=None if left is None else left / (len(subjects) - done),
                twice=wanted.twice,
                folder=wanted.folder,
                progress=progress,
            )
        if not output.json:
            output.say(*report_lines(report, _absent_faults(each, report)))
            output.flush()
        reports.append(report)
        if report.is_interrupted:
            break
    return reports


@contextmanager
def _shown(output: Output) -> Generator[Callable[[Report], object] | None, None, None]:
    """Show progress where somebody looks at it; from this thread, so that no other one takes time from the runs."""
    if not output.terminal:
        yield None
        return
    live = Live(console=output.console, auto_refresh=False, transient=True, redirect_stdout=False)
    with live:
        yield lambda report: live.update(progress_line(report), refresh=True)


def _told(subjects: Sequence[Subject], reports: Sequence[Report], output: Output) -> Exit:
    """Tell what all came to, and return the exit status."""
    found = sum(len(report.found) for report in reports)
    runs = sum(report.runs for report in reports)
    absent = [_absent_faults(*each) for each in zip(subjects, reports, strict=False)]
    documents = [report_document(*each) for each in zip(reports, absent, strict=True)]
    ways = "1 way to fail" if found == 1 else f"{found} ways to fail"
    total = f"nothing was found in {runs} runs" if not found else f"{ways} found in {runs} runs"
    output.answer({"runs": runs, "found": found, "reports": documents}, *([total] if len(reports) > 1 else []))
    if any(report.is_interrupted for report in reports):
        return Exit.INTERRUPTED
    return Exit.FAILED if found else Exit.OK


def _seeds(text: str | None, minutes: float | None) -> Callable[[], Iterable[int]]:
    """Return what gives the seeds for a scenario."""
    if text is None:
        return itertools.count if minutes is not None else lambda: range(DEFAULT_SEEDS)
    match = _SEEDS.fullmatch(text)
    if match is not None:
        first = int(match["first"] or 0)
        last = int(match["last"]) if match["first"] else int(match["last"]) - 1
        if 0 <= first <= last <= MAX_SEED:
            return lambda: range(first, last + 1)
    raise UsageError(
        f"--seeds takes how many seeds to run, like {DEFAULT_SEEDS}, or which, like 5000-5999,"
        f" not '{shortened(text, 40)}'"
    )


def _summary(each: Subject) -> str:
    return (inspect.getdoc(each.make) or "").partition("\n")[0]


def _possible_faults(each: Subject) -> set[str]:
    return {kind.value for kind in each.make().faults.kinds}


def _absent_faults(each: Subject, report: Report) -> list[str]:
    return sorted(_possible_faults(each) - set(report.faults))
