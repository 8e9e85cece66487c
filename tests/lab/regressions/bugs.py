"""The bugs, as patches that put them back: a recording proves something as long as it finds its bug again."""

from __future__ import annotations

from tests.mutants.patches import Mutant

BUGS = (
    Mutant(
        "a-quiet-period-ends-a-rounding-error-early",
        "whenidle_actors.registry",
        "            if (wait := since + after - trio.current_time()) > _NO_WAIT:\n",
        "            if (wait := since + after - trio.current_time()) > 0:\n",
        "passivation does not stop virtual time",
        ("forks",),
    ),
    Mutant(
        "a-task-with-another-target-is-failed",
        "whenidle_actors.task_pursuit",
        "            return self._read([row], known) if row.session_id is None else []\n",
        "            return self._read([row], known)\n",
        "a task whose target is changed as it comes due goes to the new one",
        ("tasks-targets",),
    ),
    Mutant(
        "a-clock-set-back-leaves-tasks-to-nobody",
        "whenidle_actors.task_deliveries",
        "        if now_millis < self._swept_millis:\n            self.look()\n",
        "        return\n",
        "tasks due before the clock was set back are looked for again",
        ("disturbed-tasks",),
    ),
)
