"""Managing sessions beside a running host, or without one, from any process (SPEC 3.4).

A manager owns no agents and runs nothing. It appends to logs under the same rules as an agent does, and
a host that has the store open takes notice.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from whenidle_actors import reminder_calls
from whenidle_actors.composition import MAX_MESSAGE_BYTES, as_store
from whenidle_actors.errors import SessionExists, TaskConflict, UnknownSession, UnknownTool
from whenidle_actors.session import Journal, Session, SessionToBe, check_message, check_session_id
from whenidle_actors.stores.base import Batch, Role, SessionHeader
from whenidle_actors.task_commits import admit_to, admit_to_new, creates_session
from whenidle_actors.task_desk import TaskDesk
from whenidle_clock import SystemClock
from whenidle_protocol import turn_changes
from whenidle_protocol.errors import ToolError
from whenidle_protocol.events import Lane, Source
from whenidle_protocol.session_state import SessionState
from whenidle_protocol.task_admission import Admission
from whenidle_protocol.task_delivery import run_now
from whenidle_protocol.task_settings import TaskSettings
from whenidle_protocol.tool_schemas import CREATE, DELETE, LIST
from whenidle_protocol.tools import CreateRequest

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from whenidle_actors.stores.base import SessionSlice, Store
    from whenidle_clock import Clock
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_requests import CreateTask, DeleteTask, UpdateTask
    from whenidle_protocol.task_settings import Caller

T = TypeVar("T")


@attrs.frozen(eq=False)
class Manager:
    """An open store, for management commands. Made by `open_manager`."""

    _journal: Journal
    _desk: TaskDesk

    @property
    def store(self) -> Store:
        """The store itself."""
        return self._journal.store

    async def ensure_session(self, session_id: str, *, cwd: str = "", preset: str = "") -> bool:
        """Create a session unless there is one of that id, and return whether it was created.

        Raises:
            InvalidArgument: the id cannot name a session.
            StoreError: as `Store.commit`.
        """
        header = await self._missing(session_id, cwd, preset)
        if header is None:
            return False
        try:
            await self.store.commit(Batch(created=(header,)))
        except SessionExists:
            return False
        return True

    async def send(self, session_id: str, text: str, *, create: bool = True) -> str:
        """Queue a message for the session's next turn, wake its agent if a host runs, and return its id.

        With `create` a session that does not exist is created in the same commit.

        Raises:
            InvalidArgument: the id cannot name a session, or the message is too long.
            UnknownSession: there is no such session and `create` is False.
            StoreError: as `Store.commit`.
        """
        check_message(text, MAX_MESSAGE_BYTES)
        session = await self._session(session_id, create=create)
        message = await session.decide(
            lambda state: turn_changes.insert(state, Lane.NEXT_TURN, text, Source.USER, wake=True)
        )
        return message.id

    async def call_tool(self, session_id: str, tool: str, arguments: Mapping[str, Any], *, create: bool = False) -> Any:
        """Answer a call of a reminder tool for a session; a refusal is an answer too: `{code, message}`.

        With `create` a reminder for a session that does not exist creates it in the same commit; what is refused
        creates nothing.

        Raises:
            UnknownTool: there is no such tool, or the session is a delegated one (SPEC 5.1).
            InvalidArgument, UnknownSession: there is no such session.
            StoreError: the session cannot be read.
        """
        if tool not in {CREATE, LIST, DELETE}:
            raise UnknownTool(f"a session has the tools {CREATE}, {LIST} and {DELETE}, not {str(tool)[:100]!r}")
        try:
            request = reminder_calls.read(tool, arguments, fixed_rate=self._journal.fixed_rate)
            session = await self._session(session_id, create=create and isinstance(request, CreateRequest))
            if session.header.delegation_depth > 0:
                raise UnknownTool(f"session {session_id!r} is a delegated one and has no reminders")
            return await reminder_calls.serve(session, request)
        except ToolError as error:
            return error.answer()

    @property
    def tasks(self) -> TaskDesk:
        """The host-wide tasks, to be managed; a host that runs takes notice of each change."""
        return self._desk

    async def create_task(self, request: CreateTask, caller: Caller) -> Task:
        """Create a task as the agent of a session would; a session that does not exist is created in the same commit.

        Args:
            request: the task.
            caller: the session that asks, with an empty id for none.

        Raises:
            InvalidArgument: the id cannot name a session.
            ToolError, StoreError: as `TaskDesk.create`.
        """
        return await self._as_session(caller, partial(self._desk.create, request, caller))

    async def edit_task(self, request: UpdateTask | DeleteTask, caller: Caller) -> Task | None:
        """Update or delete a task as the agent of a session would, and return it; None if it is deleted.

        A session that asks and does not exist is created in the same commit, if there is one.

        Args:
            request: the change.
            caller: the session that asks, with an empty id for none.

        Raises:
            InvalidArgument: the id cannot name a session.
            ToolError, StoreError: as `TaskDesk.edit`.
        """
        return await self._as_session(caller, partial(self._desk.edit, request, caller))

    async def run_task(self, task_id: str) -> Task:
        """Put a task's message into its session's inbox now, and return the task; its next occurrence stays.

        Unlike a host, a manager claims no agent: the message waits in the inbox for the agent's next turn.

        Raises:
            ToolError: `schedule_not_found`.
            UnknownSession: its session does not exist.
            StoreError: as `Store.commit`.
        """
        while True:
            try:
                admission = await self._admit(await self._desk.view(task_id))
            except (TaskConflict, SessionExists):
                continue  # a host or somebody else was faster
            return admission.delivered[0].after

    async def _admit(self, task: Task) -> Admission:
        admission = Admission((run_now(task, self._journal.clock.now()),))
        try:
            session = await Session.load(self._journal, admission.delivered[0].session_id)
        except UnknownSession:
            if not creates_session(admission):
                raise
            return await admit_to_new(self._journal, admission, _noted)
        return await admit_to(session, self._journal, admission, _noted)

    async def _as_session(self, caller: Caller, work: Callable[..., Awaitable[T]]) -> T:
        """Do work on tasks for a session, which it creates if there is none."""
        if caller.session_id:
            header = await self._missing(caller.session_id, caller.cwd, caller.preset)
            if header is not None:
                with suppress(SessionExists):  # somebody else was faster, and it need not be created any more
                    return await work(session=header)
        return await work()

    async def _missing(self, session_id: str, cwd: str = "", preset: str = "") -> SessionHeader | None:
        """Return the header to create a session with, None if there is one of that id."""
        try:
            await self.store.read(check_session_id(session_id))
        except UnknownSession:
            return SessionHeader(session_id, self._journal.clock.now(), cwd=cwd, preset=preset)
        return None

    async def _session(self, session_id: str, *, create: bool) -> Session:
        """Return a session; with `create`, one that comes into being with its first events if there is none."""
        try:
            return await Session.load(self._journal, check_session_id(session_id))
        except UnknownSession:
            if not create:
                raise
            header = SessionHeader(session_id, self._journal.clock.now())
            return SessionToBe(self._journal, header, SessionState(fixed_rate=self._journal.fixed_rate))

    async def read(self, session_id: str, start: int = 0) -> SessionSlice:
        """Return a session's header and its log from event `start` on.

        Raises:
            InvalidArgument, UnknownSession, StoreError: as `Store.read`.
        """
        return await self.store.read(check_session_id(session_id), start)


def _noted(_: Admission) -> None:
    """Nobody waits for what a manager has admitted: the host sees it in the store."""


@asynccontextmanager
async def open_manager(
    store: Store | str | os.PathLike[str],
    *,
    clock: Clock | None = None,
    fixed_rate: bool = True,
    settings: TaskSettings | None = None,
) -> AsyncGenerator[Manager]:
    """Open a store to manage its sessions and tasks, also while a host has it open.

    A manager does not know how the host was opened; give it the same choices.

    Args:
        store: as for `open_host`.
        clock: dates what is appended; `SystemClock()` if not given.
        fixed_rate: as the host's `Reminders(fixed_rate=...)`: False makes no `every` reminders.
        settings: as the host's `Tasks(settings)`.

    Raises:
        StoreError: the store cannot be opened; see `Store.open`.
    """
    journal = Journal(as_store(store), SystemClock() if clock is None else clock, fixed_rate)
    chosen = TaskSettings() if settings is None else settings
    async with journal.store.opened(Role.MANAGER):
        yield Manager(journal, TaskDesk(journal, chosen, random.Random()))  # noqa: S311 - ids are no secrets
