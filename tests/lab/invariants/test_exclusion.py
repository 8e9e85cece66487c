from __future__ import annotations

from whenidle_lab.trace import What

from .tales import START, Tale, breaks, create, dispatch, end, insert, reminder_text, start

NAME = "one-at-a-time"


def running() -> Tale:
    """Return the tale of an agent that is in a turn."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    tale.enter()
    return tale


def test_turns_and_maintenance_follow_one_another() -> None:
    """A turn, a delivery, a turn for it, a claim of a user's, and another turn exclude each other."""
    tale = running()
    tale.commit("ada", create("s", START + 1000, afterSeconds=1))
    tale.wait(1)
    tale.leave()
    tale.commit("ada", end(1))
    tale.deliver("m9", ("s", START + 1000))
    tale.run(2, ["m9"])
    tale.claim()
    tale.tell(What.MAINTENANCE_BEGAN, "ada", claim=1)
    tale.tell(What.MAINTENANCE_ENDED, "ada", claim=1, how="returned", error=None)
    tale.release()
    tale.send("m10")
    tale.run(3, ["m10"])
    tale.settle()


def test_two_turns_at_once_are_noticed() -> None:
    """A turn function is not entered while another of the agent runs; another agent's may."""
    tale = running()
    tale.agent("bob")
    tale.send(agent="bob")
    tale.run(agent="bob")
    with breaks(NAME, "several things"):
        tale.enter(2)


def test_a_turn_is_run_once() -> None:
    """The function is not entered a second time for the same turn."""
    tale = running()
    tale.leave()
    with breaks(NAME, "run twice"):
        tale.enter()


def test_a_turn_runs_while_it_is_open() -> None:
    """A function that is entered before its turn is in the log, or after it has ended, is noticed."""
    tale = Tale()
    tale.agent()
    tale.send()
    with breaks(NAME, "not open in its log"):
        tale.enter()
    with breaks(NAME, "not open in its log"):
        tale.enter(1, agent="nobody")


def test_a_turn_has_its_outcome_when_its_function_has_ended() -> None:
    """A `turn/end` while the function still runs is noticed."""
    tale = running()
    with breaks(NAME, "still runs"):
        tale.commit("ada", end(1))


def test_the_function_of_a_dead_process_does_not_run_any_more() -> None:
    """After a crash the turn is ended as interrupted, though nobody saw its function return."""
    tale = running()
    tale.die()
    tale.life()
    tale.announce("agent-started")
    tale.commit("ada", end(1, "interrupted", redeliver=True))
    tale.commit("ada", start(2, ["m0"], attempt=2))
    tale.enter(2, attempt=2)
    tale.leave(2)
    tale.commit("ada", end(2))


def test_a_claim_during_a_turn_is_noticed() -> None:
    """An agent is not claimed while a turn runs, nor while one is open."""
    tale = running()
    with breaks(NAME):
        tale.claim()
    tale = running()
    tale.leave()
    with breaks(NAME, "is claimed while turn 1 is open"):
        tale.claim()


def test_two_claims_are_noticed() -> None:
    """Claims exclude each other, those of deliveries and those of users."""
    tale = Tale()
    tale.agent()
    tale.claim()
    with breaks(NAME, "2 claims"):
        tale.claim()


def test_two_maintenance_tasks_are_noticed() -> None:
    """Two maintenance tasks of users do not run at once, whatever is announced."""
    tale = Tale()
    tale.agent()
    tale.tell(What.MAINTENANCE_BEGAN, "ada", claim=1)
    with breaks(NAME, "2 maintenance tasks"):
        tale.tell(What.MAINTENANCE_BEGAN, "ada", claim=2)


def test_a_turn_during_a_claim_is_noticed() -> None:
    """No turn takes messages while the agent is claimed, and no function is entered."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.claim()
    with breaks(NAME, "takes messages while"):
        tale.commit("ada", start(1, ["m0"]))
    with breaks(NAME, "several things"):
        tale.enter()


def test_a_step_takes_messages_in_its_turn() -> None:
    """Between two steps the turn that runs may take messages."""
    tale = running()
    tale.send("m1", how="steer")
    tale.commit("ada", ("turn/claim", {"turn": 1, "ids": ["m1"]}))


def test_a_delivery_without_a_claim_is_noticed() -> None:
    """What is due enters the inbox of an agent only while that is claimed."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 1000, afterSeconds=1))
    tale.wait(1)
    records = insert("m1", reminder_text(("s", START + 1000)), source="schedule"), dispatch("s")
    with breaks(NAME, "without a claim"):
        tale.commit("ada", *records)


def test_a_delivery_during_a_turn_is_noticed() -> None:
    """Nothing is delivered while a turn is open."""
    tale = running()
    tale.commit("ada", create("s", START + 1000, afterSeconds=1))
    tale.wait(1)
    records = insert("m1", reminder_text(("s", START + 1000)), source="schedule"), dispatch("s")
    with breaks(NAME, "at something else"):
        tale.commit("ada", *records)


def test_a_delivery_that_makes_its_session_needs_no_claim() -> None:
    """A session that is created with the message in its inbox has no agent yet."""
    tale = Tale()
    tale.commit("new", insert("m0", "good morning", source="schedule"), created=["new"])


def test_an_agent_that_is_dropped_from_memory_while_it_works_is_noticed() -> None:
    """It may be when it is quiet."""
    tale = running()
    with breaks(NAME, "is dropped from memory while it is in the turns [1]"):
        tale.announce("agent-passivated")
    tale.leave()
    tale.commit("ada", end(1))
    tale.announce("agent-passivated")
    tale.claim()
    with breaks(NAME, "with 1 claims"):
        tale.announce("agent-passivated")
