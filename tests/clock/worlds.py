"""Clocks of both kinds in a world that a test can turn: the wall is stepped, trio is run."""

import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Protocol

import pytest
import trio

from whenidle_clock import Clock, SystemClock, VirtualClock, system


class World(Protocol):
    @property
    def clock(self) -> Clock:
        """The clock under test."""

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run trio on the clock."""

    def step(self, by: timedelta, *, announce: bool) -> None:
        """Step the wall clock."""

    def count_watches(self) -> int:
        """Count what open step watches hold."""


class VirtualWorld:
    def __init__(self, slice_seconds: float) -> None:
        self.clock = VirtualClock(autojump=True, slice_seconds=slice_seconds)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        trio.run(main, clock=self.clock)

    def step(self, by: timedelta, *, announce: bool) -> None:
        self.clock.step(by, announce=announce)

    def count_watches(self) -> int:
        return len(self.clock._watches)


class SystemWorld:
    """The system clock, its wall moved by an offset; a socket pair stands in for the timer."""

    def __init__(self, slice_seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offset_ns = 0
        self.pairs: list[tuple[int, socket.socket]] = []
        self.clock = SystemClock(slice_seconds=slice_seconds, timer_descriptor=self.open_timer)
        monkeypatch.setattr(system, "time", SimpleNamespace(time_ns=lambda: time.time_ns() + self.offset_ns))

    def open_timer(self) -> int:
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)
        descriptor = theirs.detach()
        self.pairs.append((descriptor, ours))
        return descriptor

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        trio.run(main)
        for _, ours in self.pairs:
            ours.close()

    def step(self, by: timedelta, *, announce: bool) -> None:
        self.offset_ns += by // timedelta(microseconds=1) * 1000
        for _, ours in self.pairs if announce else ():
            with contextlib.suppress(BrokenPipeError):
                ours.send(b"s")

    def count_watches(self) -> int:
        closed = 0
        for descriptor, _ in self.pairs:
            try:
                os.fstat(descriptor)
            except OSError:
                closed += 1
        return len(self.pairs) - closed
