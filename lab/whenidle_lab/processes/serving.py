"""What a process does that runs seeds for another one."""

from __future__ import annotations

import functools
import os
import signal
import threading
from contextlib import suppress
from multiprocessing import connection, parent_process
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_lab.outcomes import play
from whenidle_lab.strategies import Exhaustive, parse_plan
from whenidle_lab.subjects import subject

if TYPE_CHECKING:
    from whenidle_lab.outcomes import Outcome

ORPHANED = 1
"""Exit status of a process whose parent is gone."""


@attrs.frozen
class Order:
    """A seed to run."""

    batch: int
    """Which exploration it is for."""
    reference: str
    """What `subject` finds the scenario by."""
    strategy: str
    seed: int
    twice: bool


@attrs.frozen
class Ready:
    """The process has started, and takes orders."""


@attrs.frozen
class Failure:
    """An order cannot be carried out; not because of what the run did."""

    text: str


def serve(line: connection.Connection[Any, Any]) -> None:
    """Carry out orders until nobody gives any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what scenarios print must not get between the lines of a report
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    answer(line)


def answer(line: connection.Connection[Any, Any]) -> None:
    """Answer each order with an `Outcome` or a `Failure`, until the line is closed at the other end."""
    with suppress(EOFError, OSError):
        line.send(Ready())
        while True:
            line.send(_carried_out(line.recv()))


def _carried_out(order: Order) -> Outcome | Failure:
    try:
        plan = parse_plan(order.strategy)
        if isinstance(plan, Exhaustive):
            return Failure(f"{order.strategy} has no seeds")
        return play(_subject(order.reference), plan, order.seed, twice=order.twice)
    except Exception as error:  # noqa: BLE001 - whatever it is, the process that asked has to know
        return Failure(f"{type(error).__name__}: {error}")


_subject = functools.cache(subject)


def _leave_with_parent() -> None:
    """End the process, whatever it does, when the one that started it is gone."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(ORPHANED)
