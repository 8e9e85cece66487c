"""Some processes that run seeds, and what comes back from them."""

from __future__ import annotations

import time
from collections import deque
from multiprocessing import connection
from typing import TYPE_CHECKING, Self

from whenidle_lab.outcomes import Outcome
from whenidle_lab.processes.serving import Failure, Order
from whenidle_lab.processes.worker import Worker
from whenidle_lab.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from whenidle_lab.findings import Finding
    from whenidle_lab.subjects import Subject

PATIENCE = 60.0
"""Seconds of real time that a run may take; a usual one takes milliseconds."""

AHEAD = 4
"""Seeds that a worker is given before it has run them, so that it need not wait for the next one."""

TICK = 0.1
"""Seconds until somebody may look around while nothing happens."""


class WorkerError(RuntimeError):
    """A process to run seeds in does not start, or cannot run what it is given."""


class Workers:
    """Processes that run seeds, started when they are needed, and replaced when they die.

    They leave at the end of the block.

    Args:
        jobs: how many.
        patience: seconds of real time after which a run that has not ended is taken for one that never does.
        monotonic: the clock, in seconds.

    Raises:
        ValueError: `jobs` is below 1.
    """

    def __init__(
        self, jobs: int, *, patience: float = PATIENCE, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        if jobs < 1:
            raise ValueError(f"{jobs} processes run nothing; write 1 or more")
        self._jobs = jobs
        self._patience = patience
        self._monotonic = monotonic
        self._workers: list[Worker] = []
        self._batch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.line.close()
            if worker.orders:
                worker.process.kill()
        for worker in self._workers:
            worker.leave()
        self._workers.clear()

    def seeds(self, subject: Subject, strategy: str, seeds: Iterable[int], *, twice: bool = False) -> SeedsBeside:
        """Return what runs seeds of a scenario that has a reference.

        One of these at a time; what the last one left undone is not waited for.
        """
        self._batch += 1
        orders = (Order(self._batch, str(subject.reference), strategy, seed, twice) for seed in seeds)
        return SeedsBeside(self, subject, strategy, self._batch, orders)

    # For `SeedsBeside` ------------------------------------------------------------------------

    def is_busy_with(self, batch: int) -> bool:
        """Return whether something of a batch is being done."""
        return any(order.batch == batch for worker in self._workers for order in worker.orders)

    def hand_out(self, take: Callable[[], Order | None]) -> bool:
        """Give workers as much as they can do, and return whether there may be more."""
        while not self._are_full():
            order = take()
            if order is None:
                return False
            now = self._monotonic()
            if len(self._workers) < self._jobs:
                self._workers.append(Worker.started(now))
            min(self._workers, key=lambda worker: len(worker.orders)).give(order, now)
        return True

    def _are_full(self) -> bool:
        return len(self._workers) == self._jobs and all(len(worker.orders) >= AHEAD for worker in self._workers)

    def hear(self) -> Generator[tuple[list[Order], Outcome | Failure | Finding], None, None]:
        """Wait a moment, and return the order that was answered, and how.

        If a worker is lost, that is what is to be found of its first order; the others are still to be done.

        Raises:
            WorkerError: a worker did not start.
        """
        by_line = {worker.line: worker for worker in self._workers}
        spoke = connection.wait(list(by_line), TICK)
        for line, worker in by_line.items():
            now = self._monotonic()
            try:
                if line in spoke:
                    answer = worker.hear(now)
                    if answer is not None:
                        yield [answer[0]], answer[1]
                elif worker.is_overdue(now, self._patience):
                    yield self._lost(worker, worker.killed(self._patience))
            except EOFError:
                yield self._lost(worker, worker.buried())

    def _lost(self, worker: Worker, finding: Finding) -> tuple[list[Order], Finding]:
        self._workers.remove(worker)
        if not worker.is_ready:
            raise WorkerError(f"a process to run seeds in did not start: {finding.text}")
        return list(worker.orders), finding


class SeedsBeside:
    """One run for each seed, in other processes; a `Source`."""

    def __init__(self, workers: Workers, subject: Subject, strategy: str, batch: int, orders: Iterator[Order]) -> None:
        self.is_finished: bool = False
        self._workers = workers
        self._subject = subject
        self._strategy = strategy
        self._batch = batch
        self._undone: deque[Order] = deque()
        self._fresh = orders

    def outcomes(self) -> Generator[Outcome | None, None, None]:
        """See `Source.outcomes`; they come in the order in which runs end.

        Raises:
            WorkerError: see there.
        """
        while self._workers.hand_out(self._order) or self._workers.is_busy_with(self._batch):
            yield None
            for orders, answer in self._workers.hear():
                # What is not of this batch is of an exploration that has ended.
                self._undone.extend(order for order in orders[1:] if order.batch == self._batch)
                if orders and orders[0].batch == self._batch:
                    yield self._outcome(orders[0].seed, answer)
        self.is_finished = True

    def _order(self) -> Order | None:
        return self._undone.popleft() if self._undone else next(self._fresh, None)

    def _outcome(self, seed: int, answer: Outcome | Failure | Finding) -> Outcome:
        if isinstance(answer, Outcome):
            return answer
        if isinstance(answer, Failure):
            raise WorkerError(answer.text)
        recording = Recording.lost(answer, self._subject, self._strategy, seed)
        return Outcome(seed, recording, 0, 0.0, 0, frozenset(), 0, 0)
