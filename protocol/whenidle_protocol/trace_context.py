"""Where a reminder or task came from, kept in a log for whoever traces its delivery (W3C Trace Context).

The event is ignorable: a reader that does not know it passes over it, and nothing is ever decided from it. Whatever
stands there that is not exactly what is written here is passed over as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from whenidle_protocol.events import Ignored
from whenidle_protocol.json_text import parse
from whenidle_protocol.json_values import json_object

if TYPE_CHECKING:
    from whenidle_protocol.events import EventRecord

TRACE_CONTEXT: Final = "trace/context"
VERSION: Final = 1

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
"""https://www.w3.org/TR/trace-context/#traceparent-header"""


def trace_event(schedule_id: str, traceparent: str) -> Ignored:
    """Return the event that keeps the trace in which a reminder or task was created.

    Raises:
        ValueError: `traceparent` is not one of version 00.
    """
    if _TRACEPARENT.fullmatch(traceparent) is None:
        raise ValueError(f"{traceparent!a} is no traceparent of version 00")
    return Ignored(TRACE_CONTEXT, {"version": VERSION, "schedule": schedule_id, "traceparent": traceparent})


def read_trace(record: EventRecord) -> tuple[str, str] | None:
    """Return schedule id and traceparent if `record` keeps a trace; None if it is, or holds, anything else."""
    if record.type != TRACE_CONTEXT:
        return None
    try:
        fields = json_object(parse(record.data)) or {}
    except ValueError:
        return None
    schedule, traceparent = fields.get("schedule"), fields.get("traceparent")
    if not isinstance(schedule, str) or not isinstance(traceparent, str) or fields.get("version") != VERSION:
        return None
    return (schedule, traceparent) if _TRACEPARENT.fullmatch(traceparent) else None
