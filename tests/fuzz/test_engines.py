"""The search itself: it finds what is there, keeps it, and ends in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import __main__ as command
from .engines import at_random, has_atheris
from .found import found_inputs, keep
from .target import Target
from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]


def _refuse_big(data: bytes) -> None:
    assert max(data, default=0) < 200


def test_the_simplest_input_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all that break a target, the shortest and smallest, under a name that says nothing but what it is."""
    with pytest.raises(AssertionError):
        at_random(Target("big", _refuse_big, (b"seed",)), 60, tmp_path)
    [path] = found_inputs("big", tmp_path)
    assert path.read_bytes() == b"\xc8"
    assert capsys.readouterr().out == f"kept as {path}\n"
    assert keep("big", b"\xc8", tmp_path) == path


def test_a_search_without_a_find_ends_in_time(tmp_path: Path) -> None:
    """And says how much it has looked at; with no time at all it looks at nothing."""
    target = Target("none", lambda _: None, (b"",))
    assert at_random(target, 0.01, tmp_path) >= 1
    assert at_random(target, 0, tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_command_looks_at_one_target(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """At random, where nothing guides it."""
    monkeypatch.setattr(command, "has_atheris", lambda: False)
    assert command.main(["names", "--seconds", "0"]) == 0
    assert capsys.readouterr().out == "names: 0 inputs, nothing found\n"


@pytest.mark.parametrize(("statuses", "status"), [([0] * 12, 0), ([0, 77, *[0] * 10], 1), ([-9, *[0] * 11], 1)])
def test_the_command_looks_at_each_target(
    monkeypatch: pytest.MonkeyPatch, statuses: Sequence[int], status: int
) -> None:
    """In a process of its own, and has failed if one of them has."""
    ended, run = iter(statuses), list[str]()

    def instead(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        run.append(argv[3])
        assert argv[4:] == ["--seconds", "7"]
        return subprocess.CompletedProcess(argv, next(ended))

    monkeypatch.setattr(subprocess, "run", instead)
    assert command.main(["--seconds", "7"]) == status
    assert run == list(TARGETS)


@pytest.mark.skipif(not has_atheris(), reason="atheris is not installed")
def test_the_guided_search_runs(tmp_path: Path) -> None:
    """It is guided by what the product does: more than the target's own code is seen."""
    script = (
        f"from tests.fuzz.engines import guided; from pathlib import Path; guided('names', 1, Path({str(tmp_path)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False, env=_bare()
    )
    assert done.returncode == 0, done.stderr
    assert "Instrumenting whenidle_protocol.task_ids" in done.stderr
    assert found_inputs("names", tmp_path) == ()


def _bare() -> dict[str, str]:
    """Return the environment without what measures coverage in other ways."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def test_what_was_found_is_with_the_tests() -> None:
    """The folder that the search writes to is the one that the tests read."""
    assert found_inputs("names") == found_inputs("names", Path(__file__).parent / "found")
