"""What happened in a run, as invariants judge it and pictures show it.

A trace is a list of `Happening`s in the order in which they happened. It is the only thing that invariants,
stories and timelines are made from; equal runs have equal traces, byte for byte.
"""

from __future__ import annotations

import enum
import hashlib
import json
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attrs import frozen as _value
else:
    _value = attrs.define  # a frozen one takes a microsecond more to make, and a run has a hundred and more


class What(enum.StrEnum):
    """The kind of a happening; after each, what its `detail` holds. Instants are wall milliseconds, spans seconds."""

    LIFE_BEGAN = "life-began"
    """A process began. `down`: seconds of wall time since the last one died."""
    LIFE_ENDED = "life-ended"
    """It ended. `how`: `finished`, `stopped` (in order, before its time), `crashed`, `broken` (an invariant) or
    `failed` (an error)."""
    FAULTS_STOPPED = "faults-stopped"
    """From here on nothing goes wrong any more, and everything due must be delivered."""

    COMMIT_BEGAN = "commit-began"
    """A batch was handed to the store. `commit`: its number in the run, from 0."""
    COMMIT_DURABLE = "commit-durable"
    """It is durable. `commit`; `elsewhere`: True if another process made it, else absent; `created`: session ids;
    `seeds`: {session id: events inherited}, of forks;
    `appends`: [{session, expected, due, runnable, records: [{type, at, data}]}], the index of the session with them;
    `tasks`: [{id, expected, task, version, next, session}], `task` is JSON text, or None and the last of a deletion;
    `receipts`: [{task, scheduled, delivered, data}]. Numbers are milliseconds, but for `expected` of an append."""
    COMMIT_ENDED = "commit-ended"
    """The caller was told. `commit`; `fate`: `done` (a conflict included), `withdrawn` (its caller was cancelled), or
    the name of a `FaultKind`; `error`: name of the exception, or None."""
    READ_FAILED = "read-failed"
    """A read of the store failed. `error`."""

    CLOCK = "clock"
    """The clock did something but run. `how`: `step`, `suspend`, `drift`; `by`: seconds, or ppm; `announced`."""

    CALL_BEGAN = "call-began"
    """A tool is called. `call`: number in the run; `tool`; `arguments`."""
    CALL_ENDED = "call-ended"
    """It was answered. `call`; `answer`, or `error`: name of the exception."""
    SEND_BEGAN = "send-began"
    """A message is sent. `send`: number in the run; `how`: `followup`, `steer` or `inject`; `text`."""
    SEND_ENDED = "send-ended"
    """It was accepted, or not. `send`; `message`: its id, or `error`."""

    CHANGED = "changed"
    """A pending message was to be changed. `how`: `remove` or `replace`; `message`; `error`: None if it was."""

    TURN_BEGAN = "turn-began"
    """The turn function was entered. `turn`: its number; `attempt`; `redelivered`; `messages`: ids; `fault` or None."""
    TURN_ENDED = "turn-ended"
    """It was left. `turn`; `how`: `returned`, `raised` or `cancelled`; `error`."""
    STEPPED = "stepped"
    """A turn has taken, between two steps, what had come meanwhile. `turn`; `messages`: ids of what it was handed."""
    MAINTENANCE_BEGAN = "maintenance-began"
    """A maintenance task of the scenario was entered. `claim`: number in the run."""
    MAINTENANCE_ENDED = "maintenance-ended"
    """It was left. `claim`; `how` as of a turn."""
    CLAIM_REFUSED = "claim-refused"
    """The agent was busy, so that the maintenance task did not begin."""
    WAIT_BEGAN = "wait-began"
    """`when_idle` was called. `wait`: number in the run."""
    WAIT_ENDED = "wait-ended"
    """It returned, or raised, or its caller was cancelled. `wait`; `error`: name of the exception, or None."""
    CANCEL = "cancel"
    """The agent is to be cancelled. `cancel`: number in the run; `cause`; `keep_inbox`."""
    CANCEL_ENDED = "cancel-ended"
    """The call has returned, or raised. `cancel`; `error`: name of the exception, or None."""
    DISPOSE_BEGAN = "dispose-began"
    """Disposal was asked for. `current`: whether of the agent that is live, and not of one that has ended before."""
    DISPOSE_ENDED = "dispose-ended"
    """It has returned. `inside`: whether the agent's own turn had asked for it, which is not made to wait."""
    FORKED = "forked"
    """A session was forked. `session`: the new one; `upto`."""

    HOST = "host"
    """The host announced something. `event`: the name of its kind; and its detail."""
    LOG = "log"
    """The runtime logged a warning or worse. `level`; `logger`; `text`."""
    DEPTH = "depth"
    """The number of messages in an agent's mailbox has changed. `depth`."""
    NOTE = "note"
    """The scenario's own. `text`; and whatever else it likes."""
    BROKEN = "broken"
    """An invariant does not hold. `invariant`; `text`."""


@_value
class Happening:
    """One thing that happened."""

    step: int
    """How many rounds of the event loop had begun, over all lives."""
    life: int
    """Which process it happened in, from 0."""
    monotonic_ns: int
    """Monotonic time since the run began, over all lives; it stands still between them."""
    wall_millis: int
    """What the wall clock showed, in milliseconds since the epoch."""
    what: What
    agent: str
    """The session it is about; empty for none."""
    detail: Mapping[str, Any]
    """JSON values, by the kind."""

    def line(self) -> str:
        """Return it as one line of canonical JSON."""
        fields = (self.step, self.life, self.monotonic_ns, self.wall_millis, self.what.value, self.agent, self.detail)
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> Happening:
        """Return what `line` was made from.

        Raises:
            ValueError: it is no such line.
        """
        step, life, monotonic_ns, wall_millis, what, agent, detail = json.loads(line)
        return cls(step, life, monotonic_ns, wall_millis, What(what), agent, detail)


class Trace:
    """The happenings of one run."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def __len__(self) -> int:
        return len(self.happenings)

    def __iter__(self) -> Iterator[Happening]:
        return iter(self.happenings)

    def add(self, happening: Happening) -> None:
        """Append a happening."""
        self.happenings.append(happening)

    def digest(self) -> str:
        """Return the SHA-256 of the lines, in hexadecimal: equal for equal runs, be they `detailed` or not."""
        digest = hashlib.sha256()
        for happening in self.happenings:
            if happening.what is not What.DEPTH:
                digest.update(happening.line().encode("utf-8", "surrogatepass"))
                digest.update(b"\n")
        return digest.hexdigest()
