"""A run in the Trace Event Format, for https://ui.perfetto.dev and chrome://tracing.

Most of a run happens while no virtual time passes, and a viewer draws what takes no time as nothing. So each
happening is put at its monotonic virtual time or a microsecond after the one before it, whichever is later.
What is true is in the arguments of each event: `virtual_ns`, `wall`, `round`, `life`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from whenidle_lab.reading import SpanKind, read, sentence, shortened, wall_text
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from whenidle_lab.findings import Run
    from whenidle_lab.reading import Curve, Occurrence, Reading, Span

    Event = dict[str, Any]

RUN: Final = 1
"""The process that is not an agent's: lives, clock and store. Agents follow."""

_LIVES, _STORE, _EVENTS, _FIRST = 1, 10, 2, 10
_PACKED: Final[Mapping[SpanKind, tuple[int, str]]] = {
    SpanKind.TURN: (100, "turns, maintenance"),
    SpanKind.MAINTENANCE: (100, "turns, maintenance"),
    SpanKind.CALL: (300, "calls, sends"),
    SpanKind.SEND: (300, "calls, sends"),
    SpanKind.DISPOSAL: (300, "calls, sends"),
    SpanKind.WAIT: (400, "waits"),
}
"""The first thread of each sort of span, and what it is called. Spans that overlap take the next threads."""
_OCCURRENCES = 200
_INSTANTS: Final = frozenset(
    {
        What.FAULTS_STOPPED,
        What.READ_FAILED,
        What.CLOCK,
        What.CHANGED,
        What.CLAIM_REFUSED,
        What.CANCEL,
        What.STEPPED,
        What.FORKED,
        What.HOST,
        What.LOG,
        What.NOTE,
        What.BROKEN,
    }
)
"""What is a moment and nothing that lasts."""


def trace_events(run: Run) -> str:
    """Return a run as JSON in the Trace Event Format.

    Each agent is a process, with a thread for its turns and maintenance, one for its occurrences, for calls and
    sends, for waits; the run's own process has lives, clock and commits. A flow joins each occurrence's instant
    with its admission; mailboxes, inboxes and the offset of the wall clock are counters.
    """
    writer = _Writer(read(run.trace))
    finding = run.finding
    return json.dumps(
        {
            "displayTimeUnit": "ms",
            "otherData": {
                "scenario": run.scenario,
                "finding": None
                if finding is None
                else f"{finding.kind}: {finding.name}: {shortened(finding.text, 300)}",
            },
            "traceEvents": [*writer.names(), *sorted(writer.events(), key=lambda event: event["ts"])],
        },
        separators=(",", ":"),
    )


class _Writer:
    """Writes the events of one reading."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._process = {agent: RUN + 1 + index for index, agent in enumerate(reading.agents)}
        self._threads: dict[tuple[int, int], str] = {(RUN, _EVENTS): "events"}
        self._micros = _micros([one.monotonic_ns for one in reading.happenings])

    def names(self) -> Iterator[Event]:
        """Yield what gives processes and threads their names and order; asked for after `events`."""
        events = list(self.events())
        used = {(event["pid"], event.get("tid", 0)) for event in events}
        for agent, pid in {"the run": RUN, **self._process}.items():
            yield _named("process_name", pid, 0, name=shortened(agent))
            yield _named("process_sort_index", pid, 0, sort_index=pid)
        for (pid, tid), name in sorted(self._threads.items()):
            if (pid, tid) in used:
                yield _named("thread_name", pid, tid, name=name)
                yield _named("thread_sort_index", pid, tid, sort_index=tid)

    def events(self) -> Iterator[Event]:
        """Yield everything else."""
        yield from self._spans()
        yield from self._instants()
        for number, occurrence in enumerate(self._reading.occurrences):
            yield from self._occurrence(number, occurrence)
        for agent, curve in self._reading.mailboxes.items():
            yield from self._counter("mailbox", self._pid(agent), curve, "messages")
        for agent, curve in self._reading.inboxes.items():
            yield from self._counter("inbox", self._pid(agent), curve, "messages")
        yield from self._counter("wall clock ahead of monotonic", RUN, self._reading.offsets, "ms")

    def _pid(self, agent: str) -> int:
        return self._process.get(agent, RUN)

    def _thread(self, pid: int, tid: int, name: str) -> dict[str, int]:
        self._threads[pid, tid] = name
        return {"pid": pid, "tid": tid}

    def _facts(self, position: int) -> dict[str, Any]:
        one = self._reading.happenings[position]
        return {
            "virtual_ns": one.monotonic_ns,
            "wall": wall_text(one.wall_millis),
            "round": one.step,
            "life": one.life + 1,
            "what": sentence(one),
        }

    def _spans(self) -> Iterator[Event]:
        ends: dict[tuple[int, int], list[int]] = {}
        for span in self._reading.spans:
            pid, (first, name) = self._pid(span.agent), _place(span)
            rows = ends.setdefault((pid, first), [])
            row = next((row for row, end in enumerate(rows) if end < span.begin), len(rows))
            rows[row : row + 1] = [span.end]
            begin, end = self._micros[span.begin], self._micros[span.end]
            yield {
                "ph": "X",
                "name": span.title,
                "cat": span.kind.value,
                "ts": begin,
                "dur": max(1, end - begin),
                **self._thread(pid, first + row, name),
                "args": {**self._facts(span.begin), "ended": sentence(self._reading.happenings[span.end])}
                | {"ending": span.ending.value},
            }

    def _instants(self) -> Iterator[Event]:
        for position, one in enumerate(self._reading.happenings):
            if one.what in _INSTANTS:
                yield {
                    "ph": "i",
                    "name": one.what.value,
                    "cat": "event",
                    "ts": self._micros[position],
                    "s": "g" if one.what in {What.BROKEN, What.CLOCK, What.FAULTS_STOPPED} else "t",
                    **self._thread(self._pid(one.agent), _EVENTS, "events"),
                    "args": self._facts(position),
                }

    def _occurrence(self, number: int, one: Occurrence) -> Iterator[Event]:
        where = self._thread(self._pid(one.agent), _OCCURRENCES, "occurrences")
        facts = {"due": wall_text(one.due_millis), "prompt": one.prompt, "missed": one.missed}
        flow = {"cat": "occurrence", "name": "due to admitted", "id": number, **where}
        if one.due is not None:
            due = self._between(one.due)
            yield {
                "ph": "X",
                "name": f"{one.source} due",
                "cat": "occurrence",
                "ts": due,
                "dur": 1,
                **where,
                "args": facts,
            }
            if one.admitted is not None:
                yield {"ph": "s", "ts": due, **flow}
        if one.admitted is not None:
            at = self._micros[one.admitted]
            late = {"late_ms": one.late_millis, **facts, **self._facts(one.admitted)}
            name = f"{one.source} admitted"
            yield {"ph": "X", "name": name, "cat": "occurrence", "ts": at, "dur": 1, **where, "args": late}
            if one.due is not None:
                yield {"ph": "f", "bp": "e", "ts": at, **flow}

    def _between(self, position: float) -> int:
        before = int(position)
        after = min(before + 1, len(self._micros) - 1)
        share = position - before
        return round(self._micros[before] * (1 - share) + self._micros[after] * share)

    def _counter(self, name: str, pid: int, curve: Curve, unit: str) -> Iterator[Event]:
        for position, value in curve:
            yield {"ph": "C", "name": name, "ts": self._micros[position], "pid": pid, "tid": 0, "args": {unit: value}}


def _place(span: Span) -> tuple[int, str]:
    if span.kind is SpanKind.LIFE:
        return _LIVES, "lives"
    return (_STORE, "commits") if span.kind is SpanKind.COMMIT else _PACKED[span.kind]


def _named(what: str, pid: int, tid: int, **args: Any) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _micros(nanos: Sequence[int]) -> list[int]:
    """Return microseconds that grow with each happening, and are the virtual time where that allows it."""
    found: list[int] = []
    for one in nanos:
        found.append(max(one // 1000, found[-1] + 1) if found else one // 1000)
    return found
