"""Host-wide tasks, for asyncio."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs

from whenidle.aio.agent import Agent
from whenidle.aio.mirroring import mirrors
from whenidle_actors import task_desk, tasks
from whenidle_actors.errors import CompositionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whenidle.aio.guest import Guest
    from whenidle_actors import agent
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_actors.stores.task_rows import ReceiptPage
    from whenidle_protocol.task_listing import TaskListing
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_requests import CreateTask, DeleteTask, ListTasks, UpdateTask
    from whenidle_protocol.task_settings import Caller, TaskSettings
    from whenidle_protocol.tool_schemas import ToolSchema


@mirrors(task_desk.TaskDesk)
@attrs.frozen
class TaskDesk:
    """The tasks of a store, to be managed from asyncio; see `whenidle.TaskDesk`."""

    _guest: Guest = attrs.field(repr=False)
    _desk: task_desk.TaskDesk

    @property
    def settings(self) -> TaskSettings:
        """The host's choices."""
        return self._desk.settings

    async def create(self, request: CreateTask, caller: Caller, *, session: SessionHeader | None = None) -> Task:
        """See `whenidle.TaskDesk.create`."""
        return await self._guest.call(partial(self._desk.create, request, caller, session=session))

    async def view(self, task_id: str) -> Task:
        """See `whenidle.TaskDesk.view`."""
        return await self._guest.call(partial(self._desk.view, task_id))

    async def page(
        self, request: ListTasks, sees: Callable[[Task], bool] | None = None
    ) -> tuple[tuple[Task, ...], int]:
        """See `whenidle.TaskDesk.page`."""
        return await self._guest.call(partial(self._desk.page, request, sees))

    async def listing(self, request: ListTasks, sees: Callable[[Task], bool] | None = None) -> TaskListing:
        """See `whenidle.TaskDesk.listing`."""
        return await self._guest.call(partial(self._desk.listing, request, sees))

    async def edit(
        self, request: UpdateTask | DeleteTask, caller: Caller, *, session: SessionHeader | None = None
    ) -> Task | None:
        """See `whenidle.TaskDesk.edit`."""
        return await self._guest.call(partial(self._desk.edit, request, caller, session=session))

    async def receipts(self, task_id: str, *, before: int | None = None, limit: int = 100) -> ReceiptPage:
        """See `whenidle.TaskDesk.receipts`."""
        return await self._guest.call(partial(self._desk.receipts, task_id, before=before, limit=limit))


@mirrors(tasks.Tasks)
class Tasks:
    """The suite of the four task tools for an asyncio host; see `whenidle.Tasks`.

    Args:
        settings: as for `whenidle.Tasks`.
        presets: the same.
        may: the same, with an asyncio `Agent`. It is called in trio and must not block.
    """

    def __init__(
        self,
        settings: TaskSettings | None = None,
        *,
        presets: Sequence[str] | None = None,
        may: Callable[[Agent, str, Task], bool] | None = None,
    ) -> None:
        self._may = may
        self._guest: Guest | None = None
        self._suite = tasks.Tasks(settings, presets=presets, may=None if may is None else self._ask)

    @property
    def name(self) -> str:
        """What the suite is called on a host."""
        return self._suite.name

    @property
    def settings(self) -> TaskSettings:
        """The host's choices."""
        return self._suite.settings

    @property
    def presets(self) -> frozenset[str] | None:
        """The presets whose agents get the tools; None for all."""
        return self._suite.presets

    @property
    def desk(self) -> TaskDesk:
        """See `whenidle.Tasks.desk`."""
        desk = self._suite.desk
        return TaskDesk(self._joined(), desk)

    def tools(self) -> Sequence[ToolSchema]:
        """Return the tools, as a model is told of them."""
        return self._suite.tools()

    async def run(self, task_id: str) -> Task:
        """See `whenidle.Tasks.run`."""
        return await self._joined().call(partial(self._suite.run, task_id))

    def suite_on(self, guest: Guest) -> tasks.Tasks:
        """Return the suite itself, to be mounted on a host that runs there. For the host."""
        self._guest = guest
        return self._suite

    def _joined(self) -> Guest:
        if self._guest is None:
            raise CompositionError("this Tasks suite is not mounted on a host: give it to open_host, in suites")
        return self._guest

    def _ask(self, asking: agent.Agent, action: str, task: Task) -> bool:
        assert self._may is not None  # noqa: S101 - else nobody asks
        return self._may(Agent(self._joined(), asking), action, task)
