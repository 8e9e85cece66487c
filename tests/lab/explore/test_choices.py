import pytest

from whenidle_lab.choices import Candidate, Choice, Chooser, Diverged, Quiet, Topic

PAIR = [Candidate(0, "a"), Candidate(1, "b")]


class Last(Quiet):
    """Takes the last option."""

    def order(self, topic: Topic, candidates: object) -> int:  # noqa: ARG002 - see `Strategy`
        """Take the last one."""
        return 1

    def pick(self, topic: Topic, count: int, weights: object) -> int:  # noqa: ARG002 - see `Strategy`
        """Take the last one."""
        return count - 1


def test_what_has_no_alternative_is_no_choice() -> None:
    """It is neither asked about nor recorded."""
    chooser = Chooser(Last())
    assert chooser.order(Topic.TASK, PAIR[:1]) == 0
    assert chooser.pick(Topic.CRASH, 1) == 0
    chooser.skip(Topic.CRASH, 1)
    assert chooser.made == []


def test_a_strategy_that_picks_what_there_is_not_is_refused() -> None:
    """The message names the topic."""
    with pytest.raises(ValueError, match="a strategy picked option 1 of 1 for task") as raised:
        Chooser(Last())._keep(Topic.TASK, 1, 1)
    assert "Diverged" not in type(raised.value).__name__


def test_a_strict_script_is_followed_until_it_ends_or_does_not_fit() -> None:
    """Then the strategy decides, or the run has diverged, which stays known."""
    chooser = Chooser(Last(), [Choice(Topic.TASK, 2, 0), Choice(Topic.CRASH, 3, 1)])
    assert chooser.order(Topic.TASK, PAIR) == 0
    assert chooser.pick(Topic.CRASH, 3) == 1
    assert chooser.pick(Topic.CRASH, 3) == 2
    for topic, count in ((Topic.CLOCK, 3), (Topic.CRASH, 2)):
        chooser = Chooser(Last(), [Choice(Topic.CRASH, 3, 1)])
        for _ in range(2):
            with pytest.raises(Diverged, match=r"choice 0 is .* of .; the recording has crash of 3 there"):
                chooser.pick(topic, count)
        assert chooser.divergence == f"choice 0 is {topic} of {count}; the recording has crash of 3 there"


def test_a_loose_script_is_followed_topic_by_topic() -> None:
    """What is left out of one topic does not shift the others; what does not fit is 0, what is over is quiet."""
    script = [Choice(Topic.TASK, 2, 1), Choice(Topic.CRASH, 9, 5), Choice(Topic.TASK, 2, 1), Choice(Topic.CRASH, 9, 8)]
    chooser = Chooser(Quiet(), script, strict=False)
    assert chooser.pick(Topic.CRASH, 9) == 5
    assert chooser.pick(Topic.CLOCK, 4) == 0
    assert chooser.pick(Topic.CRASH, 3) == 0
    assert chooser.order(Topic.TASK, PAIR) == 1
    chooser.skip(Topic.TASK, 2)
    assert chooser.order(Topic.TASK, PAIR) == 0
    assert [choice.picked for choice in chooser.made] == [5, 0, 0, 1, 0, 0]
    assert chooser.divergence is None
