"""What is done to agents from outside, and what turn functions do wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from whenidle_lab.faults.kinds import FaultKind

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn
    from whenidle_lab.faults.plan import Fault
    from whenidle_lab.world import World

_FLOOD = 30
"""Messages of a flood: more than a mailbox handles between two checkpoints would be more of the same."""


class Misbehaved(Exception):
    """What a turn function raises that is told to."""


async def haunt(world: World, host: Host, fault: Fault) -> None:
    """Do to some agent what `fault` says."""
    agents = host.agents
    if not agents:
        return
    agent = agents[fault.exponent % len(agents)]
    world.mischief.note(fault.kind)
    if fault.kind is FaultKind.AGENT_CANCELLED:
        await world.cancel(agent, "haunted", keep_inbox=bool(fault.variant & 1))
    elif fault.kind is FaultKind.AGENT_FORKED:
        await world.fork(agent)
    else:
        await _dispose(world, agent, fault)


async def _dispose(world: World, agent: Agent, fault: Fault) -> None:
    if fault.variant & 1:
        async with trio.open_nursery() as nursery:  # by two who do not know of one another
            nursery.start_soon(world.dispose, agent)
            nursery.start_soon(world.dispose, agent)
    else:
        await world.dispose(agent)
    if fault.kind is FaultKind.AGENT_RESTARTED:
        await world.agent(agent.id)


async def misbehave(world: World, turn: Turn, fault: Fault) -> None:
    """Run a turn of the scenario's that does wrong what `fault` says.

    Raises:
        Misbehaved: if that is what it does.
    """
    agent = turn.agent
    if fault.kind is FaultKind.TURN_RAISES and fault.variant & 1:
        raise Misbehaved("before it did anything")
    if fault.kind is FaultKind.TURN_HANGS:
        await world.mischief.delay(fault.delay)
    elif fault.kind is FaultKind.TURN_FLOODS:
        for number in range(min(_FLOOD, 1 + fault.exponent)):
            how = ("followup", "steer", "inject")[(number + fault.variant) % 3]
            await world.send(agent, f"flood {number}", how)
    elif fault.kind is FaultKind.TURN_IGNORES_CANCEL:
        with trio.CancelScope(shield=True):
            await world.mischief.delay(fault.delay)
    await world.scenario.turn(world, turn)
    if fault.kind is FaultKind.TURN_RAISES:
        raise Misbehaved("after it did its work")
