"""A delivery of a task with what came of it: the receipt, and the turn that took its message.

| key of `outcome` | value |
|---|---|
| `state` | `waiting`, `running`, `completed`, `error`, `aborted`, `interrupted`, `removed`; `unknown` without a log |
| `attempts`, `turn` | how often a turn took the message; number of the last one |
| `endedAt`, `cause` | when that turn ended; why it failed or was cancelled |
| `run`, `exitStatus`, `timedOut`, `durationMillis` | of the last run, where the agent is a command |
| `stdout`, `stderr` | the last 2,000 characters of what it wrote; the session's log has more |
"""

import json
from typing import Any, cast

from whenidle_actors.stores.task_rows import Receipt
from whenidle_clock import format_instant, from_millis
from whenidle_protocol.message_history import MessageHistory

TAIL = 2_000
"""Characters of an output stream that are shown with a receipt."""

_FACTS = ("run", "exitStatus", "timedOut", "durationMillis")


def delivery_document(receipt: Receipt, history: MessageHistory | None) -> dict[str, Any]:
    """Return what is on record of a delivery, with its `outcome`."""
    return {**json.loads(receipt.data), "outcome": _outcome(history)}


def _outcome(history: MessageHistory | None) -> dict[str, Any]:
    if history is None:
        return {"state": "unknown"}
    outcome: dict[str, Any] = {"state": history.fate.value, "attempts": history.attempts}
    if history.turn is not None:
        outcome["turn"] = history.turn
    if history.ended_millis is not None:
        outcome["endedAt"] = format_instant(from_millis(history.ended_millis))
    if history.cause is not None:
        outcome["cause"] = history.cause
    return {**outcome, **_command(history.note)}


def _command(note: object) -> dict[str, Any]:
    """Return what a note tells of a command's run; nothing if it is another note."""
    if not isinstance(note, dict) or "exitStatus" not in note:
        return {}
    told = cast("dict[str, Any]", note)
    streams: dict[str, Any] = {name: str(told[name])[-TAIL:] for name in ("stdout", "stderr") if name in told}
    # A note is whatever an agent has noted: what is no number is none of these facts.
    return {name: told[name] for name in _FACTS if isinstance(told.get(name, ""), int | None)} | streams


def outcome_words(outcome: dict[str, Any]) -> str:
    """Return an outcome in few words."""
    words = [str(outcome["state"])]
    if outcome.get("exitStatus") is not None:
        words.append(f"exit {outcome['exitStatus']}")
    if outcome.get("timedOut"):
        words.append("out of time")
    run = outcome.get("run") or 1
    if outcome.get("attempts", 0) > 1 or run > 1:
        words.append(f"attempt {outcome['attempts']}, run {run}")
    return ", ".join(words)
