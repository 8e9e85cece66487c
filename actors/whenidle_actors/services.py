"""What every agent of a host shares with it, so that an agent itself stays small."""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_actors.activity import beside_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    import trio

    from whenidle_actors.announcer import Announcer
    from whenidle_actors.observation import EventKind
    from whenidle_actors.registry import Registry
    from whenidle_actors.scheduler import Scheduler
    from whenidle_actors.session import Journal
    from whenidle_actors.supervision import Supervision
    from whenidle_actors.turn import Redelivery, TurnFunction
    from whenidle_clock import Alarm, Clock


@attrs.frozen(eq=False)
class Services:
    """The host as its agents see it."""

    journal: Journal
    scheduler: Scheduler
    turn: TurnFunction
    nursery: trio.Nursery
    """Where turn drains and deliveries run."""
    turn_slots: trio.CapacityLimiter
    """Paces turns: each takes a slot while it runs (SPEC 2.11)."""
    registry: Registry
    supervision: Supervision
    redelivery: Redelivery
    max_message_bytes: int
    random: Random
    alarm: Alarm[tuple[str, str]]
    """Wakes suites; its keys are a suite's name and a session id."""
    restore_soon: Callable[[str], None]
    """Has the agent of a session made live, and look at what it has to do, without waiting for it."""
    durable: bool
    """Whether the host was given a store; without one nothing may be promised (SPEC 5.1)."""
    context: Context = attrs.field(factory=copy_context, init=False)
    """The context variables of whoever opened the host."""

    @property
    def announcer(self) -> Announcer:
        """The host's observers."""
        return self.journal.announcer

    @property
    def clock(self) -> Clock:
        """The host's clock."""
        return self.journal.clock

    def start(self, work: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run `work(*args)` in a task of its own, beside every mailbox and turn.

        It sees the context variables of whoever opened the host, not those of whoever happens to start it.
        """
        self.start_in(self.nursery, work, *args)

    def start_in(self, nursery: trio.Nursery, work: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run `work(*args)` like `start`, in another nursery of the host's."""
        self.context.run(_start, nursery, work, args)

    def announce(self, kind: EventKind, session_id: str, **detail: Any) -> None:
        """Tell every observer of the host; see `Announcer.announce`."""
        self.announcer.announce(kind, session_id, **detail)


def _start(nursery: trio.Nursery, work: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
    with beside_all():
        nursery.start_soon(work, *args)
