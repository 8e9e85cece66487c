"""Turns of a `CommandAgent` without a host."""

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio
import trio.testing

from whenidle.command_agent import CommandAgent
from whenidle_actors.stores.base import SessionHeader
from whenidle_clock import EPOCH
from whenidle_protocol import Lane, Message, Source
from whenidle_protocol.message_history import MessageHistory

from .command_line import python

if TYPE_CHECKING:
    from whenidle import Turn


@attrs.define
class FakeTurn:
    """What a command agent uses of a turn."""

    messages: tuple[Message, ...] = (Message("m4", Lane.NEXT_TURN, True, "hello", Source.USER),)
    cwd: str = ""
    attempt: int = 1
    notes: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])
    number: int = 3
    noted: Any = None
    """What a turn before has noted."""
    max_message_bytes: int = 1024 * 1024

    @property
    def agent(self) -> object:
        """The agent's id, header and host."""
        services = SimpleNamespace(
            random=random.Random(1),  # noqa: S311 - jitter is no secret
            max_message_bytes=self.max_message_bytes,
        )
        header = SessionHeader("ada", EPOCH, cwd=self.cwd, preset="writer")
        return SimpleNamespace(id="ada", header=header, services=services)

    async def history(self) -> MessageHistory:
        """Return the history of the message."""
        await trio.lowlevel.checkpoint()
        if isinstance(self.noted, Exception):
            raise self.noted
        return MessageHistory(attempts=self.attempt, note=self.noted)

    @property
    def redelivered(self) -> bool:
        """As a turn says it."""
        return self.attempt > 1

    async def note(self, data: dict[str, Any]) -> None:
        """Keep the note."""
        await trio.lowlevel.checkpoint()
        self.notes.append(data)


async def run(agent: CommandAgent, turn: FakeTurn) -> dict[str, Any]:
    """Run a turn and return its only note."""
    await agent(cast("Turn", turn))
    (note,) = turn.notes
    return note


def agent(script: str, *argv: str, **options: Any) -> CommandAgent:
    """Return an agent that runs a Python script."""
    return CommandAgent(argv=tuple(python(script, *argv)), **options)
