"""How a host is doing, as counters, histograms and gauges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics
from opentelemetry.metrics import Observation

from whenidle_actors.observation import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opentelemetry.metrics import CallbackOptions, MeterProvider

    from whenidle_actors.host import Host, HostLoad
    from whenidle_actors.observation import HostEvent

_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
"""Bounds of histograms: from a fast commit to a delivery after a day's sleep."""


class Meters:
    """An observer that counts and measures. What it says of the host at one moment is only read, from any thread."""

    def __init__(self, host: Host, provider: MeterProvider | None) -> None:
        self._host: Host | None = host
        self._began: dict[str, float] = {}
        """When the turn of each session began, in monotonic time."""
        meter = metrics.get_meter("whenidle", meter_provider=provider)

        def histogram(name: str, what: str) -> metrics.Histogram:
            return meter.create_histogram(name, "s", what, explicit_bucket_boundaries_advisory=_SECONDS)

        self._deliveries = meter.create_counter("whenidle.deliveries", "{delivery}", "Schedules delivered.")
        self._missed = meter.create_counter(
            "whenidle.missed", "{occurrence}", "Occurrences coalesced into a later one."
        )
        self._failures = meter.create_counter("whenidle.delivery.failures", "{delivery}", "Deliveries that failed.")
        self._lateness = histogram("whenidle.delivery.lateness", "How long after its occurrence each was decided.")
        self._tool_calls = histogram("whenidle.tool_call.duration", "Tool calls.")
        self._turns = histogram("whenidle.turn.duration", "Turns.")
        self._commits = histogram("whenidle.commit.duration", "Commits.")
        self._commit_bytes = meter.create_counter("whenidle.commit.size", "By", "Text committed.")
        self._restarts = meter.create_counter("whenidle.agent.restarts", "{restart}", "Agents restarted or given up.")
        self._steps = meter.create_counter("whenidle.clock.steps", "{step}", "Steps of the wall clock.")
        self._measures: dict[EventKind, Callable[[HostEvent, Any], None]] = {
            EventKind.REMINDER_DELIVERED: self._deliver,
            EventKind.TASK_DELIVERED: self._deliver,
            EventKind.TASK_FAILED: self._fail,
            EventKind.DELIVERY_FAILED: self._fail,
            EventKind.TOOL_ANSWERED: self._call,
            EventKind.TURN_STARTED: self._begin_turn,
            EventKind.TURN_ENDED: self._end_turn,
            EventKind.AGENT_DISPOSED: self._forget_turn,
            EventKind.COMMITTED: self._commit,
            EventKind.COMMIT_FAILED: self._commit,
            EventKind.AGENT_RESTARTED: self._restart,
            EventKind.AGENT_FAULTED: self._restart,
            EventKind.CLOCK_STEPPED: self._step,
        }
        for name, unit, what, look in _GAUGES:
            meter.create_observable_gauge(name, [self._gauge(look)], unit, what)

    def close(self) -> None:
        """Report nothing from now on."""
        self._host = None
        self._began.clear()

    def observe(self, event: HostEvent) -> None:
        """Count what happened."""
        measure = self._measures.get(event.kind)
        if measure is not None:
            measure(event, event.detail)

    def _gauge(self, look: Callable[[HostLoad], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            host = self._host
            return () if host is None else (Observation(look(host.load())),)

        return observe

    def _deliver(self, event: HostEvent, detail: Any) -> None:
        suite = {"whenidle.suite": "tasks" if event.kind is EventKind.TASK_DELIVERED else "reminders"}
        self._deliveries.add(len(detail["late_millis"]), suite)
        for late_millis in detail["late_millis"]:
            self._lateness.record(max(late_millis, 0) / 1000, suite)
        if missed := sum(detail.get("missed", ())):
            self._missed.add(missed, suite)

    def _fail(self, event: HostEvent, _: Any) -> None:
        self._failures.add(1, {"whenidle.final": event.kind is EventKind.TASK_FAILED})

    def _call(self, _: HostEvent, detail: Any) -> None:
        attributes: dict[str, str] = {"gen_ai.tool.name": detail["tool"]}
        if detail["code"] is not None:
            attributes["whenidle.code"] = detail["code"]
        self._tool_calls.record(detail["millis"] / 1000, attributes)

    def _begin_turn(self, event: HostEvent, _: Any) -> None:
        if self._host is not None:
            self._began[event.session_id] = self._host.clock.monotonic()

    def _end_turn(self, event: HostEvent, detail: Any) -> None:
        began = self._began.pop(event.session_id, None)
        if began is not None and self._host is not None:
            took = self._host.clock.monotonic() - began
            self._turns.record(took, {"whenidle.turn.outcome": detail["outcome"]})

    def _forget_turn(self, event: HostEvent, _: Any) -> None:
        """Forget a turn whose end the store did not take."""
        self._began.pop(event.session_id, None)

    def _commit(self, event: HostEvent, detail: Any) -> None:
        attributes: dict[str, str] = {}
        if event.kind is EventKind.COMMIT_FAILED:
            attributes["error.type"] = detail["error"]
        else:
            self._commit_bytes.add(detail["bytes"])
        self._commits.record(detail["millis"] / 1000, attributes)

    def _restart(self, event: HostEvent, _: Any) -> None:
        self._restarts.add(1, {"whenidle.faulted": event.kind is EventKind.AGENT_FAULTED})

    def _step(self, _: HostEvent, detail: Any) -> None:
        self._steps.add(1, {"whenidle.direction": "back" if detail["by_millis"] < 0 else "forward"})


_GAUGES: Final[tuple[tuple[str, str, str, Callable[[HostLoad], int]], ...]] = (
    ("whenidle.agents", "{agent}", "Live agents.", lambda load: load.agents),
    ("whenidle.turns.running", "{turn}", "Turns that run.", lambda load: load.turns),
    ("whenidle.turns.waiting", "{turn}", "Turns that wait for a slot.", lambda load: load.turns_waiting),
    ("whenidle.mailbox.ready", "{agent}", "Agents whose mailbox waits for a worker.", lambda load: load.ready),
    ("whenidle.commits.waiting", "{commit}", "Commits handed in and not yet answered.", lambda load: load.commits),
    ("whenidle.alarm.armed", "{target}", "Targets the alarm holds.", lambda load: load.armed),
)
