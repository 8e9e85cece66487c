"""What brings a scenario onto its world: hosts are opened, turns are run, invariants look between the rounds."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from whenidle_actors.composition import open_host
from whenidle_actors.observation import EventKind
from whenidle_lab.depths import Depths
from whenidle_lab.faults import FaultKind
from whenidle_lab.faults.haunting import misbehave
from whenidle_lab.scenario import EachRound
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from whenidle_actors.host import Host
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World

_TOLD = frozenset(
    {
        EventKind.AGENT_STARTED,
        EventKind.AGENT_PASSIVATED,
        EventKind.AGENT_DISPOSED,
        EventKind.AGENT_RESTARTED,
        EventKind.AGENT_FAULTED,
        EventKind.MAINTENANCE_STARTED,
        EventKind.MAINTENANCE_ENDED,
        EventKind.TASK_FAILED,
        EventKind.RESTORE_FAILED,
        EventKind.DELIVERY_FAILED,
    }
)
"""What a host announces that the trace does not have from elsewhere."""


class Conductor:
    """Has a world's scenario played by real hosts, before the eyes of its invariants.

    Args:
        world: the run.
        detailed: whether what only pictures show is to be in the trace too.
    """

    def __init__(self, world: World, *, detailed: bool) -> None:
        self._world = world
        self._detailed = detailed
        self._depths = Depths()
        self._each_round = tuple(one for one in world.invariants if isinstance(one, EachRound))

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Host]:
        """Open the host of one life."""
        world, self._depths = self._world, Depths()
        options: dict[str, Any] = {"shutdown_timeout": 0.0, **world.scenario.options(), **world.mischief.host_options()}
        async with open_host(
            store=world.store,
            clock=world.clock,
            turn=self._turn,
            rng=random.Random(f"life {world.life}"),  # noqa: S311 - ids and jitter, the same in every replay
            choose=world.choose_actor,
            **options,
        ) as host:
            with world.hosting(host):
                # Most events are of what the trace has from the store; making them costs a tenth of a run.
                announcer = host._services.announcer  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it tells of everything
                announcer.subscribe(self._announced, _TOLD)
                yield host

    def begin_round(self, *, jumped: bool) -> None:
        """Look at the runtime, and do the mischief that is planned for this round of the event loop.

        Raises:
            Diverged: see `Chooser`.
        """
        world = self._world
        if not world.is_open:
            return
        if self._detailed:
            for agent, depth in self._depths.changes(world.host):
                world.happened(What.DEPTH, agent, depth=depth)
        try:  # not `judging`, which is slower: this is done hundreds of times a run
            for invariant in self._each_round:
                invariant.look(world)
        except Exception as error:  # noqa: BLE001 - see `Machine.broken`
            world.broken(error)
        if not world.dead:
            world.mischief.begin_round(world, jumped=jumped)

    def judge(self) -> None:
        """Have the invariants judge the run as a whole."""
        with self._world.judging():
            for invariant in self._world.invariants:
                invariant.settled(self._world)

    async def _turn(self, turn: Turn) -> None:
        """Run a turn of the scenario's, seen by the trace."""
        world = self._world
        if world.dead:
            return
        agent, fault = turn.agent.id, world.mischief.meet_turn()
        world.happened(
            What.TURN_BEGAN,
            agent,
            turn=turn.number,
            attempt=turn.attempt,
            redelivered=turn.redelivered,
            messages=[message.id for message in turn.messages],
            fault=None if fault is None else fault.kind.value,
        )
        how, error = "cancelled", None
        try:
            await (world.scenario.turn(world, turn) if fault is None else misbehave(world, turn, fault))
            how = "returned"
        except Exception as raised:
            how, error = "raised", type(raised).__name__
            raise
        finally:
            world.happened(What.TURN_ENDED, agent, turn=turn.number, how=how, error=error)

    def _announced(self, event: HostEvent) -> None:
        mischief = self._world.mischief
        if event.kind is EventKind.AGENT_PASSIVATED and "passivate_after" in mischief.host_options():
            mischief.note(FaultKind.AGENT_PASSIVATED)
        self._world.happened(What.HOST, event.session_id, event=event.kind.value, **event.detail)
