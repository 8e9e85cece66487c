"""What the host's turn function gets to see and do (SPEC 2.2, 4)."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from whenidle_actors.message_fates import history_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whenidle_actors.agent import Agent
    from whenidle_protocol.events import Message
    from whenidle_protocol.message_history import MessageHistory


class Redelivery(enum.Enum):
    """What becomes of the messages of a turn that was interrupted (SPEC 4)."""

    AT_LEAST_ONCE = "at-least-once"
    """The next turn gets the same messages again, with a higher attempt number."""
    AT_MOST_ONCE = "at-most-once"
    """They are not given to a turn again."""


@attrs.frozen
class Turn:
    """One run of the turn function: the messages it took, and its way back to the agent."""

    agent: Agent
    number: int
    """Counts the turns of the session from 1, a redelivery included."""
    messages: tuple[Message, ...]
    """What the turn took: everything in next-step, then one message of next-turn."""
    attempt: int
    """How often these messages have been given to a turn, this time included."""

    @property
    def redelivered(self) -> bool:
        """True when an earlier turn that took these messages was interrupted."""
        return self.attempt > 1

    async def next_step(self) -> tuple[Message, ...]:
        """Take, between two steps, what was steered or injected since; empty if nothing was.

        The claim is durable when this returns.

        Raises:
            AgentDisposed: the agent is being disposed.
            StoreError: the claim could not be confirmed; nothing is taken, or it is redelivered.
        """
        return await self.agent.claim_step(self.number)

    async def note(self, data: Any) -> None:
        """Keep `data`, any JSON value, in the session log as a record of this turn.

        Raises:
            InvalidArgument: it is not JSON, or larger than a message may be.
            StoreError: as `Store.commit`.
        """
        await self.agent.note(self.number, data)

    async def history(self) -> MessageHistory | None:
        """Return what became so far of the message that was taken first, by this turn and those before it.

        When a turn is redelivered, this is where it finds what the interrupted one noted last. Reads the whole log.

        Raises:
            StoreError: the log cannot be read.
        """
        return await history_of(self.agent.services.journal.store, self.agent.id, self.messages[0].id)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call one of the agent's tools while the turn runs; see `Agent.call_tool`."""
        return await self.agent.call_tool(name, arguments)


TurnFunction: TypeAlias = Callable[[Turn], Awaitable[object]]
"""The host's agent: runs one turn. What it returns is not kept; what it raises ends the turn as an error."""
