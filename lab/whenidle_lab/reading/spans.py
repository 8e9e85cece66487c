"""What begins and ends: turns, claims, waits, calls, sends, disposals, commits, lives."""

from __future__ import annotations

import bisect
import enum
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from whenidle_actors.observation import EventKind
from whenidle_lab.reading.words import shortened
from whenidle_lab.trace import What
from whenidle_protocol.json_values import json_object

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from whenidle_lab.trace import Happening


_Key: TypeAlias = "tuple[SpanKind, str, Hashable]"
"""Kind, session, and what tells it from others of both."""


class SpanKind(enum.StrEnum):
    """What it is that takes a while."""

    TURN = "turn"
    MAINTENANCE = "maintenance"
    WAIT = "wait"
    CALL = "call"
    SEND = "send"
    DISPOSAL = "disposal"
    COMMIT = "commit"
    LIFE = "life"


class Ending(enum.StrEnum):
    """How it ended."""

    WELL = "well"
    BADLY = "badly"
    """It raised, was refused, or ended in another way that is not the quiet one."""
    CUT = "cut"
    """Its process was gone before it had ended."""


@attrs.frozen
class Span:
    """Something that began at one position and ended at another."""

    kind: SpanKind
    agent: str
    """The session; empty for commits and lives."""
    begin: int
    end: int
    ending: Ending
    title: str
    """A few words, visible."""
    durable: int | None = None
    """Of a commit: the position at which it became durable, None if it never did."""
    is_claim: bool = False
    """Of a maintenance: whether it is one of the runtime's own, for a delivery."""


_BEGINS: Mapping[What, tuple[SpanKind, str]] = {
    What.TURN_BEGAN: (SpanKind.TURN, "turn"),
    What.MAINTENANCE_BEGAN: (SpanKind.MAINTENANCE, "claim"),
    What.WAIT_BEGAN: (SpanKind.WAIT, "wait"),
    What.CALL_BEGAN: (SpanKind.CALL, "call"),
    What.SEND_BEGAN: (SpanKind.SEND, "send"),
    What.DISPOSE_BEGAN: (SpanKind.DISPOSAL, ""),
    What.COMMIT_BEGAN: (SpanKind.COMMIT, "commit"),
}
_ENDS: Mapping[What, tuple[SpanKind, str]] = {
    What.TURN_ENDED: (SpanKind.TURN, "turn"),
    What.MAINTENANCE_ENDED: (SpanKind.MAINTENANCE, "claim"),
    What.WAIT_ENDED: (SpanKind.WAIT, "wait"),
    What.CALL_ENDED: (SpanKind.CALL, "call"),
    What.SEND_ENDED: (SpanKind.SEND, "send"),
    What.DISPOSE_ENDED: (SpanKind.DISPOSAL, ""),
    What.COMMIT_ENDED: (SpanKind.COMMIT, "commit"),
}


_CLAIMS: Mapping[str, bool] = {EventKind.MAINTENANCE_STARTED.value: True, EventKind.MAINTENANCE_ENDED.value: False}
"""Events of a host: whether a claim begins with them, or ends."""


def spans(happenings: Iterable[Happening]) -> list[Span]:
    """Return all spans, in the order in which they began. Whatever is open when its process ends is cut there.

    The claims in which reminders and tasks are delivered are maintenance too. A claim that a scenario's own
    maintenance task runs in is not told twice.
    """
    reader = _Reader()
    for position, happening in enumerate(happenings):
        reader.take(position, happening)
    reader.cut()
    own = sorted(
        (one.agent, one.begin) for one in reader.found if one.kind is SpanKind.MAINTENANCE and not one.is_claim
    )
    found = [one for one in reader.found if not (one.is_claim and _has_between(own, one))]
    return sorted(found, key=lambda span: (span.begin, span.end))


def _has_between(own: list[tuple[str, int]], claim: Span) -> bool:
    index = bisect.bisect(own, (claim.agent, claim.begin))
    return index < len(own) and own[index] < (claim.agent, claim.end)


class _Reader:
    """Finds for each end its beginning."""

    def __init__(self) -> None:
        self.found: list[Span] = []
        self._open: dict[_Key, tuple[int, Happening]] = {}
        self._durable: dict[Any, int] = {}
        self._life: tuple[int, Happening] | None = None
        self._last = 0

    def take(self, position: int, happening: Happening) -> None:
        self._last, what = position, happening.what
        if what in _BEGINS:
            self._open[_key(_BEGINS[what], happening)] = position, happening
        elif what in _ENDS:
            kind, _ = _ENDS[what]
            began = self._open.pop(_key(_ENDS[what], happening), None)
            if began is not None:
                self._add(kind, began, position, happening.detail)
        elif what is What.HOST and happening.detail.get("event") in _CLAIMS:
            self._claim(position, happening)
        elif what is What.COMMIT_DURABLE:
            self._durable[happening.detail.get("commit")] = position
        elif what is What.LIFE_BEGAN:
            self._life = position, happening
        elif what is What.LIFE_ENDED:
            self.cut(how=str(happening.detail.get("how")))

    def _claim(self, position: int, happening: Happening) -> None:
        key = SpanKind.MAINTENANCE, happening.agent, _CLAIM
        if _CLAIMS[happening.detail["event"]]:
            self._open[key] = position, happening
            return
        began = self._open.pop(key, None)
        if began is not None:
            ending = Ending.WELL if happening.detail.get("outcome") == "completed" else Ending.BADLY
            self.found.append(self._span(SpanKind.MAINTENANCE, began, position, ending))

    def cut(self, how: str = "") -> None:
        """End what is open, where the trace is now."""
        for (kind, _, _), (position, began) in self._open.items():
            self.found.append(self._span(kind, (position, began), self._last, Ending.CUT))
        self._open.clear()
        if self._life is not None:
            ending = Ending.WELL if how in {"finished", "stopped"} else Ending.BADLY
            position, began = self._life
            title = f"life {began.life + 1}" + (f", {shortened(how)}" if how else "")
            self.found.append(Span(SpanKind.LIFE, "", position, self._last, ending, title))
            self._life = None

    def _add(self, kind: SpanKind, began: tuple[int, Happening], end: int, detail: Mapping[str, Any]) -> None:
        self.found.append(self._span(kind, began, end, _ending(kind, detail)))

    def _span(self, kind: SpanKind, began: tuple[int, Happening], end: int, ending: Ending) -> Span:
        position, first = began
        durable = self._durable.get(first.detail.get("commit")) if kind is SpanKind.COMMIT else None
        is_claim = first.what is What.HOST
        title = "claim" if is_claim else _title(kind, first.detail)
        return Span(kind, first.agent, position, end, ending, title, durable, is_claim)


_CLAIM = "claim of the host's"


def _key(kind_and_number: tuple[SpanKind, str], happening: Happening) -> _Key:
    kind, number = kind_and_number
    return kind, happening.agent, happening.detail.get(number)


def _ending(kind: SpanKind, detail: Mapping[str, Any]) -> Ending:
    if detail.get("error") or detail.get("how", "returned") != "returned":
        return Ending.BADLY
    refused = kind is SpanKind.CALL and "code" in (json_object(detail.get("answer")) or {})
    fated = kind is SpanKind.COMMIT and detail.get("fate", "done") != "done"
    return Ending.BADLY if refused or fated else Ending.WELL


def _title(kind: SpanKind, detail: Mapping[str, Any]) -> str:
    if kind is SpanKind.TURN:
        attempt = detail.get("attempt")
        return f"turn {detail.get('turn')}" + (f", attempt {attempt}" if attempt not in {None, 1} else "")
    if kind is SpanKind.CALL:
        return shortened(str(detail.get("tool")))
    if kind is SpanKind.SEND:
        return shortened(f"{detail.get('how')} “{detail.get('text')}”")
    if kind is SpanKind.COMMIT:
        return f"commit {detail.get('commit')}"
    return _TITLES[kind]


_TITLES = {SpanKind.MAINTENANCE: "maintenance", SpanKind.WAIT: "when_idle", SpanKind.DISPOSAL: "dispose"}
