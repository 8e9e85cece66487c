"""The machine of one run: its time, its store, the processes that live and die on it, and the record of all that."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import trio

from whenidle_lab.adapter import LabClock
from whenidle_lab.choices import Candidate, Topic
from whenidle_lab.faults import Mischief
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.scenario import Broken
from whenidle_lab.store import SimulatedStore
from whenidle_lab.trace import Happening, Trace, What

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from whenidle_actors.actor import Actor
    from whenidle_actors.host import Host
    from whenidle_clock import VirtualClock
    from whenidle_lab.choices import Chooser
    from whenidle_lab.scenario import Invariant, Scenario

START = datetime(2026, 1, 1, tzinfo=UTC)
"""What the wall shows when a run begins."""


class Machine:
    """What the processes of one run have in common, and the trace of what happens in them, judged at once.

    One process lives after the other, each with a clock and a host of its own; the store outlives them.
    """

    def __init__(self, scenario: Scenario, chooser: Chooser, invariants: Sequence[Invariant]) -> None:
        self.scenario: Scenario = scenario
        """What is played."""
        self.chooser: Chooser = chooser
        """Makes every choice, and keeps it."""
        self.invariants: tuple[Invariant, ...] = tuple(invariants)
        """What judges the run."""
        self.trace: Trace = Trace()
        """What has happened so far."""
        self.store: SimulatedStore = SimulatedStore(self)
        """What outlives the processes."""
        self.mischief: Mischief = Mischief(scenario.faults, chooser)
        """Makes the faults happen."""
        self.clock: VirtualClock = LabClock(START)
        """The clock of the process that lives now."""
        self.life: int = -1
        """Which process lives now, from 0."""
        self.step: int = 0
        """Rounds of the event loop so far."""
        self.dead: bool = False
        """Whether the process is dead: what its code still does, on its way out, is nobody's business."""
        self.stopped: bool = False
        """Whether the process that lives now was told to stop its host in order."""
        self.on_death: Callable[[], object] = lambda: None
        """Called when the process dies."""
        self.on_stop: Callable[[], object] = lambda: None
        """Called when the process is to stop its host."""
        self.before_ns: int = 0
        """Monotonic time of all lives before this one."""
        self.finding: Finding | None = None
        """What was found; the run is over then."""
        self._host: Host | None = None
        self._actors: dict[str, Candidate] = {}
        self._judges: dict[What, tuple[Callable[[Happening], None], ...]] = {}

    # Its processes ----------------------------------------------------------------------------

    def begin_life(self, down: float) -> VirtualClock:
        """Let the next process begin, `down` seconds after the last one, and return its clock."""
        self.before_ns += self.clock.monotonic_ns
        self.clock = LabClock(self.clock.now() + timedelta(seconds=down))
        self.life += 1
        self.dead = self.stopped = False
        self.store.begin_life()
        self.happened(What.LIFE_BEGAN, down=down)
        return self.clock

    @property
    def host(self) -> Host:
        """The host of the process that lives now.

        Raises:
            RuntimeError: none is open.
        """
        if self._host is None:
            raise RuntimeError("the host is not open: use it in play() and turn()")
        return self._host

    @property
    def is_open(self) -> bool:
        """Whether the process that lives now has a host."""
        return self._host is not None

    @contextmanager
    def hosting(self, host: Host) -> Generator[None]:
        """Have `host` be that of the process that lives now, in the block."""
        self._host = host
        try:
            yield
        finally:
            self._host = None

    def die(self, how: str = "crashed") -> None:
        """Let the process die here: nothing it does from now on has any effect."""
        if self.dead:
            return
        self.happened(What.LIFE_ENDED, how=how)
        self.dead = True
        self.on_death()

    def stop(self) -> None:
        """Have the process stop its host in order, from here on; what the users do ends at once."""
        self.stopped = True
        self.on_stop()

    def tasks(self) -> list[trio.lowlevel.Task]:
        """Return all tasks of the process that lives now, trio's own included."""
        root = trio.lowlevel.current_root_task()
        found = [] if root is None else [root]
        for task in found:
            for nursery in task.child_nurseries:
                found.extend(nursery.child_tasks)
        return found

    def choose_actor(self, ready: Any) -> int:
        """Return which of the ready actors, a sequence of `Actor`, runs next."""
        if self.dead or len(ready) == 1:
            return 0
        return self.chooser.order(Topic.ACTOR, [self._actor(actor) for actor in ready])

    def _actor(self, actor: Actor) -> Candidate:
        found = self._actors.get(actor.name)
        if found is None:
            found = self._actors[actor.name] = Candidate(len(self._actors), actor.name)
        return found

    # Its wall clock ---------------------------------------------------------------------------

    def step_clock(self, by: timedelta, *, announce: bool, how: str = "step") -> None:
        """Step the wall clock, as `VirtualClock.step`, or as `suspend` if `how` is so."""
        self.clock.step(by, announce=announce)
        self.happened(What.CLOCK, how=how, by=by.total_seconds(), announced=announce)

    def drift(self, ppm: int) -> None:
        """Let the wall clock drift from now on."""
        self.clock.drift_ppm = ppm
        self.happened(What.CLOCK, how="drift", by=ppm, announced=False)

    # The record -------------------------------------------------------------------------------

    def happened(self, what: What, agent: str = "", **detail: Any) -> None:
        """Add to the trace that something happened now, and have it judged. What a dead process does is not in it."""
        if self.dead:
            return
        clock = self.clock
        happening = Happening(
            self.step, self.life, self.before_ns + clock.monotonic_ns, clock.now_millis(), what, agent, detail
        )
        self.trace.add(happening)
        if self.finding is not None:
            return  # the end of a run that has been judged
        judges = self._judges.get(what)
        if judges is None:  # half of all kinds do not happen in a run
            judges = self._judges[what] = tuple(one.happened for one in self.invariants if what in one.listens)
        try:
            for judge in judges:
                judge(happening)
        except Exception as error:  # noqa: BLE001 - see `broken`
            self.broken(error)

    @contextmanager
    def judging(self) -> Generator[None]:
        """End the run if an invariant says in the block that it does not hold."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - see `broken`
            self.broken(error)

    def broken(self, error: Exception) -> None:
        """End the run with what an invariant raised.

        One that fails itself is a finding too: it must not be taken for a fault of what called it.
        """
        if isinstance(error, Broken):
            self.found(Finding(FindingKind.INVARIANT, error.invariant, error.text))
        else:
            self.found(Finding.of(error))

    def found(self, finding: Finding) -> None:
        """End the run with a finding; only the first one counts."""
        if self.finding is None:
            self.finding = finding
            self.trace.add(
                Happening(
                    self.step,
                    self.life,
                    self.before_ns + self.clock.monotonic_ns,
                    self.clock.now_millis(),
                    What.BROKEN,
                    "",
                    {"invariant": finding.name, "text": finding.trace_text},
                )
            )
        self.die("broken")
