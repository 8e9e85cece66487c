"""What can be mounted on a host beside its agents: tools, and deliveries that come due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.agent_core import AgentCore
    from whenidle_actors.services import Services
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.tool_schemas import ToolSchema


@runtime_checkable
class Suite(Protocol):
    """A set of tools and the scheduling behind them, shared by all agents that were given it.

    One suite belongs to one host. What it changes in a session it changes in the agent's mailbox.
    """

    @property
    def name(self) -> str:
        """What to call the suite; unique on a host."""
        ...

    @property
    def presets(self) -> frozenset[str] | None:
        """The presets whose agents may get the suite; None for all, none of them for none.

        Two suites with a tool of one name go together on a host if there is no preset in both.
        """
        ...

    def mounted(self, services: Services) -> None:
        """Take the host it is mounted on.

        Raises:
            CompositionError: it cannot work on this host.
        """

    def suits(self, header: SessionHeader) -> bool:
        """Return whether an agent of such a session gets this suite."""
        ...

    def tools(self) -> Sequence[ToolSchema]:
        """Return its tools, as a model is told of them."""
        ...

    async def call(self, agent: Agent, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Answer a call of one of its tools."""

    def look(self) -> None:
        """Look at what the store holds for the suite as a whole: at opening, and when others have changed it.

        Never blocks.
        """

    def attend(self, session_id: str, due_millis: int) -> None:
        """Take note that something of a session that is not live comes due then (milliseconds since the epoch)."""

    def due(self, session_id: str) -> None:
        """Do what is to be done when the time it asked the host's alarm for has come. Never blocks."""

    def recompute(self, agent: AgentCore) -> None:
        """Look again at what is due for the agent, and when to look next. Never blocks."""

    def release(self, session_id: str) -> None:
        """Forget the session until its agent is restored: deliver nothing to it."""
