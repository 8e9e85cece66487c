from __future__ import annotations

from whenidle_lab.trace import What

from .tales import START, breaks, insert, start
from .task_tales import HOUR, TaskTale, after, changed, delivered, every, receipt, row, task_text, write


def run_by_hand(tale: TaskTale, decided: int) -> None:
    """Let a manager put a task into ada's inbox, as decided at that time."""
    task = row("task-1", every(3600, START + HOUR), START + HOUR)
    ran = delivered(task, decided, START + HOUR, decided=decided)
    ran["data"].pop("coveredAt")
    message = insert("t1", task_text(("task-1", decided, 0)), source="schedule")
    receipts = [receipt("task-1", decided, decided)]
    tale.commit("ada", message, tasks=[write(START, ran)], receipts=receipts, elsewhere=True)


def with_task() -> TaskTale:
    """Return the tale of a task, while ada is in a turn."""
    tale = TaskTale()
    tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))
    tale.send()
    tale.commit("ada", start(1, ["m0"]))
    tale.enter()
    return tale


def test_a_manager_claims_no_agent() -> None:
    """What it delivers by hand waits in the inbox, whatever the agent is doing."""
    tale = with_task()
    run_by_hand(tale, tale.wall)


def test_a_manager_decides_at_any_time_before_it_commits() -> None:
    """It is not watched as closely as a host; what no wall has shown since the host began it cannot have read."""
    tale = with_task()
    tale.wait(100)
    run_by_hand(tale, START + 50_000)
    tale = with_task()
    tale.wait(100)
    with breaks("never-early"):
        run_by_hand(tale, START + 100_001)


def test_what_a_manager_plans_follows_some_reading_of_the_wall() -> None:
    """A task that it makes or resumes begins after any time at which it may have looked."""
    tale = TaskTale()
    tale.wait(100)
    made = after(60, START + 50_000)
    tale.commit(tasks=[write(None, row("task-1", made, START + 110_000))], elsewhere=True)
    hourly = row("task-2", every(3600, START + HOUR), START + HOUR)
    tale.commit(tasks=[write(None, hourly)], elsewhere=True)
    paused = changed(hourly, status="paused")
    tale.commit(tasks=[write(hourly["version"], paused)], elsewhere=True)
    tale.wait(3600)
    resumed = changed(paused, START + HOUR, status="active")
    tale.commit(tasks=[write(paused["version"], resumed)], elsewhere=True)
    with breaks("as-planned", "begins with"):
        tale.commit(tasks=[write(None, row("task-3", every(3600, START + HOUR), START + 3 * HOUR))], elsewhere=True)


def test_a_message_of_a_manager_is_found_by_the_host_in_a_while() -> None:
    """An agent is idle until its host has noticed what is in its inbox."""
    tale = TaskTale()
    tale.make(row("task-1", every(3600, START + HOUR), START + HOUR))
    run_by_hand(tale, tale.wall)
    tale.tell(What.WAIT_BEGAN, "ada", wait=1)
    tale.tell(What.WAIT_ENDED, "ada", wait=1, error=None)
    with breaks("no-wake-lost"):
        tale.settle()


def test_a_manager_may_write_for_an_agent_that_was_disposed() -> None:
    """Its session is there for whoever opens it next."""
    tale = TaskTale()
    tale.announce("agent-disposed")
    tale.commit("ada", insert("m0", wake=False), elsewhere=True)
    tale.settle()
