"""Inboxes, turns and redelivery, broken."""

from __future__ import annotations

from tests.mutants.patches import Mutant

CHANGES = "whenidle_protocol.turn_changes"
STATE = "whenidle_protocol.session_state"

INBOX = (
    Mutant(
        "reuses-an-id",
        CHANGES,
        'message = Message(f"m{state.length}", lane, wake, text, source)',
        'message = Message(f"m{len(state.inbox) + 1}", lane, wake, text, source)',
        "ids are unique while pending",
    ),
    Mutant(
        "loses-a-latched-wake",
        STATE,
        "        self.awake = self.awake or event.wake\n",
        "        self.awake = self.awake or (event.wake and self.turn is None)\n",
        "a waking message that lands during a turn runs behind it",
        ("inbox", "tools-in-turns", "managers"),
    ),
    Mutant(
        "forgets-the-cancelled-latch",
        STATE,
        "            self.turn = attrs.evolve(turn, abort_cause=event.cause)\n        self.awake = False\n",
        "            self.turn = attrs.evolve(turn, abort_cause=event.cause)\n",
        "what a cancel leaves in the inbox waits",
    ),
    Mutant(
        "does-not-redeliver",
        CHANGES,
        "        end = TurnEnded(turn.number, Outcome.INTERRUPTED, redeliver=redeliver)\n    return (end,), end\n",
        "        end = TurnEnded(turn.number, Outcome.INTERRUPTED, redeliver=False)\n    return (end,), end\n",
        "an interrupted turn is redelivered",
    ),
    Mutant(
        "does-not-count-attempts",
        STATE,
        "self.redelivery = Redelivery(turn.claimed, turn.attempt + 1)",
        "self.redelivery = Redelivery(turn.claimed, turn.attempt)",
        "a redelivered turn is marked",
    ),
    Mutant(
        "turns-take-the-newest-first",
        "whenidle_protocol.inbox",
        "        first = next(iter(self._next_turn.values()), None)\n",
        "        first = next(reversed(self._next_turn.values()), None)\n",
        "messages run in the order of their coming",
    ),
    Mutant(
        "empties-an-inbox-it-should-keep",
        CHANGES,
        "    removed = () if keep_inbox else tuple(message.id for message in state.inbox)\n",
        "    removed = tuple(message.id for message in state.inbox)\n",
        "a cancel keeps the inbox when told to",
        ("inbox", "tools-in-turns", "pacing"),
    ),
    Mutant(
        "hands-step-messages-over-twice",
        CHANGES,
        "    return events, (*turn.claimed[handed:], *waiting)\n",
        "    return events, (*turn.claimed, *waiting)\n",
        "a message is handed to a turn once",
        ("inbox", "at-most-once", "managers"),
    ),
    Mutant(
        "does-not-wake",
        "whenidle_actors.agent_core",
        "        if self.phase is Phase.IDLE and self.may_have_reason_to_run():\n",
        "        if self.phase is Phase.IDLE and self.may_have_reason_to_run() and self.served % 7:\n",
        "a message that wakes is run",
    ),
)
