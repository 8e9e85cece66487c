from __future__ import annotations

import pytest

from .tales import START, Tale, breaks, create, dispatch, insert, reminder_text, text_of
from .task_tales import HOUR, TaskTale, after, changed, daily, delivered, every, receipt, row, task_text, write

EARLY = "never-early"
ONCE = "exactly-once"


def reminded(*, seconds: int = 10) -> Tale:
    """Return the tale of an agent with a one-shot."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + seconds * 1000, afterSeconds=seconds))
    return tale


# Never early ----------------------------------------------------------------------------------


def test_at_its_time_is_not_early() -> None:
    """A reminder may be delivered at the very millisecond of its target."""
    tale = reminded()
    tale.wait(10)
    tale.deliver("m1", ("s", START + 10_000))


def test_a_millisecond_before_is_early() -> None:
    """One delivered a millisecond before its target is early by the wall of the trace."""
    tale = reminded()
    tale.wait(9.999)
    with breaks(EARLY, "1 ms early"):
        tale.deliver("m1", ("s", START + 10_000))


def test_a_wall_set_back_after_the_decision_makes_nothing_early() -> None:
    """The decision counts, and it was made in the claim before the wall was set back."""
    tale = reminded()
    tale.wait(10)
    tale.claim()
    tale.step_wall(-3600)
    delivery = insert("m1", reminder_text(("s", START + 10_000)), source="schedule"), dispatch("s")
    tale.commit("ada", *delivery, at=START + 10_000)


def test_a_record_that_is_dated_before_its_target_is_noticed() -> None:
    """It is dated when it is decided, so that the clock was not looked at in the claim."""
    tale = reminded()
    tale.wait(10)
    tale.claim()
    tale.step_wall(-1)
    with breaks("never-early", f"is due at {START + 10_000}, and said at {START + 9_000}"):
        tale.commit("ada", insert("m1", reminder_text(("s", START + 10_000)), source="schedule"), dispatch("s"))
    tale.release()


def test_a_wall_set_back_before_the_claim_makes_it_early() -> None:
    """That it was due before the agent was claimed does not count: the decision is made in the claim."""
    tale = reminded()
    tale.wait(10)
    tale.step_wall(-3600)
    with breaks(EARLY):
        tale.deliver("m1", ("s", START + 10_000))


def test_a_slow_commit_that_was_handed_in_early_is_early() -> None:
    """That the target has passed when the commit is durable does not help a decision that was made before."""
    tale = reminded()
    tale.claim()
    number = tale.hand_in()
    tale.wait(20)
    records = insert("m1", reminder_text(("s", START + 10_000)), source="schedule"), dispatch("s")
    with breaks(EARLY, "10000 ms early"):
        tale.durable(number, "ada", *records)


def test_a_decision_is_dated_as_the_wall_was() -> None:
    """An `acceptedAt` that the wall did not show between the claim and the commit is noticed."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 300_000, everySeconds=300))
    tale.wait(301)
    with breaks(EARLY, "is said to have been decided"):
        tale.deliver("m1", ("s", START + 300_000), accepted=START + 300_000)


def test_a_task_that_is_early_is_noticed() -> None:
    """A delivery of a task is held to the same wall."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600 - 1)
    with breaks(EARLY):
        tale.deliver_task(task, START + 9 * HOUR, START + 33 * HOUR)


# Exactly once ---------------------------------------------------------------------------------


def test_a_reminder_that_is_delivered_once_is_admitted_once() -> None:
    """An every reminder is delivered for one occurrence after the other."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", create("s", START + 300_000, everySeconds=300))
    for number in (1, 2):
        tale.wait(300)
        tale.deliver(f"m{number}", ("s", START + 300_000 * number), accepted=tale.wall)


def test_a_message_without_its_dispatch_is_noticed() -> None:
    """A delivered message whose dispatch is not in the same commit would be delivered again after a crash."""
    tale = reminded()
    tale.wait(10)
    tale.claim()
    with breaks(ONCE, "records dispatches of []"):
        tale.commit("ada", insert("m1", reminder_text(("s", START + 10_000)), source="schedule"))


def test_a_dispatch_without_its_message_is_noticed() -> None:
    """A dispatch whose message is not in the same commit would be lost in a crash."""
    tale = reminded()
    tale.wait(10)
    tale.claim()
    with breaks(ONCE, "deliver the reminders []"):
        tale.commit("ada", dispatch("s"))


@pytest.mark.parametrize("text", [("other", "tea"), ("s", "coffee")])
def test_the_message_is_that_of_the_dispatch(text: tuple[str, str]) -> None:
    """The message names the reminder that is dispatched, and shows its prompt."""
    tale = reminded()
    tale.wait(10)
    identity, prompt = text
    tale.claim()
    message = insert("m1", reminder_text((identity, START + 10_000), prompt=prompt), source="schedule")
    with breaks(ONCE):
        tale.commit("ada", message, dispatch("s"))


def test_what_a_user_writes_delivers_nothing() -> None:
    """A message of a user's that looks like a delivery is none, and one of the host's own without a frame neither."""
    tale = reminded()
    tale.commit("ada", insert("m1", reminder_text(("s", START + 10_000))))
    tale.commit("ada", insert("m2", "good morning", source="schedule"))


def test_a_task_delivered_once_is_admitted_once() -> None:
    """Message, receipt and row of a delivery agree."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    task = tale.deliver_task(task, START + 9 * HOUR, START + 33 * HOUR)
    tale.wait(24 * 3600)
    tale.deliver_task(task, START + 33 * HOUR, START + 57 * HOUR)


def test_a_task_delivered_twice_is_noticed() -> None:
    """The same occurrence under the same rule is not admitted again."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    task = tale.deliver_task(task, START + 9 * HOUR, START + 33 * HOUR)
    back = changed(task, START + 9 * HOUR)
    with breaks("as-planned", "without a reason"):
        tale.edit(task, back)
    with breaks(ONCE, "admitted twice"):
        tale.deliver_task(back, START + 9 * HOUR, START + 33 * HOUR)


def test_a_new_rule_may_come_to_the_same_instant() -> None:
    """After the wall was set back and the rule replaced, an instant is not the same occurrence."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    task = tale.deliver_task(task, START + 9 * HOUR, START + 33 * HOUR)
    tale.step_wall(-3600)
    again = changed(task, START + 9 * HOUR, rule=every(3600, START + 9 * HOUR))
    again["data"].pop("coveredAt")
    task = tale.edit(task, again)
    tale.wait(3600)
    tale.deliver_task(task, START + 9 * HOUR, START + 10 * HOUR)


def test_a_task_may_be_run_by_hand_again_and_again() -> None:
    """What somebody runs now takes no occurrence of the rule."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    for _ in range(2):
        after_it = delivered(task, tale.wall, task["next"], decided=tale.wall)
        after_it["data"].pop("coveredAt")
        tale.deliver_tasks([(task, after_it, tale.wall, 0, 0)])
        task = after_it


def test_a_task_that_makes_its_sessions_makes_another_each_time() -> None:
    """Two occurrences in one session are noticed."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9), session=None))
    tale.wait(9 * 3600)
    task = tale.deliver_task(task, START + 9 * HOUR, START + 33 * HOUR)
    tale.wait(24 * 3600)
    with breaks(ONCE, "is delivered to ada again"):
        tale.deliver_task(task, START + 33 * HOUR, START + 57 * HOUR)


def test_a_task_is_delivered_where_it_says() -> None:
    """A delivery to another session is noticed."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9), session="bob"))
    tale.wait(9 * 3600)
    with breaks(ONCE, "is for session bob, and is delivered to ada"):
        tale.deliver_task(task, START + 9 * HOUR, START + 33 * HOUR)


def test_a_receipt_belongs_to_each_task_that_is_delivered() -> None:
    """A message that delivers a task leaves a receipt of the same occurrence, session and number."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    tale.claim()
    nine = START + 9 * HOUR
    message = insert("m1", task_text(("task-1", nine, 1)), source="schedule")
    told = delivered(task, nine, START + 33 * HOUR, decided=tale.wall, missed=1)
    with breaks(ONCE, "it has the receipts"):
        tale.commit("ada", message, tasks=[write(START, told)], receipts=[receipt("task-1", nine, tale.wall, missed=0)])


def test_a_delivered_task_is_written() -> None:
    """A delivery moves the task on in the same commit."""
    tale = TaskTale()
    tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    tale.claim()
    nine = START + 9 * HOUR
    message = insert("m1", task_text(("task-1", nine, 0)), source="schedule")
    with breaks(ONCE, "does not write it"):
        tale.commit("ada", message, receipts=[receipt("task-1", nine, tale.wall)])


@pytest.mark.parametrize(
    "more",
    [
        {"deliveries": 2},
        {"lastDelivery": {"scheduledAt": text_of(START), "deliveredAt": text_of(START), "targetSessionId": "ada"}},
    ],
)
def test_the_task_tells_of_its_delivery(more: dict[str, object]) -> None:
    """After a delivery the task names it, and has counted it."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    nine = START + 9 * HOUR
    told = delivered(task, nine, START + 33 * HOUR, decided=tale.wall)
    told["data"] |= more
    with breaks(ONCE, "the task itself says"):
        tale.deliver_tasks([(task, told, nine, 0, 0)])


def test_the_prompt_that_is_delivered_is_that_of_the_task() -> None:
    """A delivery shows the prompt that the task had."""
    tale = TaskTale()
    task = tale.make(row("task-1", after(10), START + 10_000, prompt="coffee"))
    tale.wait(10)
    with breaks(ONCE, "with the prompt 'tea'"):
        tale.deliver_task(task, START + 10_000, None)


def test_a_receipt_is_filed_where_it_belongs() -> None:
    """The instants under which a receipt is kept are those in its text."""
    tale = TaskTale()
    task = tale.make(row("task-1", daily(9)))
    tale.wait(9 * 3600)
    tale.claim()
    tale.wait(5)
    nine = START + 9 * HOUR
    told = delivered(task, nine, START + 33 * HOUR, decided=tale.wall)
    filed = receipt("task-1", nine, tale.wall) | {"delivered": tale.wall - 1}
    message = insert("m1", task_text(("task-1", nine, 0)), source="schedule")
    with breaks(ONCE, "is filed under"):
        tale.commit("ada", message, tasks=[write(START, told)], receipts=[filed])
