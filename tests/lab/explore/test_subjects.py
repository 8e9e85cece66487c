import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.recording import Recording
from whenidle_lab.scenario import Scenario
from whenidle_lab.subjects import ScenarioError, own_subjects, recorded_subject, subject

from . import toys
from .toys import TOYS


def test_the_labs_own_scenarios_are_known_by_name() -> None:
    """Each is found by the name it says of itself, and is another one for each run."""
    names = [each.name for each in own_subjects()]
    assert names == sorted(names)
    assert "three-agents" in names
    for name in names:
        found = subject(name)
        assert (found.name, found.reference, found.make().name) == (name, name, name)
        assert found.make() is not found.make()


@pytest.mark.parametrize("text", [f"{TOYS}:Calm", f"{TOYS}:calm", "tests.lab.explore.toys:Calm"])
def test_ones_own_scenarios_are_found_by_path_and_by_module(text: str) -> None:
    """A class, or a function that returns a scenario; the text is what other processes find it by."""
    found = subject(text)
    assert (found.name, found.reference) == ("calm", text)
    assert type(found.make()) is toys.Calm


@pytest.mark.parametrize("source", [toys.Calm, toys.calm])
def test_classes_and_functions_say_where_they_are(source: Callable[[], Scenario]) -> None:
    """What is given as it is has a reference too, from the working directory if it is there."""
    found = subject(source)
    assert found.reference == f"{TOYS}:{source.__qualname__}"
    assert subject(found) is found
    assert type(subject(found.reference).make()) is toys.Calm


def test_a_scenario_of_the_labs_own_that_is_given_as_a_class_keeps_its_name() -> None:
    """It has the same reference either way."""
    own = own_subjects()[0]
    assert subject(own.make).reference == own.name


def test_what_is_defined_in_a_function_has_no_reference() -> None:
    """It runs here, and nowhere else."""

    class Local(toys.Calm):
        pass

    assert subject(Local).reference is None
    recording = Recording.lost(Finding(FindingKind.HUNG, "run", ""), subject(Local), "random", 1)
    with pytest.raises(ScenarioError, match="'calm' of this recording was defined where no other process finds it"):
        recorded_subject(recording)


def test_a_file_outside_of_any_package_is_imported_with_its_neighbours(tmp_path: Path) -> None:
    """As if it were run; and if another module has its name, it gets one of its own."""
    (tmp_path / "a_neighbour_of_mine.py").write_text("NAME = 'from-next-door'\n")
    for name in ("my_own_scenarios.py", "json.py"):
        (tmp_path / name).write_text(
            "from a_neighbour_of_mine import NAME\nfrom whenidle.lab import Scenario, World\n"
            "class Mine(Scenario):\n    name = NAME\n    async def play(self, world: World) -> None: ...\n"
        )
        found = subject(f"{tmp_path / name}:Mine")
        assert found.name == "from-next-door"
        assert subject(f"{tmp_path / name}:Mine").make is found.make
        assert subject(found.make).reference == f"{tmp_path / name}:Mine"
    assert not hasattr(sys.modules["json"], "Mine")
    sys.path.remove(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("three-agent", "there is no scenario 'three-agent'; there are at-most-once, "),
        ("", "one of your own is path.py:Class or module:Class"),
        ("nowhere.py:Calm", "there is no file '"),
        ("no_such_module:Calm", "cannot import no_such_module: ModuleNotFoundError: No module named"),
        (f"{TOYS}:Clam", f"{TOYS} has no 'Clam'"),
        (f"{TOYS}:InOrder", "is a class, but not one of Scenario"),
        (f"{TOYS}:ROOT.parent", "has no 'ROOT.parent'"),
        (f"{TOYS}:TOYS", "is neither a Scenario class nor a function that returns a scenario"),
        (f"{TOYS}:not_a_scenario", "returns int, not a scenario"),
        (f"{TOYS}:Nameless", 'has no name; give its class one: name = "my-scenario"'),
        (f"{TOYS}:Unmade", "cannot be made: ZeroDivisionError: never"),
        ("sys:exit", "cannot be made: SystemExit: "),
        (f"{TOYS}:OnPaper", "OnPaper has the engine 'paper'; it is 'memory' or 'sqlite'"),
        ("whenidle_lab.scenario:Scenario", "cannot be made: TypeError: Can't instantiate abstract class Scenario"),
    ],
)
def test_what_is_no_scenario_is_refused(text: str, message: str) -> None:
    """The message says what it is instead."""
    with pytest.raises(ScenarioError) as raised:
        subject(text)
    assert message in str(raised.value)


def test_an_instance_is_refused() -> None:
    """Runs must not share one."""
    with pytest.raises(ScenarioError, match="Calm: give the class and not an instance"):
        subject(toys.Calm())  # type: ignore[arg-type]


def test_a_file_that_raises_leaves_no_module_behind(tmp_path: Path) -> None:
    """It is imported anew when it is mended."""
    file = tmp_path / "a_broken_one.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ScenarioError, match=r"cannot import .*a_broken_one.py: ZeroDivisionError"):
        subject(f"{file}:Mine")
    assert "a_broken_one" not in sys.modules
    sys.path.remove(str(tmp_path))


def test_a_file_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    """Exit status 0 would say that nothing was found."""
    file = tmp_path / "a_script_without_a_guard.py"
    file.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(ScenarioError, match=r"cannot import .*a_script_without_a_guard.py: SystemExit: 0"):
        subject(f"{file}:Mine")
    sys.path.remove(str(tmp_path))


def test_classes_of_installed_packages_and_of_scripts_have_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By module where it is installed, by file where it is run, and none where there is neither."""
    made = [
        ("mine", str(tmp_path / "site-packages" / "mine.py"), "mine:Calm"),
        ("__main__", str(tmp_path / "script.py"), f"{tmp_path / 'script.py'}:Calm"),
        ("frozen", None, "frozen:Calm"),
        ("__main__", None, None),
    ]
    for name, file, reference in made:
        module = ModuleType(name)
        module.__file__ = file
        monkeypatch.setitem(sys.modules, name, module)
        there = type("Calm", (toys.Calm,), {"__module__": name, "__qualname__": "Calm"})
        assert subject(there).reference == reference


def test_a_file_that_can_be_imported_by_its_name_is(tmp_path: Path) -> None:
    """It is the same module for whoever else imports it."""
    file = tmp_path / "importable_by_name.py"
    file.write_text("from tests.lab.explore.toys import Calm\n")
    assert type(subject(f"{file}:Calm").make()) is toys.Calm
    assert "importable_by_name" in sys.modules
    sys.path.remove(str(tmp_path))


def test_a_module_of_a_package_is_imported_as_one(tmp_path: Path) -> None:
    """So that it may import from its package."""
    package = tmp_path / "package_of_mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text("NAME = 'relative'\n")
    (package / "mine.py").write_text(
        "from tests.lab.explore.toys import Calm\nfrom .names import NAME\nclass Mine(Calm):\n    name = NAME\n"
    )
    assert subject(f"{package / 'mine.py'}:Mine").name == "relative"
    sys.path.remove(str(tmp_path))
