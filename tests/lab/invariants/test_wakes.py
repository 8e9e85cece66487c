from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from whenidle_lab.trace import What

from .tales import START, Tale, breaks, create, end, insert, start, text_of
from .task_tales import HOUR, TaskTale, changed, every, row

NAME = "no-wake-lost"


def test_an_agent_that_rests_has_lost_nothing() -> None:
    """What does not wake may wait, and what is due later may be due later."""
    tale = Tale()
    tale.agent()
    tale.send(how="inject")
    tale.commit("ada", create("s", START + 601_000, afterSeconds=601))
    tale.settle()


def test_a_message_that_wakes_does_not_wait() -> None:
    """One that still waits at the end is noticed."""
    tale = Tale()
    tale.agent()
    tale.send()
    with breaks(NAME, "has a reason to run"):
        tale.settle()


def test_a_redelivery_does_not_wait() -> None:
    """What an interrupted turn left is run again."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", start(1, ["m0"]), end(1, "interrupted", redeliver=True))
    with breaks(NAME, "has a reason to run"):
        tale.settle()


def test_an_open_turn_is_run() -> None:
    """One that nobody runs is noticed, also in a session that nobody has restored."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    tale.die()
    tale.life()
    with breaks(NAME, "nobody runs it"):
        tale.settle()


def test_a_turn_that_runs_may_run() -> None:
    """What began lately is no lost wake."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.tell(What.FAULTS_STOPPED)
    tale.wait(550)
    tale.commit("ada", start(1, ["m0"]))
    tale.enter()
    tale.wait(50)
    tale.judge()


def test_whoever_waits_for_a_slot_may_wait() -> None:
    """If turns are paced an agent may have to wait for another's."""
    for slots in (None, 1):
        tale = Tale(max_concurrent_turns=slots)
        for name in ("ada", "bob"):
            tale.agent(name)
            tale.send(agent=name)
        tale.commit("bob", start(1, ["m0"]))
        tale.enter(agent="bob")
        if slots:
            tale.settle()
        else:
            with breaks(NAME, "ada has a reason"):
                tale.settle()


@pytest.mark.parametrize("end_it", ["agent-disposed", "agent-faulted"])
def test_an_agent_that_has_ended_need_not_run(end_it: str) -> None:
    """One that was disposed and not restored, or was given up, keeps what it has."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", create("s", START + 1000, afterSeconds=1))
    tale.announce(end_it)
    tale.settle()


def test_a_reminder_that_is_due_is_delivered() -> None:
    """At an agent that has been idle for long enough."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 10_000, afterSeconds=10))
    with breaks(NAME, "reminder s of ada is due"):
        tale.settle()


def test_a_reminder_that_has_just_come_due_may_wait() -> None:
    """For half of the bound, counted from when the wall passed its target for good."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 10_000, afterSeconds=10))
    tale.tell(What.FAULTS_STOPPED)
    tale.wait(5)
    tale.step_wall(-4000)
    tale.wait(4000 + 300)
    tale.judge()
    tale.wait(10)
    with breaks(NAME):
        tale.judge()


def test_a_reminder_of_a_busy_agent_may_wait() -> None:
    """A turn that runs, or ran until lately, puts it off."""
    tale = Tale()
    tale.agent()
    tale.send()
    tale.commit("ada", create("s", START + 10_000, afterSeconds=10), start(1, ["m0"]))
    tale.enter()
    tale.settle()
    tale.leave()
    tale.commit("ada", end(1))
    tale.judge()


def test_an_agent_without_reminders_delivers_none() -> None:
    """A log may hold reminders of an agent that is not given the suite."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 10_000, afterSeconds=10))
    tale.agents.append(SimpleNamespace(id="ada", suites=(), session=SimpleNamespace(confirmed_state=None)))
    tale.settle()


def test_a_task_that_is_due_is_delivered() -> None:
    """Whether its session has an agent, has none, or is to be made."""
    for session in ("ada", "nobody", None):
        tale = TaskTale()
        tale.make(row("task-1", every(3600, START + HOUR), START + HOUR, session=session))
        tale.judge()
        tale.wait(3600)
        with breaks(NAME, "task task-1 is due"):
            tale.settle()


def test_a_task_that_is_paused_may_be_late() -> None:
    """Nothing of it is due; nor is anything on a host that does not deliver tasks."""
    tale = TaskTale()
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))
    tale.wait(3600)
    tale.suites.pop()
    tale.settle()
    tale = TaskTale()
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))
    tale.edit(task, changed(task, status="paused"))
    tale.wait(3600)
    tale.settle()


def test_a_task_of_an_agent_that_was_given_up_may_be_late() -> None:
    """It waits until somebody disposes the agent."""
    tale = TaskTale()
    tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))
    tale.announce("agent-faulted")
    tale.wait(3600)
    tale.settle()


def failure(task: dict[str, Any], session: str, decided: int) -> dict[str, Any]:
    """Return a task after a delivery that failed."""
    told = {
        "scheduledAt": text_of(START + HOUR),
        "failedAt": text_of(decided),
        "targetSessionId": session,
        "reason": "It is gone.",
    }
    return changed(task, START + 2 * HOUR, failures=1, coveredAt=text_of(START + HOUR), lastFailure=told)


def test_a_task_does_not_fail_whose_session_exists() -> None:
    """A failure for want of a session is noticed if the session has been there."""
    tale = TaskTale()
    task = tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))
    tale.wait(3600)
    with breaks(NAME, "which exists"):
        tale.edit(task, failure(task, "ada", tale.wall))


def test_a_task_fails_whose_session_does_not_exist() -> None:
    """Nobody can deliver to it; and a session that is made at that moment comes too late."""
    tale = TaskTale()
    tasks = [
        tale.make(row(f"task-{name}", every(3600, START + HOUR), START + HOUR, session=name)) for name in ("bob", "eve")
    ]
    tale.wait(3600)
    tale.agent("eve")
    for task, name in zip(tasks, ("bob", "eve"), strict=True):
        tale.edit(task, failure(task, name, tale.wall))


def test_a_bound_may_be_short() -> None:
    """Half of the bound of the scenario is time enough."""
    tale = Tale(bound=10)
    tale.agent()
    tale.commit("ada", insert("m0"))
    tale.tell(What.FAULTS_STOPPED)
    tale.wait(5)
    tale.judge()
    tale.wait(1)
    with breaks(NAME):
        tale.judge()
