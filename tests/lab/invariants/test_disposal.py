from __future__ import annotations

from types import SimpleNamespace

import pytest

from whenidle_lab.trace import What

from .tales import START, Tale, breaks, create, insert, start

NAME = "nothing-after-disposal"


def disposed() -> Tale:
    """Return the tale of an agent that was disposed, by somebody who has waited for it."""
    tale = Tale()
    tale.agent()
    dispose(tale)
    return tale


def dispose(tale: Tale, *, current: bool = True, inside: bool = False) -> None:
    """Let the agent be disposed."""
    tale.tell(What.DISPOSE_BEGAN, "ada", current=current)
    if current and not inside:
        tale.announce("agent-disposed")
    tale.tell(What.DISPOSE_ENDED, "ada", inside=inside)


def test_a_disposed_agent_may_be_restored() -> None:
    """From then on it is like any other."""
    tale = disposed()
    tale.look()
    tale.announce("agent-started")
    tale.stub.host._services.registry.live["ada"] = SimpleNamespace(session=SimpleNamespace(confirmed_state=None))
    tale.look()
    tale.send()
    tale.run()
    dispose(tale)


def test_a_disposal_that_returns_too_soon_is_noticed() -> None:
    """When it returns the agent has ended."""
    tale = Tale()
    tale.agent()
    tale.tell(What.DISPOSE_BEGAN, "ada", current=True)
    with breaks(NAME, "has not ended"):
        tale.tell(What.DISPOSE_ENDED, "ada", inside=False)


def test_who_asks_from_inside_is_not_made_to_wait() -> None:
    """A disposal that the agent's own turn asks for returns before the agent has ended."""
    tale = Tale()
    tale.agent()
    dispose(tale, inside=True)


def test_an_agent_that_has_ended_before_may_be_disposed_again() -> None:
    """That says nothing about the one that is live now."""
    tale = disposed()
    tale.announce("agent-started")
    dispose(tale, current=False)


def test_two_may_dispose_an_agent() -> None:
    """Both return when it has ended."""
    tale = Tale()
    tale.agent()
    tale.tell(What.DISPOSE_BEGAN, "ada", current=True)
    dispose(tale)
    tale.tell(What.DISPOSE_ENDED, "ada", inside=False)


def test_an_agent_that_ends_while_it_works_is_noticed() -> None:
    """What is in flight has ended before the agent has."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    tale.enter()
    with breaks(NAME, "has ended while"):
        tale.announce("agent-disposed")
    tale = Tale()
    tale.agent()
    tale.claim()
    with breaks(NAME, "1 claims"):
        tale.announce("agent-disposed")


@pytest.mark.parametrize("what", [What.TURN_BEGAN, What.MAINTENANCE_BEGAN])
def test_work_that_begins_afterwards_is_noticed(what: What) -> None:
    """No turn and no maintenance task of a disposed agent begins."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    dispose(tale)
    with breaks(NAME, "begins to run"):
        if what is What.TURN_BEGAN:
            tale.enter()
        else:
            tale = disposed()
            tale.tell(what, "ada", claim=1)


def test_a_commit_afterwards_is_noticed() -> None:
    """Nothing is written for an agent that has ended; for another there is, and for a fork of it."""
    tale = disposed()
    tale.agent("bob")
    tale.send(agent="bob")
    tale.commit("eve", insert("m0"), created=["eve"], seeds={"eve": 1}, index=(None, False))
    with breaks(NAME, "which was disposed"):
        tale.commit("ada", insert("m0"))


def test_a_place_in_the_registry_is_noticed() -> None:
    """A disposed agent is not found any more."""
    tale = disposed()
    tale.stub.host._services.registry.live["ada"] = SimpleNamespace()
    with breaks(NAME, "is in the registry"):
        tale.look()


def test_a_target_with_the_alarm_is_noticed() -> None:
    """Nothing wakes a disposed agent."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 60_000, afterSeconds=60))
    tale.stub.host._services.alarm = SimpleNamespace(
        target=lambda key: START + 60_000 if key == ("reminders", "ada") else None
    )
    tale.look()
    dispose(tale)
    with breaks(NAME, "the alarm is set"):
        tale.look()


def test_who_waits_for_a_disposed_agent_is_let_go() -> None:
    """Before any time passes."""
    tale = Tale()
    tale.agent()
    tale.tell(What.WAIT_BEGAN, "ada", wait=1)
    dispose(tale)
    tale.look()
    tale.wait(0.001)
    with breaks(NAME, "the waits [1]"):
        tale.look()
    tale.tell(What.WAIT_ENDED, "ada", wait=1, error="AgentDisposed")
    tale.look()


def test_a_host_that_stops_leaves_nothing() -> None:
    """No turn, no maintenance task and no wait outlives the host; a process that dies leaves what it leaves."""
    tale = Tale()
    tale.agent()
    tale.tell(What.WAIT_BEGAN, "ada", wait=1)
    tale.die()
    tale.life()
    tale.announce("agent-started")
    tale.tell(What.WAIT_BEGAN, "ada", wait=2)
    for how in ("finished", "stopped"):
        with breaks(NAME, "the waits [2]"):
            tale.tell(What.LIFE_ENDED, how=how)
    tale.tell(What.WAIT_ENDED, "ada", wait=2, error="AgentDisposed")
    tale.tell(What.LIFE_ENDED, how="finished")


def test_a_new_process_restores_whom_it_likes() -> None:
    """What was disposed in the process before may be written again."""
    tale = disposed()
    tale.die()
    tale.life()
    tale.announce("agent-started")
    tale.send()


def test_what_runs_is_cancelled_as_soon_as_a_disposal_is_asked_for() -> None:
    """Code of a turn that is left alone until it ends by itself is noticed."""
    tale = Tale()
    tale.agent()
    activity = SimpleNamespace(mark=object(), cause=None)
    tale.stub.host._services.registry.live["ada"] = SimpleNamespace(
        name="ada", ending=False, activity=activity, session=SimpleNamespace(confirmed_state=None)
    )
    tale.tell(What.DISPOSE_BEGAN, "ada", current=True)
    tale.look()
    tale.stub.host._services.registry.live["ada"].ending = True
    with breaks(NAME, "what it is doing is not cancelled"):
        tale.look()
    activity.cause = "disposed"
    tale.look()
