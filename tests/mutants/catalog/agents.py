"""Phases, claims, waits and disposal, broken."""

from __future__ import annotations

from tests.mutants.patches import Mutant

AGENT = "whenidle_actors.agent"
CORE = "whenidle_actors.agent_core"

AGENTS = (
    Mutant(
        "claims-with-a-checkpoint-in-between",
        AGENT,
        "        self.step(Event.CLAIM)\n        activity = self.activity = Activity()\n        outcome",
        "        await trio.lowlevel.checkpoint()\n"
        "        self.step(Event.CLAIM)\n        activity = self.activity = Activity()\n        outcome",
        "nothing comes between the test and the claim",
    ),
    Mutant(
        "two-claims-at-once",
        "whenidle_protocol.agent_state",
        "    Phase.MAINTENANCE: {\n        Event.WAKE: Step(Phase.MAINTENANCE),\n",
        "    Phase.MAINTENANCE: {\n        Event.CLAIM: Step(Phase.MAINTENANCE),\n        Event.WAKE: Step(Phase.MAINTENANCE),\n",
        "claims exclude each other",
    ),
    Mutant(
        "forgets-the-driver-behind-a-claim",
        AGENT,
        "self.step(Event.RELEASED_MORE if self.may_have_reason_to_run() else Event.RELEASED)",
        "self.step(Event.RELEASED)",
        "input that arrives during a claim starts the driver",
    ),
    Mutant(
        "forgets-the-driver-behind-a-turn",
        "whenidle_actors.drain",
        "    effects = agent.step(Event.TURN_ENDED_MORE if more else Event.TURN_ENDED)\n",
        "    effects = agent.step(Event.TURN_ENDED)\n",
        "input that arrives during a turn runs behind it",
    ),
    Mutant(
        "is-idle-too-soon",
        AGENT,
        "        while self.phase is not Phase.IDLE:\n            await self.next_change()\n            self.refuse_ended()\n",
        "        if self.phase is not Phase.IDLE:\n            await trio.sleep(0.5)\n            self.refuse_ended()\n",
        "when_idle waits until the agent is idle",
    ),
    Mutant(
        "leaves-waiters-behind",
        CORE,
        "            self.services.announce(EventKind.AGENT_DISPOSED, self.name)\n        self.notify()\n",
        "            self.services.announce(EventKind.AGENT_DISPOSED, self.name)\n",
        "every waiter of a disposed agent is told",
    ),
    Mutant(
        "disposes-without-aborting",
        CORE,
        "        if not patient and self.activity is not None:\n            self.activity.end(cause, interrupted=interrupt)\n        self.notify()\n",
        "        self.notify()\n",
        "disposal aborts what runs",
        ("disposal", "disturbed-reminders", "tools-in-turns"),
    ),
    Mutant(
        "leaves-before-the-turn-has-ended",
        "whenidle_protocol.agent_state",
        "        Event.DISPOSE: Step(Phase.DISPOSING_TURN, (Effect.ABORT_TURN,)),\n",
        "        Event.DISPOSE: Step(Phase.DISPOSING_TURN, (Effect.ABORT_TURN, Effect.FORGET)),\n",
        "disposal waits for work in flight",
        ("disposal", "disturbed-reminders"),
    ),
    Mutant(
        "lets-a-slot-go-missing",
        "whenidle_actors.drain",
        "                finally:\n                    agent.services.turn_slots.release()\n",
        "                finally:\n                    if not agent.ending:\n"
        "                        agent.services.turn_slots.release()\n",
        "a paced host runs all that is due",
        ("pacing", "tasks-crowd"),
    ),
    Mutant(
        "passivates-what-is-waited-for",
        CORE,
        "        return self.phase is Phase.IDLE and self.backlog is None and (self._stay is None or self._stay.waiters is None)\n",
        "        return True\n",
        "only quiet agents are dropped from memory",
        ("disposal", "managers", "mixed"),
    ),
    Mutant(
        "makes-an-agent-twice",
        "whenidle_actors.registry",
        "            self._dormant[agent.name] = found\n",
        "",
        "an agent that was dropped from memory and is held by somebody is taken up again",
        ("disposal", "managers", "mixed"),
    ),
    Mutant(
        "restarts-without-looking",
        CORE,
        "        if self.record is not None and self.record.restarts:\n            self.rouse()\n            self.recompute()\n",
        "        return\n",
        "a restarted actor takes up what its log says",
        ("supervision",),
    ),
    Mutant(
        "is-not-resumed-after-its-backoff",
        "whenidle_actors.supervisor",
        "            actor.lifecycle = Lifecycle.NEW\n            self._scheduler.make_ready(actor)\n",
        "            actor.lifecycle = Lifecycle.NEW\n",
        "a restarted actor serves again",
        ("supervision", "mailboxes"),
    ),
    Mutant(
        "loses-tells-over-a-restart",
        "whenidle_actors.mailbox",
        "        for ask in self.backlog.take_asks() if self.backlog else ():\n",
        "        for ask in self.backlog.take_all() if self.backlog else ():\n",
        "queued tells survive a restart",
        ("mailboxes",),
    ),
)
