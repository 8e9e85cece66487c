"""What goes up and down: messages in inboxes and mailboxes, and the wall clock against monotonic time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from whenidle_lab.reading.occurrences import owned, payloads
from whenidle_lab.trace import What
from whenidle_protocol.json_values import json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whenidle_lab.trace import Happening

Curve: TypeAlias = list[tuple[int, int]]
"""Positions, ascending, and the value from each of them on."""

_INBOX = ("inbox/insert", "inbox/remove", "turn/start", "turn/claim", "turn/abort", "turn/end")


def mailboxes(happenings: Sequence[Happening]) -> dict[str, Curve]:
    """Return how many messages each agent's mailbox held; nothing unless the run was a detailed one."""
    curves: dict[str, Curve] = {}
    for position, happening in enumerate(happenings):
        if happening.what is What.DEPTH:
            _put(curves.setdefault(happening.agent, []), position, int(happening.detail["depth"]))
        elif happening.what is What.LIFE_ENDED:
            for curve in curves.values():
                _put(curve, position, 0)
    return curves


def inboxes(happenings: Sequence[Happening]) -> dict[str, Curve]:
    """Return how many messages waited durably in each session's inbox."""
    curves: dict[str, Curve] = {}
    waiting: dict[str, set[str]] = {}
    taken: dict[str, set[str]] = {}
    for position, happening in enumerate(happenings):
        if happening.what is not What.COMMIT_DURABLE:
            continue
        for session, records in owned(happening.detail):
            inbox, open_turn = waiting.setdefault(session, set()), taken.setdefault(session, set())
            for kind, payload in payloads(records, *_INBOX):
                _fold(inbox, open_turn, kind, json_object(payload) or {})
            _put(curves.setdefault(session, []), position, len(inbox))
    return {session: curve for session, curve in curves.items() if any(value for _, value in curve)}


def _fold(inbox: set[str], taken: set[str], kind: str, change: Mapping[str, Any]) -> None:
    if kind == "inbox/insert":
        if "id" in change:
            inbox.add(str(change["id"]))
    elif kind == "turn/end":
        if change.get("redeliver"):
            inbox |= taken
        taken.clear()
    else:
        ids: Iterable[Any] = change.get("ids") or change.get("claimed") or change.get("removed") or ()
        gone = {str(one) for one in ids}
        if kind in {"turn/start", "turn/claim"}:
            taken |= gone
        inbox -= gone


def offsets(happenings: Sequence[Happening]) -> Curve:
    """Return by how many milliseconds the wall clock was ahead of monotonic time, at each change of that.

    It counts from the first happening on, and monotonic time stands still while there is no process.
    """
    curve: Curve = []
    for position, happening in enumerate(happenings):
        first = happenings[0]
        monotonic = (happening.monotonic_ns - first.monotonic_ns) // 1_000_000
        _put(curve, position, happening.wall_millis - first.wall_millis - monotonic)
    return curve


def _put(curve: Curve, position: int, value: int) -> None:
    if not curve or curve[-1][1] != value:
        curve.append((position, value))
