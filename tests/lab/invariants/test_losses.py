from __future__ import annotations

from typing import Any

import pytest

from whenidle_actors.turn import Redelivery
from whenidle_lab.trace import What

from .tales import Tale, breaks, end, insert, start

NAME = "nothing-lost"


def taken(**options: Any) -> Tale:
    """Return the tale of an agent with an open turn."""
    tale = Tale(**options)
    tale.agent()
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    return tale


def test_what_is_reported_done_is_durable() -> None:
    """A commit whose caller was told that it is done without its being durable is noticed."""
    tale = Tale()
    number = tale.hand_in()
    tale.tell(What.COMMIT_ENDED, commit=number, fate="refused", error="StoreFull")
    number = tale.hand_in()
    with breaks(NAME, "is not durable"):
        tale.tell(What.COMMIT_ENDED, commit=number, fate="lost", error=None)


def test_what_is_reported_failed_changed_nothing() -> None:
    """A commit that is durable although its caller was told that it failed is noticed, but for doubts and defects."""
    tale = Tale()
    for error in ("CommitUncertain", "Defect", "StoreFull"):
        number = tale.hand_in()
        tale.durable(number, created=[error])
        if error != "StoreFull":
            tale.tell(What.COMMIT_ENDED, commit=number, fate="uncertain-kept", error=error)
        else:
            with breaks(NAME, "reported failed"):
                tale.tell(What.COMMIT_ENDED, commit=number, fate="failed-kept", error=error)


def test_a_message_that_was_accepted_is_durable() -> None:
    """A sender who is given an id that the log does not have is noticed."""
    tale = Tale()
    tale.agent()
    tale.tell(What.SEND_BEGAN, "ada", send=1, how="followup", text="hello")
    with breaks(NAME, "is not in its log"):
        tale.tell(What.SEND_ENDED, "ada", send=1, message="m0")


def test_a_message_that_was_not_accepted_may_be_there_or_not() -> None:
    """Whoever was told of a failure knows nothing."""
    tale = Tale()
    tale.agent()
    for number in (1, 2):
        tale.tell(What.SEND_BEGAN, "ada", send=number, how="inject", text="hello")
        if number == 1:
            tale.commit("ada", insert("m0", lane="next-step", wake=False))
        tale.tell(What.SEND_ENDED, "ada", send=number, error="CommitUncertain")
    tale.settle()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("followup", insert("m0", lane="next-step")),
        ("followup", insert("m0", wake=False)),
        ("steer", insert("m0")),
        ("inject", insert("m0", lane="next-step")),
        ("followup", insert("m0", source="schedule")),
        ("followup", insert("m0", "other")),
    ],
)
def test_a_message_is_kept_as_it_was_sent(how: str, message: tuple[str, object]) -> None:
    """Lane, wake, source and text are those of the call."""
    tale = Tale()
    tale.agent()
    tale.tell(What.SEND_BEGAN, "ada", send=1, how=how, text="hello")
    tale.commit("ada", message)
    with breaks(NAME, "m0 to ada"):
        tale.tell(What.SEND_ENDED, "ada", send=1, message="m0")


@pytest.mark.parametrize("outcome", ["completed", "error"])
def test_a_turn_that_was_never_run_has_no_such_outcome(outcome: str) -> None:
    """A turn that is completed, or has failed, was entered."""
    tale = taken()
    with breaks(NAME, "never entered"):
        tale.commit("ada", end(1, outcome))


def test_a_cancelled_turn_need_not_have_run() -> None:
    """A cancel may come before the function is entered."""
    tale = taken()
    tale.commit("ada", ("turn/abort", {"turn": 1, "cause": "stop", "removed": []}), end(1, "aborted"))
    tale.settle()


def test_an_interrupted_turn_is_redelivered() -> None:
    """One that is not is noticed, unless the host has turns run at most once."""
    tale = taken()
    with breaks(NAME, "are not to be redelivered"):
        tale.commit("ada", end(1, "interrupted"))
    tale = taken(redelivery=Redelivery.AT_MOST_ONCE)
    tale.commit("ada", end(1, "interrupted"))
    tale.settle()


def test_what_was_taken_is_run_in_the_end() -> None:
    """A message that has been taken, and that no turn has finished with, is noticed when all had time to rest."""
    tale = taken(redelivery=Redelivery.AT_LEAST_ONCE)
    tale.commit("ada", end(1, "interrupted", redeliver=True))
    tale.judge()  # it is still to be redelivered
    tale.commit("ada", start(2, ["m0"], attempt=2))
    tale.judge()  # it is being run
    with breaks(NAME):
        tale.commit("ada", end(2, "interrupted"))
    with breaks(NAME, "no turn has finished with it"):
        tale.judge()


def test_what_is_said_to_be_removed_has_been() -> None:
    """A removal that was answered is in the log; one that was refused need not be."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.tell(What.CHANGED, "ada", how="remove", message="m0", error="UnknownMessage")
    tale.tell(What.CHANGED, "ada", how="replace", message="m0", error=None)
    with breaks(NAME, "is said to be removed"):
        tale.tell(What.CHANGED, "ada", how="remove", message="m0", error=None)
    tale.commit("ada", ("inbox/remove", {"ids": ["m0"]}))
    tale.tell(What.CHANGED, "ada", how="remove", message="m0", error=None)
    with breaks(NAME, "is said to be removed"):
        tale.tell(What.CHANGED, "nobody", how="remove", message="m0", error=None)
