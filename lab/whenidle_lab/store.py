"""A store that does what the lab says: commits that are slow, refused, uncertain, or outlive the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import attrs
import trio

from whenidle_actors.errors import CommitRefused, CommitUncertain, StoreClosed, StoreError
from whenidle_lab.descriptions import described, first_part
from whenidle_lab.engines import Mishap, make_engine
from whenidle_lab.faults import FaultKind
from whenidle_lab.managers import DONE, ManagersStore, News
from whenidle_lab.simulated_reads import SimulatedReads
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.stores.base import Batch, Changes, Role
    from whenidle_lab.faults.plan import Fault
    from whenidle_lab.machine import Machine

WITHDRAWN = "withdrawn"
"""The `fate` of one whose caller was cancelled before it was written."""

_REFUSALS = (Mishap.FULL, Mishap.BUSY, Mishap.REFUSED)
_MISHAPS = {FaultKind.UNCERTAIN_LOST: Mishap.UNCERTAIN_LOST, FaultKind.UNCERTAIN_KEPT: Mishap.UNCERTAIN_KEPT}
_DEATHS = {
    FaultKind.CRASH_BEFORE_COMMIT,
    FaultKind.CRASH_IN_COMMIT,
    FaultKind.CRASH_AFTER_COMMIT,
    FaultKind.PARTLY_KEPT,
}


class Defect(Exception):
    """What a store with a bug raises."""


@attrs.define(eq=False)
class _Waiting:
    """A commit that waits until the store has written another one."""

    number: int
    batch: Batch
    ended: trio.Event = attrs.Factory(trio.Event)
    error: StoreError | None = None


class SimulatedStore(SimulatedReads):
    """A store for one run, whose contents outlive the processes in it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, make_engine(machine.scenario.engine))
        self._commits = 0
        self._news = News(machine.chooser)
        self._writing = False
        """Whether a slow commit is written now."""
        self._waiting: list[_Waiting] = []

    # Lives ------------------------------------------------------------------------------------

    def begin_life(self) -> None:
        """Be found as the last process has left it."""
        self._news.begin_life()
        self._slow, self._slow_until_ns = None, 0
        self._writing = False
        self._waiting = []
        self._engine.begin_life()

    async def open(self, role: Role) -> None:
        """See `Store.open`."""
        await self._engine.open(role)

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        await self._engine.aclose()

    def beside(self) -> ManagersStore:
        """Return the same store as another process has it open, to manage it."""
        return ManagersStore(self._machine, self._engine, self.begin, self._news)

    async def changed_elsewhere(self) -> Changes:
        """See `Store.changed_elsewhere`: what managers have changed, one thing after the other."""
        return await self._news.wait(self._engine)

    # Commits ----------------------------------------------------------------------------------

    async def commit(self, batch: Batch) -> None:
        """See `Store.commit`, and `FaultKind` for what it may meet."""
        self._require_alive()
        number, fault = self._begin()
        await self._commit(number, batch, fault)

    async def commit_all(self, batches: Sequence[Batch]) -> list[Exception | None]:
        """See `Store.commit_all`. One group, unless one of them meets something: then one after the other."""
        self._require_alive()
        begun = [self._begin() for _ in batches]
        if all(fault is None for _, fault in begun) and self._is_smooth():
            return await self._commit_together([number for number, _ in begun], batches)
        answers: list[Exception | None] = []
        try:
            for (number, fault), batch in zip(begun, batches, strict=True):
                try:
                    await self._commit(number, batch, fault)
                except Exception as error:  # noqa: BLE001 - an answer like any other
                    answers.append(error)
                else:
                    answers.append(None)
        except trio.Cancelled:
            for number, _ in begun[len(answers) + 1 :]:
                self._withdrawn(number)
            raise
        return answers

    def begin(self) -> int:
        """Return the number of a commit that is handed in."""
        number, self._commits = self._commits, self._commits + 1
        self._machine.happened(What.COMMIT_BEGAN, commit=number)
        return number

    def _begin(self) -> tuple[int, Fault | None]:
        """Return the number of a commit that is handed in, and what befalls it."""
        return self.begin(), self._machine.mischief.meet_commit(self._machine.clock.monotonic_ns)

    def _is_smooth(self) -> bool:
        """Return whether a commit that meets nothing itself is written at once."""
        now_ns = self._machine.clock.monotonic_ns
        return not self._writing and now_ns >= self._slow_until_ns and not self._machine.mischief.is_full(now_ns)

    async def _commit(self, number: int, batch: Batch, fault: Fault | None) -> None:
        try:
            if fault is None and self._is_smooth():
                await trio.lowlevel.checkpoint()
                self._require_alive()
                self._write(number, batch)
            else:
                await self._meet(number, batch, fault)
        except trio.Cancelled:
            self._withdrawn(number)
            raise

    async def _commit_together(self, numbers: Sequence[int], batches: Sequence[Batch]) -> list[Exception | None]:
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            for number in numbers:
                self._withdrawn(number)
            raise
        self._require_alive()
        answers = self._engine.apply(batches)
        for number, batch, error in zip(numbers, batches, answers, strict=True):
            self._tell_of(number, batch, error)
            self._tell_end(number, DONE, error)
        return list(answers)

    def _withdrawn(self, number: int) -> None:
        self._machine.happened(What.COMMIT_ENDED, commit=number, fate=WITHDRAWN, error="Cancelled")

    async def _meet(self, number: int, batch: Batch, fault: Fault | None) -> None:
        if fault is not None and fault.kind in _DEATHS:
            await self._die_at(number, batch, fault)
        if fault is not None and fault.kind is FaultKind.SLOW:
            self._slow = fault
            self._slow_until_ns = self._machine.clock.monotonic_ns + _slow_spell_ns(fault)
        elif fault is not None or self._machine.mischief.is_full(self._machine.clock.monotonic_ns):
            await trio.lowlevel.checkpoint()
            self._require_alive()
            self._fail(number, batch, fault)
            return
        if self._writing:
            await self._wait_in_line(number, batch)
        else:
            await self._write_slowly(number, batch)

    def _tell_of(self, number: int, batch: Batch, error: StoreError | None) -> None:
        """Have the trace tell that a batch is durable, if it is."""
        if error is None:
            self._machine.happened(What.COMMIT_DURABLE, commit=number, **described(batch))

    def _tell_end(self, number: int, fate: str, error: Exception | None) -> None:
        name = None if error is None else type(error).__name__
        self._machine.happened(What.COMMIT_ENDED, commit=number, fate=fate, error=name)

    async def _die_at(self, number: int, batch: Batch, fault: Fault) -> NoReturn:
        """Let the process die before, while or after a commit is written."""
        await trio.lowlevel.checkpoint()
        self._require_alive()
        if fault.kind is FaultKind.CRASH_IN_COMMIT:
            self._engine.tear(batch)
        elif fault.kind is not FaultKind.CRASH_BEFORE_COMMIT:
            kept = batch if fault.kind is FaultKind.CRASH_AFTER_COMMIT else first_part(batch)
            (error,) = self._engine.apply([kept])
            self._tell_of(number, kept, error)
        self._machine.mischief.crash(self._machine, fault)
        raise StoreClosed("the process is dead")

    def _fail(self, number: int, batch: Batch, fault: Fault | None) -> None:
        """Let a commit meet a fault that takes no time.

        Raises:
            StoreError: what its caller is told.
            Defect: the same.
        """
        kind = FaultKind.DISK_FULL if fault is None else fault.kind
        self._machine.mischief.note(kind)
        if fault is None:
            self._write(number, batch, kind, Mishap.FULL)
        elif kind is FaultKind.REFUSED:
            self._write(number, batch, kind, _REFUSALS[fault.variant % 3])
        elif kind in _MISHAPS:
            self._machine.mischief.lose_answer(self._machine.clock.monotonic_ns, fault)
            self._write(number, batch, kind, _MISHAPS[kind])
        elif kind is FaultKind.FAILED_KEPT:
            self._write(number, batch, kind, tell=CommitRefused("the commit changed nothing"))
        elif kind is FaultKind.LOST:
            self._ended(number, kind, None)
        elif fault.variant & 1 and not batch.created and not batch.tasks:
            self._write(number, batch, kind, tell=Defect("a defect of the store, behind the commit"))
        else:
            self._ended(number, kind, Defect("a defect of the store"))

    def _write(
        self,
        number: int,
        batch: Batch,
        fate: str = DONE,
        mishap: Mishap | None = None,
        *,
        tell: Exception | None = None,
    ) -> None:
        """Commit, or fail to; `tell` is what the caller is told of a success.

        Raises:
            StoreError: what the caller is told.
        """
        (error,) = self._engine.apply([batch], mishap)
        kept = mishap is Mishap.UNCERTAIN_KEPT and isinstance(error, CommitUncertain)
        self._tell_of(number, batch, None if kept else error)
        self._ended(number, fate, tell if error is None else error)

    def _ended(self, number: int, fate: str, error: Exception | None) -> None:
        self._tell_end(number, fate, error)
        if error is not None:
            raise error

    # Slow commits -----------------------------------------------------------------------------

    async def _write_slowly(self, number: int, batch: Batch) -> None:
        """Commit as a slow disk does: once the write has begun, its end is awaited whatever happens."""
        fault, mischief = self._slow, self._machine.mischief
        assert fault is not None  # noqa: S101 - else it would not be slow
        mischief.note(FaultKind.SLOW)
        before, after = (fault.delay if fault.variant & bit else 0.0 for bit in (1, 2))
        if not before and not after:
            before = after = fault.delay / 2
        await trio.lowlevel.checkpoint()
        self._require_alive()
        self._writing = True
        error: StoreError | None = None
        with trio.CancelScope(shield=True):
            await mischief.delay(before)
            self._require_alive()
            (error,) = self._engine.apply([batch])
            self._tell_of(number, batch, error)
            await mischief.delay(after)
            self._require_alive()
        self._writing = False
        self._write_waiting()
        self._ended(number, FaultKind.SLOW, error)

    async def _wait_in_line(self, number: int, batch: Batch) -> None:
        """Commit together with all others that wait, when the store is free; until then it can be withdrawn."""
        entry = _Waiting(number, batch)
        self._waiting.append(entry)
        try:
            await entry.ended.wait()
        except trio.Cancelled:
            self._waiting.remove(entry)
            raise
        self._require_alive()
        self._ended(number, FaultKind.SLOW, entry.error)

    def _write_waiting(self) -> None:
        """Commit all that wait as one group."""
        group, self._waiting = self._waiting, []
        if not group:
            return
        for entry, error in zip(group, self._engine.apply([entry.batch for entry in group]), strict=True):
            entry.error = error
            self._tell_of(entry.number, entry.batch, error)
            entry.ended.set()


def _slow_spell_ns(fault: Fault) -> int:
    """Return the nanoseconds that a store stays slow: some twenty commits, or ten minutes if they take longer."""
    return int(1e9 * min(20 * fault.delay, 600.0))
