"""Providers of the SDK that keep everything in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.actors.faulty_store import FaultyStore
from tests.actors.runtime.worlds import Script

from .seen import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Return where spans and metrics go."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    yield Seen(tracers, meters, exporter, reader)
    tracers.shutdown()
    meters.shutdown()


@pytest.fixture
def script() -> Script:
    """Return a turn function that the test writes, and its clock."""
    return Script()


@pytest.fixture
def store() -> FaultyStore:
    """Return a store that works until it is told to fail."""
    return FaultyStore()
