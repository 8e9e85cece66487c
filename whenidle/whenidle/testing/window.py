"""A suite without tools, through which a simulation sees the agents of its host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.agent_core import AgentCore
    from whenidle_actors.services import Services
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.tool_schemas import ToolSchema


class Window:
    """See `Suite`. No agent gets it, and nothing comes due for it.

    Args:
        look_at: given the live agents by session id, a view that changes with them.
    """

    name = "simulation"
    presets: frozenset[str] | None = frozenset()

    def __init__(self, look_at: Callable[[Mapping[str, Agent]], None]) -> None:
        self._look_at = look_at

    def mounted(self, services: Services) -> None:
        """See `Suite.mounted`."""
        self._look_at(services.registry.live)

    def suits(self, header: SessionHeader) -> bool:  # noqa: ARG002 - nobody's
        """See `Suite.suits`."""
        return False

    def tools(self) -> Sequence[ToolSchema]:
        """See `Suite.tools`."""
        return ()

    async def call(self, agent: Agent, tool: str, arguments: Mapping[str, Any]) -> NoReturn:  # noqa: ARG002 - it has none
        """See `Suite.call`."""
        raise LookupError(tool)

    def look(self) -> None:
        """See `Suite.look`."""

    def attend(self, session_id: str, due_millis: int) -> None:
        """See `Suite.attend`."""

    def due(self, session_id: str) -> None:
        """See `Suite.due`."""

    def recompute(self, agent: AgentCore) -> None:
        """See `Suite.recompute`."""

    def release(self, session_id: str) -> None:
        """See `Suite.release`."""
