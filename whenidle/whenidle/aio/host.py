"""A host on an asyncio loop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from whenidle.aio.agent import Agent
from whenidle.aio.events import EventStream
from whenidle.aio.mirroring import mirrors
from whenidle.aio.store import Store
from whenidle.aio.tasks import Tasks
from whenidle_actors import host
from whenidle_actors.event_stream import STREAM_CAPACITY

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from whenidle.aio.guest import Guest
    from whenidle_actors.host import HostLoad, HostStatistics
    from whenidle_actors.observation import HostEvent
    from whenidle_actors.probe import Probe
    from whenidle_actors.suites import Suite
    from whenidle_clock import Clock


@mirrors(host.Host)
class Host:
    """Creates, finds and disposes agents, on an asyncio loop; see `whenidle.Host`. Made by `open_host`.

    All methods belong to the thread of the event loop; other threads call in through `open_portal`.
    """

    def __init__(self, guest: Guest, inner: host.Host, tasks: tuple[Tasks, ...]) -> None:
        self._guest = guest
        self._host = inner
        self._tasks = tasks

    @property
    def clock(self) -> Clock:
        """See `whenidle.Host.clock`.

        Its `now`, and all a `VirtualClock` is told, are plain calls; its waits are trio's: see `sleep_until` and
        `advance` of this package.
        """
        return self._host.clock

    @property
    def context(self) -> Context:
        """See `whenidle.Host.context`."""
        return self._host.context

    @property
    def store(self) -> Store:
        """See `whenidle.Host.store`."""
        return Store(self._guest, self._host.store)

    @property
    def agents(self) -> tuple[Agent, ...]:
        """See `whenidle.Host.agents`."""
        return tuple(Agent(self._guest, agent) for agent in self._host.agents)

    @property
    def suites(self) -> tuple[Suite | Tasks, ...]:
        """See `whenidle.Host.suites`."""
        given = {id(tasks.suite_on(self._guest)): tasks for tasks in self._tasks}
        return tuple(given.get(id(suite), suite) for suite in self._host.suites)

    def mount(self, suite: Suite | Tasks) -> None:
        """See `whenidle.Host.mount`."""
        if isinstance(suite, Tasks):
            self._host.mount(suite.suite_on(self._guest))
            self._tasks = (*self._tasks, suite)
        else:
            self._host.mount(suite)

    async def create_agent(
        self, session_id: str | None = None, *, parent: str | None = None, cwd: str = "", preset: str = ""
    ) -> Agent:
        """See `whenidle.Host.create_agent`."""
        create = partial(self._host.create_agent, session_id, parent=parent, cwd=cwd, preset=preset)
        return Agent(self._guest, await self._guest.call(create))

    async def agent(self, session_id: str) -> Agent:
        """See `whenidle.Host.agent`."""
        return Agent(self._guest, await self._guest.call(partial(self._host.agent, session_id)))

    async def fork(self, session_id: str, *, upto: int | None = None, new_id: str | None = None) -> Agent:
        """See `whenidle.Host.fork`."""
        fork = partial(self._host.fork, session_id, upto=upto, new_id=new_id)
        return Agent(self._guest, await self._guest.call(fork))

    async def dispose(self, session_id: str) -> None:
        """See `whenidle.Host.dispose`."""
        await self._guest.call(partial(self._host.dispose, session_id))

    def subscribe(self, observer: Callable[[HostEvent], None]) -> Callable[[], None]:
        """See `whenidle.Host.subscribe`.

        It is called in the loop's thread, from inside of trio: it may set an event or put into a queue of asyncio's.
        """

        def observe(event: HostEvent) -> None:
            self._guest.settle()
            observer(event)

        return self._host.subscribe(observe)

    def events(self, *, capacity: int = STREAM_CAPACITY) -> EventStream:
        """See `whenidle.Host.events`."""
        return EventStream(self._guest, self._host.events(capacity=capacity))

    def attach(self, probe: Probe) -> Callable[[], None]:
        """See `whenidle.Host.attach`."""
        return self._host.attach(probe)

    def load(self) -> HostLoad:
        """See `whenidle.Host.load`."""
        return self._host.load()

    def statistics(self) -> HostStatistics:
        """See `whenidle.Host.statistics`."""
        return self._host.statistics()

    def interrupt(self) -> None:
        """See `whenidle.Host.interrupt`."""
        self._host.interrupt()

    async def close(self, *, grace: float) -> None:
        """See `whenidle.Host.close`."""
        await self._guest.call(partial(self._host.close, grace=grace))
