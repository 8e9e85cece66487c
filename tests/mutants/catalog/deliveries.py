"""Reminders and their delivery, broken."""

from __future__ import annotations

from tests.mutants.patches import Mutant

REMINDERS = "whenidle_actors.reminders"

DELIVERIES = (
    Mutant(
        "dispatches-before-the-commit",
        "whenidle_protocol.reminder_changes",
        "    return (message, *(_change(dispatch) for dispatch in dispatches(decision))), decision\n",
        "    return tuple(_change(dispatch) for dispatch in dispatches(decision)), decision\n",
        "a dispatch comes with its message",
    ),
    Mutant(
        "delivers-without-a-dispatch",
        "whenidle_protocol.reminder_changes",
        "    return (message, *(_change(dispatch) for dispatch in dispatches(decision))), decision\n",
        "    return (message,), decision\n",
        "an occurrence is admitted once",
    ),
    Mutant(
        "delivers-early",
        "whenidle_protocol.reminders",
        "    if earliest > now_millis:\n        return Wait(from_millis(earliest))\n",
        "    if earliest > now_millis + 1000:\n        return Wait(from_millis(earliest))\n    now_millis += 1000\n",
        "nothing is delivered before its time",
    ),
    Mutant(
        "delivers-without-a-claim",
        REMINDERS,
        "            await agent.admit(lambda withdrawn: self._admit(agent, withdrawn))\n",
        "            await agent.in_mailbox(lambda: self._admit(agent, lambda: False))\n",
        "deliveries wait until the agent is idle",
    ),
    Mutant(
        "releases-before-the-commit",
        "whenidle_actors.agent",
        "                    if began:\n                        await ended.wait()\n",
        "                    pass\n",
        "a claim is held until its commit has ended",
        ("disturbed-reminders",),
    ),
    Mutant(
        "gives-up-after-one-failure",
        REMINDERS,
        "            with trio.CancelScope() as pursuit.nap:\n                await patience.wait()\n        return True\n",
        "            return False\n        return True\n",
        "a delivery that failed is tried again",
        ("disturbed-reminders",),
    ),
    Mutant(
        "does-not-decide-again-in-the-claim",
        REMINDERS,
        "            return ((), Nothing()) if withdrawn() else reminder_changes.deliver(state, from_millis(session.now_millis))\n",
        "            return ((), Nothing()) if withdrawn() else reminder_changes.deliver("
        "state, from_millis(max(session.now_millis, state.reminders.earliest_millis() or 0)))\n",
        "the clock is read inside the claim",
        ("disturbed-reminders",),
    ),
    Mutant(
        "forgets-to-rearm",
        REMINDERS,
        "        self.services.alarm.arm(key, earliest)\n        return False\n",
        "        if agent.session.confirmed_state.turns % 3 != 2:\n"
        "            self.services.alarm.arm(key, earliest)\n        return False\n",
        "the alarm is set for what comes next",
    ),
    Mutant(
        "counts-periods-from-the-delivery",
        "whenidle_protocol.rules.every",
        "    latest = target + missed * interval\n    return Step(from_millis(latest), _at(latest + interval), missed)\n",
        "    latest = target + missed * interval\n"
        "    return Step(from_millis(latest), _at(to_millis(accepted_at) + interval), missed)\n",
        "an interval keeps its phase",
    ),
    Mutant(
        "delivers-all-that-was-missed",
        "whenidle_protocol.rules.every",
        "    latest = target + missed * interval\n",
        "    missed = min(missed, 0)\n    latest = target\n",
        "missed occurrences are coalesced",
    ),
    Mutant(
        "a-pursuit-outlives-its-agent",
        REMINDERS,
        '            pursuit.scope.cancel("the agent is ending")\n',
        "            pass\n",
        "nothing of a disposed agent goes on",
        ("disturbed-reminders",),
    ),
    Mutant(
        "resurrects-what-was-deleted",
        "whenidle_protocol.reminder_changes",
        "    return (_change(Delete(request.id)),), delete_answer(request.id, deleted=True)\n",
        "    return (), delete_answer(request.id, deleted=True)\n",
        "a deleted reminder is not delivered",
    ),
    Mutant(
        "lists-what-is-over",
        "whenidle_protocol.reminder_state",
        "        return (entry[2] for entry in self._active.values())\n",
        "        return (entry[2] for entry in list(self._active.values())[-3:])\n",
        "a list agrees with the log",
        ("one-shots", "mixed", "every"),
    ),
)
