"""What happened in a simulation, one line each, to be read and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from whenidle_actors.observation import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from whenidle_actors.observation import HostEvent


def line(at: datetime, session_id: str, text: str, zone: str) -> str:
    """Return one line: local time with its offset unless that is UTC, whose session it is, and what happened."""
    local = at.astimezone(ZoneInfo(zone))
    offset = "" if zone == "UTC" else local.strftime("%z")
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03}{offset}  {session_id or '-'}  {text}"


def told(event: HostEvent) -> str | None:
    """Return what an event says in words, None for one that a test seldom asks about."""
    tell = _TELLERS.get(event.kind)
    return None if tell is None else tell(event.detail)


def _deliver(ids: str) -> Callable[[Mapping[str, Any]], str]:
    def tell(detail: Mapping[str, Any]) -> str:
        late = max(detail["late_millis"])
        return f"delivered {', '.join(detail[ids])}{f', {late} ms late' if late else ''}"

    return tell


def _queue(detail: Mapping[str, Any]) -> str:
    return f"got {detail['message']} ({detail['source']})"


def _start(detail: Mapping[str, Any]) -> str:
    again = f", attempt {detail['attempt']}" if detail["attempt"] > 1 else ""
    return f"turn {detail['turn']} began with {', '.join(detail['messages'])}{again}"


def _end(detail: Mapping[str, Any]) -> str:
    cause = f": {detail['cause']}" if detail["cause"] else ""
    return f"turn {detail['turn']} {detail['outcome']}{cause}"


_TELLERS: Mapping[EventKind, Callable[[Mapping[str, Any]], str]] = {
    EventKind.AGENT_DISPOSED: lambda _: "disposed",
    EventKind.AGENT_RESTARTED: lambda _: "restarted",
    EventKind.AGENT_FAULTED: lambda _: "given up",
    EventKind.MESSAGE_QUEUED: _queue,
    EventKind.TURN_STARTED: _start,
    EventKind.TURN_ENDED: _end,
    EventKind.REMINDER_CREATED: lambda detail: f"made {detail['reminder']}",
    EventKind.REMINDER_DELETED: lambda detail: f"deleted {detail['reminder']}",
    EventKind.REMINDER_DELIVERED: _deliver("reminders"),
    EventKind.TASK_CREATED: lambda detail: f"made {detail['task']}",
    EventKind.TASK_DELETED: lambda detail: f"deleted {detail['task']}",
    EventKind.TASK_DELIVERED: _deliver("tasks"),
    EventKind.TASK_FAILED: lambda detail: f"failed {', '.join(detail['tasks'])}",
}
