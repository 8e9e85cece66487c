"""Which agents are live, which have gone quiet, and which are only remembered (SPEC 2.8)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import trio

from whenidle_actors.observation import EventKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.agent_core import AgentCore

_NO_WAIT = 1e-6
"""Seconds that are not waited for. Sums of times are rounded, and virtual time cannot move by a rounding error."""


class Registry:
    """The agents of a host by session id; never two for one session.

    Args:
        passivate_after: seconds of quiet after which an agent is dropped from memory; None keeps all.
    """

    def __init__(self, passivate_after: float | None = None) -> None:
        self.live: dict[str, Agent] = {}
        self.closed: bool = False
        """Whether the host has stopped: nothing may be made live any more."""
        self.closing: bool = False
        """Whether the host stops: nothing new is to begin."""
        self.restore: Callable[[str], Awaitable[Agent]]
        """How to get the agent of a session that may not be in memory: `Host.agent`, set by the host."""
        self.restore_all: Callable[[Sequence[str]], Awaitable[dict[str, Agent]]]
        """How to get those of several sessions together, as far as they are to be had at once; set by the host."""
        self.passivated: int = 0
        """How often an agent was passivated."""
        self._after = passivate_after
        # Somebody may still hold a passivated agent; it is taken up again rather than made twice.
        self._dormant: WeakValueDictionary[str, Agent] = WeakValueDictionary()
        self._quiet: OrderedDict[AgentCore, float] = OrderedDict()
        self._stirred = trio.Event()

    def find(self, session_id: str) -> Agent | None:
        """Return the agent of that session if there is one in memory, taken up again if it was passivated."""
        agent = self.live.get(session_id)
        if agent is None:
            agent = self._dormant.pop(session_id, None)
            if agent is not None:
                self.add(agent)
        return agent

    def add(self, agent: Agent) -> None:
        """Make an agent live."""
        self.live[agent.name] = agent
        self.on_quiet(agent)

    def remove(self, agent: AgentCore) -> bool:
        """Take an agent out, and return whether it was in."""
        self._quiet.pop(agent, None)
        if self.live.get(agent.name) is not agent:
            return False
        del self.live[agent.name]
        return True

    def on_busy(self, agent: AgentCore) -> None:
        """Take note that the agent has something to do."""
        if self._after is not None:
            self.find(agent.name)
            self._quiet.pop(agent, None)
            self.on_quiet(agent)

    def on_quiet(self, agent: AgentCore) -> None:
        """Take note that the agent is idle from now on."""
        if self._after is not None:
            self._quiet[agent] = trio.current_time()
            self._quiet.move_to_end(agent)
            self._stirred.set()

    @property
    def passivates(self) -> bool:
        """Whether agents are dropped from memory at all."""
        return self._after is not None

    async def passivate(self) -> None:
        """Passivate agents that have been quiet for long enough, for as long as the host runs."""
        while self._after is not None:
            if not self._quiet:
                self._stirred = trio.Event()
                await self._stirred.wait()
            await trio.sleep(self._passivate_quiet(self._after))

    def _passivate_quiet(self, after: float) -> float:
        """Passivate what has been quiet for `after` seconds, and return how long to wait for the next."""
        while self._quiet:
            agent, since = next(iter(self._quiet.items()))
            if (wait := since + after - trio.current_time()) > _NO_WAIT:
                return wait
            del self._quiet[agent]
            self._passivate(agent)
        return 0

    def _passivate(self, agent: AgentCore) -> None:
        found = self.live.get(agent.name)
        if found is not None and found is agent and agent.is_quiet:
            del self.live[agent.name]
            self._dormant[agent.name] = found
            agent.session.drop()
            self.passivated += 1
            agent.services.announce(EventKind.AGENT_PASSIVATED, agent.name)
