"""Explorations as tests of pytest."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from whenidle_lab import explore as exploring
from whenidle_lab.files import save
from whenidle_lab.gallery import file_name
from whenidle_lab.scenario import Scenario
from whenidle_lab.shrink import NotReproduced, shrink
from whenidle_lab.story import tell
from whenidle_lab.subjects import SOURCE, subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whenidle_lab.processes import Workers
    from whenidle_lab.recording import Recording
    from whenidle_lab.report import Report
    from whenidle_lab.subjects import ScenarioSource, Subject

FOLDER = ".whenidle-lab"
"""Where recordings are written, in pytest's root directory."""

SHRINKING = 20.0
"""Seconds of real time in which a failing test makes its recording smaller."""

_T = TypeVar("_T", bound="Callable[[], Scenario]")


class Explored(AssertionError):
    """A test has found something."""


@overload
def explore(*, seeds: int | Iterable[int] = ..., strategy: str = ..., twice: bool = ...) -> Callable[[_T], _T]: ...


@overload
def explore(
    scenario: ScenarioSource,
    *,
    seeds: int | Iterable[int] = ...,
    strategy: str = ...,
    jobs: int | Workers = ...,
    minutes: float | None = ...,
    twice: bool = ...,
    stop_at_first: bool = ...,
    folder: Path | str | None = ...,
    progress: Callable[[Report], object] | None = ...,
) -> Report: ...


def explore(scenario: Any = None, **options: Any) -> Any:
    """Run a scenario many times: now, if one is given, or as a test for pytest, as the decorator of one.

    See `whenidle_lab.explore.explore` and `explored` for both, and for the options.
    """
    return explored(**options) if scenario is None else exploring.explore(scenario, **options)


def explored(*, seeds: int | Iterable[int] = 100, strategy: str = "random", twice: bool = False) -> Callable[[_T], _T]:
    """Make a test for pytest of a `Scenario` class, or of a function without arguments that returns a scenario.

    The class must have a name by which pytest collects it, `Test…`, and gets a method `test_explored`; a function,
    `test_…`, becomes the test itself. The test runs the seeds, in this process, until one fails. Then it makes
    that run smaller, writes it to `.whenidle-lab` in pytest's root directory, and tells the command that replays it.

    Args:
        seeds: which, or how many from 0 on.
        strategy: as of `explore`.
        twice: as of `explore`.

    Raises:
        TypeError: it is neither, or one that pytest would pass over: by its name, or since it has an `__init__`.
    """
    chosen = seeds if isinstance(seeds, int) else tuple(seeds)

    def decorate(source: _T) -> _T:
        _check(source)

        def test(pytestconfig: Any) -> None:
            __tracebackhide__ = True
            _test(subject(source), chosen, strategy, pytestconfig, twice=twice)

        def test_explored(self: Scenario, pytestconfig: Any) -> None:
            __tracebackhide__ = True
            _test(subject(type(self)), chosen, strategy, pytestconfig, twice=twice)

        if isinstance(source, type):
            setattr(source, test_explored.__name__, test_explored)
            return cast("_T", source)
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(test, attribute, getattr(source, attribute))
        setattr(test, SOURCE, source)
        return cast("_T", test)

    return decorate


def _check(source: Any) -> None:
    if isinstance(source, type) and not issubclass(source, Scenario):
        raise TypeError(f"{source.__name__} is not a Scenario")
    name, prefix = str(getattr(source, "__name__", "")), "Test" if isinstance(source, type) else "test"
    if not name.startswith(prefix):
        raise TypeError(f"{name or repr(source)} is not collected by pytest: its name has to begin with {prefix}")
    if isinstance(source, type) and any(
        "__init__" in vars(base) or "__new__" in vars(base) for base in source.__mro__[:-1]
    ):
        raise TypeError(
            f"{name} is not collected by pytest, since it has an __init__ or __new__ of its own: decorate a function"
            " test_… that returns the scenario instead"
        )


def _test(explored: Subject, seeds: int | Iterable[int], strategy: str, config: Any, *, twice: bool) -> None:
    __tracebackhide__ = True
    report = exploring.explore(explored, seeds=seeds, strategy=strategy, twice=twice, stop_at_first=True)
    if report.is_interrupted:
        raise KeyboardInterrupt
    if report.found:
        raise Explored(_told(report.found[0].recording, explored, report.runs, config))


def _told(recording: Recording, explored: Subject, runs: int, config: Any) -> str:
    """Make a recording smaller, write it, and return what is to be said of it."""
    finding, story = recording.finding, recording.finding.text
    try:
        shrunk = shrink(recording, explored, seconds=SHRINKING)
    except NotReproduced:
        pass  # one that is not the same twice
    else:
        recording, story = shrunk.recording, tell(shrunk.run)
    file = config.rootpath / FOLDER / file_name(recording)
    save(recording, file)
    return (
        f"{finding.kind} {finding.name} in run {runs} of {explored.name}, seed {recording.seed}\n{story}\n"
        f"again: {_path_for(config)}whenidle lab replay {shlex.quote(_from_here(file))}"
    )


def _path_for(config: Any) -> str:
    """Return what the command is to begin with, so that it imports from where pytest's `pythonpath` says."""
    folders = [_from_here(folder) for folder in config.getini("pythonpath") if folder != Path.cwd()]
    return f"PYTHONPATH={shlex.quote(os.pathsep.join(folders))} " if folders else ""


def _from_here(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
