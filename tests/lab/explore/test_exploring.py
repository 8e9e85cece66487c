import itertools
import os
import signal
import threading
from pathlib import Path

import attrs
import pytest

from whenidle_lab import gallery, report
from whenidle_lab.explore import explore
from whenidle_lab.files import load
from whenidle_lab.outcomes import fingerprint, play
from whenidle_lab.report import Report
from whenidle_lab.run import run
from whenidle_lab.strategies import RandomWalk, StrategyError, parse_plan
from whenidle_lab.subjects import ScenarioError, subject

from .toys import Calm, Draws, Faulty, Overtaking, TwoWays


def test_a_report_counts_what_was_run() -> None:
    """Runs, virtual time, rounds, processes, faults and different traces."""
    ticks = itertools.count()
    told = explore(Faulty, seeds=30, monotonic=lambda: float(next(ticks)))
    runs = [run(Faulty(), RandomWalk().strategy(seed)) for seed in range(30)]
    assert (told.scenario, told.strategy, told.runs) == ("faulty", "random", 30)
    assert told.is_finished
    assert not told.is_interrupted
    assert told.virtual_seconds == sum(each.seconds for each in runs)
    assert told.rounds == sum(each.rounds for each in runs)
    assert told.lives == sum(each.lives for each in runs)
    assert told.faults == {
        kind: sum(kind in each.faults for each in runs) for kind in sorted(set().union(*(each.faults for each in runs)))
    }
    assert told.traces == len({fingerprint(each.trace) for each in runs})
    assert told.seconds == 31
    assert told.runs_per_second == 30 / 31
    assert told.virtual_rate == told.virtual_seconds / 31


def test_a_report_of_no_time_has_no_rates() -> None:
    """Nothing is divided by nothing."""
    told = explore(Calm, seeds=0, monotonic=lambda: 0.0)
    assert (told.runs, told.runs_per_second, told.virtual_rate) == (0, 0.0, 0.0)


def test_findings_alike_are_one_with_the_lowest_seed(tmp_path: Path) -> None:
    """Its recording is in the folder, whatever the order in which seeds were run."""
    upwards = explore(Overtaking, seeds=range(30), folder=tmp_path / "up")
    downwards = explore(Overtaking, seeds=range(29, -1, -1), folder=tmp_path / "down")
    (first,), (last,) = upwards.found, downwards.found
    assert first.recording == last.recording
    assert first.times == last.times > 1
    assert first.runs == first.seed + 1
    for found in (first, last):
        assert found.file is not None
        assert list(found.file.parent.iterdir()) == [found.file]
        assert found.file.name == f"overtaking-in-order-{found.seed}.json"
        assert load(found.file) == found.recording


def test_different_ways_to_fail_are_kept_apart(tmp_path: Path) -> None:
    """Each with its own file and its own count, in the order of their seeds."""
    told = explore(TwoWays, seeds=range(29, -1, -1), folder=tmp_path)
    assert {found.finding.name for found in told.found} == {"KeyError", "IndexError"}
    assert [found.seed for found in told.found] == sorted(found.seed for found in told.found)
    assert sorted(tmp_path.iterdir()) == sorted(found.file for found in told.found if found.file is not None)
    nowhere = explore(TwoWays, seeds=range(29, -1, -1))
    assert [found.recording for found in nowhere.found] == [found.recording for found in told.found]
    assert {found.file for found in nowhere.found} == {None}


def test_findings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more ways to fail than are kept there is a number."""
    monkeypatch.setattr("whenidle_lab.explore.MOST_FOUND", 0)
    told = explore(Overtaking, seeds=30)
    assert told.found == ()
    assert told.unrecorded > 1


def test_different_traces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with the number of runs."""
    monkeypatch.setattr(report, "MAX_TRACES", 2)
    assert explore(Draws, seeds=30, strategy="random").traces <= 2


def test_exploring_stops_at_the_first_finding_if_asked_to() -> None:
    """It is not finished then."""
    told = explore(Overtaking, seeds=100, stop_at_first=True)
    assert told.runs == told.found[0].runs < 100
    assert not told.is_finished


def test_exploring_stops_when_its_minutes_are_over() -> None:
    """The run that is under way still counts."""
    ticks = itertools.count()
    told = explore(Calm, seeds=itertools.count(), minutes=5 / 60, monotonic=lambda: float(next(ticks)))
    assert told.runs == 5
    assert not told.is_finished


def test_progress_is_told_now_and_then() -> None:
    """Not for each run, and with what there is so far."""
    ticks, told = itertools.count(), list[Report]()
    explore(Calm, seeds=35, progress=told.append, monotonic=lambda: next(ticks) * 0.01)
    assert 2 <= len(told) <= 4
    assert [each.runs for each in told] == sorted(each.runs for each in told)


def test_the_steps_of_pct_are_measured_if_they_are_not_given() -> None:
    """By the same few runs each time, and are part of the strategy's text from then on."""
    first, second = explore(Overtaking, seeds=20, strategy="pct:2"), explore(Overtaking, seeds=20, strategy="pct:2")
    assert first.strategy == second.strategy
    assert first.strategy.startswith("pct:2:")
    assert first.found[0].recording == second.found[0].recording
    assert first.found[0].recording.strategy == first.strategy


def test_exhaustive_exploration_finds_a_race_and_finishes_the_space() -> None:
    """Every run in which one task overtakes others once is made, and the race is among them."""
    told = explore(Overtaking, seeds=1000, strategy="exhaustive:1")
    assert told.is_finished
    assert 1 < told.runs < 1000
    (found,) = told.found
    assert found.finding.name == "in-order"
    assert found.seed == found.runs - 1


def test_exhaustive_exploration_ends_unfinished_when_its_runs_are_out() -> None:
    """Seeds are only how many runs there may be."""
    told = explore(Overtaking, seeds=7, strategy="exhaustive:2")
    assert told.runs == 7
    assert not told.is_finished


def test_exhaustive_exploration_goes_on_over_runs_it_has_made() -> None:
    """With two deviations, those with one are run again on the way, and not counted again."""
    one = explore(Overtaking, seeds=10_000, strategy="exhaustive:1").runs
    told = explore(Overtaking, seeds=one + 3, strategy="exhaustive:2", twice=True)
    assert told.runs == one + 3


@pytest.mark.parametrize("seed", [-1, 2**53])
def test_seeds_that_a_file_could_not_hold_are_refused(seed: int) -> None:
    """They are whole numbers from 0 on."""
    with pytest.raises(ValueError, match="a seed is a whole number from 0 to 9007199254740991, not"):
        play(subject(Calm), parse_plan("random"), seed)  # type: ignore[arg-type]


def test_what_cannot_be_explored_is_refused() -> None:
    """A scenario or strategy that is none; and with other processes, what these do not find."""

    class Local(Calm):
        pass

    with pytest.raises(StrategyError):
        explore(Calm, strategy="all")
    with pytest.raises(ScenarioError, match="calm is not found by other processes: define it at the top of a module"):
        explore(Local, jobs=2)
    with pytest.raises(StrategyError, match="exhaustive:2 runs in one process: ask for one job"):
        explore(Calm, strategy="exhaustive:2", jobs=2)


# Ctrl-C ---------------------------------------------------------------------------------------------


class Interrupted(Calm):
    """Somebody presses Ctrl-C in the third run, and in the fourth if there is one."""

    runs = 0

    async def play(self, world: object) -> None:
        """Press."""
        Interrupted.runs += 1
        if Interrupted.runs >= 3:
            os.kill(os.getpid(), signal.SIGINT)
        await super().play(world)  # type: ignore[arg-type]


class Impatient(Calm):
    """Somebody presses Ctrl-C twice."""

    async def play(self, world: object) -> None:
        """Press and press."""
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        await super().play(world)  # type: ignore[arg-type]


def test_ctrl_c_ends_an_exploration_with_a_report() -> None:
    """The run that is under way ends as it should, and Ctrl-C is what it was before."""
    Interrupted.runs = 0
    told = explore(Interrupted, seeds=100)
    assert told.is_interrupted
    assert not told.is_finished
    assert told.runs == 3
    assert told.found == ()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_steps_are_measured_ends_it_too() -> None:
    """No run of the exploration itself is made then."""
    Interrupted.runs = 0
    told = explore(Interrupted, seeds=100, strategy="pct:2")
    assert told.is_interrupted
    assert told.runs == 0
    assert Interrupted.runs == 3


def test_a_second_ctrl_c_ends_it_at_once() -> None:
    """Whatever is being run."""
    with pytest.raises(KeyboardInterrupt):
        explore(Impatient, seeds=100)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_is_left_to_the_main_thread() -> None:
    """In other threads an exploration works, and takes nothing over."""
    told: list[Report] = []
    thread = threading.Thread(target=lambda: told.append(explore(Calm, seeds=2)))
    thread.start()
    thread.join()
    assert told[0].runs == 2


def test_file_names_are_plain() -> None:
    """Whatever a scenario and an invariant are called."""
    recording = explore(Overtaking, seeds=30).found[0].recording
    name = gallery.file_name(attrs.evolve(recording, scenario="../a b/ü" * 30))
    assert "/" not in name
    assert name.isascii()
    assert len(name) < 160
