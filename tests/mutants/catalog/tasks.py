"""Host-wide tasks, broken."""

from __future__ import annotations

from tests.mutants.patches import Mutant

DELIVERY = "whenidle_protocol.task_delivery"
CHANGES = "whenidle_protocol.task_changes"

TASKS = (
    Mutant(
        "tasks-stay-due",
        DELIVERY,
        '            "scheduled_at": found.next_at or found.occurrence_at,\n',
        '            "scheduled_at": task.scheduled_at,\n',
        "an occurrence of a task is admitted once",
    ),
    Mutant(
        "tasks-are-delivered-early",
        DELIVERY,
        "    if task.next_at is None or task.next_at > now:\n        return NotDue()\n",
        "    if task.next_at is None:\n        return NotDue()\n    now = max(now, task.next_at)\n",
        "nothing is delivered before its time",
        ("disturbed-tasks",),
    ),
    Mutant(
        "tasks-are-delivered-without-a-claim",
        "whenidle_actors.task_claims",
        "            return await agent.admit(admit)\n",
        "            return await agent.in_mailbox(lambda: admit(lambda: False))\n",
        "deliveries wait until the agent is idle",
    ),
    Mutant(
        "tasks-miscount-what-was-missed",
        DELIVERY,
        '            "missed": task.missed + max(in_time - 1, 0),\n',
        '            "missed": task.missed + in_time,\n',
        "missed counts are right",
    ),
    Mutant(
        "edits-ignore-the-version",
        CHANGES,
        "    if request.expected_updated_at not in {None, task.updated_at}:\n        raise conflict(task.id)\n",
        "    return\n",
        "of an edit and a delivery that race exactly one wins",
        ("tasks-edits", "mixed"),
    ),
    Mutant(
        "paused-tasks-accumulate",
        CHANGES,
        "        following = task.rule.next(max(now, task.covered_at or now), **chosen)\n",
        "        following = task.scheduled_at\n",
        "a resumed task goes on with its next future occurrence",
        ("tasks-edits", "mixed"),
    ),
    Mutant(
        "tasks-fail-once-and-are-forgotten",
        "whenidle_actors.task_pursuit",
        "            await self._bear(error)\n            return True\n        self._patience.reset()\n",
        "            return False\n        self._patience.reset()\n",
        "a delivery that failed is tried again",
        ("disturbed-tasks",),
    ),
    Mutant(
        "a-round-forgets-what-failed",
        "whenidle_actors.task_rounds",
        "        return self._left_over\n",
        "        return {}\n",
        "what a round could not deliver is pursued",
    ),
    Mutant(
        "the-host-forgets-tasks-at-start",
        "whenidle_actors.attendance",
        "        self._attends = True\n        for suite in self.suites:\n            suite.look()\n",
        "        self._attends = True\n",
        "what came due while the host was down is delivered",
    ),
    Mutant(
        "occurrences-share-a-session",
        DELIVERY,
        "    session_id = task.target.session_id or occurrence_session_id(task.id, found.occurrence_at)\n",
        "    session_id = task.target.session_id or occurrence_session_id(task.id, task.created_at)\n",
        "the target new is a session of its own each time",
        ("tasks-targets", "mixed", "disturbed-tasks"),
    ),
)
