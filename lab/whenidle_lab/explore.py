"""Explore: run a scenario many times, each time otherwise, and collect what is found."""

from __future__ import annotations

import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from whenidle_lab.gallery import Gallery
from whenidle_lab.interrupts import interruptible
from whenidle_lab.outcomes import Outcome
from whenidle_lab.processes import Workers
from whenidle_lab.report import Report, Tally
from whenidle_lab.sources import Seeds, Space
from whenidle_lab.strategies import Exhaustive, StrategyError, parse_plan
from whenidle_lab.subjects import ScenarioError, subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whenidle_lab.sources import Source
    from whenidle_lab.strategies import Plan
    from whenidle_lab.subjects import ScenarioSource, Subject

MOST_FOUND = 20
"""Different findings that are kept."""

MEASURED_SEEDS = range(4)
"""Of the runs that tell how many steps the runs of a scenario have."""

PROGRESS = 0.1
"""Seconds between two reports of progress."""

_END = object()


def explore(  # noqa: PLR0913 - each is one thing that users decide
    scenario: ScenarioSource,
    *,
    seeds: int | Iterable[int] = 1000,
    strategy: str = "random",
    jobs: int | Workers = 1,
    minutes: float | None = None,
    twice: bool = False,
    stop_at_first: bool = False,
    folder: Path | str | None = None,
    progress: Callable[[Report], object] | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Report:
    """Run a scenario once for each seed, and return what became of it.

    Ctrl-C ends it after the runs that are under way, with a report of what was run; a second one ends it at once.

    Args:
        scenario: a `Scenario` class, a function without arguments that returns a scenario, or a text: the name of
            one of the lab's own, `path.py:Class` or `module:Class`.
        seeds: each is a run, and always the same one; or how many, from 0 on. `exhaustive` knows no seeds, and takes
            of them only how many runs there may be.
        strategy: `random`, `pct:DEPTH`, `pct:DEPTH:STEPS`, `pos`, `round-robin`, or `exhaustive:BOUND`. For `pct`
            without steps they are measured beforehand, in a few runs.
        jobs: how many processes run seeds at the same time, or `Workers` to use. With 1 it is this process, and a run
            that never ends is ended by a second Ctrl-C only; with more it is a finding, as is a process that dies.
        minutes: of real time, after which no run begins any more.
        twice: whether each seed is run a second time, by the choices of the first, to see that it is the same run.
        stop_at_first: whether the first finding ends it.
        folder: where a recording of each different finding is written; None writes none.
        progress: called with a report now and then, from this thread.
        monotonic: the clock of `minutes`, rates and progress, in seconds.

    Raises:
        ScenarioError: it is no scenario; or one that other processes do not find, with more than one job.
        StrategyError: it is no strategy; or an exhaustive one, with more than one job.
        WorkerError: a process to run seeds in does not start.
        OSError: a recording cannot be written.
        AdapterMisfit: the installed trio does not let the lab decide.
        ValueError: a seed lies outside of 0 to 2**53 - 1.
    """
    explored, plan = subject(scenario), parse_plan(strategy)
    began = monotonic()
    tally, gallery = Tally(), Gallery(None if folder is None else Path(folder), MOST_FOUND)
    told = began

    def report(*, is_finished: bool = False, is_interrupted: bool = False) -> Report:
        return tally.report(
            explored.name,
            plan.text,
            monotonic() - began,
            gallery,
            is_finished=is_finished,
            is_interrupted=is_interrupted,
        )

    with _beside(jobs) as workers, interruptible() as interrupted:
        if not isinstance(plan, Exhaustive) and plan.wants_steps:
            plan = _with_steps(explored, plan, workers, interrupted)
        chosen = range(seeds) if isinstance(seeds, int) else seeds
        source = _source(explored, plan, chosen, workers, twice=twice)
        with closing(source.outcomes()) as outcomes:
            while not interrupted():
                outcome = next(outcomes, _END)
                if outcome is _END:
                    break
                if isinstance(outcome, Outcome):
                    tally.add(outcome)
                    if outcome.recording is not None:
                        gallery.add(outcome.recording, tally.runs)
                now = monotonic()
                if progress is not None and now >= told + PROGRESS:
                    told = now
                    progress(report())
                is_over = minutes is not None and now >= began + 60 * minutes
                if is_over or (stop_at_first and gallery.found()):
                    break
        return report(is_finished=source.is_finished, is_interrupted=interrupted())


def _beside(jobs: int | Workers) -> Workers | nullcontext[Workers | None]:
    """Return workers to use for as long as the exploration lasts; those that were given last longer."""
    if isinstance(jobs, Workers):
        return nullcontext(jobs)
    return Workers(jobs) if jobs > 1 else nullcontext(None)


def _source(
    explored: Subject, plan: Plan | Exhaustive, seeds: Iterable[int], workers: Workers | None, *, twice: bool
) -> Source:
    if isinstance(plan, Exhaustive):
        if workers is not None:
            raise StrategyError(f"{plan.text} runs in one process: ask for one job")
        return Space(explored, plan, seeds, twice=twice)
    if workers is None:
        return Seeds(explored, plan, seeds, twice=twice)
    if explored.reference is None:
        raise ScenarioError(
            f"{explored.name} is not found by other processes: define it at the top of a module, or ask for one job"
        )
    return workers.seeds(explored, plan.text, seeds, twice=twice)


def _with_steps(explored: Subject, plan: Plan, workers: Workers | None, interrupted: Callable[[], bool]) -> Plan:
    """Return a plan that knows the steps of a run: the most of a few, which are the same each time."""
    steps = 0
    with closing(_source(explored, plan, MEASURED_SEEDS, workers, twice=False).outcomes()) as outcomes:
        for outcome in outcomes:
            if outcome is not None:
                steps = max(steps, outcome.steps)
            if interrupted():
                break
    return plan.with_steps(steps)
