"""The searches themselves: they find what is there, keep it, and end in time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import __main__ as command
from . import unguided
from .found import FOLDER, found_inputs, keep
from .guided import has_atheris
from .target import Target
from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence


def _refuse_big(data: bytes) -> None:
    assert max(data, default=0) < 200


BIG = Target("big", _refuse_big, (b"seed",))


def test_the_simplest_input_is_kept(tmp_path: Path) -> None:
    """Of all that break a target, the shortest and smallest, under a name that says nothing but what it is."""
    with pytest.raises(AssertionError):
        unguided.search(BIG, 60, tmp_path)
    [path] = found_inputs("big", tmp_path)
    assert path.read_bytes() == b"\xc8"
    assert keep("big", b"\xc8", tmp_path) == path


def test_a_search_without_a_find_ends_in_time(tmp_path: Path) -> None:
    """And says how much it has looked at; with no time at all it looks at nothing."""
    target = Target("none", lambda _: None, (b"",))
    assert unguided.search(target, 0.01, tmp_path) >= 1
    assert unguided.search(target, 0, tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_guide_the_command_searches_at_random(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It tells what it looked at; the status says whether something was found."""
    monkeypatch.setattr(command, "has_atheris", lambda: False)
    assert command.main(["names", "--seconds", "0"], tmp_path) == 0
    assert capsys.readouterr().out == "names: 0 inputs\nnames: nothing was found\n"
    monkeypatch.setitem(TARGETS, "names", BIG)
    assert command.main(["names", "--seconds", "60"], tmp_path) == 1
    told = capsys.readouterr()
    assert "something was found" in told.out
    assert "AssertionError" in told.err


@pytest.mark.parametrize(("found", "status"), [([], 0), (["cron"], 1), (["reminder-tools", "commands"], 1)])
def test_the_command_looks_at_each_target(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Sequence[str], status: int
) -> None:
    """Also after a find."""
    looked_at = list[tuple[str, int]]()

    def look(name: str, seconds: int, _: Path) -> bool:
        looked_at.append((name, seconds))
        return name in found

    monkeypatch.setattr(command, "_guided", look)
    monkeypatch.setattr(command, "_unguided", look)
    assert command.main(["--seconds", "7"], tmp_path) == status
    assert looked_at == [(name, 7) for name in TARGETS]


@pytest.mark.skipif(not has_atheris(), reason="atheris is not installed")
def test_a_guided_search_sees_what_the_product_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is instrumented; a search that finds nothing leaves nothing."""
    for name in [each for each in os.environ if each.startswith("COVERAGE")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(Path(__file__).parents[2])
    assert command.main(["names", "--seconds", "1"], tmp_path) == 0
    assert "Instrumenting whenidle_protocol.task_ids" in capfd.readouterr().err
    assert found_inputs("names", tmp_path) == ()


def test_what_was_found_belongs_to_a_target() -> None:
    """What lies elsewhere would be run by no test."""
    assert {each.name for each in FOLDER.iterdir()} <= set(TARGETS)
