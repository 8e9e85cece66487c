"""Traces made by hand: one with every kind of happening, hostile ones, and long ones."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from whenidle_clock.instants import format_instant
from whenidle_lab.choices import Choice, Topic
from whenidle_lab.findings import Finding, FindingKind, Run
from whenidle_lab.reading import Reading, read
from whenidle_lab.trace import Happening, Trace, What

MIDNIGHT = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC."""


class Teller:
    """Writes a trace, happening by happening; `life`, `step` and both clocks are where they were left."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.life = 0
        self.step = 0
        self.millis = 0
        self.ahead = 0
        self._commits = 0

    def tell(self, what: What, agent: str = "", **detail: Any) -> int:
        """Add a happening, one round after the last one, and return its position."""
        self.step += 1
        wall = MIDNIGHT + self.millis + self.ahead
        self.trace.add(Happening(self.step, self.life, self.millis * 1_000_000, wall, what, agent, detail))
        return len(self.trace) - 1

    def commit(self, session: str, *records: tuple[str, dict[str, Any]], **also: Any) -> int:
        """Commit records to a session's log, and return the position at which they are durable."""
        number, self._commits = self._commits, self._commits + 1
        self.tell(What.COMMIT_BEGAN, commit=number)
        written = [{"type": kind, "at": MIDNIGHT, "data": json.dumps(data)} for kind, data in records]
        appends = [{"session": session, "expected": 0, "records": written}] if records else []
        durable = self.tell(
            What.COMMIT_DURABLE,
            commit=number,
            **{"created": [], "appends": appends, "tasks": [], "receipts": [], **also},
        )
        self.tell(What.COMMIT_ENDED, commit=number, fate="done", error=None)
        return durable

    def reading(self) -> Reading:
        """Return what there is to see in it."""
        return read(self.trace)

    def run(self, *, choices: tuple[Choice, ...] = (), scenario: str = "by-hand", faults: tuple[str, ...] = ()) -> Run:
        """Return it as a run."""
        broken = next((one for one in self.trace if one.what is What.BROKEN), None)
        finding = None
        if broken is not None:
            finding = Finding(FindingKind.INVARIANT, broken.detail["invariant"], broken.detail["text"])
        seconds, lives = self.millis / 1000, self.life + 1
        return Run(scenario, choices, finding, self.step, seconds, lives, frozenset(faults), self.trace, "")


def created(reminder: str, seconds: int, *, every: int = 0, prompt: str = "tea") -> tuple[str, dict[str, Any]]:
    """Return the record of a reminder that was created, due so many seconds after midnight."""
    own = {"kind": "every", "everySeconds": every} if every else {"kind": "after", "afterSeconds": 1}
    schedule = {"id": reminder, "prompt": prompt, **own, "scheduledAt": _wire(seconds)}
    return "schedule/change", {"version": 1, "operation": "create", "schedule": schedule}


def dispatched(reminder: str, accepted: int | None = None) -> tuple[str, dict[str, Any]]:
    """Return the record of a reminder that was dispatched; of an `every` at so many seconds after midnight."""
    at = {} if accepted is None else {"acceptedAt": _wire(accepted)}
    return "schedule/change", {"version": 1, "operation": "dispatch", "id": reminder, **at}


def deleted(reminder: str) -> tuple[str, dict[str, Any]]:
    """Return the record of a reminder that was deleted."""
    return "schedule/change", {"version": 1, "operation": "delete", "id": reminder}


def inserted(message: str) -> tuple[str, dict[str, Any]]:
    """Return the record of a message that entered an inbox."""
    return "inbox/insert", {"id": message, "lane": "next-turn", "wake": True, "text": "hello", "source": "user"}


def _wire(seconds: int) -> str:
    return format_instant(at(seconds))


def at(seconds: int) -> datetime:
    """Return the wall instant so many seconds after midnight."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def every_kind(name: str = "ada", words: str = "hello") -> Run:
    """Return a run in which each kind of happening happens, about an agent and with texts as given."""
    teller = Teller()
    tell = teller.tell
    tell(What.LIFE_BEGAN, down=0.0)
    tell(What.HOST, name, event="agent-started")
    tell(What.CALL_BEGAN, name, call=0, tool="schedule_create", arguments={"prompt": words, "after_seconds": 5})
    teller.commit(name, created("schedule-1", 5, prompt=words))
    tell(What.CALL_ENDED, name, call=0, answer={"id": "schedule-1", "prompt": words})
    tell(What.SEND_BEGAN, name, send=1, how="followup", text=words)
    teller.commit(name, inserted("m1"))
    tell(What.SEND_ENDED, name, send=1, message="m1")
    tell(What.CHANGED, name, how="replace", message="m1", error=None)
    tell(What.DEPTH, name, depth=2)
    tell(What.WAIT_BEGAN, name, wait=2)
    teller.millis = 2_000
    teller.commit(name, ("turn/start", {"turn": 1, "claimed": ["m1"], "attempt": 1}))
    tell(What.TURN_BEGAN, name, turn=1, attempt=1, redelivered=False, messages=["m1"], fault="turn-raises")
    tell(What.CLAIM_REFUSED, name, claim=3, error="AgentBusy")
    teller.millis, teller.ahead = 3_000, -1_000
    tell(What.CLOCK, how="step", by=-1.0, announced=True)
    tell(What.CLOCK, how="drift", by=250, announced=False)
    tell(What.STEPPED, name, turn=1, messages=[words])
    tell(What.CANCEL, name, cancel=5, cause=words, keep_inbox=True)
    tell(What.CANCEL_ENDED, name, cancel=5, error=None)
    tell(What.TURN_ENDED, name, turn=1, how="raised", error="RuntimeError")
    tell(What.WAIT_ENDED, name, wait=2, error=None)
    tell(What.MAINTENANCE_BEGAN, name, claim=4)
    teller.millis = 9_000
    tell(What.COMMIT_BEGAN, commit=90)
    tell(What.COMMIT_ENDED, commit=90, fate="refused", error="StoreFull")
    tell(What.LIFE_ENDED, how="crashed")
    teller.life, teller.ahead = 1, 11_000
    tell(What.LIFE_BEGAN, down=12.0)
    tell(What.READ_FAILED, error="StoreError")
    teller.commit(name, inserted("m2"), dispatched("schedule-1"))
    tell(What.MAINTENANCE_BEGAN, name, claim=5)
    tell(What.MAINTENANCE_ENDED, name, claim=5, how="returned", error=None)
    tell(What.FORKED, name, session="fork", upto=2)
    tell(What.LOG, level="WARNING", logger="whenidle", text=words)
    tell(What.NOTE, name, text=words, mood="fine")
    tell(What.DISPOSE_BEGAN, name)
    teller.millis = 10_000
    tell(What.DISPOSE_ENDED, name, inside=False)
    tell(What.FAULTS_STOPPED)
    tell(What.BROKEN, invariant="exactly-once", text=words)
    tell(What.LIFE_ENDED, how="broken")
    choices = (Choice(Topic.TASK, 3, 0), Choice(Topic.CRASH, 4, 2), Choice(Topic.TASK, 2, 1))
    return teller.run(choices=choices, faults=("crash", "rollback"))


def long_run(happenings: int, agents: int = 12) -> Run:
    """Return a run of many happenings: turns, commits, reminders, steps of the clock, a crash now and then."""
    teller, draw = Teller(), random.Random(7)  # noqa: S311 - a trace, the same each time
    names = [f"agent-{number:02d}" for number in range(agents)]
    teller.tell(What.LIFE_BEGAN, down=0.0)
    number = 0
    while len(teller.trace) < happenings - 20:
        number += 1
        name, reminder = draw.choice(names), f"schedule-{number}"
        due = min(80_000, (teller.millis + teller.ahead) // 1000 + draw.randrange(20))
        teller.tell(What.CALL_BEGAN, name, call=number, tool="schedule_create", arguments={"prompt": "tea"})
        teller.commit(name, created(reminder, max(0, due)))
        teller.tell(What.CALL_ENDED, name, call=number, answer={"id": reminder})
        teller.millis += draw.choice((0, 0, 0, 5, 1_000, 20_000))
        teller.commit(name, inserted(f"m{number}"), dispatched(reminder))
        teller.commit(name, ("turn/start", {"turn": number, "claimed": [f"m{number}"], "attempt": 1}))
        teller.tell(
            What.TURN_BEGAN, name, turn=number, attempt=1, redelivered=False, messages=[f"m{number}"], fault=None
        )
        teller.tell(What.DEPTH, name, depth=draw.randrange(4))
        teller.millis += draw.choice((0, 10, 2_000))
        teller.tell(What.TURN_ENDED, name, turn=number, how="returned", error=None)
        if number % 40 == 0:
            by = draw.choice((-10, 3, 60))
            teller.ahead += by * 1000
            teller.tell(What.CLOCK, how="step", by=float(by), announced=True)
        if number % 300 == 0:
            teller.tell(What.LIFE_ENDED, how="crashed")
            teller.life += 1
            teller.ahead += 30_000
            teller.tell(What.LIFE_BEGAN, down=30.0)
    teller.tell(What.BROKEN, invariant="exactly-once", text="schedule-7 was admitted twice")
    teller.tell(What.LIFE_ENDED, how="broken")
    return teller.run(scenario="long")
