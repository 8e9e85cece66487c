from __future__ import annotations

from whenidle_lab.trace import What

from .tales import START, Tale, breaks, create, dispatch, end, insert, reminder_text, start

NAME = "when-idle"


def waiting() -> Tale:
    """Return the tale of an agent with somebody who waits until it is idle."""
    tale = Tale()
    tale.agent()
    tale.tell(What.WAIT_BEGAN, "ada", wait=1)
    return tale


def returned(tale: Tale, error: str | None = None) -> None:
    """Let the wait be over."""
    tale.tell(What.WAIT_ENDED, "ada", wait=1, error=error)


def test_a_wait_may_return_when_nothing_is_left() -> None:
    """After all turns, an agent is idle."""
    tale = waiting()
    tale.send()
    tale.send("m1")
    tale.run()
    tale.run(2, ["m1"])
    returned(tale)
    tale.settle()


def test_a_wait_that_returns_during_a_turn_is_noticed() -> None:
    """While the function runs, and from the moment the turn is open until its outcome is durable."""
    tale = waiting()
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    with breaks(NAME, "is in the turns [1]"):
        returned(tale)
    tale.enter()
    with breaks(NAME):
        returned(tale)
    tale.leave()
    with breaks(NAME):
        returned(tale)
    tale.commit("ada", end(1))
    returned(tale)


def test_a_wait_that_returns_during_a_claim_is_noticed() -> None:
    """Maintenance counts: a wait follows it and what is released behind it."""
    tale = waiting()
    tale.claim()
    with breaks(NAME, "1 claims"):
        returned(tale)
    tale.release()
    returned(tale)


def test_a_wait_that_returns_before_an_accepted_message_has_run_is_noticed() -> None:
    """Once its sender knows that a message was accepted the agent is not idle."""
    tale = waiting()
    tale.send()
    with breaks(NAME, "message m0 waits"):
        returned(tale)


def test_a_message_that_nobody_knows_of_yet_does_not_count() -> None:
    """A wait may return while a message becomes durable whose sender still waits."""
    tale = waiting()
    tale.send("m0", how="inject")
    tale.commit("ada", insert("m1"))
    returned(tale)


def test_what_has_run_does_not_count_for_what_nobody_knows_of() -> None:
    """That an earlier message has woken the agent does not make the next one known."""
    tale = waiting()
    tale.send()
    tale.run()
    tale.commit("ada", insert("m1"))
    returned(tale)


def test_a_message_that_does_not_wake_does_not_count() -> None:
    """What was injected waits until the agent runs next."""
    tale = waiting()
    tale.send("m0", how="inject")
    returned(tale)


def test_what_a_cancel_left_does_not_count() -> None:
    """A message that a cancel was told to keep waits for the next one that wakes."""
    tale = waiting()
    tale.send()
    tale.send("m1")
    tale.commit("ada", start(1, ["m0"]), ("turn/abort", {"turn": 1, "cause": "", "removed": []}), end(1, "aborted"))
    returned(tale)


def test_a_delivery_counts_at_once() -> None:
    """What was delivered runs before anybody is told that the agent is idle."""
    tale = waiting()
    tale.commit("ada", create("s", START + 1000, afterSeconds=1))
    tale.wait(1)
    tale.claim()
    tale.commit("ada", insert("m1", reminder_text(("s", START + 1000)), source="schedule"), dispatch("s"))
    tale.release()
    with breaks(NAME, "message m1 waits"):
        returned(tale)


def test_a_redelivery_counts_at_once() -> None:
    """An agent whose turn was interrupted is not idle before that has run again."""
    tale = waiting()
    tale.send()
    tale.commit("ada", start(1, ["m0"]), end(1, "interrupted", redeliver=True))
    with breaks(NAME, "redelivered"):
        returned(tale)


def test_a_wait_for_an_agent_that_is_gone_raises() -> None:
    """What raises, or was given up, says nothing about the agent."""
    tale = waiting()
    tale.claim()
    returned(tale, "AgentDisposed")
    tale.release()
    tale.settle()


def test_a_wait_that_never_returns_is_noticed() -> None:
    """When everything had time to come to rest, nobody waits any more who did when faults stopped."""
    tale = waiting()
    with breaks(NAME, "have not returned"):
        tale.settle()


def test_a_wait_that_began_later_may_go_on() -> None:
    """Who has begun to wait after faults had stopped may wait for what came up since."""
    tale = Tale()
    tale.agent()
    tale.tell(What.FAULTS_STOPPED)
    tale.wait(600)
    tale.tell(What.WAIT_BEGAN, "ada", wait=1)
    tale.judge()
