from __future__ import annotations

import pytest

from whenidle_lab.trace import What

from .tales import Tale, breaks, end, start

NAME = "inbox-order"


def with_messages() -> Tale:
    """Return the tale of an agent with two messages for turns, and two for steps."""
    tale = Tale()
    tale.agent()
    for number, how in enumerate(("followup", "steer", "followup", "inject")):
        tale.send(f"m{number}", how=how)
    return tale


def test_turns_take_all_of_next_step_and_one_of_next_turn() -> None:
    """In the order in which they came; and a step takes what came for it meanwhile."""
    tale = with_messages()
    tale.commit("ada", start(1, ["m1", "m3", "m0"]))
    tale.enter(1, ["m1", "m3", "m0"])
    tale.send("m4", how="steer")
    tale.send("m5", how="inject")
    tale.commit("ada", ("turn/claim", {"turn": 1, "ids": ["m4", "m5"]}))
    tale.leave()
    tale.commit("ada", end(1))
    tale.run(2, ["m2"])
    tale.settle()


@pytest.mark.parametrize(
    "claimed", [["m1", "m3", "m2"], ["m3", "m1", "m0"], ["m1", "m3"], ["m0"], ["m1", "m3", "m0", "m2"]]
)
def test_another_claim_is_noticed(claimed: list[str]) -> None:
    """A turn that takes another message, in another order, fewer or more, is noticed."""
    tale = with_messages()
    with breaks(NAME, "due are ['m1', 'm3', 'm0']"):
        tale.commit("ada", start(1, claimed))


def test_a_step_that_takes_less_is_noticed() -> None:
    """A step takes all that is there."""
    tale = with_messages()
    tale.commit("ada", start(1, ["m1", "m3", "m0"]))
    tale.send("m4", how="steer")
    tale.send("m5", how="inject")
    with breaks(NAME):
        tale.commit("ada", ("turn/claim", {"turn": 1, "ids": ["m5"]}))


def interrupted() -> Tale:
    """Return the tale of a turn that was interrupted twice."""
    tale = with_messages()
    tale.commit("ada", start(1, ["m1", "m3", "m0"]))
    tale.commit("ada", end(1, "interrupted", redeliver=True))
    tale.commit("ada", start(2, ["m1", "m3", "m0"], attempt=2))
    tale.commit("ada", end(2, "interrupted", redeliver=True))
    return tale


def test_an_interrupted_turn_is_redelivered_as_it_was() -> None:
    """With the same messages, and the next number of attempt."""
    tale = interrupted()
    tale.commit("ada", start(3, ["m1", "m3", "m0"], attempt=3))
    tale.enter(3, ["m1", "m3", "m0"], attempt=3)


@pytest.mark.parametrize(("claimed", "attempt"), [(["m1", "m3", "m0"], 2), (["m1", "m3", "m0"], 1), (["m2"], 3)])
def test_another_redelivery_is_noticed(claimed: list[str], attempt: int) -> None:
    """A redelivery that counts wrong, or takes what is new, is noticed."""
    tale = interrupted()
    with breaks(NAME, "as attempt 3"):
        tale.commit("ada", start(3, claimed, attempt=attempt))


def test_the_function_is_given_what_the_turn_took() -> None:
    """All of its messages, in their order."""
    tale = with_messages()
    tale.commit("ada", start(1, ["m1", "m3", "m0"]))
    with breaks(NAME, "its function is given"):
        tale.enter(1, ["m1", "m0"])


@pytest.mark.parametrize(("attempt", "redelivered"), [(1, False), (2, False)])
def test_a_redelivery_is_marked(attempt: int, redelivered: bool) -> None:
    """The function is told the attempt, and that it is a redelivery exactly if it is."""
    tale = with_messages()
    tale.commit("ada", start(1, ["m1", "m3", "m0"]))
    tale.commit("ada", end(1, "interrupted", redeliver=True))
    tale.commit("ada", start(2, ["m1", "m3", "m0"], attempt=2))
    messages = ["m1", "m3", "m0"]
    with breaks(NAME, "not redelivered"):
        tale.tell(
            What.TURN_BEGAN, "ada", turn=2, attempt=attempt, redelivered=redelivered, messages=messages, fault=None
        )


def test_a_turn_that_is_not_open_is_for_another_to_judge() -> None:
    """What an entered function has to be given is told by its turn."""
    tale = with_messages()
    tale.invariants = [each for each in tale.invariants if each.name != "one-at-a-time"]
    tale.enter()


def test_each_message_is_handed_to_its_turn_once() -> None:
    """Between two steps a turn is given what it took meanwhile, and nothing that it has already or did not take."""
    tale = with_messages()
    tale.commit("ada", start(1, ["m1", "m3", "m0"]))
    tale.enter(1, ["m1", "m3", "m0"])
    tale.send("m4", how="steer")
    tale.commit("ada", ("turn/claim", {"turn": 1, "ids": ["m4"]}))
    tale.tell(What.STEPPED, "ada", turn=1, messages=["m4"])
    tale.tell(What.STEPPED, "ada", turn=1, messages=[])
    with breaks(NAME, "is handed ['m4'] once more"):
        tale.tell(What.STEPPED, "ada", turn=1, messages=["m4"])
    with breaks(NAME, "is handed ['m3'] once more"):
        tale.tell(What.STEPPED, "ada", turn=1, messages=["m3"])
    with breaks(NAME, "it has taken ['m0', 'm1', 'm3', 'm4']"):
        tale.tell(What.STEPPED, "ada", turn=1, messages=["m2"])
