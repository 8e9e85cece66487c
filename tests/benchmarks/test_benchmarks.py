"""The benchmarks run and say what they say they say; how fast anything is, no test asks."""

import json
import math
from typing import Any, TypeAlias

import pytest

from benchmarks.__main__ import main, names
from benchmarks.harness.floors import FLOORS, with_floor

TINY = "0.0005"

Capture: TypeAlias = pytest.CaptureFixture[str]


def report_of(capsys: Capture, *arguments: str) -> Any:
    """Run the benchmarks as JSON, tiny, and return what they print."""
    assert main(["--json", "--scale", TINY, *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", names())
def test_each_benchmark_gives_rows_of_one_shape(name: str, capsys: Capture) -> None:
    """Every module runs at a tiny scale, and each row has a name, two positive numbers and their ratio."""
    rows = report_of(capsys, "--only", name)["rows"]
    assert rows
    for row in rows:
        assert row.keys() == {"name", "ours", "peer", "ratio", "unit", "peer_name", "floor", "met"}
        assert all(isinstance(row[key], str) and row[key] for key in ("name", "unit", "peer_name"))
        assert all(row[key] > 0 for key in ("ours", "peer", "ratio"))
        assert math.isclose(row["ratio"], row["ours"] / row["peer"]) or math.isclose(
            row["ratio"], row["peer"] / row["ours"]
        )


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_a_floor_is_reported_and_not_enforced(ratio: float) -> None:
    """A row that a floor concerns says whether it keeps it; any other row says nothing."""
    row = {"name": "alarm: arm, 5 targets", "ratio": ratio, "ours": 1.0, "peer_name": "asyncio call_later"}
    assert with_floor(row) == {**row, "floor": "ratio >= 2", "met": ratio == 2.0}
    assert with_floor({**row, "peer_name": "another"})["met"] is None


def test_json_says_on_what_machine_it_was(capsys: Capture) -> None:
    """The JSON names Python, system, processors and SQLite, the scale, and the peers that were left out."""
    report = report_of(capsys, "--only", "alarm")
    assert report.keys() == {"machine", "scale", "rows", "skipped"}
    assert report["machine"].keys() == {"python", "implementation", "system", "cpus", "sqlite"}
    assert report["scale"] == float(TINY)


def test_the_table_shows_each_row_and_that_a_small_scale_proves_nothing(capsys: Capture) -> None:
    """Without --json there is a table, and progress goes to standard error."""
    assert main(["--only", "alarm", "--scale", TINY]) == 0
    out, err = capsys.readouterr()
    assert "alarm: arm" in out
    assert "floors are meant for scale 1" in out
    assert err.startswith("alarm ...")


@pytest.mark.parametrize("arguments", [["--only", "nothing"], ["--scale", "0"], ["--scale", "x"], ["--fast"]])
def test_wrong_arguments_exit_with_status_2(arguments: list[str], capsys: Capture) -> None:
    """Usage errors are told apart from anything a measurement says."""
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_every_floor_belongs_to_a_benchmark() -> None:
    """No floor is left over from a benchmark that was renamed."""
    assert {floor.row.partition(":")[0] for floor in FLOORS} <= {*names()}
