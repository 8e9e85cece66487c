import itertools
import os
import signal
import subprocess
import sys
import threading
from multiprocessing import Pipe
from pathlib import Path

import pytest

from whenidle_lab.explore import explore
from whenidle_lab.files import load
from whenidle_lab.findings import FindingKind
from whenidle_lab.outcomes import Outcome
from whenidle_lab.processes import WorkerError, Workers
from whenidle_lab.processes import worker as worker_module
from whenidle_lab.processes.serving import Failure, Order, Ready, answer
from whenidle_lab.replay import replay
from whenidle_lab.report import Report
from whenidle_lab.subjects import recorded_subject, subject

from .toys import TOYS, Calm, Hanging, Overtaking


def test_processes_find_what_one_process_finds(tmp_path: Path) -> None:
    """The same seeds are the same runs, in whatever order they come back."""
    here = explore(Overtaking, seeds=40, folder=tmp_path / "here")
    beside = explore(Overtaking, seeds=40, folder=tmp_path / "beside", jobs=2)
    for field in ("scenario", "strategy", "runs", "virtual_seconds", "rounds", "lives", "faults", "traces"):
        assert getattr(beside, field) == getattr(here, field)
    assert beside.is_finished
    (first,), (second,) = here.found, beside.found
    assert first.recording == second.recording
    assert first.times == second.times
    assert second.file is not None
    assert load(second.file) == first.recording


def test_processes_serve_several_explorations() -> None:
    """What one has left undone does not get into the next one."""
    with Workers(1) as workers:
        assert explore(Overtaking, seeds=itertools.count(), stop_at_first=True, jobs=workers).found
        calm = explore(Calm, seeds=12, jobs=workers)
        measured = explore(Calm, seeds=1, jobs=workers, strategy="pct:2")
    assert (calm.runs, calm.found, calm.is_finished) == (12, (), True)
    assert measured.strategy == explore(Calm, seeds=1, strategy="pct:2").strategy


def test_a_run_that_never_ends_is_a_finding_and_is_found_again(tmp_path: Path) -> None:
    """Its process is ended; its seed is known, and run again it hangs again."""
    with Workers(1, patience=0.3) as workers:
        report = explore(Hanging, seeds=[7], jobs=workers, folder=tmp_path)
    (hung,) = report.found
    assert (hung.finding.kind, hung.seed, hung.recording.choices) == (FindingKind.HUNG, 7, None)
    assert hung.file is not None
    recording = load(hung.file)
    again = replay(recording, recorded_subject(recording), patience=0.3)
    assert (again.run, again.difference) == (None, None)
    wrong = replay(recording, subject(Calm), patience=30)
    assert wrong.difference is not None
    assert "found nothing instead of hung run" in wrong.difference.text


def test_a_process_that_dies_is_a_finding_and_is_replaced() -> None:
    """Seeds that it had not come to are run by the next one."""
    with Workers(1) as workers:
        report = explore(f"{TOYS}:Dying", seeds=5, jobs=workers)
    (died,) = report.found
    assert died.finding.kind is FindingKind.DIED
    assert died.finding.text == "the process ended with status 7"
    assert report.runs == 5
    assert report.is_finished
    assert 0 < died.times < 5


def test_an_order_that_cannot_be_carried_out_ends_the_exploration() -> None:
    """It is not what a run did; the process that asked is told."""
    ours, theirs = Pipe()
    with ours, theirs:
        thread = threading.Thread(target=answer, args=(theirs,))
        thread.start()
        assert ours.recv() == Ready()
        ours.send(Order(1, f"{TOYS}:Calm", "random", 3, twice=False))
        assert isinstance(ours.recv(), Outcome)
        ours.send(Order(1, f"{TOYS}:Clam", "random", 3, twice=False))
        assert ours.recv() == Failure(f"ScenarioError: {TOYS} has no 'Clam'")
        ours.send(Order(1, f"{TOYS}:Calm", "exhaustive:1", 3, twice=False))
        assert ours.recv() == Failure("exhaustive:1 has no seeds")
        ours.close()
        thread.join()
    with Workers(1) as workers, pytest.raises(WorkerError, match="a seed is a whole number"):
        explore(Calm, seeds=[-1], jobs=workers)


def test_a_process_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of being started again and again."""
    monkeypatch.setattr(worker_module, "serve", os._exit)
    with pytest.raises(WorkerError, match="a process to run seeds in did not start"):
        explore(Calm, seeds=3, jobs=2)


def test_processes_are_started_from_other_threads_too() -> None:
    """Where Ctrl-C is not ours to keep from them."""
    told = list[Report]()
    thread = threading.Thread(target=lambda: told.append(explore(Calm, seeds=2, jobs=2)))
    thread.start()
    thread.join()
    assert told[0].runs == 2


def test_a_line_that_breaks_is_a_death() -> None:
    """Whatever error the system has for it."""

    class Broken:
        def recv(self) -> None:
            raise ConnectionResetError

    dead = worker_module.Worker(None, Broken(), 0.0)  # type: ignore[arg-type]
    with pytest.raises(EOFError):
        dead.hear(1.0)


def test_no_processes_are_refused() -> None:
    """Nothing would ever be run."""
    with pytest.raises(ValueError, match="0 processes run nothing; write 1 or more"):
        Workers(0)


ORPHAN = f"""
import os, signal
from whenidle_lab.explore import explore
from whenidle_lab.processes import Workers
from whenidle_lab.subjects import subject

if __name__ == "__main__":
    with Workers(1) as workers:
        source = workers.seeds(subject({TOYS + ":Hanging"!r}), "random", [1])
        for _ in source.outcomes():
            if all(worker.is_ready for worker in workers._workers):
                print(workers._workers[0].process.pid, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_do_not_outlive_the_one_that_started_them(tmp_path: Path) -> None:
    """Not even in a run that never ends, when that one is killed."""
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    # Standard output is at its end only when nobody has it open any more: the worker has, as standard error.
    assert int(done.stdout)
