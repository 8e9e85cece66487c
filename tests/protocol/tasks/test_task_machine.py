"""A task lives through edits, deliveries and clock steps beside a model of a few integers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from whenidle_protocol.errors import ToolError
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.task_changes import check_delete, update
from whenidle_protocol.task_codec import decode_task, encode_task
from whenidle_protocol.task_delivery import Due, NotDue, Skipped, deliver
from whenidle_protocol.task_record import TargetKind, TaskStatus
from whenidle_protocol.task_requests import DeleteTask, UpdateTask

from .worlds import CALLER, NONE_YET, NOW, SETTINGS, made

MINUTE = timedelta(minutes=1)
WINDOW = 150
"""Minutes of the catch-up window."""


class TaskMachine(RuleBasedStateMachine):
    """Times of the model are minutes from `NOW`.

    A rule of the model is the tuple ("each", hours) or ("once", minute).
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = 30
        self.task = made(CronRule("0 * * * *", "UTC"), now=self.at(), catch_up_seconds=WINDOW * 60)
        self.title = "Title"
        self.rule: tuple[str, int] = ("each", 1)
        self.status, self.next = "active", 60
        self.covered: int | None = None
        self.counts = [0, 0, 0]
        self.delivered: set[int] = set()
        """Occurrences of the present rule that were delivered."""
        self.versions = [self.task.updated_at]

    def at(self) -> Any:
        return NOW + self.clock * MINUTE

    def after(self, moment: int) -> int | None:
        """Return the first occurrence of the model's rule later than `moment`."""
        kind, number = self.rule
        if kind == "once":
            return number if number > moment else None
        return (moment // (number * 60) + 1) * number * 60

    def write(self, task: Any) -> None:
        """Take what was decided; the store would compare versions."""
        assert task.updated_at > self.versions[-1]
        self.versions.append(task.updated_at)
        self.task = decode_task(encode_task(task))

    @rule(minutes=st.integers(1, 1000))
    def time_passes(self, minutes: int) -> None:
        self.clock += minutes

    @rule(minutes=st.integers(1, 400))
    def the_clock_is_set_back(self, minutes: int) -> None:
        self.clock = max(self.clock - minutes, 0)

    @rule()
    def what_is_due_is_delivered(self) -> None:
        decision = deliver(self.task, self.at(), SETTINGS)
        if self.status != "active" or self.next > self.clock:
            assert decision == NotDue()
            return
        assert not isinstance(decision, NotDue)
        due = [self.next]
        while (following := self.after(due[-1])) is not None and following <= self.clock:
            due.append(following)
        in_time = [each for each in due if self.rule[0] == "once" or each >= self.clock - WINDOW]
        self.counts[1] += max(len(in_time) - 1, 0)
        self.counts[2] += len(due) - len(in_time)
        if in_time:
            assert isinstance(decision, Due)
            assert decision.occurrence == NOW + in_time[-1] * MINUTE
            assert in_time[-1] not in self.delivered
            self.delivered.add(in_time[-1])
            self.counts[0] += 1
        else:
            assert isinstance(decision, Skipped)
        self.covered = due[-1]
        self.status, self.next = ("ended", due[-1]) if following is None else ("active", following)
        self.write(decision.after)

    @rule(
        title=st.none() | st.sampled_from(["Title", "Other"]),
        given=st.none()
        | st.tuples(st.just("each"), st.sampled_from([1, 2, 3, 4]))
        | st.tuples(st.just("once"), st.integers(0, 1500)),
        active=st.none() | st.booleans(),
        moved=st.booleans(),
        stale=st.booleans(),
    )
    def it_is_edited(
        self, title: str | None, given: tuple[str, int] | None, active: bool | None, moved: bool, stale: bool
    ) -> None:
        request = UpdateTask(
            "task-1",
            title=title,
            rule=None if given is None else real(given),
            active=active,
            target=TargetKind.NEW_ONCE if moved else None,
            expected_updated_at=self.versions[-2 if stale and len(self.versions) > 1 else -1],
        )
        before, delivered = (self.rule, self.status, self.next, self.covered, self.title), self.delivered
        refusal = "schedule_conflict" if stale and len(self.versions) > 1 else self.model_edit(title, given, active)
        task, code = self.task, None
        try:
            task = update(self.task, request, CALLER, self.at(), SETTINGS, NONE_YET)
        except ToolError as error:
            code = error.code.value
        assert code == refusal
        if code is not None:
            self.rule, self.status, self.next, self.covered, self.title = before
            self.delivered = delivered
        elif not moved and before == (self.rule, self.status, self.next, self.covered, self.title):
            assert task is self.task
        else:
            self.write(task)

    def model_edit(self, title: str | None, given: tuple[str, int] | None, active: bool | None) -> str | None:
        """Edit the model, and return the code of the refusal if it is one."""
        self.title = title or self.title
        if given is not None and given != self.rule:
            self.rule, self.covered, self.delivered = given, None, set()
            self.status = "paused" if active is False or (active is None and self.status == "paused") else "active"
            following = self.after(self.clock)
        elif active is True and self.status != "active":
            self.status = "active"
            following = self.after(self.clock if self.covered is None else max(self.clock, self.covered))
        else:
            if active is False and self.status == "active":
                self.status = "paused"
            return None
        if following is None:
            return "not_future"
        self.next = following
        return None

    @rule()
    def its_deletion_depends_on_the_version(self) -> None:
        check_delete(self.task, DeleteTask("task-1", self.versions[-1]))

    @invariant()
    def it_is_what_the_model_says(self) -> None:
        task = self.task
        assert (task.status, task.title) == (TaskStatus(self.status), self.title)
        assert task.scheduled_at == NOW + self.next * MINUTE
        assert [task.deliveries, task.missed, task.skipped] == self.counts
        assert task.rule == real(self.rule)


def real(model: tuple[str, int]) -> Any:
    """Return the rule that one of the model stands for."""
    kind, number = model
    return AtRule(NOW + number * MINUTE) if kind == "once" else CronRule(f"0 */{number} * * *", "UTC")


TestTaskMachine = TaskMachine.TestCase
TestTaskMachine.__doc__ = "Status, next occurrence and counters are the model's, whatever is done in whatever order."
