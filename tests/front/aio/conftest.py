"""Fixtures of the tests on asyncio: each is a plain function that runs a coroutine on a loop of its own."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from .loops import LoopFactory, Run, runner


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    """Return what makes an event loop, of each kind."""
    return asyncio.new_event_loop if request.param == "asyncio" else uvloop.new_event_loop


@pytest.fixture
def run(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> Run:
    """Return what runs a coroutine to its end, and fails on tasks that it leaves behind."""
    return runner(loop_factory)
