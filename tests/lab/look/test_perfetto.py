from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from tests.lab.look.busy_day import busy_day
from tests.lab.look.traces import Teller, created, dispatched, every_kind, long_run
from whenidle_lab.perfetto import trace_events
from whenidle_lab.trace import What

Event = dict[str, Any]
REQUIRED = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
    "i": {"name", "cat", "ts", "s", "pid", "tid", "args"},
    "C": {"name", "ts", "pid", "tid", "args"},
    "M": {"name", "ts", "pid", "tid", "args"},
    "s": {"name", "cat", "ts", "id", "pid", "tid"},
    "f": {"name", "cat", "ts", "id", "pid", "tid", "bp"},
}
"""What the Trace Event Format asks of each phase that is used."""


def _events(text: str) -> list[Event]:
    events: list[Event] = json.loads(text)["traceEvents"]
    return events


@pytest.fixture(scope="module")
def busy() -> list[Event]:
    """The events of a busy day."""
    return _events(trace_events(busy_day()))


def test_each_event_has_what_its_phase_needs(busy: list[Event]) -> None:
    """Only phases of the format are used, with their fields; times are whole microseconds, ascending."""
    for event in busy:
        assert set(event) - {"ph"} == REQUIRED[event["ph"]]
        assert type(event["ts"]) is int
    times = [event["ts"] for event in busy]
    assert times == sorted(times)
    assert all(event["dur"] >= 1 for event in busy if event["ph"] == "X")
    assert {event["s"] for event in busy if event["ph"] == "i"} == {"g", "t"}


def test_each_agent_is_a_process_with_named_threads(busy: list[Event]) -> None:
    """Processes bear the names of agents, and every thread that has an event has a name."""
    names = {event["pid"]: event["args"]["name"] for event in busy if event["name"] == "process_name"}
    assert list(names.values()) == ["the run", "ada", "bob", "eve", "bob-2"]
    named = {(event["pid"], event["tid"]) for event in busy if event["name"] == "thread_name"}
    used = {(event["pid"], event["tid"]) for event in busy if event["ph"] in "Xisf"}
    assert named == used


@pytest.mark.parametrize("text", [trace_events(busy_day()), trace_events(long_run(2_000))], ids=["busy", "long"])
def test_what_lies_on_one_thread_does_not_overlap(text: str) -> None:
    """Spans that overlap are on threads of their own: a viewer would draw them wrongly otherwise."""
    ends: defaultdict[tuple[int, int], int] = defaultdict(int)
    for event in _events(text):
        if event["ph"] == "X" and event["cat"] != "occurrence":
            assert event["ts"] >= ends[event["pid"], event["tid"]]
            ends[event["pid"], event["tid"]] = event["ts"] + event["dur"]


def test_a_flow_joins_due_and_admitted(busy: list[Event]) -> None:
    """Each admitted occurrence is a flow from a span at its instant to one at its admission."""
    starts = {event["id"]: event for event in busy if event["ph"] == "s"}
    ends = {event["id"]: event for event in busy if event["ph"] == "f"}
    spans = {(event["pid"], event["tid"], event["ts"]): event["name"] for event in busy if event["ph"] == "X"}
    assert starts.keys() == ends.keys()
    joined = [
        tuple(spans[event["pid"], event["tid"], event["ts"]] for event in (starts[number], ends[number]))
        for number in sorted(starts)
    ]
    assert joined == [("schedule-1 due", "schedule-1 admitted")] * 2
    assert len({event["pid"] for event in starts.values()}) == 2
    assert all(starts[number]["ts"] < ends[number]["ts"] for number in starts)


def test_there_are_counters(busy: list[Event]) -> None:
    """Mailboxes, inboxes, and the wall clock against monotonic time are counters."""
    counters = {event["name"] for event in busy if event["ph"] == "C"}
    assert counters == {"mailbox", "inbox", "wall clock ahead of monotonic"}
    ahead = [event["args"]["ms"] for event in busy if event["name"].startswith("wall clock")]
    assert ahead[:2] == [0, -20_000]


def test_time_is_virtual_and_never_stands_still() -> None:
    """A happening is at its virtual time, or a microsecond after the one before it; the truth is in the arguments."""
    teller = Teller()
    for millis in (0, 0, 0, 5):
        teller.millis = millis
        teller.tell(What.NOTE, text="x")
    notes = [event for event in _events(trace_events(teller.run())) if event["name"] == "note"]
    assert [event["ts"] for event in notes] == [0, 1, 2, 5_000]
    assert notes[2]["args"] == {"virtual_ns": 0, "wall": "2026-01-01 00:00:00", "round": 3, "life": 1, "what": "x"}


def test_what_was_too_early_has_no_flow() -> None:
    """An admission before its instant has nothing to be joined with, and still is there."""
    teller = Teller()
    teller.commit("ada", created("schedule-1", 5))
    teller.commit("ada", dispatched("schedule-1"))
    events = _events(trace_events(teller.run()))
    assert [event["args"]["late_ms"] for event in events if event["name"] == "schedule-1 admitted"] == [-5_000]
    assert not any(event["ph"] in "sf" for event in events)


def test_every_kind_of_happening_is_somewhere() -> None:
    """Whatever happens is an event of the trace, and names are shown with control characters written out."""
    text = trace_events(every_kind("a\x1bda", "\u2028"))
    told = {event["args"]["what"] for event in _events(text) if "what" in event["args"]} if text else set()
    assert "The wall clock is set back by 1 s" in told
    assert json.loads(text)["otherData"]["finding"] == "invariant: exactly-once: \\u2028"
    assert "a\\\\x1bda" in text


def test_a_run_without_a_finding_has_none() -> None:
    """An empty run is a valid trace."""
    assert json.loads(trace_events(Teller().run()))["otherData"] == {"scenario": "by-hand", "finding": None}
