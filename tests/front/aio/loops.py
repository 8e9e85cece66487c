"""Running coroutines on event loops, and what is left of them."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

import attrs

from whenidle import MemoryStore, aio

T = TypeVar("T")

LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


class Run(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> T: ...


def runner(loop_factory: LoopFactory, *, debug: bool = False) -> Run:
    """Return what runs a coroutine on a loop of its own and finds no task left but itself."""

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            try:
                return await coroutine
            finally:
                left = asyncio.all_tasks() - {asyncio.current_task()}
                assert not left

        with asyncio.Runner(loop_factory=loop_factory, debug=debug) as started:
            return started.run(main())

    return run


async def no_work(_: aio.Turn) -> None:
    """Take a turn and do nothing."""


def host(turn: aio.TurnFunction | aio.TrioTurn = no_work, **options: Any) -> AbstractAsyncContextManager[aio.Host]:
    """Return a host to be opened, with a store of its own in memory."""
    return aio.open_host(**{"store": MemoryStore(), "turn": turn, "shutdown_timeout": 0, **options})


@attrs.define
class Gate:
    """Where a turn can be met, and held."""

    entered: asyncio.Event = attrs.field(factory=asyncio.Event)
    opened: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def pass_through(self) -> None:
        """Say that somebody is here, and wait until the gate is opened."""
        self.entered.set()
        await self.opened.wait()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop go on until the condition holds."""
    while not condition():  # noqa: ASYNC110 - it is about passes of the loop
        await asyncio.sleep(0)


async def take_a_turn(there: aio.Host, text: str) -> aio.Agent:
    """Make the agent `ada`, have it take a turn on a message, and return it when it is idle."""
    ada = await there.create_agent("ada")
    await ada.followup(text)
    await ada.when_idle()
    return ada


async def told(there: aio.Host, session_id: str, kind: str) -> list[Any]:
    """Return what a session's log says in events of one type."""
    records = (await there.store.read(session_id)).records
    return [json.loads(record.data) for record in records if record.type == kind]


async def ended(there: aio.Host) -> list[tuple[str, str | None]]:
    """Return how the turns of `ada` ended: outcome and cause."""
    return [(end["outcome"], end.get("cause")) for end in await told(there, "ada", "turn/end")]
