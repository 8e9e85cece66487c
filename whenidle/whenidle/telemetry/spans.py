"""Work of a host as spans, and the link from a delivery to where its schedule was created."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from whenidle_actors.observation import EventKind
from whenidle_actors.probe import Work
from whenidle_protocol.events import Source

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider
    from opentelemetry.util.types import AttributeValue

    from whenidle_actors.host import Host
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.probe import Note

T = TypeVar("T")

_KINDS: Final = {Work.DELIVERY: SpanKind.PRODUCER, Work.TURN: SpanKind.CONSUMER}
_NAMES: Final = {
    Work.TOOL_CALL: "execute_tool {tool}",  # as OpenTelemetry's conventions for generative AI have it
    Work.CLAIM: "whenidle claim",
    Work.DELIVERY: "whenidle delivery",
    Work.TURN: "whenidle turn",
    Work.COMMIT: "whenidle commit",
}
_ATTRIBUTES: Final = {
    "tool": "gen_ai.tool.name",
    "code": "whenidle.code",
    "turn": "whenidle.turn.number",
    "attempt": "whenidle.turn.attempt",
    "messages": "whenidle.messages",
    "outcome": "whenidle.turn.outcome",
    "schedules": "whenidle.schedules",
    "late_millis": "whenidle.late_millis",
    "events": "whenidle.commit.events",
    "sessions": "whenidle.commit.sessions",
    "tasks": "whenidle.commit.tasks",
    "receipts": "whenidle.commit.receipts",
}
"""The facts that are attributes, and their names."""

_DELIVERIES: Final = 10_000
"""Messages whose delivery is remembered, at some 300 bytes each; the turn that takes an older one has no link."""


class Spans:
    """A probe that makes spans.

    A span is a child of the work it is a part of. Turns and claims that the host begins of its own accord are the
    roots of traces of their own, whatever span was open when the host was.
    """

    def __init__(self, host: Host, provider: TracerProvider | None) -> None:
        self._tracer = trace.get_tracer("whenidle", tracer_provider=provider)
        self._around_host: SpanContext = host.context.run(trace.get_current_span).get_span_context()
        self._deliveries: OrderedDict[tuple[str, str], SpanContext] = OrderedDict()
        """The delivery that each message came by: session id and message id."""

    @contextmanager
    def work(self, kind: Work, session_id: str, facts: Mapping[str, Any]) -> Generator[Note]:
        """See `Probe.work`. A delivery that delivers nothing leaves no span."""
        span = self._tracer.start_span(
            _NAMES[kind].format_map(facts),
            self._parent(),
            _KINDS.get(kind, SpanKind.INTERNAL),
            attributes=_attributes(session_id, facts),
            links=self._links(session_id, facts.get("messages", ())),
        )
        told: dict[str, Any] = {}

        def note(**facts: Any) -> None:
            told.update(facts)

        token = otel_context.attach(trace.set_span_in_context(span))
        try:
            yield note
        except BaseException as error:
            _mark(span, type(error).__name__, failed=isinstance(error, Exception))
            raise
        finally:
            otel_context.detach(token)
            if told.get("schedules") != []:
                _link(span, told.get("traces", ()))
                span.set_attributes(_facts(told))
                if told.get("outcome") == "error":
                    span.set_status(Status(StatusCode.ERROR))
                span.end()

    def carry(self, operation: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """See `Probe.carry`."""
        here = otel_context.get_current()

        async def carried() -> T:
            token = otel_context.attach(here)
            try:
                return await operation()
            finally:
                otel_context.detach(token)

        return carried

    def trace(self) -> str | None:
        """See `Probe.trace`: only what is sampled is worth a link."""
        here = trace.get_current_span().get_span_context()
        if not here.is_valid or not here.trace_flags.sampled or here == self._around_host:
            return None
        return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"

    def observe(self, event: HostEvent) -> None:
        """Take note of the message that a delivery, which is under way here, has just put into an inbox."""
        if event.kind is EventKind.MESSAGE_QUEUED and event.detail["source"] == Source.SCHEDULE:
            self._deliveries[event.session_id, event.detail["message"]] = trace.get_current_span().get_span_context()
            if len(self._deliveries) > _DELIVERIES:
                self._deliveries.popitem(last=False)

    def _parent(self) -> Context | None:
        """Return the context to begin in: without a span where that is only what surrounds the host."""
        here = trace.get_current_span().get_span_context()
        return trace.set_span_in_context(trace.INVALID_SPAN) if here == self._around_host else None

    def _links(self, session_id: str, messages: Sequence[str]) -> list[Link]:
        """Return links to the deliveries that messages came by."""
        deliveries = (self._deliveries.get((session_id, message)) for message in messages)
        return [Link(delivery) for delivery in deliveries if delivery is not None]


def _link(span: Span, traces: Sequence[str | None]) -> None:
    """Link a delivery to where its schedules were created."""
    for traceparent in traces:
        if traceparent is not None:
            span.add_link(_span_context(traceparent))


def _span_context(traceparent: str) -> SpanContext:
    _, trace_id, span_id, flags = traceparent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))


def _attributes(session_id: str, facts: Mapping[str, Any]) -> dict[str, AttributeValue]:
    return {"gen_ai.conversation.id": session_id, **_facts(facts)} if session_id else _facts(facts)


def _facts(facts: Mapping[str, Any]) -> dict[str, AttributeValue]:
    return {_ATTRIBUTES[name]: value for name, value in facts.items() if name in _ATTRIBUTES and value is not None}


def _mark(span: Span, error: str, *, failed: bool) -> None:
    """Say on the span that the work ended with an exception; a cancellation is no failure."""
    span.set_attribute("error.type", error)
    if failed:
        span.set_status(Status(StatusCode.ERROR))
