import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from whenidle_lab import testing
from whenidle_lab.explore import explore
from whenidle_lab.report import Report
from whenidle_lab.scenario import Scenario
from whenidle_lab.subjects import subject
from whenidle_lab.testing import explore as front_explore

from . import toys
from .toys import Calm, Overtaking

TESTS = """
from whenidle import lab
from tests.lab.explore.toys import Calm, Moody, Overtaking


@lab.explore(seeds=30)
class TestOvertaking(Overtaking):
    '''It fails.'''


@lab.explore(seeds=range(5, 8), strategy="pct:2")
class TestCalm(Calm):
    '''It passes.'''


@lab.explore(seeds=3)
def test_calm() -> lab.Scenario:
    '''It passes too.'''
    return Calm()


@lab.explore(seeds=2, twice=True)
def test_moody() -> lab.Scenario:
    '''It is another run each time.'''
    return Moody()
"""


def _run(*command: str, where: Path) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    return subprocess.run(
        [sys.executable, *command],
        cwd=where,
        env={**os.environ, "PYTHONPATH": root, "PYTEST_ADDOPTS": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_decorated_scenarios_are_tests_and_a_failing_one_tells_how_to_replay_it(tmp_path: Path) -> None:
    """The recording is written below pytest's root directory, shrunk, and the command that is told replays it."""
    (tmp_path / "test_mine.py").write_text(TESTS)
    done = _run("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "test_mine.py", where=tmp_path)
    assert "2 failed, 2 passed" in done.stdout
    assert "test_mine.py::TestOvertaking::test_explored" in done.stdout
    assert "invariant in-order" in done.stdout
    assert "unstable trace" in done.stdout
    commands = re.findall(r"again: whenidle lab replay (\S+)", done.stdout)
    assert len(set(commands)) == 2
    (command,) = {command for command in commands if "overtaking" in command}
    replayed = _run("-m", "whenidle", "lab", "replay", command, where=tmp_path)
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert len(list((tmp_path / ".whenidle-lab").iterdir())) == 2


def test_only_scenarios_that_pytest_collects_are_made_tests_of() -> None:
    """A test that would never be run is refused at once."""
    with pytest.raises(TypeError, match="Calm is not collected by pytest: its name has to begin with Test"):
        testing.explored(seeds=1)(Calm)
    with pytest.raises(TypeError, match="its name has to begin with test"):
        testing.explored(seeds=1)(toys.calm)
    with pytest.raises(TypeError, match="int is not a Scenario"):
        testing.explored(seeds=1)(int)  # type: ignore[type-var]

    class TestStateful(Calm):
        def __init__(self) -> None:
            self.letters = 0

    with pytest.raises(TypeError, match="since it has an __init__ or __new__ of its own: decorate a function"):
        testing.explored(seeds=1)(TestStateful)


def test_given_a_scenario_it_is_explored_now() -> None:
    """One name for both, by whether there is a scenario."""
    assert front_explore(Overtaking, seeds=9).found == explore(Overtaking, seeds=9).found


@attrs.frozen
class Config:
    """What a test takes of pytest's configuration."""

    rootpath: Path

    def getini(self, name: str) -> list[Path]:
        """Return where pytest was told to import from: nowhere else."""
        assert name == "pythonpath"
        return []


def test_a_file_outside_of_the_working_directory_is_told_by_its_whole_path(tmp_path: Path) -> None:
    """So that the command works where it is read."""

    @testing.explored(seeds=30)
    class TestElsewhere(Overtaking):
        pass

    with pytest.raises(testing.Explored) as raised:
        TestElsewhere().test_explored(Config(tmp_path))  # type: ignore[attr-defined]
    (file,) = (tmp_path / ".whenidle-lab").iterdir()
    assert str(raised.value).endswith(f"again: whenidle lab replay {file}")
    assert "The story of a run of overtaking" in str(raised.value)


PROJECT = """
from my_agent import MyAgent
from whenidle import lab


@lab.explore(seeds=30)
class TestMyAgent(MyAgent):
    '''It fails.'''
"""


@pytest.mark.parametrize(
    ("setting", "place", "prefix"),
    [("", ".", ""), ('pythonpath = ["src"]', "src", "PYTHONPATH=src "), ('pythonpath = ["."]', ".", "")],
)
def test_the_command_imports_what_the_test_has_imported(setting: str, place: str, prefix: str, tmp_path: Path) -> None:
    """From the working directory, where `python -m pytest` looks too, and from where pytest was told to look."""
    for folder in ("checks", place):
        (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{setting}\n")
    (tmp_path / place / "my_agent.py").write_text("from tests.lab.explore.toys import Overtaking as MyAgent\n")
    (tmp_path / "checks" / "test_mine.py").write_text(PROJECT)
    done = _run("-m", "pytest", "-p", "no:cacheprovider", "checks/test_mine.py", where=tmp_path)
    told = re.search(r"again: (.*)whenidle (lab replay \S+)", done.stdout)
    assert told is not None, done.stdout
    assert told[1] == prefix
    # The command `whenidle` does not look in the working directory by itself, as `python -m` would.
    folders = [str(tmp_path / place)] if prefix else []
    code = f"import sys; sys.path[:1] = {folders}; from whenidle.cli import main; sys.exit(main())"
    replayed = _run("-c", code, *told[2].split(), where=tmp_path)
    assert (replayed.returncode, replayed.stderr) == (0, "")


def test_a_function_is_a_test_and_still_a_scenario(tmp_path: Path) -> None:
    """What is found by its name, to replay it, is what it returns."""

    def test_overtaking() -> Scenario:
        """Explore it."""
        return Overtaking()

    decorated: Any = testing.explored(seeds=30)(test_overtaking)
    assert decorated.__name__ == "test_overtaking"
    assert decorated.__doc__ == "Explore it."
    assert subject(decorated).name == "overtaking"
    with pytest.raises(testing.Explored, match=r"invariant in-order in run [0-9]+ of overtaking, seed [0-9]+"):
        decorated(Config(tmp_path))
    testing.explored(seeds=[3])(toys.test_calm)(Config(tmp_path))  # type: ignore[call-arg]


def test_what_is_not_the_same_twice_is_told_without_a_story(tmp_path: Path) -> None:
    """It cannot be made smaller; where it parts is what is told."""

    @testing.explored(seeds=1, twice=True)
    class TestMoody(toys.Moody):
        pass

    with pytest.raises(testing.Explored, match=r"unstable trace in run 1 of moody, seed 0\nhappening [0-9]+ differs"):
        TestMoody().test_explored(Config(tmp_path))  # type: ignore[attr-defined]


def test_a_scenario_that_inherits_a_test_is_what_it_tests(tmp_path: Path) -> None:
    """Not the one that it inherits it from."""

    @testing.explored(seeds=30)
    class TestNothing(Calm):
        pass

    class TestRace(TestNothing, Overtaking):
        play = Overtaking.play

    TestNothing().test_explored(Config(tmp_path))  # type: ignore[attr-defined]
    with pytest.raises(testing.Explored):
        TestRace().test_explored(Config(tmp_path))  # type: ignore[attr-defined]


def test_ctrl_c_ends_a_test_as_it_ends_any(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pytest is told."""

    @testing.explored(seeds=3)
    class TestInterrupted(Calm):
        pass

    def interrupted(*_: object, **__: object) -> Report:
        return Report("calm", "random", 0, 0.0, 0.0, 0, 0, {}, 0, (), 0, is_finished=False, is_interrupted=True)

    monkeypatch.setattr("whenidle_lab.explore.explore", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TestInterrupted().test_explored(Config(tmp_path))  # type: ignore[attr-defined]
