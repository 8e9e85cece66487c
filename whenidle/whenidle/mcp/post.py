"""The server's place at its store: the host that delivers, or a manager for as long as another host is there.

A desktop client starts one server for each of its windows, all with one store. One of them is the host; when it ends,
one of the others takes over within `LOOK_SECONDS`.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import attrs
import trio

from whenidle_actors.composition import open_host
from whenidle_actors.errors import SessionExists, StoreError, StoreLocked
from whenidle_actors.logs import report
from whenidle_actors.observation import HostEvent
from whenidle_actors.offline import open_manager
from whenidle_actors.reminders import Reminders
from whenidle_actors.stores.base import Store
from whenidle_actors.task_desk import TaskDesk
from whenidle_actors.tasks import Tasks
from whenidle_actors.turn import TurnFunction
from whenidle_clock import Clock
from whenidle_protocol.task_settings import TaskSettings

if TYPE_CHECKING:
    from whenidle_actors.host import Host

logger: logging.Logger = logging.getLogger("whenidle.mcp")

LOOK_SECONDS = 1.0
"""How often a manager looks whether the host has gone, in monotonic time."""


class Tell(Protocol):
    """Told what becomes of the server; must not block."""

    def __call__(self, kind: str, **detail: object) -> None:
        """Take note of it."""
        ...


@attrs.frozen(kw_only=True)
class Place:
    """What a server is made of."""

    store: str
    """Path of the SQLite file."""
    turn: TurnFunction
    """Runs the turns of agents while this server is the host."""
    session: str
    """Id of the session that stands for the client; made if there is none."""
    clock: Clock
    max_turns: int
    shutdown_timeout: float
    """Seconds that turns get to finish when the host stops."""
    settings: TaskSettings = attrs.field(factory=TaskSettings)


class Stand:
    """A desk to work at, as long as it is there."""

    def __init__(self, desk: TaskDesk, store: Store, host_pid: int | None) -> None:
        self.desk: TaskDesk = desk
        self.store: Store = store
        self.host_pid: int | None = host_pid
        """Process id of the host that delivers, 0 if it is not known; None if this server is that host."""
        self._at_work = 0
        self._left = trio.Event()

    def enter(self) -> None:
        """Begin to work at it."""
        self._at_work += 1

    def leave(self) -> None:
        """End that."""
        self._at_work -= 1
        self._left.set()

    async def deserted(self) -> None:
        """Wait until nobody works at it."""
        while self._at_work:
            self._left = trio.Event()
            await self._left.wait()


class Post:
    """Keeps the server's place at its store, and gives its desk to whoever has something to do there."""

    def __init__(self, place: Place, tell: Tell, observer: Callable[[HostEvent], None]) -> None:
        self._place = place
        self._tell = tell
        self._observer = observer
        self._stand: Stand | None = None
        self._host: Host | None = None
        self._hosting = trio.Event()
        self._stopping = trio.Event()
        self._complaint = ""

    @property
    def stand(self) -> Stand:
        """Where it stands now. There always is something once `keep` has started."""
        assert self._stand is not None  # noqa: S101 - nobody is served before
        return self._stand

    @asynccontextmanager
    async def work(self) -> AsyncGenerator[Stand]:
        """Keep the present stand from being closed while the block runs."""
        stand = self.stand
        stand.enter()
        try:
            yield stand
        finally:
            stand.leave()

    async def keep(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the place until `stop`, then leave it in order; started when there is a desk.

        A manager that cannot become the host (no room, for example) goes on managing, and tries again.

        Raises:
            StoreError: the store cannot be opened, or the host's store failed.
        """
        async with AsyncExitStack() as managing:
            while not self._stopping.is_set():
                try:
                    await self._be_host(managing, task_status)
                except StoreError as error:
                    if self._host is not None:
                        raise
                    if self._stand is not None:
                        self._complain(error)
                    elif isinstance(error, StoreLocked):
                        await self._be_manager(managing, error.pid)
                        task_status.started()
                    else:
                        raise
                    with trio.move_on_after(LOOK_SECONDS):
                        await self._stopping.wait()

    async def host(self) -> "Host":
        """Wait until this server is the host, and return that."""
        await self._hosting.wait()
        assert self._host is not None  # noqa: S101 - that is what was waited for
        return self._host

    def stop(self) -> None:
        """Have `keep` leave the place: no turn begins any more, those that run may finish."""
        self._stopping.set()

    def interrupt(self) -> None:
        """Interrupt the turns that run, at once."""
        if self._host is not None:
            self._host.interrupt()

    async def _be_host(self, managing: AsyncExitStack, task_status: trio.TaskStatus[None]) -> None:
        place, before = self._place, self._stand
        # As in `whenidle run`: an agent's own tools are those of reminders, and tasks are managed beside it.
        tasks = Tasks(place.settings, presets=())
        async with open_host(
            store=place.store,
            turn=place.turn,
            clock=place.clock,
            suites=(Reminders(), tasks),
            max_concurrent_turns=place.max_turns,
            shutdown_timeout=place.shutdown_timeout,
        ) as host:
            host.subscribe(self._observer)
            with suppress(SessionExists):
                await host.create_agent(place.session)
            self._host, self._stand = host, Stand(tasks.desk, host.store, None)
            self._hosting.set()
            self._tell("delivering", store=host.store.name, took_over=before is not None)
            if before is None:
                task_status.started()
            else:
                await before.deserted()
                await managing.aclose()
            await self._stopping.wait()

    def _complain(self, error: StoreError) -> None:
        """Log once why this server does not take over, if not because there is a host."""
        complaint = "" if isinstance(error, StoreLocked) else str(error)
        if complaint not in {"", self._complaint}:
            report(
                logger,
                logging.WARNING,
                "place-not-taken",
                "the place of the host cannot be taken, trying again",
                error=error,
            )
        self._complaint = complaint

    async def _be_manager(self, managing: AsyncExitStack, host_pid: int) -> None:
        place = self._place
        manager = await managing.enter_async_context(
            open_manager(place.store, clock=place.clock, settings=place.settings)
        )
        await manager.ensure_session(place.session)
        self._stand = Stand(manager.tasks, manager.store, host_pid)
        self._tell("managing", store=manager.store.name, host=host_pid)
