"""Scenarios by name: the lab's own, and those of users as `path.py:Class` or `module:Class`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from whenidle_lab import scenarios
from whenidle_lab.engines import ENGINES
from whenidle_lab.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from whenidle_lab.recording import Recording

    ScenarioSource: TypeAlias = "type[Scenario] | Callable[[], Scenario] | Subject | str"

SOURCE = "whenidle_lab_scenario"
"""Attribute of what stands where a function was that returns a scenario: that function."""


class ScenarioError(ValueError):
    """There is no such scenario, or it cannot be used."""


@attrs.frozen
class Subject:
    """A scenario to run many times."""

    name: str
    reference: str | None
    """What `subject` finds it by, in any process that works in this directory; None if nothing does."""
    make: Callable[[], Scenario]
    """Returns a fresh one for each run."""


def subject(source: ScenarioSource) -> Subject:
    """Return what a class, a function without arguments that returns a scenario, or a text stands for.

    A text is the name of one of the lab's own scenarios, `path.py:Class`, or `module:Class`; the last two import
    code, from the working directory too, and a function is as good as a class.

    Raises:
        ScenarioError: it is no scenario, or there is none.
    """
    if isinstance(source, Subject):
        return source
    if isinstance(source, str):
        return _checked(*_found(source))
    return _checked(_reference(source), source)


def recorded_subject(recording: Recording) -> Subject:
    """Return the scenario of a recording.

    Raises:
        ScenarioError: it is not there any more, or never was where anything finds it.
    """
    if recording.reference is None:
        raise ScenarioError(
            f"the scenario {recording.scenario!r} of this recording was defined where no other process finds it;"
            " define it at the top of a module"
        )
    return subject(recording.reference)


def own_subjects() -> list[Subject]:
    """Return the scenarios that come with the lab, by their names."""
    return [Subject(name, name, made) for name, made in sorted(_own().items())]


def _own() -> dict[str, type[Scenario]]:
    found: dict[str, type[Scenario]] = {}
    for each in pkgutil.iter_modules(scenarios.__path__):
        module = importlib.import_module(f"{scenarios.__name__}.{each.name}")
        for value in vars(module).values():
            if _is_scenario(value) and value.__module__ == module.__name__:
                found[value.name] = value
    return found


def _is_scenario(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Scenario) and not inspect.isabstract(value)


def _found(text: str) -> tuple[str, Any]:
    place, colon, name = text.rpartition(":")
    if not colon:
        own = _own()
        if text not in own:
            raise ScenarioError(
                f"there is no scenario {text[:80]!r}; there are {', '.join(sorted(own))},"
                " and one of your own is path.py:Class or module:Class"
            )
        return text, own[text]
    value: Any = _module(place)
    for part in name.split("."):
        value = getattr(value, part, None)
    if value is None:
        raise ScenarioError(f"{place} has no {name[:80]!r}")
    return text, value


def _checked(reference: str | None, source: Any) -> Subject:
    make: Any = getattr(source, SOURCE, source)
    called = reference or getattr(source, "__qualname__", repr(source))
    if isinstance(make, Scenario):
        raise ScenarioError(f"{type(make).__name__}: give the class and not an instance, since each run has its own")
    if isinstance(make, type) and not issubclass(make, Scenario):
        raise ScenarioError(f"{called} is a class, but not one of Scenario")
    if not callable(make):
        raise ScenarioError(f"{called} is neither a Scenario class nor a function that returns a scenario")
    try:
        made: Any = make()
    except (Exception, SystemExit) as error:
        raise ScenarioError(f"{called} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(made, Scenario):
        raise ScenarioError(f"{called} returns {type(made).__name__}, not a scenario")
    if not isinstance(getattr(made, "name", None), str):
        raise ScenarioError(f'{called} has no name; give its class one: name = "my-scenario"')
    if made.engine not in ENGINES:
        raise ScenarioError(f"{called} has the engine {made.engine!r}; it is {' or '.join(map(repr, ENGINES))}")
    return Subject(made.name, reference, cast("Callable[[], Scenario]", make))


# Modules --------------------------------------------------------------------------------------------


def _reference(source: Any) -> str | None:
    """Return how other processes find a class or function, if they do."""
    module = sys.modules.get(getattr(source, "__module__", None) or "")
    qualname = str(getattr(source, "__qualname__", "<"))
    if module is None or "<" in qualname:
        return None
    if module.__name__.startswith(f"{scenarios.__name__}."):
        return str(source.name)
    file = Path(getattr(module, "__file__", None) or "")
    if module.__name__ != "__main__" and (not file.name or "site-packages" in file.parts):
        return f"{module.__name__}:{qualname}"
    if not file.name:
        return None
    here = Path.cwd()
    return f"{(file.relative_to(here) if file.is_relative_to(here) else file).as_posix()}:{qualname}"


def _module(place: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            return _from_file(Path(place).resolve())
        _look_in(Path.cwd())
        return importlib.import_module(place)
    except ScenarioError:
        raise
    except (Exception, SystemExit) as error:  # a module that ends its process ends no exploration as if it were well
        raise ScenarioError(f"cannot import {place}: {type(error).__name__}: {error}") from error


def _from_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise ScenarioError(f"there is no file {str(file)!r}")
    for known in list(sys.modules.values()):
        if getattr(known, "__file__", None) == str(file) and known.__name__ != "__main__":
            return known
    names, folder = [file.stem], file.parent
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    # What a test imports is found as pytest finds it: beside its file, or where the command is given.
    _look_in(Path.cwd())
    _look_in(folder)
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    return _alone(file)


def _alone(file: Path) -> ModuleType:
    """Import a file that is in no package; under a name of its own if another module has its."""
    other = importlib.util.find_spec(file.stem)
    if other is not None and other.origin == str(file):
        return importlib.import_module(file.stem)
    name = f"{SOURCE}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{str(file)!r} cannot be imported")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
