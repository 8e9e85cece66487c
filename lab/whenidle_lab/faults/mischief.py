"""Makes the faults of a run happen."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import trio

from whenidle_lab.choices import Topic
from whenidle_lab.faults import haunting
from whenidle_lab.faults.kinds import AT_COMMITS, TOPICS, FaultKind
from whenidle_lab.faults.plan import draw_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whenidle_actors.host import Host
    from whenidle_lab.choices import Chooser
    from whenidle_lab.faults.plan import Fault
    from whenidle_lab.faults.settings import Faults
    from whenidle_lab.machine import Machine
    from whenidle_lab.world import World

_DRIFTS = (1, 50, 500, 10_000, 200_000)
"""How much faster or slower a drifting wall runs, in millionths: quartz, the most that NTP slews, and beyond."""

_TIME_TO_FINISH = 5.0
"""Seconds that turns get when the host stops, in half of all cases."""

_STEPS = frozenset(TOPICS[Topic.CLOCK])
_OF_TURNS = frozenset(TOPICS[Topic.TURN])
_OF_AGENTS = frozenset(TOPICS[Topic.AGENT])


class Mischief:
    """Injects the faults of one run."""

    def __init__(self, faults: Faults, chooser: Chooser) -> None:
        self.faults: Faults = faults
        self._chooser = chooser
        self._happened: set[FaultKind] = set()
        self._crashes = 0
        self._down = 0.0
        self._is_over = False
        self.begin(())

    def begin(self, plan: Sequence[Fault]) -> None:
        """Let a life begin in which `plan` goes wrong, and nothing else."""
        self.plan: Sequence[Fault] = plan
        """What is to go wrong in the life that began last."""
        self._commits: dict[int, list[Fault]] = {}
        self._turns: dict[int, Fault] = {}
        self._in_rounds: list[Fault] = []
        self._haunts: list[Fault] = []
        self._commit = self._turn = self._round = self._wake = 0
        self._full_until_ns = self._unreadable_until_ns = 0
        self._drift_until_ns: float = math.inf
        self._haunted = trio.Event()
        self.healed: trio.Event = trio.Event()
        """Set when nothing goes wrong any more in this life: whatever takes long ends then."""
        for fault in plan:
            if fault.kind in AT_COMMITS:
                self._commits.setdefault(fault.place, []).append(fault)
            elif fault.kind in _OF_TURNS:
                self._turns[fault.place] = fault
            elif fault.kind is not FaultKind.AGENT_PASSIVATED:
                self._in_rounds.append(fault)

    # A life -----------------------------------------------------------------------------------

    def begin_life(self, world: World) -> None:  # noqa: ARG002 - a plan depends on nothing but choices
        """Draw what goes wrong in a process that begins."""
        self._down = 0.0
        may_crash = self._crashes < self.faults.crashes
        self.begin([] if self._is_over else draw_plan(self.faults, self._chooser, may_crash=may_crash))

    def downtime(self) -> float:
        """Return the seconds between the death of the process that died last and the next one."""
        return self._down

    def host_options(self) -> Mapping[str, Any]:
        """Return arguments for `open_host` that are part of what goes wrong in this life."""
        options: dict[str, Any] = {}
        for fault in self.plan:
            if fault.kind is FaultKind.AGENT_PASSIVATED:
                options["passivate_after"] = 0.0 if fault.variant == 0 else fault.delay
            elif fault.kind is FaultKind.STOPPED and fault.variant & 1:
                options["shutdown_timeout"] = _TIME_TO_FINISH
        return options

    def happened(self) -> frozenset[str]:
        """Return the kinds of fault that have happened so far."""
        return frozenset(kind.value for kind in self._happened)

    def note(self, kind: FaultKind) -> None:
        """Take note that a fault has happened."""
        self._happened.add(kind)

    def stop(self, machine: Machine) -> None:
        """Let nothing go wrong from here on: the disk has room and answers, the clock runs true, what hangs goes on."""
        healed = self.healed
        self._is_over = True
        self.begin(())
        self.healed = healed
        healed.set()
        if machine.clock.drift_ppm:
            machine.drift(0)

    # The event loop ---------------------------------------------------------------------------

    def begin_round(self, machine: Machine, *, jumped: bool) -> None:
        """Do what is planned for this round of the event loop, before its tasks run.

        Args:
            machine: the run's.
            jumped: whether time has just moved to a deadline.
        """
        number, self._round = self._round, self._round + 1
        if jumped:
            self._wake += 1
            if machine.clock.monotonic_ns >= self._drift_until_ns:
                self._drift_until_ns = math.inf
                machine.drift(0)
        if not self._in_rounds:
            return
        for fault in self._in_rounds:
            if (fault.at_wake and jumped and fault.place == self._wake - 1) or (
                not fault.at_wake and fault.place == number
            ):
                if fault.at_wake:
                    self.note(FaultKind.AT_WAKE)
                self._befall(machine, fault)
                if machine.dead:
                    return

    def _befall(self, machine: Machine, fault: Fault) -> None:
        kind = fault.kind
        if kind is FaultKind.CRASH:
            self.crash(machine, fault)
        elif kind is FaultKind.STOPPED:
            self._count_death(fault)
            machine.stop()
        elif kind is FaultKind.UNREADABLE:
            self._unreadable_until_ns = machine.clock.monotonic_ns + int(fault.delay * 1e9)
        elif kind in _STEPS:
            self.note(kind)
            self._disturb_clock(machine, fault)
        else:
            self._haunts.append(fault)
            self._haunted.set()

    def _disturb_clock(self, machine: Machine, fault: Fault) -> None:
        if fault.kind is FaultKind.DRIFT:
            ppm = _DRIFTS[fault.exponent % len(_DRIFTS)]
            self._drift_until_ns = machine.clock.monotonic_ns + int(fault.delay * 1e9)
            machine.drift(-ppm if fault.variant & 1 else ppm)
            return
        silent = fault.variant & 1 and FaultKind.UNANNOUNCED in self.faults.kinds
        if silent:
            self.note(FaultKind.UNANNOUNCED)
        millis = -fault.millis if fault.kind is FaultKind.ROLLBACK else fault.millis
        how = "suspend" if fault.kind is FaultKind.SUSPEND else "step"
        machine.step_clock(timedelta(milliseconds=millis), announce=not silent, how=how)

    def crash(self, machine: Machine, fault: Fault) -> None:
        """Let the process die of a fault."""
        self._count_death(fault)
        machine.die()

    def _count_death(self, fault: Fault) -> None:
        self.note(fault.kind)
        self._crashes += 1
        self._down = fault.downtime

    # The store --------------------------------------------------------------------------------

    def meet_commit(self, now_ns: int) -> Fault | None:
        """Return what befalls the commit that is handed in now.

        Args:
            now_ns: monotonic time of the life.
        """
        number, self._commit = self._commit, self._commit + 1
        for fault in self._commits.get(number, ()):
            if fault.kind is FaultKind.DISK_FULL:
                self._full_until_ns = now_ns + int(fault.delay * 1e9)
            else:
                return fault
        return None

    def is_full(self, now_ns: int) -> bool:
        """Return whether the disk has no room now."""
        return now_ns < self._full_until_ns

    def is_unreadable(self, now_ns: int) -> bool:
        """Return whether reads fail now."""
        return now_ns < self._unreadable_until_ns

    def lose_answer(self, now_ns: int, fault: Fault) -> None:
        """Have reads fail after a commit whose outcome is unknown, in half of all cases."""
        if fault.variant & 1 and FaultKind.UNREADABLE in self.faults.kinds and not self._is_over:
            self._unreadable_until_ns = now_ns + int(fault.delay * 1e9)

    async def delay(self, seconds: float) -> None:
        """Take so long, or until nothing goes wrong any more."""
        if seconds > 0:
            with trio.move_on_after(seconds):
                await self.healed.wait()

    # Turns and agents -------------------------------------------------------------------------

    def meet_turn(self) -> Fault | None:
        """Return what the turn function that is entered now does wrong."""
        number, self._turn = self._turn, self._turn + 1
        fault = self._turns.get(number)
        if fault is not None:
            self.note(fault.kind)
        return fault

    @property
    def haunts(self) -> bool:
        """Whether anything is planned for agents in this life."""
        return any(fault.kind in _OF_AGENTS for fault in self._in_rounds)

    async def haunt(self, world: World, host: Host) -> None:
        """Do to agents what is planned, beside the scenario, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._haunted.wait()
                self._haunted = trio.Event()
                faults, self._haunts = self._haunts, []
                for fault in faults:
                    nursery.start_soon(haunting.haunt, world, host, fault)
