"""The lab's own scenarios."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest

from tests.lab.faults.worlds import RandomChoices
from whenidle_lab.faults import NO_FAULTS
from whenidle_lab.run import run
from whenidle_lab.subjects import own_subjects
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.subjects import Subject

SUBJECTS = [one for one in own_subjects() if one.name != "hourly"]


def test_there_is_a_scenario_for_every_part_of_the_runtime() -> None:
    """They are found by these names."""
    assert {one.name for one in own_subjects()} >= {
        "at-most-once",
        "claims",
        "disposal",
        "disturbed-reminders",
        "disturbed-tasks",
        "every",
        "forks",
        "hourly",
        "inbox",
        "mailboxes",
        "managers",
        "mixed",
        "one-shots",
        "pacing",
        "supervision",
        "tasks-catch-up",
        "tasks-crowd",
        "tasks-edits",
        "tasks-once",
        "tasks-recurring",
        "tasks-targets",
        "three-agents",
        "tools-in-turns",
    }


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_a_scenario_is_repeated_by_its_seed_and_by_its_choices(subject: Subject) -> None:
    """The same seed, or the same choices, make the same run to the byte, whatever ran before."""
    first = run(subject.make(), RandomChoices(5), digest=True)
    by_seed = run(subject.make(), RandomChoices(5), digest=True)
    by_choices = run(subject.make(), None, first.choices, digest=True)
    assert first.finding is None
    assert by_seed.digest == by_choices.digest == first.digest
    assert by_seed.choices == by_choices.choices == first.choices


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_a_quiet_run_of_a_scenario_has_no_fault(subject: Subject) -> None:
    """With every choice the quiet one nothing goes wrong, and there is nothing to find."""
    found = run(subject.make())
    assert (found.finding, found.faults, found.lives) == (None, frozenset(), 1)


def test_no_more_goes_wrong_than_a_person_can_follow() -> None:
    """A run of a scenario that bears faults has about one of them."""
    counts = [
        len(run(subject.make(), RandomChoices(seed)).faults)
        for subject in SUBJECTS
        for seed in range(3)
        if subject.make().faults is not NO_FAULTS and subject.name != "supervision"
    ]
    assert 0.3 < statistics.mean(counts) < 3


def test_a_month_of_reminders_is_delivered_on_time() -> None:
    """The hourly reminder of thirty days is delivered 720 times, each in the millisecond in which it is due."""
    (hourly,) = [one for one in own_subjects() if one.name == "hourly"]
    found = run(hourly.make())
    turns = [one for one in found.trace if one.what is What.TURN_BEGAN]
    assert found.finding is None
    assert len(turns) == 720
    assert {one.wall_millis % 3_600_000 for one in turns} == {0}
