"""One process that runs seeds, as the one that started it sees it."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Self

import attrs

from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.interrupts import ignored_by_children
from whenidle_lab.processes.serving import Order, Ready, serve

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from whenidle_lab.outcomes import Outcome
    from whenidle_lab.processes.serving import Failure

STARTING = 120.0
"""Seconds that a process may take to start, on a machine that has much else to do."""

LEAVING = 5.0
"""Seconds that a process which is told to leave gets for it."""


@attrs.define(eq=False)
class Worker:
    """A process, its orders, and the line between."""

    process: BaseProcess
    line: Connection[Any, Any]
    since: float
    """When it was last heard of, or got something to do when it had nothing."""
    is_ready: bool = False
    orders: deque[Order] = attrs.Factory(deque[Order])
    """What it has to do; the first is what it does now."""

    @classmethod
    def started(cls, now: float) -> Self:
        """Start a process."""
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=True)
        with ignored_by_children():
            process.start()
        theirs.close()
        return cls(process, ours, now)

    def give(self, order: Order, now: float) -> None:
        """Give it an order."""
        if self.is_ready and not self.orders:
            self.since = now
        self.orders.append(order)
        with suppress(OSError):  # it is dead, as will be heard
            self.line.send(order)

    def hear(self, now: float) -> tuple[Order, Outcome | Failure] | None:
        """Return what it has answered to which order; None if it only says that it is there.

        Raises:
            EOFError: it is dead.
        """
        try:
            message: Ready | Outcome | Failure = self.line.recv()
        except OSError as error:
            raise EOFError from error
        self.since = now
        if isinstance(message, Ready):
            self.is_ready = True
            return None
        return self.orders.popleft(), message

    def is_overdue(self, now: float, patience: float) -> bool:
        """Return whether it should have been heard of by now."""
        return bool(self.orders) and now - self.since > (patience if self.is_ready else STARTING)

    def killed(self, patience: float) -> Finding:
        """End it, as it does not end what it does, and return what that says of it."""
        self.process.kill()
        self.leave(None)
        return Finding(FindingKind.HUNG, "run", f"the run did not end within {patience:g} s of real time")

    def buried(self) -> Finding:
        """Take note of its death, and return what that says of what it did."""
        self.process.join()
        text = f"the process ended with status {self.process.exitcode}"
        self.leave(None)
        return Finding(FindingKind.DIED, "process", text)

    def leave(self, patience: float | None = LEAVING) -> None:
        """Have it end by itself, and if it does not, end it."""
        self.line.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()
