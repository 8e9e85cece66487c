"""One host after another on one store and one virtual clock."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.composition import open_host
from whenidle_clock import VirtualClock

from .faults import FaultyStore
from .logs import Ledger, audit, millis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.observation import EventKind, HostEvent
    from whenidle_actors.turn import Turn

START = datetime(2026, 1, 1, tzinfo=UTC)
T0 = millis(START)


def seconds(number: float) -> timedelta:
    """Return so many seconds."""
    return timedelta(seconds=number)


class World(VirtualClock):
    """A clock, with a store and an agent whose turns take as long as the test says.

    It is the clock itself because trio runs a test on a clock that is an argument of the test.
    """

    def __init__(self, store: FaultyStore | None = None, start: datetime = START) -> None:
        super().__init__(start)
        self.store = FaultyStore() if store is None else store
        self.turn_seconds = 0.0
        self.during_turn: Callable[[Turn], Awaitable[object]] | None = None
        self.runs: list[tuple[int, tuple[str, ...], bool]] = []
        """When each turn began, the ids of its messages, and whether they were redelivered."""
        self.events: list[HostEvent] = []

    async def turn(self, turn: Turn) -> None:
        if self.store.dead:
            return
        ids = tuple(message.id for message in turn.messages)
        self.runs.append((self.now_millis(), ids, turn.redelivered))
        if self.during_turn is not None:
            await self.during_turn(turn)
        await trio.sleep(self.turn_seconds)

    @asynccontextmanager
    async def host(self, **options: Any) -> AsyncIterator[Host]:
        """Run a host; its jitter is the longest, so that the time of a retry can be told."""
        settings = {"turn": self.turn, "shutdown_timeout": 0, "rng": LongestWaits(0), **options}
        async with open_host(store=self.store, clock=self, **settings) as host:
            host.subscribe(self.events.append)
            yield host

    @asynccontextmanager
    async def root(self, **options: Any) -> AsyncIterator[Agent]:
        """Run a host with the agent `root`, new or restored."""
        async with self.host(**options) as host:
            known = [header.id for header in await self.store.sessions()]
            yield await (host.agent("root") if "root" in known else host.create_agent("root"))

    async def wait(self, by: float) -> None:
        """Let `by` seconds pass, and all happen that happens then."""
        await self.advance(seconds(by))
        await settled()

    def count(self, kind: EventKind) -> int:
        return sum(event.kind is kind for event in self.events)

    async def ledger(self, session_id: str = "root") -> Ledger:
        """Return what the log says, audited; the store must be open."""
        return await audit(self.store.inner, session_id)


class LongestWaits(random.Random):
    """Draws the upper end of every interval."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002 - the signature of random.Random
        return b


async def settled() -> None:
    """Return when everything that can run without time has run."""
    await wait_all_tasks_blocked()


async def create(agent: Agent, prompt: str = "tea", **selector: Any) -> dict[str, Any]:
    """Call `schedule_create`."""
    answer: dict[str, Any] = await agent.call_tool("schedule_create", {"prompt": prompt, **selector})
    return answer


async def listed(agent: Agent) -> Any:
    """Call `schedule_list`."""
    return await agent.call_tool("schedule_list", {})


async def delete(agent: Agent, name: str) -> dict[str, Any]:
    """Call `schedule_delete`."""
    answer: dict[str, Any] = await agent.call_tool("schedule_delete", {"id": name})
    return answer
