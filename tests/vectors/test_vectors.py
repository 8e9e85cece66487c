from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .__main__ import main
from .checks import CHECKS
from .runner import SHOWN, run_file

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parent / "data"
ROWS = {
    "at": 2_654,
    "delay": 238,
    "every_occurrence": 400,
    "decode": 1_076,
    "fold": 400,
    "framing": 22,
    "delivery": 150,
    "rrule": 296,
}


@pytest.mark.parametrize("name", CHECKS)
def test_all_answers_are_those_of_the_reference(name: str) -> None:
    """Every row of every file comes out the same (SPEC 5.10)."""
    report = run_file(DATA, name)
    assert not report.differences, str(report)
    assert report.passed == ROWS[name]


GOOD = {"change": {"version": 1, "operation": "delete", "id": "schedule-1"}, "ok": True}
BAD = {**GOOD, "ok": False, "code": "corrupt_schedule_log"}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write rows, or raw text, as a file of the format into a directory of its own."""

    def write(name: str, *rows: object) -> Path:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path

    return write


def test_the_runner_counts_and_ends_with_zero(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A line a file, files that are missing or unknown by name, then the sum."""
    write("unheard", {})
    assert main([str(write("decode", GOOD, GOOD))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "decode.jsonl: 2 passed, 0 failed" in lines
    assert "fold.jsonl: skipped (missing)" in lines
    assert "unheard.jsonl: skipped (no such file in the format)" in lines
    assert lines[-1] == "2 passed, 0 failed"


def test_a_difference_is_told_and_ends_with_one(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The first few with their lines, the rest by number."""
    assert main([str(write("decode", *[BAD] * (SHOWN + 2), GOOD)), "--only", "decode"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "decode.jsonl: 1 passed, 5 failed"
    assert lines[1] == "  line 1: expected {'code': 'corrupt_schedule_log'}, got {'ok': True}"
    assert lines[1 + SHOWN] == "  and 2 more"
    assert lines[-1] == "1 passed, 5 failed"


def test_a_row_without_its_fields_is_a_failure(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """It is an object, but not a row of that file."""
    assert main([str(write("at", {"at": "2030-01-01T00:00:00Z"})), "--only", "at.jsonl"]) == 1
    assert "line 1: not a row of this file: KeyError: 'now'" in capsys.readouterr().out


def test_a_difference_with_half_a_pair_can_be_printed(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Text no terminal can show is shown by its escapes."""
    row = {
        "record": {"id": "x", "prompt": "\ud800", "scheduledAt": "2026-01-01T00:00:00.000Z"},
        "text": "\udfff",
    }
    assert main([str(write("framing", row)), "--only", "framing"]) == 1
    assert r"\udfff" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("{", "decode.jsonl line 2: not JSON: "), ("[]", "decode.jsonl line 2: not a JSON object")],
)
def test_an_unreadable_row_is_one_clear_line(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    """Named by file and line, with status 2."""
    assert main([str(write("decode", "", line)), "--only", "decode"]) == 2
    assert capsys.readouterr().err.startswith(f"tests.vectors: {complaint}")


def test_a_directory_that_cannot_be_run_is_one_clear_line(
    tmp_path: Path, write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is missing, or holds no file of the format, or no file of that name."""
    assert main([str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err == f"tests.vectors: {tmp_path / 'nowhere'} is not a directory\n"
    assert main([str(tmp_path)]) == 2
    assert f"{tmp_path} holds none of at.jsonl, " in capsys.readouterr().err
    assert main([str(write("decode", GOOD)), "--only", "cron"]) == 2
    assert capsys.readouterr().err.startswith("tests.vectors: no file is called 'cron'; there are at, delay, ")
