from itertools import count

import attrs
import pytest

from whenidle_lab.choices import Topic
from whenidle_lab.explore import explore
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.recording import Recording
from whenidle_lab.replay import replay
from whenidle_lab.scenario import Scenario
from whenidle_lab.shrink import NotReproduced, Progress, Shrunk, shrink
from whenidle_lab.subjects import subject

from .toys import Burdened, Draws, Faulty, Moody, Overtaking


def found(scenario: type[Scenario]) -> Recording:
    """Return the recording of the first seed that fails."""
    report = explore(scenario, seeds=60, stop_at_first=True)
    assert report.found, "no seed fails"
    return report.found[0].recording


def left(small: Shrunk) -> list[tuple[Topic, int]]:
    """Return the choices of a shrunk recording that are not quiet."""
    return [(choice.topic, choice.picked) for choice in small.recording.choices or () if choice.picked]


def test_a_race_is_shrunk_to_the_one_task_that_overtakes() -> None:
    """All other choices are quiet."""
    small = shrink(found(Overtaking), subject(Overtaking))
    assert [topic for topic, _ in left(small)] == [Topic.TASK]
    assert small.is_minimal
    assert small.before > small.after == 1


def test_what_is_left_out_may_take_other_choices_with_it() -> None:
    """No number is drawn any more before the race, which then comes at another place of the recording."""
    assert [topic for topic, _ in left(shrink(found(Burdened), subject(Burdened)))] == [Topic.TASK]


def test_numbers_are_lowered_as_far_as_they_go() -> None:
    """Of twenty numbers that a scenario draws, two are left, each as low as it can be."""
    small = shrink(found(Draws), subject(Draws))
    assert left(small) == [(Topic.SCENARIO, 5), (Topic.SCENARIO, 2)]


def test_faults_that_have_nothing_to_do_with_it_are_left_out() -> None:
    """A crash is needed; slow commits, clock jumps and failing turns are not."""
    small = shrink(found(Faulty), subject(Faulty))
    assert {topic for topic, _ in left(small)} == {Topic.CRASH}
    assert small.run.faults == {"crash-before-commit"}


@pytest.mark.parametrize("scenario", [Overtaking, Draws, Faulty])
def test_a_shrunk_recording_is_a_strict_one(scenario: type[Scenario]) -> None:
    """It has the choices of its own run, fails as the first one did, and replays."""
    recording = found(scenario)
    small = shrink(recording, subject(scenario))
    assert small.recording.finding.is_like(recording.finding)
    assert replay(small.recording, subject(scenario)).difference is None
    again = shrink(small.recording, subject(scenario))
    assert again.recording == small.recording


def test_shrinking_ends_when_its_runs_are_out() -> None:
    """What was found until then is the result, and it is not said to be minimal."""
    recording, seen = found(Draws), list[Progress]()
    small = shrink(recording, subject(Draws), max_runs=5, progress=seen.append)
    assert small.runs == 5
    assert not small.is_minimal
    assert replay(small.recording, subject(Draws)).difference is None
    assert [progress.runs for progress in seen] == [0, 1, 2, 3, 4, 5]
    assert seen[0].choices >= seen[-1].choices


def test_shrinking_ends_when_its_time_is_out() -> None:
    """No run begins after that."""
    ticks = count()
    small = shrink(found(Draws), subject(Draws), seconds=4.0, monotonic=lambda: float(next(ticks)))
    assert small.runs == 3
    assert not small.is_minimal


def test_what_does_not_fail_cannot_be_shrunk() -> None:
    """A recording of another program, of another failure, or without choices, is refused."""
    recording = found(Overtaking)
    other = attrs.evolve(recording, finding=attrs.evolve(recording.finding, name="out-of-order"))
    with pytest.raises(NotReproduced, match="no longer fails with invariant out-of-order"):
        shrink(other, subject(Overtaking))
    with pytest.raises(NotReproduced, match="no longer fails"):
        shrink(attrs.evolve(recording, choices=()), subject(Overtaking))
    lost = Recording.lost(Finding(FindingKind.HUNG, "run", ""), subject(Overtaking), "random", 3)
    with pytest.raises(NotReproduced, match="its process did not live to tell"):
        shrink(lost, subject(Overtaking))
    unstable = explore(Moody, seeds=1, twice=True).found[0].recording
    with pytest.raises(NotReproduced, match="no longer fails with unstable trace"):
        shrink(unstable, subject(Moody))
