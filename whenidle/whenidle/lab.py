"""The lab: run agents in a world that is controlled, and look for what goes wrong.

A `Scenario` tells what agents and their users do. `explore` runs it many times, each time with other interleavings and
faults, and checks in each that what must hold does. A run that fails is written to a file, which replays it.

    @lab.explore(seeds=200)
    class TestMyAgent(lab.Scenario): ...

makes a test for pytest of it; `lab.explore(TestMyAgent, seeds=200)` runs it now. See docs/lab.md.
"""

from whenidle_lab.choices import Choice, Topic
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.files import RecordingError, load, save
from whenidle_lab.findings import Finding, FindingKind, Run
from whenidle_lab.machine import Machine
from whenidle_lab.processes import WorkerError, Workers
from whenidle_lab.recording import Recording
from whenidle_lab.replay import Replay, replay
from whenidle_lab.report import Found, Report
from whenidle_lab.run import run
from whenidle_lab.scenario import Broken, EachRound, Invariant, Scenario
from whenidle_lab.shrink import NotReproduced, Shrunk, shrink
from whenidle_lab.story import tell
from whenidle_lab.strategies import StrategyError
from whenidle_lab.subjects import ScenarioError, Subject, recorded_subject, subject
from whenidle_lab.testing import Explored, explore
from whenidle_lab.trace import Happening, Trace, What
from whenidle_lab.world import World

__all__ = [
    "Broken",
    "Choice",
    "EachRound",
    "Explored",
    "FaultKind",
    "Faults",
    "Finding",
    "FindingKind",
    "Found",
    "Happening",
    "Invariant",
    "Machine",
    "NotReproduced",
    "Recording",
    "RecordingError",
    "Replay",
    "Report",
    "Run",
    "Scenario",
    "ScenarioError",
    "Shrunk",
    "StrategyError",
    "Subject",
    "Topic",
    "Trace",
    "What",
    "WorkerError",
    "Workers",
    "World",
    "explore",
    "load",
    "recorded_subject",
    "replay",
    "run",
    "save",
    "shrink",
    "subject",
    "tell",
]
