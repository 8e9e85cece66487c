"""How an actor is supervised: restart policies, intensity, backoff (SPEC 2.7), in the words of OTP.

Everything here is pure; `Supervisor` acts on it.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_actors.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random


class Restart(enum.Enum):
    """When an actor is restarted after its handler ended it."""

    PERMANENT = "permanent"
    """Always: after a fault and after `ActorExit`."""

    TRANSIENT = "transient"
    """After a fault only; `ActorExit` stops it."""

    TEMPORARY = "temporary"
    """Never: the first fault marks it faulted, `ActorExit` stops it."""


class ActorExit(Exception):
    """Raised by a handler to end its actor in the normal way.

    The message it was handling counts as processed; an ask gets `ActorStopped`, or `ActorRestarted` if
    the policy is permanent.
    """


def _at_least_zero(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not value >= 0:
        raise InvalidArgument(f"Supervision.{attribute.name} is {value}; write 0 or more")


def _positive(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not value > 0:
        raise InvalidArgument(f"Supervision.{attribute.name} is {value}; write more than 0")


def _fraction(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value <= 1:
        raise InvalidArgument(f"Supervision.{attribute.name} is {value}; write a fraction from 0 to 1")


@attrs.frozen
class Supervision:
    """How an actor is supervised. One value is shared by as many actors as you like.

    Raises:
        InvalidArgument: a number is outside its range.
    """

    policy: Restart = Restart.PERMANENT
    intensity: int = attrs.field(default=5, validator=_at_least_zero)
    """Most restarts within `window`; one more fault marks the actor faulted."""
    window: float = attrs.field(default=60.0, validator=_positive)
    """Seconds the intensity is counted over. Time spent in backoff does not count towards it, so an actor
    that fails each time it starts always reaches its intensity, whatever the backoff."""
    backoff_initial: float = attrs.field(default=0.1, validator=_positive)
    """Seconds before the first restart; doubled for each further restart within `window`."""
    backoff_max: float = attrs.field(default=30.0, validator=_positive)
    """Longest wait before a restart, in seconds."""
    jitter: float = attrs.field(default=0.5, validator=_fraction)
    """Share of the wait that is drawn at random: a wait of d becomes one in ((1 - jitter) * d, d]."""
    shutdown_timeout: float = attrs.field(default=5.0, validator=_at_least_zero)
    """Seconds a stopping actor may take for the handler that runs, and again for `stopped`, before that
    is cancelled; `math.inf` never cancels."""


DEFAULT_SUPERVISION = Supervision()


class Verdict(enum.Enum):
    """What is to happen with an actor whose handler ended it."""

    RESTART = "restart"
    STOP = "stop"
    FAULT = "fault"


def judge(supervision: Supervision, recent: Sequence[float], now: float, error: Exception) -> Verdict:
    """Decide about an actor that ended with `error` at `now`, restarted before at the times `recent`.

    All times are seconds on the scheduler's own monotonic scale.
    """
    policy = supervision.policy
    if isinstance(error, ActorExit) and policy is not Restart.PERMANENT:
        return Verdict.STOP
    if policy is Restart.TEMPORARY:
        return Verdict.FAULT
    within = sum(1 for at in recent if at > now - supervision.window)
    return Verdict.RESTART if within < supervision.intensity else Verdict.FAULT


def backoff_delay(supervision: Supervision, attempt: int, random: Random) -> float:
    """Return the seconds to wait before restart number `attempt` (from 1) within the window."""
    # The exponent is capped where every wait has long reached its maximum; a float would overflow at 1024.
    delay = min(supervision.backoff_max, math.ldexp(supervision.backoff_initial, min(attempt - 1, 64)))
    if supervision.jitter:
        delay *= 1.0 - supervision.jitter * random.random()
    return delay
