"""What the wall clock showed, and when: as the trace tells it, so that nothing has to be taken from the runtime.

Between two happenings the wall runs on; it moves otherwise only by steps, each of which is a happening of its
own (and so is a new process). So what it can have shown between two moments is a few ranges, one more than
there were steps in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World

_NS_PER_MS = 1_000_000


class Moment(NamedTuple):
    """A point in a run."""

    ns: int
    """Monotonic time since the run began."""
    wall: int
    """What the wall showed, in milliseconds since the epoch."""
    steps: int
    """How often it had been stepped."""


class _Step(NamedTuple):
    ns: int
    before: int
    after: int


class Walls:
    """The course of the wall clock so far."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._left = 0
        """What it showed when the last process ended."""

    def take(self, happening: Happening) -> None:
        """Follow a step of the clock, or the beginning or end of a process; nothing else moves the wall."""
        wall = happening.wall_millis
        if happening.what is What.LIFE_ENDED:
            self._left = wall
        elif happening.what is What.LIFE_BEGAN:
            self._steps.append(_Step(happening.monotonic_ns, self._left, wall))
        elif happening.detail["how"] != "drift":
            before = wall - round(happening.detail["by"] * 1000)
            self._steps.append(_Step(happening.monotonic_ns, before, wall))

    def moment(self, happening: Happening) -> Moment:
        """Return when something happened that has just happened."""
        return Moment(happening.monotonic_ns, happening.wall_millis, len(self._steps))

    def present(self, world: World) -> Moment:
        """Return what it is now, whenever something happened last."""
        return Moment(world.before_ns + world.clock.monotonic_ns, world.clock.now_millis(), len(self._steps))

    def readings(self, since: Moment, until: Moment) -> Iterator[tuple[int, int]]:
        """Iterate over the ranges, both ends included, of what the wall showed from one moment to another."""
        low = since.wall
        for step in self._steps[since.steps : until.steps]:
            yield low, step.before
            low = step.after
        yield low, until.wall

    def highest(self, since: Moment, until: Moment) -> int:
        """Return the latest instant that the wall showed."""
        return max(high for _, high in self.readings(since, until))

    def showed(self, since: Moment, until: Moment, low: int, high: int) -> bool:
        """Return whether the wall showed some instant from `low` to `high`."""
        return any(max(begin, low) <= min(end, high) for begin, end in self.readings(since, until))

    def passed(self, target: int, now: Moment) -> int | None:
        """Return the monotonic time since which the wall has shown `target` or later; None if it does not now."""
        if now.wall < target:
            return None
        end_ns, end = now.ns, now.wall
        for step in reversed(self._steps[: now.steps]):
            if step.after < target:
                return max(step.ns, end_ns - (end - target) * _NS_PER_MS)
            if step.before < target:
                return step.ns
            end_ns, end = step.ns, step.before
        return 0
