"""When a command that failed is run again, and how long to wait before that."""

import math
from collections.abc import Collection
from random import Random

import attrs

from whenidle_actors.errors import InvalidArgument

_LONGEST_DOUBLING = 64
"""Where every wait has long reached its maximum; a float would overflow at 1024."""


def _whole(_: object, attribute: "attrs.Attribute[int]", value: int) -> None:
    if type(value) is not int or value < 1:
        raise InvalidArgument(f"Retries.{attribute.name} is {value!r}; write a whole number from 1 on")


def _seconds(_: object, attribute: "attrs.Attribute[float]", value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgument(f"Retries.{attribute.name} is {value!r}; write seconds, 0 or more")


def _statuses(value: Collection[int] | None) -> frozenset[int] | None:
    return None if value is None else frozenset(value)


@attrs.frozen(kw_only=True)
class Retries:
    """Which failures of a command are tried again, and how.

    A retry belongs to the turn: the agent stays busy until the command did its work, or `runs` are used up and the turn
    fails. Runs are counted in the session log, so that a crash in between gives no further ones.

    Raises:
        InvalidArgument: a number is outside its range.
    """

    runs: int = attrs.field(default=1, validator=_whole)
    """Most runs of the command for one turn's messages; 1 tries nothing again."""
    statuses: frozenset[int] | None = attrs.field(default=None, converter=_statuses)
    """The exit statuses that are tried again. None stands for every failure: any status but 0, a signal, the time
    limit, and a command that could not be started."""
    first_wait: float = attrs.field(default=1.0, validator=_seconds)
    """Seconds before the second run; doubled for each further one."""
    longest_wait: float = attrs.field(default=60.0, validator=_seconds)
    """Seconds."""

    def again(self, run: int, exit_status: int | None) -> bool:
        """Return whether a failed run, the `run`-th, is followed by another.

        `exit_status` is None for one that ran out of time or was not started.
        """
        if run >= self.runs:
            return False
        return self.statuses is None or exit_status in self.statuses

    def wait(self, run: int, random: Random) -> float:
        """Return the seconds to wait after the `run`-th run: half of the wait is drawn, so that many do not meet."""
        wait = min(self.longest_wait, math.ldexp(self.first_wait, min(run - 1, _LONGEST_DOUBLING)))
        return wait * random.uniform(0.5, 1.0)


NO_RETRIES = Retries()
