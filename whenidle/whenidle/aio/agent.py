"""An agent and its turns, for asyncio."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from whenidle.aio.errors import WorkCancelled
from whenidle.aio.mirroring import mirrors
from whenidle.aio.work import Work
from whenidle_actors import agent, turn
from whenidle_protocol.events import Message, Source

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from whenidle.aio.guest import Guest
    from whenidle_actors.agent import AgentStatistics, InboxView
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.agent_state import Status
    from whenidle_protocol.message_history import MessageHistory
    from whenidle_protocol.tool_schemas import ToolSchema

T = TypeVar("T")


@mirrors(agent.Agent)
@attrs.frozen
class Agent:
    """One live agent, to be used from asyncio; see `whenidle.Agent`. Two are equal if they stand for the same one.

    All methods belong to the thread of the event loop. A call that is cancelled is cancelled in trio, and raises
    `asyncio.CancelledError` when it has ended there: what waits for its turn in the mailbox is withdrawn, what has
    begun is carried out.
    """

    _guest: Guest = attrs.field(repr=False)
    _agent: agent.Agent

    @property
    def id(self) -> str:
        """See `whenidle.Agent.id`."""
        return self._agent.id

    @property
    def header(self) -> SessionHeader:
        """See `whenidle.Agent.header`."""
        return self._agent.header

    @property
    def status(self) -> Status:
        """See `whenidle.Agent.status`."""
        return self._agent.status

    @property
    def is_faulted(self) -> bool:
        """See `whenidle.Agent.is_faulted`."""
        return self._agent.is_faulted

    def statistics(self) -> AgentStatistics:
        """See `whenidle.Agent.statistics`."""
        return self._agent.statistics()

    async def followup(self, text: str, *, source: Source = Source.USER) -> str:
        """See `whenidle.Agent.followup`."""
        return await self._guest.call(partial(self._agent.followup, text, source=source))

    async def steer(self, text: str) -> str:
        """See `whenidle.Agent.steer`."""
        return await self._guest.call(partial(self._agent.steer, text))

    async def inject(self, text: str) -> str:
        """See `whenidle.Agent.inject`."""
        return await self._guest.call(partial(self._agent.inject, text))

    async def remove(self, message_id: str) -> None:
        """See `whenidle.Agent.remove`."""
        await self._guest.call(partial(self._agent.remove, message_id))

    async def replace(self, message_id: str, text: str) -> None:
        """See `whenidle.Agent.replace`."""
        await self._guest.call(partial(self._agent.replace, message_id, text))

    async def inbox(self) -> InboxView:
        """See `whenidle.Agent.inbox`."""
        return await self._guest.call(self._agent.inbox)

    async def run_maintenance(self, task: Callable[[], Awaitable[T]]) -> T:
        """See `whenidle.Agent.run_maintenance`.

        `task` is an asyncio coroutine function; it runs in an asyncio task of its own, in the caller's context.
        """
        work = Work(self._guest, task, f"maintenance of {self.id}")
        try:
            return await self._guest.call(partial(self._agent.run_maintenance, work.run))
        except WorkCancelled:
            raise asyncio.CancelledError from None  # as if it had run in the caller's task

    async def when_idle(self) -> None:
        """See `whenidle.Agent.when_idle`."""
        await self._guest.call(self._agent.when_idle)

    async def cancel(self, cause: str, *, keep_inbox: bool = False) -> None:
        """See `whenidle.Agent.cancel`.

        The asyncio task of the turn or maintenance task is cancelled once; one that goes on all the same is waited for.
        """
        await self._guest.call(partial(self._agent.cancel, cause, keep_inbox=keep_inbox))

    async def dispose(self) -> None:
        """See `whenidle.Agent.dispose`."""
        await self._guest.call(self._agent.dispose)

    def tools(self) -> tuple[ToolSchema, ...]:
        """See `whenidle.Agent.tools`."""
        return self._agent.tools()

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """See `whenidle.Agent.call_tool`."""
        return await self._guest.call(partial(self._agent.call_tool, name, arguments))


@mirrors(turn.Turn)
@attrs.frozen(eq=False)
class Turn:
    """One run of an asyncio turn function; see `whenidle.Turn`."""

    _guest: Guest = attrs.field(repr=False)
    _turn: turn.Turn
    _untaken: list[Message] = attrs.field(factory=list[Message], init=False, repr=False)
    """What was claimed for a call that was cancelled meanwhile: the next one gets it."""

    @property
    def agent(self) -> Agent:
        """The agent whose turn it is."""
        return Agent(self._guest, self._turn.agent)

    @property
    def number(self) -> int:
        """Counts the turns of the session from 1, a redelivery included."""
        return self._turn.number

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the turn took: everything in next-step, then one message of next-turn."""
        return self._turn.messages

    @property
    def attempt(self) -> int:
        """How often these messages have been given to a turn, this time included."""
        return self._turn.attempt

    @property
    def redelivered(self) -> bool:
        """See `whenidle.Turn.redelivered`."""
        return self._turn.redelivered

    async def next_step(self) -> tuple[Message, ...]:
        """See `whenidle.Turn.next_step`.

        What was claimed for a call that was cancelled is not lost: the next call returns it.
        """

        async def claim() -> None:
            self._untaken.extend(await self._turn.next_step())

        await self._guest.call(claim)
        taken = tuple(self._untaken)
        self._untaken.clear()
        return taken

    async def note(self, data: Any) -> None:
        """See `whenidle.Turn.note`."""
        await self._guest.call(partial(self._turn.note, data))

    async def history(self) -> MessageHistory | None:
        """See `whenidle.Turn.history`."""
        return await self._guest.call(self._turn.history)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """See `whenidle.Turn.call_tool`."""
        return await self._guest.call(partial(self._turn.call_tool, name, arguments))
