"""The ignorable event that keeps a trace: exact when written, and whatever else stands there is passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from whenidle_protocol.events import EventRecord, decode, encode
from whenidle_protocol.trace_context import TRACE_CONTEXT, read_trace, trace_event

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def record(**changes: Any) -> EventRecord:
    """Return a record of a trace, changed."""
    return EventRecord(
        TRACE_CONTEXT, 0, json.dumps({"version": 1, "schedule": "schedule-1", "traceparent": PARENT, **changes}), True
    )


def test_what_is_written_is_read() -> None:
    """The record is ignorable, has exactly three fields, and comes back as it was."""
    written = encode(trace_event("schedule-1", PARENT), 5)
    assert written == EventRecord(TRACE_CONTEXT, 5, written.data, ignorable=True)
    assert json.loads(written.data) == {"version": 1, "schedule": "schedule-1", "traceparent": PARENT}
    assert read_trace(written) == ("schedule-1", PARENT)


def test_readers_that_know_nothing_of_it_pass_over_it() -> None:
    """The fold of a session reads it as an event of a type it need not know."""
    assert decode(record()) == trace_event("schedule-1", PARENT)


@pytest.mark.parametrize("bad", ["", "x", PARENT.upper(), PARENT + "-00", "01" + PARENT[2:], PARENT + "\n"])
def test_only_a_traceparent_is_written_or_read(bad: str) -> None:
    """What follows other rules is refused by the writer and passed over by the reader."""
    with pytest.raises(ValueError, match="no traceparent"):
        trace_event("schedule-1", bad)
    assert read_trace(record(traceparent=bad)) is None


@pytest.mark.parametrize(
    "other",
    [
        record(version=2),
        record(schedule=7),
        record(traceparent=None),
        EventRecord(TRACE_CONTEXT, 0, "[]", ignorable=True),
        EventRecord(TRACE_CONTEXT, 0, "{", ignorable=True),
        EventRecord("schedule/change", 0, record().data),
    ],
)
def test_anything_else_is_passed_over(other: EventRecord) -> None:
    """Nothing that stands in a log can stop a delivery by way of its trace."""
    assert read_trace(other) is None
