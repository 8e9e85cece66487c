"""What was exported, in a form that tests can compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from whenidle.telemetry import Instrumentation, instrument

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import SpanContext

    from whenidle import Host


@attrs.frozen
class Seen:
    """Where spans and metrics of a test go."""

    tracers: TracerProvider
    meters: MeterProvider
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    def instrument(self, host: Host) -> Instrumentation:
        """Instrument a host to be seen here."""
        return instrument(host, tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self, name: str = "") -> list[ReadableSpan]:
        """Return the spans that have ended, of one name or all, in the order of their ends."""
        return [span for span in self.exporter.get_finished_spans() if span.name == (name or span.name)]

    def tree(self) -> list[str]:
        """Return the spans as lines in the order of their beginnings, indented under their parents."""
        spans = sorted(self.spans(), key=lambda span: span.start_time or 0)
        depth: dict[int, int] = {}
        lines: list[str] = []
        for span in spans:
            depth[context(span).span_id] = level = depth[span.parent.span_id] + 1 if span.parent else 0
            lines.append("  " * level + span.name)
        return lines

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """Return each metric by name: attributes and value; of a histogram count and sum."""
        found: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points = [(dict(point.attributes or {}), _value(point)) for point in metric.data.data_points]
                    found[metric.name] = points
        return found


def context(span: ReadableSpan) -> SpanContext:
    """Return the context of a span that has one."""
    found = span.get_span_context()
    assert found is not None
    return found


def links(span: ReadableSpan) -> list[int]:
    """Return the ids of the spans that a span is linked to."""
    return [link.context.span_id for link in span.links]


def _value(point: Any) -> Any:
    return (point.count, point.sum) if hasattr(point, "count") else point.value
