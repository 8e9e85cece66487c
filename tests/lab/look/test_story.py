from __future__ import annotations

import re

import attrs
import pytest

from tests.lab.look.busy_day import busy_day
from tests.lab.look.traces import Teller, every_kind, long_run
from whenidle_lab.choices import Choice, Topic
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.story import WIDTH, tell
from whenidle_lab.trace import What


def test_a_story_tells_who_did_what_when() -> None:
    """Instants are headings, calls and sends come with their answers, and admissions with how late they are."""
    story = tell(busy_day())
    assert "  3 s   (wall 2025-12-31 23:59:43)\n    The wall clock is set back by 20 s\n" in story
    assert "bob      Steer: “By the way”  → the message is accepted as m3" in story
    assert "the call is refused:\n             invalid_prompt" in story
    assert re.search("schedule-1 “Check the deploy.” enters the inbox: due 2026-01-01 00:00:05, .* late", story)


def test_a_story_ends_with_what_broke() -> None:
    """The last lines say which invariant broke, when, and why, in the finding's own words."""
    end = tell(busy_day()).split("\n\n")[-1]
    assert re.match(r"It broke, in round \d+, .* after the beginning: invariant nothing-very-late\n", end)
    assert end.endswith(
        "    schedule-1 of eve was due at 2026-01-01 00:00:43 and entered the inbox 12 min later.\n"
        "    At most 10 min are allowed.\n"
    )


def test_a_story_tells_the_faults_and_the_choices_that_are_not_quiet() -> None:
    """What was done to the run is told: kinds of faults, and each choice that is not option 0."""
    story = tell(every_kind())
    assert "What went wrong on purpose: crash, rollback." in story
    assert (
        "Choices that are not quiet: 2\n         1  the crash: option 2 of 0 to 3\n         2  the next task:" in story
    )


def test_a_quiet_run_has_a_story_too() -> None:
    """Nothing went wrong, nobody was there, nothing broke."""
    story = tell(Teller().run())
    assert "with nobody.\nNothing went wrong on purpose.\n" in story
    assert story.endswith("Choices that are not quiet: 0\n\nNothing broke.\n")


@pytest.mark.parametrize("words", ["\x1b[2J\x07\u202egnp.exe", "日本語" * 60, "word " * 300, "x" * 5_000, "a\r\nb"])
def test_a_story_fits_a_terminal_and_cannot_command_it(words: str) -> None:
    """Whatever agents are called and prompts hold: no control character, and no line above 100 columns."""
    story = tell(every_kind(words, words))
    assert all(line.isprintable() for line in story.split("\n"))
    wide = max((len(line) for line in story.splitlines() if "日" in line), default=0)
    assert max(wide * 2, *map(len, story.splitlines())) <= WIDTH


def test_a_long_story_is_told_from_both_ends() -> None:
    """Of a long run the middle is left out, and many choices are counted by topic."""
    choices = tuple(Choice(topic, 2, 1) for topic in (Topic.TASK, Topic.COMMIT) for _ in range(30))
    story = tell(attrs.evolve(long_run(3_000, agents=11), choices=choices))
    assert "lines left out; the timeline has all of it" in story
    assert "and 6 more of the next task, 30 more of what commits meet" in story
    assert "and 3 more.\nNothing" in story
    assert len(story.splitlines()) < 300


def test_of_a_long_traceback_the_end_is_told() -> None:
    """A finding's text keeps its indentation, and of a long one the last lines, where the error stands."""
    text = "\n".join(["Traceback", *(f"    frame {number}" for number in range(100)), "ValueError: no"])
    run = attrs.evolve(Teller().run(), finding=Finding(FindingKind.ERROR, "ValueError", text))
    story = tell(run)
    assert "It broke: error ValueError\n    … 42 lines …\n        frame 41\n" in story
    assert story.endswith("        frame 99\n    ValueError: no\n")


def test_an_answer_that_comes_later_is_told_later() -> None:
    """A call that takes time is told when it is made and when it is answered; one cut off is not answered."""
    teller = Teller()
    teller.tell(What.CALL_BEGAN, "ada", call=1, tool="slow", arguments={})
    teller.tell(What.CALL_BEGAN, "ada", call=2, tool="lost", arguments={})
    teller.millis = 1_000
    teller.tell(What.CALL_ENDED, "ada", call=1, answer={"id": "x"})
    story = tell(teller.run())
    assert "ada      Calls slow {}\n    ada      Calls lost {}\n\n  1 s" in story
    assert "ada      The call is answered: x\n" in story


def test_an_early_admission_stands_out() -> None:
    """What comes too early, or stands for others that were missed, says so."""
    from tests.lab.look.traces import created, dispatched  # noqa: PLC0415 - only here

    teller = Teller()
    teller.commit("ada", created("schedule-1", 5), created("schedule-2", 300, every=300))
    teller.commit("ada", dispatched("schedule-1"))
    teller.millis = 900_000
    teller.commit("ada", dispatched("schedule-2", accepted=900))
    story = tell(teller.run())
    assert "5 s TOO EARLY" in story
    assert "on time, standing for 2 missed" in story.replace("\n             ", " ")
