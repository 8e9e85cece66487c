"""Texts of strangers, and what no exit may let through."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

from tests.fuzz.words import NASTY

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIL = "".join(NASTY)
"""All of it in one text."""
WHOLE = EVIL.replace("\ud800", "").replace("\udfff", "")
"""The same without halves of characters."""
EVIL_TITLE = "".join(each for each in NASTY if len(each) < 12)
LINES = "\n" * 64_000
"""What scrolls everything else off a screen; with a few letters it is still a prompt."""
ESCAPES = ("\x1b]0;", "\x1b[2J", "\x9b31m", "\x90q")
"""Beginnings of what a terminal would obey."""

_TURNING = set("\u200f\u202e\u2066")


def check_shown(text: str) -> None:
    """Check that nothing in what goes to a screen does anything but show itself."""
    for line in text.split("\n"):
        bad = [each for each in line if unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} or each in _TURNING]
        assert not bad, (ascii(bad), ascii(line[:300]))


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from strings(name)
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def hostile_session(session: str = "mallory") -> bytes:
    """Return an export that no whenidle wrote, with nasty texts wherever a text can be."""
    at = "2026-01-05T08:00:00.000Z"
    message = {"lane": "next-turn", "wake": True, "text": EVIL, "source": "user"}
    bad_record = {"id": EVIL, "kind": "after", "prompt": EVIL, "afterSeconds": EVIL, "scheduledAt": EVIL}
    note = {"exitStatus": EVIL, "durationMillis": EVIL, "timedOut": False, "stdout": EVIL, "stderr": EVIL, "run": EVIL}
    events: list[tuple[str, Any]] = [
        ("inbox/insert", {"id": f"m0{EVIL}", **message}),
        ("inbox/insert", {"id": "m1", **message, "source": "schedule"}),
        ("inbox/replace", {"id": "m1", "text": EVIL}),
        ("turn/start", {"turn": 1, "claimed": [f"m0{EVIL}"], "attempt": 1}),
        ("turn/note", {"turn": 1, "data": note}),
        ("turn/abort", {"turn": 1, "cause": EVIL, "removed": []}),
        ("turn/end", {"turn": 1, "outcome": "aborted", "cause": EVIL}),
        ("schedule/change", {"version": 1, "operation": "create", "schedule": bad_record}),
        ("schedule/change", {"version": 1, "operation": EVIL, "id": EVIL}),
        (f"x/{WHOLE}", EVIL),
    ]
    header = {
        "id": session,
        "createdAt": at,
        "parent": WHOLE,
        "delegationDepth": 0,
        "cwd": "",
        "preset": "\x1b]0;owned\x07",
        "seedLength": 0,
        "forkedFrom": None,
    }
    lines: list[Any] = [{"format": "whenidle-session", "version": 1, "session": header, "events": len(events)}]
    for seq, (kind, data) in enumerate(events):
        event = {"seq": seq, "at": at, "type": kind, "data": data}
        lines.append({**event, "ignorable": True} if kind.startswith("x/") else event)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
