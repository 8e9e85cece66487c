"""Managing a store beside its host, for asyncio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from whenidle.aio.guest import Guest
from whenidle.aio.life import Life
from whenidle.aio.mirroring import mirrors
from whenidle.aio.store import Store
from whenidle.aio.tasks import TaskDesk
from whenidle_actors import offline

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Mapping

    from whenidle_actors.stores import base
    from whenidle_actors.stores.base import SessionSlice
    from whenidle_clock import Clock
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_requests import CreateTask, DeleteTask, UpdateTask
    from whenidle_protocol.task_settings import Caller, TaskSettings


@mirrors(offline.Manager)
@attrs.frozen
class Manager:
    """An open store, for management commands from asyncio; see `whenidle.Manager`. Made by `open_manager`."""

    _guest: Guest = attrs.field(repr=False)
    _manager: offline.Manager

    @property
    def store(self) -> Store:
        """See `whenidle.Manager.store`."""
        return Store(self._guest, self._manager.store)

    @property
    def tasks(self) -> TaskDesk:
        """See `whenidle.Manager.tasks`."""
        return TaskDesk(self._guest, self._manager.tasks)

    async def ensure_session(self, session_id: str, *, cwd: str = "", preset: str = "") -> bool:
        """See `whenidle.Manager.ensure_session`."""
        return await self._guest.call(partial(self._manager.ensure_session, session_id, cwd=cwd, preset=preset))

    async def send(self, session_id: str, text: str, *, create: bool = True) -> str:
        """See `whenidle.Manager.send`."""
        return await self._guest.call(partial(self._manager.send, session_id, text, create=create))

    async def call_tool(self, session_id: str, tool: str, arguments: Mapping[str, Any], *, create: bool = False) -> Any:
        """See `whenidle.Manager.call_tool`."""
        return await self._guest.call(partial(self._manager.call_tool, session_id, tool, arguments, create=create))

    async def create_task(self, request: CreateTask, caller: Caller) -> Task:
        """See `whenidle.Manager.create_task`."""
        return await self._guest.call(partial(self._manager.create_task, request, caller))

    async def edit_task(self, request: UpdateTask | DeleteTask, caller: Caller) -> Task | None:
        """See `whenidle.Manager.edit_task`."""
        return await self._guest.call(partial(self._manager.edit_task, request, caller))

    async def run_task(self, task_id: str) -> Task:
        """See `whenidle.Manager.run_task`."""
        return await self._guest.call(partial(self._manager.run_task, task_id))

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """See `whenidle.Manager.read`."""
        return await self._guest.call(partial(self._manager.read, session_id, start))


@asynccontextmanager
async def open_manager(
    store: base.Store | str | os.PathLike[str],
    *,
    clock: Clock | None = None,
    fixed_rate: bool = True,
    settings: TaskSettings | None = None,
) -> AsyncGenerator[Manager]:
    """Open a store to manage its sessions and tasks from asyncio, also while a host has it open.

    Args:
        store: as for `whenidle.open_manager`, like all arguments.
        clock: the same.
        fixed_rate: the same.
        settings: the same.

    Raises:
        CompositionError: as `open_host`: the thread has another trio run, or the loop another clock.
        StoreError: the store cannot be opened; see `Store.open`.
    """
    guest = await Guest.join(clock)
    try:
        opening = offline.open_manager(store, clock=clock, fixed_rate=fixed_rate, settings=settings)
        async with Life(guest, opening) as manager:
            yield Manager(guest, manager)
    finally:
        await guest.leave()
