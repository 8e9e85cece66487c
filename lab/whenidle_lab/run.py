"""One run: one process after the other on one store, until the story has ended or something is found."""

from __future__ import annotations

import gc
import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import trio

from whenidle_lab import adapter
from whenidle_lab.choices import Candidate, Chooser, Diverged, Quiet, Topic
from whenidle_lab.conductor import Conductor
from whenidle_lab.findings import Finding, FindingKind, Run
from whenidle_lab.invariants import standard_invariants
from whenidle_lab.trace import What
from whenidle_lab.world import World

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from whenidle_actors.host import Host
    from whenidle_lab.choices import Choice, Strategy
    from whenidle_lab.scenario import Scenario

MAX_ROUNDS = 200_000
"""Rounds of the event loop in one run; the longest honest one takes a tenth of it."""

STILL_ROUNDS = 10_000
"""Rounds in which no time passes."""

DYING_ROUNDS = 2_000
"""Rounds that a dead process gets to leave its code."""

CLOSING = 3_600.0
"""Seconds of virtual time in which a host closes."""

REAPING = 60.0
"""Seconds of virtual time between two looks at what a dead process still holds on to."""


def run(  # noqa: PLR0913 - each is one way to run it
    scenario: Scenario,
    strategy: Strategy | None = None,
    script: Sequence[Choice] = (),
    *,
    strict: bool = True,
    detailed: bool = False,
    digest: bool = False,
) -> Run:
    """Run a scenario once, and return what became of it.

    Args:
        scenario: what to run.
        strategy: makes the choices; those of a quiet run if not given.
        script: choices to follow first; see `Chooser`.
        strict: see `Chooser`.
        detailed: whether the trace also has what only pictures show.
        digest: whether to compute the digest of the trace.

    Raises:
        AdapterMisfit: the installed trio does not let the lab decide.
    """
    chooser = Chooser(Quiet() if strategy is None else strategy, script, strict=strict)
    world = World(scenario, chooser, [*standard_invariants(), *scenario.invariants()])
    lives = _Lives(world, Conductor(world, detailed=detailed))
    with adapter.controlled(lives.order), _logged(world), _uncollected(), suppress(Diverged):
        lives.live_all()
    finding = world.finding
    if chooser.divergence is not None:
        finding = Finding(FindingKind.DIVERGED, "choices", chooser.divergence)
    return Run(
        scenario.name,
        tuple(chooser.made),
        finding,
        world.step,
        (world.before_ns + world.clock.monotonic_ns) / 1e9,
        world.life + 1,
        world.mischief.happened(),
        world.trace,
        world.trace.digest() if digest else "",
    )


class _Lives:
    """The processes of a run, and the order in which their tasks run."""

    def __init__(self, world: World, conductor: Conductor) -> None:
        self._world = world
        self._conductor = conductor
        self._process = trio.CancelScope()
        self._ended = trio.Event()
        self._tasks: dict[trio.lowlevel.Task, Candidate] = {}
        self._seen = 0
        self._still = 0
        self._last_ns = 0
        self._dying = 0
        self._is_over = False

    def live_all(self) -> None:
        """Let one process after the other live."""
        world = self._world
        world.on_death = self._kill
        down = 0.0
        while not self._is_over and world.finding is None:
            clock = world.begin_life(down)
            self._tasks.clear()
            self._dying = self._last_ns = self._still = 0
            world.mischief.begin_life(world)
            try:
                trio.run(self._live, clock=clock)
            except trio.TrioInternalError:  # a dead process that did not go, see `order`
                world.found(Finding(FindingKind.STUCK, "death", "a task runs on whatever is raised in it"))
            down = world.mischief.downtime()

    async def _live(self) -> None:
        self._process, self._ended = trio.CancelScope(), trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._reap)
                with self._process:
                    await self._tell()
                self._ended.set()
                nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the run found
            if not self._world.dead:
                self._world.found(Finding.of(error))

    async def _tell(self) -> None:
        """Let the host run, the users do what they do, and everything come to rest."""
        world, scenario = self._world, self._world.scenario
        async with self._conductor.opened() as host, trio.open_nursery() as nursery:
            if world.mischief.haunts:
                nursery.start_soon(world.mischief.haunt, world, host)
            with trio.move_on_after(scenario.horizon) as limit:
                world.on_stop = limit.cancel
                await scenario.play(world)
            if limit.cancelled_caught and not world.stopped:
                self._stuck("play", f"the scenario did not end in {scenario.horizon:g} s of one life")
            nursery.cancel_scope.cancel()
            if not world.stopped:
                with trio.CancelScope(shield=True):
                    await self._settle(host)
                self._conductor.judge()
        world.happened(What.LIFE_ENDED, how="stopped" if world.stopped else "finished")
        self._is_over = not world.dead and not world.stopped

    async def _settle(self, host: Host) -> None:
        """Stop faults, let what is due be delivered, and see that everyone comes to rest."""
        world = self._world
        world.mischief.stop(world)
        world.happened(What.FAULTS_STOPPED)
        await trio.sleep(world.scenario.bound)
        with trio.move_on_after(world.scenario.bound) as limit:
            for agent in host.agents:
                await world.when_idle(agent)
        if limit.cancelled_caught:
            self._stuck("settle", f"an agent was not idle {2 * world.scenario.bound:g} s after faults had stopped")

    def _stuck(self, name: str, text: str) -> None:
        if not self._world.dead:
            self._world.found(Finding(FindingKind.STUCK, name, text))

    def _kill(self) -> None:
        """Cancel everything in the process, shielded or not."""
        for task in self._world.tasks():
            adapter.unshield(task)
        self._process.cancel()
        self._ended.set()

    async def _reap(self) -> None:
        """See that a life ends: once dead, or too long after it should have."""
        scenario = self._world.scenario
        with trio.move_on_after(scenario.horizon + 2 * scenario.bound + CLOSING):
            await self._ended.wait()
        if not self._ended.is_set():
            self._stuck("close", f"the host did not close within {CLOSING:g} s")
        while True:
            await trio.sleep(REAPING)
            self._kill()

    # The order of tasks -----------------------------------------------------------------------

    def order(self, tasks: list[trio.lowlevel.Task]) -> None:
        """Arrange the tasks of a round, before any of them runs."""
        world = self._world
        if world.dead:
            self._dying += 1
            if self._dying > DYING_ROUNDS:
                raise _Immortal
            return
        world.step += 1
        jumped = world.clock.monotonic_ns != self._last_ns
        self._last_ns = world.clock.monotonic_ns
        self._still = 0 if jumped else self._still + 1
        if self._still > STILL_ROUNDS or world.step > MAX_ROUNDS:
            rounds = f"{STILL_ROUNDS} rounds without time passing" if self._still else f"{MAX_ROUNDS} rounds"
            world.found(Finding(FindingKind.LIVELOCK, "rounds", f"the run did not end in {rounds}"))
            return
        try:
            self._conductor.begin_round(jumped=jumped)
            self._arrange(tasks)
        except Diverged as error:
            world.found(Finding(FindingKind.DIVERGED, "choices", str(error)))

    def _arrange(self, tasks: list[trio.lowlevel.Task]) -> None:
        if len(tasks) < 2:  # noqa: PLR2004 - one has no alternative
            return
        waiting = [task for task in tasks if task.name[0] != "<"]  # the others are trio's own
        if len(waiting) < 2 or self._world.dead:  # noqa: PLR2004 - the same
            return
        arranged = [] if len(waiting) == len(tasks) else [task for task in tasks if task.name[0] == "<"]
        known, choose, topic = self._tasks, self._world.chooser.order, Topic.TASK
        candidates = [known.get(task) or self._candidate(task) for task in waiting]
        for _ in range(len(waiting) - 1):
            picked = choose(topic, candidates)
            del candidates[picked]
            arranged.append(waiting.pop(picked))
        tasks[:] = [*arranged, *waiting]

    def _candidate(self, task: trio.lowlevel.Task) -> Candidate:
        found = self._tasks[task] = Candidate(self._seen, task.name)
        self._seen += 1
        return found


class _Immortal(BaseException):
    """A dead process did not go: trio is to give up its whole run."""


class _Logged(logging.Handler):
    """Puts what the runtime logs into the trace."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.happened(What.LOG, level=record.levelname, logger=record.name, text=record.getMessage())


@contextmanager
def _logged(world: World) -> Generator[None]:
    """Have the runtime log into the trace, and nowhere else."""
    logger, handler = logging.getLogger("whenidle"), _Logged(world)
    propagates, level = logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.propagate = propagates
        logger.removeHandler(handler)


@contextmanager
def _uncollected() -> Generator[None]:
    """Keep the garbage collector from running: when it does depends on all that the process did before.

    The runtime keeps weak references to agents that are not live, and finds them again if they are still there.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
