"""`whenidle lab`: explorations and what is done with their recordings."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from whenidle.cli.lab_lines import report_lines
from whenidle_lab.report import MAX_TRACES, Report

from .command_line import Call

SCENARIOS = """
import os, signal
import trio
from whenidle.lab import FaultKind, Faults, Scenario

class Calm(Scenario):
    '''Nothing is wrong.'''
    name = "calm"
    bound = 1.0
    async def play(self, world):
        print("no result")
        await world.when_idle(await world.agent("ada"))

class Race(Scenario):
    name = "race"
    bound = 1.0
    faults = Faults(frozenset({FaultKind.SLOW, FaultKind.CRASH_IN_COMMIT}), chance=0.2)
    async def play(self, world):
        order = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.run, order, 1)
            nursery.start_soon(self.run, order, 2)
        if order[0] == 2:
            raise ValueError("2 overtook\\x1b[31m 1")
    async def run(self, order, number):
        order.append(number)

class Interrupted(Calm):
    async def play(self, world):
        os.kill(os.getpid(), signal.SIGINT)
class Hanging(Calm):
    name = "hanging"
    async def play(self, world):
        while True:
            pass
"""


@pytest.fixture(autouse=True)
def scenarios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory with a file of scenarios."""
    (tmp_path / f"{_module(tmp_path)}.py").write_text(SCENARIOS)
    monkeypatch.chdir(tmp_path)


def _module(tmp_path: Path) -> str:
    """Return a name that no other test's file has: modules are imported once."""
    return re.sub(r"\W", "_", f"mine_{tmp_path.parent.name}_{tmp_path.name}")


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """Return the file of scenarios."""
    return f"{_module(tmp_path)}.py"


@pytest.fixture
def recording(call: Call, mine: str) -> str:
    """Return a recording of a race."""
    assert call("lab", "run", f"{mine}:Race", "--seeds", "30").status == 1
    (file,) = Path(".whenidle-lab").iterdir()
    return str(file)


def test_the_labs_scenarios_are_listed(call: Call) -> None:
    """Each with a sentence, and with --json its kinds of fault."""
    result = call("lab", "list")
    assert result.status == 0
    assert re.search(r"^three-agents +Three agents are reminded", result.out, re.MULTILINE)
    listed = {each["name"]: each for each in call("lab", "list", "--json").json["scenarios"]}
    assert "crash" in listed["mixed"]["faults"]
    assert listed["three-agents"]["summary"].startswith("Three agents")


def test_a_run_in_which_nothing_is_found_ends_with_0(call: Call, mine: str) -> None:
    """It tells how many runs there were, and writes no file; what scenarios print is not in between."""
    result = call("lab", "run", f"{mine}:Calm", "three-agents", "--seeds", "3")
    assert result.status == 0
    assert re.search(
        r"^calm  random  3 runs in .*, [0-9]+/s; [12] different traces; .* virtual seconds a second$",
        result.out,
        re.MULTILINE,
    )
    assert result.out.endswith("nothing was found in 6 runs\n")
    assert set(result.err.splitlines()) == {"no result"}
    assert not Path(".whenidle-lab").exists()


def test_what_is_found_is_told_with_the_command_that_replays_it(call: Call, mine: str) -> None:
    """The exit status is 1; faults that happened are counted, and those that never did are named."""
    result = call("lab", "run", f"{mine}:Race", "--seeds", "30")
    assert result.status == 1
    assert "  error ValueError: 2 overtook\\x1b[31m 1\n" in result.out
    assert "\x1b" not in result.out
    assert re.search(r"^  runs with faults: .*slow|never: .*slow", result.out, re.MULTILINE)
    (command,) = re.findall(r"^    whenidle (lab replay .*)$", result.out, re.MULTILINE)
    again = call(*command.split())
    assert again.status == 0
    assert again.out.startswith("The story of a run of race\n")
    assert again.out.splitlines()[-1].startswith("reproduced: error ValueError")


def test_a_run_with_json_is_one_document(call: Call, mine: str) -> None:
    """With all that is told to people."""
    result = call("lab", "run", f"{mine}:Race", "--seeds", "5-34", "--json", "--out", "found", "--twice")
    assert result.status == 1
    document = result.json
    (report,) = document["reports"]
    assert (document["runs"], document["found"]) == (30, 1)
    assert report["scenario"] == "race"
    assert report["finished"] is True
    assert set(report["faults"]) | set(report["faultsAbsent"]) == {"slow", "crash-in-commit"}
    (found,) = report["found"]
    assert (found["kind"], found["name"]) == ("error", "ValueError")
    assert 5 <= found["seed"] < 35
    assert found["file"] == f"found/race-ValueError-{found['seed']}.json"


def test_a_report_tells_what_it_has_no_room_for() -> None:
    """Findings beyond those that are kept, and traces beyond those that are told apart."""
    told = Report("x", "random", 9, 1.0, 1.0, 1, 1, {}, MAX_TRACES, (), 7, is_finished=False, is_interrupted=True)
    first, last = report_lines(told, [])
    assert "9 runs, not all that was asked for in 1.0s, 9/s; at least 1000000 different traces" in str(first)
    assert last == "  7 runs more failed in other ways, which were not kept"


def test_exhaustive_runs_tell_whether_the_space_was_finished(call: Call, mine: str) -> None:
    """A bound and a number of runs limit it."""
    assert (
        "exhaustive:0  1 runs, the whole space in"
        in call("lab", "run", f"{mine}:Calm", "--strategy", "exhaustive:0").out
    )
    assert (
        "5 runs, not the whole space in"
        in call("lab", "run", f"{mine}:Calm", "--strategy", "exhaustive:2", "--seeds", "5").out
    )


def test_minutes_bound_all_scenarios_together(call: Call, mine: str) -> None:
    """Each has its share, and runs as many seeds as it can in that."""
    result = call("lab", "run", f"{mine}:Calm", f"{mine}:Calm", "--minutes", "0.003", "--json")
    assert result.status == 0
    assert [report["finished"] for report in json.loads(result.out)["reports"]] == [False, False]


def test_processes_run_seeds_beside(call: Call, mine: str) -> None:
    """With more than one job."""
    result = call("lab", "run", f"{mine}:Race", "--seeds", "20", "--jobs", "2", "--json")
    assert (result.status, json.loads(result.out)["runs"]) == (1, 20)


def test_ctrl_c_ends_with_a_summary_and_130(call: Call, mine: str) -> None:
    """Scenarios that were still to come are left out."""
    result = call("lab", "run", f"{mine}:Interrupted", f"{mine}:Calm", "--json")
    assert result.status == 130
    (report,) = json.loads(result.out)["reports"]
    assert report["interrupted"] is True
    assert report["runs"] == 1


def test_a_terminal_sees_progress(mine: str, tmp_path: Path) -> None:
    """A line that is drawn anew, and is gone at the end."""
    pexpect = pytest.importorskip("pexpect")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "whenidle", "lab", "run", f"{mine}:Race", "--minutes", "1"],
        cwd=str(tmp_path),
        dimensions=(24, 160),
        timeout=60,
        encoding="utf-8",
    )
    child.expect(r"race.*random  [0-9]+ runs  [0-9]+/s.*found 1.*Ctrl-C stops")
    child.sendintr()
    child.expect("whenidle lab replay")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


# Recordings -----------------------------------------------------------------------------------------


def test_a_replay_with_json_says_whether_it_was_the_same_run(call: Call, recording: str) -> None:
    """And what was found."""
    document = call("lab", "replay", recording, "--json").json
    assert document["reproduced"] is True
    assert document["difference"] is None
    assert document["finding"]["name"] == "ValueError"


def test_a_replay_that_is_another_run_ends_with_1(call: Call, recording: str, tmp_path: Path) -> None:
    """It says where the runs part."""
    document = json.loads(Path(recording).read_text())
    Path("other.json").write_text(json.dumps(document | {"digest": "x", "versions": {"trio": "0.1"}}))
    result = call("lab", "replay", "other.json")
    assert result.status == 1
    assert "not the recorded run: unstable trace: something differs that left no mark\n" in result.out
    assert "    it was recorded with trio 0.1 and not " in result.out
    assert call("lab", "replay", "other.json", "--json").json["difference"]["kind"] == "unstable"


def test_a_recording_is_shrunk_into_a_file_that_replays(call: Call, recording: str) -> None:
    """Beside the first one, unless another name is given."""
    result = call("lab", "shrink", recording)
    assert (result.status, result.err) == (0, "")
    small = recording.removesuffix(".json") + ".small.json"
    assert result.out.endswith(f"none of them can be left out\nwrote {small}\n")
    assert call("lab", "replay", small).status == 0
    document = call("lab", "shrink", recording, "-o", "tiny.json", "--runs", "1", "--minutes", "5", "--json").json
    assert document["file"] == "tiny.json"
    assert (document["runs"], document["minimal"]) == (1, False)
    assert document["choices"] <= document["choicesBefore"]


def test_a_recording_is_drawn(call: Call, recording: str) -> None:
    """As a page, or as trace events."""
    result = call("lab", "timeline", recording, "-o", "out.html")
    assert result.status == 0
    assert result.out.startswith("wrote out.html\nreproduced: error ValueError")
    assert "<html" in Path("out.html").read_text()
    document = call("lab", "timeline", recording, "--perfetto", "--json").json
    assert document["file"] == recording.removesuffix(".json") + ".trace.json"
    assert json.loads(Path(document["file"]).read_text())["traceEvents"]


def test_a_recording_is_not_drawn_over(call: Call, recording: str) -> None:
    """What it is drawn from is kept, by whatever name it is called."""
    before = Path(recording).read_text()
    result = call("lab", "timeline", recording, "-o", f"./{recording}")
    assert (result.status, Path(recording).read_text()) == (2, before)
    assert result.error.endswith("is the recording; write to another file with -o")


def test_a_run_whose_process_died_is_replayed_by_its_seed(
    call: Call, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no story of it, nothing to draw and nothing to shrink."""
    document = {
        "format": "whenidle lab recording",
        "format_version": 1,
        "scenario": "calm",
        "import": f"{mine}:Calm",
        "strategy": "random",
        "seed": 1,
        "finding": {"kind": "hung", "name": "run", "text": "no end"},
        "choices": None,
        "then_quiet": 0,
        "digest": "",
        "marks": "",
        "versions": {},
    }
    Path("lost.json").write_text(json.dumps(document))
    result = call("lab", "replay", "lost.json")
    assert result.status == 1
    assert result.out.startswith("not the recorded run: unstable trace: found nothing instead of hung run")
    Path("lost.json").write_text(json.dumps(document | {"import": f"{mine}:Hanging"}))
    monkeypatch.setattr("whenidle_lab.replay.replay.__kwdefaults__", {"detailed": False, "patience": 0.2})
    result = call("lab", "replay", "lost.json")
    assert (result.status, result.out) == (0, "reproduced: hung run: no end\n")
    assert call("lab", "timeline", "lost.json").error.startswith("there is nothing to draw")
    assert "its process did not live to tell" in call("lab", "shrink", "lost.json").error


# What is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["run", "nonsense"], "there is no scenario 'nonsense'; there are "),
        (["run", "nowhere.py:Mine"], "there is no file '"),
        (["run", "three-agents", "--strategy", "best"], "there is no strategy 'best'; write random, pct:DEPTH"),
        (["run", "three-agents", "--strategy", "exhaustive", "--jobs", "2"], "runs in one process; leave --jobs out"),
        (
            ["run", "three-agents", "--seeds", "0"],
            "--seeds takes how many seeds to run, like 1000, or which,",
        ),
        (["run", "three-agents", "--seeds", "9-3"], "like 5000-5999, not '9-3'"),
        (["run", "three-agents", "--seeds", "1.5"], "not '1.5'"),
        (["run", "three-agents", "--jobs", "0"], "--jobs takes a whole number from 1 to 1000, not 0"),
        (["run", "three-agents", "--minutes", "0"], "--minutes takes a number above 0, not 0"),
        (["run", "three-agents", "--minutes", "inf"], "--minutes takes a number above 0, not inf"),
        (["replay"], "FILE requires an argument"),
        (["replay", "-"], "give the name of a file, not - or nothing"),
        (["shrink", "x.json", "--runs", "0"], "--runs takes a whole number from 1 to 1000000, not 0"),
        (["shrink", "x.json", "--minutes", "-1"], "--minutes takes a number above 0, not -1"),
        (["timeline", "x.json", "-o", ""], "give the name of a file, not - or nothing"),
    ],
)
def test_a_command_line_of_the_lab_that_makes_no_sense_is_refused(call: Call, argv: list[str], message: str) -> None:
    """In one line, with status 2."""
    result = call("lab", *argv)
    assert result.status == 2
    assert message in result.error


def test_a_file_that_is_no_recording_is_refused(call: Call, mine: str) -> None:
    """In one line, with status 1; a scenario that is gone is named."""
    assert call("lab", "replay", mine).error.startswith(f"{mine} is no recording of the lab")
    assert call("lab", "replay", "nowhere.json").error.endswith("No such file or directory: 'nowhere.json'")
    result = call("lab", "replay", mine, "--json")
    assert (result.status, result.json["code"]) == (1, "bad_recording")
    assert call("lab", "run", f"{mine}:Gone", "--json").json["code"] == "bad_scenario"


def test_a_recording_that_no_longer_fails_is_not_shrunk(call: Call, recording: str) -> None:
    """There is nothing to go by."""
    document = json.loads(Path(recording).read_text())
    Path("other.json").write_text(json.dumps(document | {"choices": []}))
    result = call("lab", "shrink", "other.json", "--json")
    assert (result.status, result.json["code"]) == (1, "not_reproduced")


def test_nothing_but_the_lab_imports_the_lab() -> None:
    """Who runs agents, or asks for help, does not wait for it."""
    script = (
        "import sys, whenidle; from whenidle.cli import main; main(['--help']); print('whenidle_lab' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
    assert "lab" in done.stdout
