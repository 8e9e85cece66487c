"""The real runtime, to be driven by the rules of a state machine."""

from __future__ import annotations

import queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import trio
from hypothesis.stateful import RuleBasedStateMachine

from .faults import FaultyStore
from .worlds import World, seconds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn


class HostThread:
    """A trio run on a world's clock in a thread of its own, with a host in it that can be exchanged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host: Host
        self._closing = trio.Event()
        self._tokens: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()
        self._thread = Thread(target=trio.run, args=(self._serve,), kwargs={"clock": world})
        self._thread.start()
        self._token = self._tokens.get()

    async def _serve(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._stop = trio.Event()
            self._tokens.put(trio.lowlevel.current_trio_token())
            await self._stop.wait()
            await self.close()

    def run(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def stop(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join()

    async def open(self) -> Agent:
        """Open a host and return its agent `root`."""
        agent: Agent = await self._nursery.start(self._host)
        return agent

    async def close(self) -> None:
        self._closing.set()
        await self._closed.wait()

    async def _host(self, task_status: trio.TaskStatus[Agent]) -> None:
        self._closing, self._closed = trio.Event(), trio.Event()
        try:
            async with self.world.host() as self.host:
                known = await self.world.store.sessions()
                make = self.host.agent if known else self.host.create_agent
                task_status.started(await make("root"))
                await self._closing.wait()
        finally:
            self._closed.set()


class HostMachine(RuleBasedStateMachine):
    """A machine whose rules act on a host in a world, and on its agent `root`."""

    turn_seconds = 0.0
    """How long a turn takes whose first message is no number of seconds."""

    def __init__(self, world: World) -> None:
        super().__init__()
        world.during_turn = self.take_time
        self.thread = HostThread(world)
        self.agent: Agent = self.thread.run(self.thread.open)

    def teardown(self) -> None:
        self.thread.stop()

    async def take_time(self, turn: Turn) -> None:
        text = turn.messages[0].text
        await trio.sleep(int(text) if text.isdigit() else self.turn_seconds)

    async def next_process(self, down: int, killed: bool) -> Agent:
        """Close the host, or kill it, and open another so many seconds later; return its agent `root`."""
        world = self.thread.world
        if killed:
            world.store.die()
        await self.thread.close()
        world.store = FaultyStore(world.store.inner)
        world.step(seconds(down))
        return await self.thread.open()
