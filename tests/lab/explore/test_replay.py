import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from whenidle_lab.choices import Choice, Topic
from whenidle_lab.comparison import parted
from whenidle_lab.explore import explore
from whenidle_lab.files import save
from whenidle_lab.findings import FindingKind
from whenidle_lab.recording import Recording
from whenidle_lab.replay import replay
from whenidle_lab.run import run
from whenidle_lab.subjects import subject

from .toys import TOYS, Calm, Differing, Draws, Faulty, Moody, Nowhere, Overtaking

REPLAY = """
import sys
from pathlib import Path
from whenidle_lab.files import load
from whenidle_lab.replay import replay
from whenidle_lab.subjects import recorded_subject

recording = load(Path(sys.argv[1]))
again = replay(recording, recorded_subject(recording))
assert again.difference is None, again.difference
for happening in again.run.trace:
    print(happening.line())
"""


def found(scenario: type, seeds: int = 60) -> Recording:
    """Return the recording of the first seed that fails."""
    report = explore(scenario, seeds=seeds, stop_at_first=True)
    assert report.found, "no seed fails"
    return report.found[0].recording


def test_a_recording_is_the_same_run_in_other_processes_under_other_hash_seeds(tmp_path: Path) -> None:
    """Byte for byte: the same choices, the same finding, the same trace."""
    file = tmp_path / "one.json"
    recording = found(Faulty)
    save(recording, file)
    traces = set()
    for hash_seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", REPLAY, str(file)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        traces.add(done.stdout)
    assert len(traces) == 1
    here = replay(recording, subject(Faulty))
    assert here.run is not None
    assert traces == {"".join(f"{happening.line()}\n" for happening in here.run.trace)}


def test_a_replay_in_detail_is_the_same_run() -> None:
    """Pictures are drawn of the run that was recorded."""
    again = replay(found(Faulty), subject(Faulty), detailed=True)
    assert again.difference is None


def test_a_recording_of_another_program_diverges() -> None:
    """A choice that was not recorded is told with its place."""
    recording = attrs.evolve(found(Draws), choices=(Choice(Topic.CRASH, 2, 1),))
    difference = replay(recording, subject(Draws)).difference
    assert difference is not None
    assert difference.kind is FindingKind.DIVERGED
    assert difference.text.startswith("choice 0 is ")
    assert difference.text.endswith("the recording has crash of 2 there")


def test_a_divergence_is_found_where_the_program_catches_it() -> None:
    """A scenario's own handler does not hide it."""

    class Catching(Draws):
        async def play(self, world: object) -> None:
            try:
                await super().play(world)  # type: ignore[arg-type]
            except Exception:  # noqa: BLE001 - the point
                return

    ran = run(Calm())
    script = [*ran.choices, Choice(Topic.SCENARIO, 3, 0)]
    assert run(Calm(), script=script).finding is None
    first = next(position for position, choice in enumerate(run(Draws()).choices) if choice.topic is Topic.SCENARIO)
    script = [*run(Draws()).choices[:first], Choice(Topic.SCENARIO, 3, 0)]
    for scenario in (Catching(), Draws()):
        finding = run(scenario, script=script).finding
        assert finding is not None
        assert finding.kind is FindingKind.DIVERGED


def test_a_divergence_before_a_process_begins_is_found_too() -> None:
    """Faults are drawn beforehand."""
    finding = run(Faulty(), script=[Choice(Topic.TASK, 3, 0)]).finding
    assert finding is not None
    assert (finding.kind, finding.name) == (FindingKind.DIVERGED, "choices")
    assert finding.text == "choice 0 is crash of 2; the recording has task of 3 there"


def test_a_trace_that_differs_names_the_first_happening_that_does() -> None:
    """The recording has a mark of each, so that the place is known without the trace."""
    recording = found(Overtaking)
    wrong = recording.marks[:8] + "zzzz" + recording.marks[12:]
    difference = replay(attrs.evolve(recording, digest="x", marks=wrong), subject(Overtaking)).difference
    assert difference is not None
    assert difference.kind is FindingKind.UNSTABLE
    assert difference.text.startswith("happening 2 is not the one that was recorded\n   now: [")


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        (lambda marks: marks[:-4], "was not there when it was recorded"),
        (lambda marks: marks + "0000", "happenings; "),
        (lambda marks: marks, "something differs that left no mark"),
    ],
)
def test_a_trace_that_is_longer_or_shorter_is_another_one(marks: object, text: str) -> None:
    """And one that differs behind the last mark, too."""
    recording = found(Overtaking)
    changed = attrs.evolve(recording, digest="x", marks=marks(recording.marks))  # type: ignore[operator]
    difference = replay(changed, subject(Overtaking)).difference
    assert difference is not None
    assert text in difference.text


def test_a_run_that_no_longer_fails_is_not_the_recorded_one() -> None:
    """What is found instead is told, and with which versions it was recorded if those are others."""
    recording = found(Overtaking)
    quiet = attrs.evolve(recording, choices=(), then_quiet=len(recording.choices or ()) + recording.then_quiet)
    difference = replay(attrs.evolve(quiet, versions={"trio": "0.1"}), subject(Overtaking)).difference
    assert difference is not None
    assert difference.kind is FindingKind.UNSTABLE
    assert "found nothing instead of invariant in-order" in difference.text
    assert (
        difference.text.endswith("it was recorded with trio 0.1 and not 0.35.0")
        or "it was recorded with" in difference.text
    )


def test_choices_that_are_missing_at_the_end_are_noticed() -> None:
    """The number of quiet choices behind the last one that is not is part of the recording."""
    recording = found(Overtaking)
    difference = replay(attrs.evolve(recording, then_quiet=recording.then_quiet + 1), subject(Overtaking)).difference
    assert difference is not None
    assert "choices were made instead of" in difference.text


def test_a_scenario_that_depends_on_more_than_its_choices_is_unstable() -> None:
    """Run twice, it parts at a happening that is named; replayed, it is unstable again."""
    report = explore(Moody, seeds=2, twice=True)
    (unstable,) = report.found
    assert unstable.finding.kind is FindingKind.UNSTABLE
    assert unstable.times == 2
    assert unstable.finding.text.startswith("happening ")
    assert '"text":"' in unstable.finding.text
    assert replay(unstable.recording, subject(Moody)).difference is None


def test_a_run_that_makes_other_choices_the_second_time_is_unstable() -> None:
    """Where it makes them is told."""
    (unstable,) = explore(Differing, seeds=1, twice=True).found
    assert "run again, choice " in unstable.finding.text
    assert " is scenario of " in unstable.finding.text


def test_runs_that_part_only_in_their_choices_are_told_so() -> None:
    """Their traces are the same."""
    trace = run(Calm()).trace
    assert parted(trace, trace) == "what happened is the same, and the choices are not"


def test_an_unstable_run_that_is_stable_again_is_told_so() -> None:
    """It was recorded as one that differs, and does not."""
    recording = attrs.evolve(found(Overtaking), finding=explore(Moody, seeds=1, twice=True).found[0].finding)
    difference = replay(recording, subject(Overtaking)).difference
    assert difference is not None
    assert difference.text == "it was the recorded run, twice"


def test_stable_scenarios_are_the_same_run_twice() -> None:
    """Also the one that fails: its recording is of what was seen both times."""
    assert explore(Calm, seeds=5, twice=True).found == ()
    (failing,) = explore(Overtaking, seeds=20, twice=True).found
    assert failing.finding.kind is FindingKind.INVARIANT


def test_a_finding_that_another_run_does_not_have_is_unstable() -> None:
    """Each finding is replayed before it is reported."""

    class Once(Moody):
        async def play(self, world: object) -> None:
            await super().play(world)  # type: ignore[arg-type]
            raise ValueError

    assert [found.finding.kind for found in explore(Once, seeds=1).found] == [FindingKind.UNSTABLE]


def test_messages_with_addresses_make_no_other_run_of_it() -> None:
    """The text of an error is not what makes runs equal: it has paths and addresses in it."""
    recording = found(Nowhere)
    assert replay(recording, subject(Nowhere)).difference is None


def test_a_recording_finds_its_scenario_by_path() -> None:
    """From the directory in which it was made."""
    assert found(Overtaking).reference == f"{TOYS}:Overtaking"
