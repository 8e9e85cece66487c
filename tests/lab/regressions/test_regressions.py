import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.regressions.bugs import BUGS
from whenidle_lab.files import load
from whenidle_lab.run import run
from whenidle_lab.subjects import recorded_subject

HERE = Path(__file__).parent

each_bug = pytest.mark.parametrize("name", [bug.name for bug in BUGS])


@each_bug
def test_what_broke_breaks_no_more(name: str) -> None:
    """The choices that once led to the bug lead to nothing now."""
    recording = load(HERE / f"{name}.json")
    again = run(recorded_subject(recording).make(), script=recording.choices or (), strict=False)
    assert again.finding is None


@each_bug
def test_with_the_bug_put_back_it_breaks_the_same_way(name: str) -> None:
    """Each recording still leads to its bug, or it would prove nothing; if not, record it anew."""
    command = [sys.executable, "-m", "tests.lab.regressions.record", name, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\nrecord it anew: {' '.join(command[1:-1])}"


def test_each_recording_is_of_a_bug() -> None:
    """There is one recording for each bug, and no other."""
    assert {file.stem for file in HERE.glob("*.json")} == {bug.name for bug in BUGS}
