"""Clocks and alarms, broken."""

from __future__ import annotations

from tests.mutants.patches import Mutant

CLOCK = (
    Mutant(
        "fires-on-monotonic-time",
        "whenidle_clock.alarm",
        "if keys := self._queue.take_due(self._clock.now_millis(), FIRE_LIMIT):",
        "if keys := self._queue.take_due(self._clock.now_millis() + 1500, FIRE_LIMIT):",
        "nothing is delivered before its time",
    ),
    Mutant(
        "forgets-to-look-again-when-rearmed",
        "whenidle_clock.alarm",
        "        if at_millis < self._waiting_for or self._is_put_off(before, at_millis):\n            self._look_again()\n",
        "",
        "an earlier target ends the wait for a later one",
    ),
    Mutant(
        "does-not-watch-for-steps",
        "whenidle_clock.alarm",
        "await watch.wait()\n",
        "await trio.sleep_forever()\n",
        "a step forward fires what it passed",
        ("pacing",),
    ),
    Mutant(
        "loses-keys-that-share-a-bucket",
        "whenidle_clock.alarm_queue",
        "            closed[key] = target\n",
        "            closed.setdefault(key, target) if len(closed) < 2 else None\n",
        "every armed target is fired",
    ),
    Mutant(
        "keeps-firing-what-was-disarmed",
        "whenidle_actors.reminders",
        "        self.services.alarm.disarm((self.name, session_id))\n",
        "",
        "nothing of a disposed agent stays armed",
    ),
)
