"""OpenTelemetry: spans of what a host does, and metrics of how it is doing (SPEC 7.4).

    from whenidle.telemetry import instrument

    async with open_host(store="agents.db", turn=turn) as host:
        with instrument(host):
            ...

It needs `opentelemetry-api`, which `pip install 'whenidle[otel]'` brings; where spans and metrics go is configured
with the SDK, as everywhere. A host that is not instrumented pays nothing, and `import whenidle` does not import
OpenTelemetry. `whenidle run` instruments itself where it was started with `opentelemetry-instrument`.

Names and attributes of spans, and of metrics, are listed in `docs/operations.md`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

try:
    from whenidle.telemetry.metrics import Meters
    from whenidle.telemetry.spans import Spans
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        "whenidle.telemetry needs opentelemetry-api: pip install 'whenidle[otel]'", name=_missing.name
    ) from _missing

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from whenidle_actors.host import Host


class Instrumentation:
    """A host that is instrumented; `close`, or the end of the `with` block, ends that. Idempotent."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def close(self) -> None:
        """Leave the host alone from now on. Spans of work that is under way end with it."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def instrument(
    host: Host, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> Instrumentation:
    """Make spans and metrics of a host from now on.

    Prompts, titles, message texts, and texts of exceptions are in none of them.

    Args:
        host: one whose block is open, on its trio thread.
        tracer_provider: where spans go; the global one if not given.
        meter_provider: where metrics go; the global one if not given.

    Raises:
        CompositionError: the host is instrumented already.
    """
    with ExitStack() as stack:
        spans = Spans(host, tracer_provider)
        stack.callback(host.attach(spans))
        stack.callback(host.subscribe(spans.observe))
        meters = Meters(host, meter_provider)
        stack.callback(meters.close)
        stack.callback(host.subscribe(meters.observe))
        return Instrumentation(stack.pop_all())


__all__ = ["Instrumentation", "instrument"]
