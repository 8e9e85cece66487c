"""`whenidle lab replay`, `shrink` and `timeline`: what is done with a recording."""

import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from whenidle.cli.arguments import Json
from whenidle.cli.exits import Exit, UsageError
from whenidle.cli.lab_lines import finding_document, finding_line
from whenidle.cli.lab_refusals import lab_refusals
from whenidle.cli.output import Output
from whenidle.cli.text import visible
from whenidle.cli.tokens import STDIN_MARK
from whenidle.cli.values import check_within, whole_number
from whenidle_lab.files import load, save
from whenidle_lab.perfetto import trace_events
from whenidle_lab.recording import Recording
from whenidle_lab.replay import Replay
from whenidle_lab.replay import replay as replayed
from whenidle_lab.shrink import MAX_RUNS, Progress
from whenidle_lab.shrink import shrink as shrunk
from whenidle_lab.story import tell
from whenidle_lab.subjects import Subject, recorded_subject
from whenidle_lab.timeline import page

MOST_RUNS = 1_000_000

File = Annotated[str, Parameter(name="FILE", help="A recording, as `whenidle lab run` writes it.")]


def replay(file: File, /, *, json: Json = False) -> Exit:
    """Have a recorded run happen again, strictly, and tell its story.

    The exit status is 0 if it was the same run, with the same choices, finding and trace, and 1 if anything
    differed; then it says what, and where.
    """
    output = Output.standard(json=json)
    with _recording(file) as (recording, scenario):
        again = replayed(recording, scenario)
    if again.run is not None and not output.json:
        output.say(*tell(again.run).splitlines())
    return _judged(again, {"file": file}, output)


def shrink(
    file: File,
    /,
    *,
    target: Annotated[
        str | None,
        Parameter(
            name=("--output", "-o"),
            metavar="FILE",
            show_default="FILE with .small.json",
            help="The recording to write.",
        ),
    ] = None,
    runs: Annotated[int, Parameter(converter=whole_number, metavar="N", help="How many runs it may take.")] = MAX_RUNS,
    minutes: Annotated[float | None, Parameter(metavar="MINUTES", help="How long it may take.")] = None,
    json: Json = False,
) -> None:
    """Make a recorded run smaller, in faults and choices, while it fails the same way, and tell its story."""
    check_within("--runs", runs, 1, MOST_RUNS)
    if minutes is not None and not (0 < minutes < math.inf):
        raise UsageError(f"--minutes takes a number above 0, not {minutes:g}")
    output = Output.standard(json=json)
    written = _path(target) if target is not None else _path(file).with_suffix(".small.json")
    with _recording(file) as (recording, scenario), _shown(output) as progress:
        seconds = math.inf if minutes is None else 60 * minutes
        small = shrunk(recording, scenario, max_runs=runs, seconds=seconds, progress=progress)
    save(small.recording, written)
    document = {
        "file": str(written),
        "finding": finding_document(small.recording.finding),
        "choicesBefore": small.before,
        "choices": small.after,
        "runs": small.runs,
        "minimal": small.is_minimal,
    }
    end = "none of them can be left out" if small.is_minimal else "there may be less to it; runs or time were out"
    output.answer(
        document,
        *tell(small.run).splitlines(),
        "",
        f"{small.after} choices that are not quiet are left of {small.before}, after {small.runs} runs: {end}",
        f"wrote {visible(str(written))}",
    )


def timeline(
    file: File,
    /,
    *,
    target: Annotated[
        str | None,
        Parameter(
            name=("--output", "-o"),
            metavar="FILE",
            show_default="FILE with .html, or .trace.json",
            help="The file to write.",
        ),
    ] = None,
    perfetto: Annotated[
        bool,
        Parameter(
            negative=(), show_default=False, help="Write trace events for Perfetto or chrome://tracing, not a page."
        ),
    ] = False,
    json: Json = False,
) -> Exit:
    """Replay a recorded run, and draw it on one page that needs no network.

    The exit status is as of `replay`; the page shows the run as it was this time.
    """
    output = Output.standard(json=json)
    written = _path(target) if target is not None else _path(file).with_suffix(".trace.json" if perfetto else ".html")
    if written.resolve() == _path(file).resolve():
        raise UsageError(f"{visible(str(written))} is the recording; write to another file with -o")
    with _recording(file) as (recording, scenario):
        again = replayed(recording, scenario, detailed=True)
    if again.run is None:
        raise UsageError("there is nothing to draw: the process of this run did not live to tell", "nothing_to_draw")
    title = f"{recording.scenario}: {recording.finding.kind} {recording.finding.name}, seed {recording.seed}"
    drawn = trace_events(again.run) if perfetto else page(again.run, title=title)
    written.write_text(drawn, encoding="utf-8")
    if not output.json:
        output.say(f"wrote {visible(str(written))}")
    return _judged(again, {"file": str(written)}, output)


@contextmanager
def _recording(file: str) -> Generator[tuple[Recording, Subject], None, None]:
    """Give a recording and its scenario; what the scenario prints in the block is no result."""
    with lab_refusals(), redirect_stdout(sys.stderr):
        recording = load(_path(file))
        yield recording, recorded_subject(recording)


def _path(text: str) -> Path:
    if text == STDIN_MARK or not text:
        raise UsageError("give the name of a file, not - or nothing")
    return Path(text)


def _judged(again: Replay, document: dict[str, Any], output: Output) -> Exit:
    """Tell whether a replay was the recorded run, and return the exit status."""
    finding, difference = again.recording.finding, again.difference
    judged = {
        **document,
        "reproduced": difference is None,
        "finding": finding_document(finding),
        "difference": None if difference is None else finding_document(difference),
    }
    if difference is None:
        output.answer(judged, Text.assemble(("reproduced: ", "bold"), finding_line(finding)))
        return Exit.OK
    said = [f"    {visible(line)}" for line in difference.text.splitlines()[1:]]
    output.answer(judged, Text.assemble(("not the recorded run: ", "bold"), finding_line(difference)), *said)
    return Exit.FAILED


@contextmanager
def _shown(output: Output) -> Generator[Callable[[Progress], object] | None, None, None]:
    if not output.terminal:
        yield None
        return
    with Live(console=output.console, auto_refresh=False, transient=True, redirect_stdout=False) as live:
        yield lambda progress: live.update(
            Text(f"{progress.runs} runs, {progress.choices} choices that are not quiet are left"), refresh=True
        )
