"""Happenings, lengths of time and untrusted texts in words.

Prompts, messages, names and errors come from models and strangers: `visible` lets none of their control
characters out, and whatever here returns a sentence has been through it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from whenidle_lab.trace import What
from whenidle_protocol.json_values import json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whenidle_lab.trace import Happening

SHORT: Final = 60
"""Characters of an untrusted text inside a sentence."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_TEN: Final = 10


def visible(text: str) -> str:
    r"""Return `text` on one line, with each character that cannot be printed written out: `\n`, `\x1b`, `\u202e`."""
    return text if text.isprintable() else "".join(one if one.isprintable() else _written(one) for one in text)


def _written(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004


def shortened(text: str, limit: int = SHORT) -> str:
    """Return `text` visibly, cut after `limit` characters with a note of how many are left out."""
    return visible(text) if len(text) <= limit else f"{visible(text[:limit])}… (+{len(text) - limit})"


def span_text(seconds: float) -> str:
    """Return a length of time for people, its two largest units: `0 s`, `5 ms`, `1.5 s`, `10 min 7 s`, `2 d 4 h`."""
    sign, size = ("-" if seconds < 0 else ""), abs(seconds)
    whole = round(size)
    if size < 1:
        text = f"{size * 1000:.3g} ms" if size else "0 s"
    elif whole < _MINUTE:
        text = f"{size:.3g} s"
    elif whole < _HOUR:
        text = _two(whole // _MINUTE, "min", whole % _MINUTE, "s")
    elif whole < _DAY:
        text = _two(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "min")
    else:
        text = _two(whole // _DAY, "d", whole % _DAY // _HOUR, "h")
    return sign + text


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large} {unit} {small} {small_unit}" if small else f"{large} {unit}"


def wall_text(millis: float) -> str:
    """Return a wall instant, given in milliseconds since the epoch: `2026-01-01 00:00:05`, with `.250` if needed."""
    try:
        instant = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis:g} ms since 1970"
    text = instant.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    return text.removesuffix(".000")


def sentence(happening: Happening) -> str:
    """Return what happened as one line, without the agent and the time; at most a few hundred characters."""
    words = _SENTENCES[happening.what](happening.detail)
    if happening.what is What.NOTE:  # as its scenario wrote it
        return words or happening.what.value
    return words[0].upper() + words[1:]


def _text(detail: Mapping[str, Any], key: str) -> str:
    value = detail.get(key)
    if isinstance(value, str):
        return shortened(value)
    return shortened(json.dumps(value, ensure_ascii=False, sort_keys=True))


def _fails(detail: Mapping[str, Any], then: str = "") -> str:
    return f"fails: {_text(detail, 'error')}" if detail.get("error") else then


def _join(*words: str) -> str:
    return " ".join(word for word in words if word)


def _one_line(text: Any) -> str:
    return shortened(" ".join(str(text).split()), 300)


def _list(values: Any) -> str:
    return shortened(", ".join(str(value) for value in values)) if values else "nothing"


def _life_began(detail: Mapping[str, Any]) -> str:
    down = detail.get("down") or 0.0
    return f"a process begins after {span_text(down)} without one" if down else "a process begins"


_LIVES = {
    "finished": "the process ends as it should",
    "stopped": "the process ends, since its host was stopped",
    "crashed": "the process crashes",
    "broken": "the process is stopped: the run is over",
    "failed": "the process fails",
}


def _commit_durable(detail: Mapping[str, Any]) -> str:
    parts = [f"session {shortened(str(session))} is new" for session in detail.get("created") or ()]
    parts += [
        f"{shortened(str(append['session']))} gets {', '.join(str(record['type']) for record in append['records'])}"
        for append in detail.get("appends") or ()
    ]
    parts += [
        f"task {shortened(str(task['id']))} is {'deleted' if task.get('task') is None else 'written'}"
        for task in detail.get("tasks") or ()
    ]
    return shortened(f"commit {detail.get('commit')} is durable: {'; '.join(parts) or 'nothing in it'}", 300)


def _commit_ended(detail: Mapping[str, Any]) -> str:
    fate = "" if detail.get("fate", "done") == "done" else f", it was {_text(detail, 'fate')}"
    error = f"its caller gets {_text(detail, 'error')}" if detail.get("error") else "its caller is told"
    return f"commit {detail.get('commit')}: {error}{fate}"


def _clock(detail: Mapping[str, Any]) -> str:
    how, by = detail.get("how"), detail.get("by") or 0.0
    unseen = "" if detail.get("announced") else ", and nobody is told"
    if how == "drift":
        if not by:
            return "the wall clock no longer drifts"
        return f"the wall clock drifts by {by:g} ppm from now on"
    if how == "suspend":
        return f"the machine is suspended for {span_text(by)}{unseen}"
    direction = "forward" if by >= 0 else "back"
    return f"the wall clock is set {direction} by {span_text(abs(by))}{unseen}"


def _call_ended(detail: Mapping[str, Any]) -> str:
    if detail.get("error"):
        return f"the call {_fails(detail)}"
    answer = json_object(detail.get("answer"))
    if answer is None:
        return f"the call is answered: {_text(detail, 'answer')}"
    if "code" in answer:
        return f"the call is refused: {_text(answer, 'code')}: {shortened(str(answer.get('message')), 160)}"
    what = _text(answer, "id") if "id" in answer else _text(detail, "answer")
    due = answer.get("scheduledAt")
    return f"the call is answered: {what}" + (f", due {shortened(str(due))}" if due else "")


def _changed(detail: Mapping[str, Any]) -> str:
    how = "taken back" if detail.get("how") == "remove" else "rewritten"
    return f"message {_text(detail, 'message')} is {'not ' if detail.get('error') else ''}{how}{_because(detail)}"


def _because(detail: Mapping[str, Any]) -> str:
    return f": {_text(detail, 'error')}" if detail.get("error") else ""


def _turn_began(detail: Mapping[str, Any]) -> str:
    again = f", attempt {detail.get('attempt')}" if detail.get("redelivered") else ""
    fault = f"; it will go wrong: {_text(detail, 'fault')}" if detail.get("fault") else ""
    return f"turn {detail.get('turn')} begins with {_list(detail.get('messages'))}{again}{fault}"


def _ended(name: str) -> Callable[[Mapping[str, Any]], str]:
    def words(detail: Mapping[str, Any]) -> str:
        number = f" {detail['turn']}" if "turn" in detail else ""
        return f"{name}{number} {_HOW.get(str(detail.get('how')), 'ends')}{_because(detail)}"

    return words


_HOW = {"returned": "returns", "raised": "raises", "cancelled": "is cancelled"}


def _host(detail: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in detail.items() if key != "event"}
    return _join("the host says", _text(detail, "event"), shortened(json.dumps(rest, sort_keys=True)) if rest else "")


def _note(detail: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in detail.items() if key != "text"}
    return _join(_text(detail, "text"), shortened(json.dumps(rest, sort_keys=True)) if rest else "")


_SENTENCES: Final[Mapping[What, Callable[[Mapping[str, Any]], str]]] = {
    What.LIFE_BEGAN: _life_began,
    What.LIFE_ENDED: lambda detail: _LIVES.get(str(detail.get("how")), "the process ends"),
    What.FAULTS_STOPPED: lambda _: "faults stop: from here on everything due must be delivered",
    What.COMMIT_BEGAN: lambda detail: f"commit {detail.get('commit')} is handed to the store",
    What.COMMIT_DURABLE: _commit_durable,
    What.COMMIT_ENDED: _commit_ended,
    What.READ_FAILED: lambda detail: f"a read of the store {_fails(detail, 'fails')}",
    What.CLOCK: _clock,
    What.CALL_BEGAN: lambda detail: f"calls {_text(detail, 'tool')} {_text(detail, 'arguments')}",
    What.CALL_ENDED: _call_ended,
    What.SEND_BEGAN: lambda detail: f"{_text(detail, 'how')}: “{_text(detail, 'text')}”",
    What.SEND_ENDED: lambda detail: f"the message {_fails(detail, 'is accepted as ' + _text(detail, 'message'))}",
    What.CHANGED: _changed,
    What.TURN_BEGAN: _turn_began,
    What.TURN_ENDED: _ended("turn"),
    What.STEPPED: lambda detail: f"turn {detail.get('turn')} takes between two steps {_text(detail, 'messages')}",
    What.MAINTENANCE_BEGAN: lambda _: "maintenance begins",
    What.MAINTENANCE_ENDED: _ended("maintenance"),
    What.CLAIM_REFUSED: lambda _: "is busy: the maintenance is refused",
    What.WAIT_BEGAN: lambda _: "somebody waits until it is idle",
    What.WAIT_ENDED: lambda detail: f"the wait {_fails(detail, 'is over: it is idle')}",
    What.CANCEL: lambda detail: _join(
        f"is cancelled: {_text(detail, 'cause')}", "(the inbox is kept)" if detail.get("keep_inbox") else ""
    ),
    What.CANCEL_ENDED: lambda detail: f"the cancel {_fails(detail, 'is accepted')}",
    What.DISPOSE_BEGAN: lambda _: "is to be disposed",
    What.DISPOSE_ENDED: lambda _: "has been disposed",
    What.FORKED: lambda detail: f"is forked into {_text(detail, 'session')} after {_text(detail, 'upto')} events",
    What.HOST: _host,
    What.LOG: lambda detail: f"{_text(detail, 'level')} {_text(detail, 'logger')}: {_text(detail, 'text')}",
    What.DEPTH: lambda detail: f"{detail.get('depth')} in the mailbox",
    What.NOTE: _note,
    What.BROKEN: lambda detail: f"broken: {_text(detail, 'invariant')}: {_one_line(detail.get('text'))}",
}
