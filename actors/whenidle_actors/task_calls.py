"""Calls of the four task tools at work on a desk, whoever asks: an agent, or a tool server beside all agents.

The order of a call is that of SPEC 5.6 and 6.1: who asks, and the arguments, are checked before; here come the
decision, the commit, and the answer.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from whenidle_actors.errors import StoreDamaged, StoreError
from whenidle_actors.logs import report
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_answers import (
    delete_answer,
    error_answer,
    internal_error,
    list_answer,
    not_found,
    persistence_uncertain,
    task_answer,
)
from whenidle_protocol.task_requests import CreateTask, DeleteTask, ListTasks, ViewTask
from whenidle_protocol.task_schemas import CREATE, LIST, VIEW
from whenidle_protocol.task_tools import read_create, read_edit, read_list, read_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from whenidle_actors.task_desk import TaskDesk
    from whenidle_protocol.task_listing import DamagedTask
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_requests import TaskRequest
    from whenidle_protocol.task_settings import Caller, TaskSettings

    Allows: TypeAlias = Callable[[str, Task], bool]
    """Whether the caller may `view`, `update` or `delete` a task; what it raises is a failure of the call."""

logger: logging.Logger = logging.getLogger("whenidle.tasks")


def read(tool: str, arguments: Mapping[str, Any], settings: TaskSettings) -> TaskRequest:
    """Return a call as a request.

    Raises:
        ToolError: the arguments are not what the tool takes.
    """
    given = dict(arguments) if hasattr(arguments, "keys") else arguments
    if tool == CREATE:
        return read_create(given, max_prompt_bytes=settings.max_prompt_bytes)
    if tool == LIST:
        return read_list(given)
    return read_view(given) if tool == VIEW else read_edit(given, max_prompt_bytes=settings.max_prompt_bytes)


async def serve(desk: TaskDesk, request: TaskRequest, caller: Caller, allows: Allows | None = None) -> dict[str, Any]:
    """Answer a call.

    Args:
        desk: where the tasks are.
        request: what is asked.
        caller: who asks.
        allows: narrows what the caller may see and change; all is allowed if not given (SPEC 6.1).

    Raises:
        ToolError: it is refused.
    """
    try:
        if isinstance(request, CreateTask):
            return task_answer(await desk.create(request, caller))
        if isinstance(request, ListTasks):
            sees = None if allows is None else partial(allows, "view")
            listing = await desk.listing(request, sees)
            complain(listing.damaged)
            return list_answer(listing.entries, listing.total, request)
        if isinstance(request, ViewTask):
            return task_answer(await _visible(desk, request.id, "view", allows))
        if allows is not None:
            await _visible(desk, request.id, "delete" if isinstance(request, DeleteTask) else "update", allows)
        after = await desk.edit(request, caller)
        return delete_answer(request.id) if after is None else task_answer(after)
    except StoreDamaged as error:
        raise internal_error() from error
    except StoreError as error:
        raise uncertain(request) from error


def refusal(error: Exception, tool: str, session_id: str | None) -> dict[str, Any]:
    """Return what a call answers that failed, and log what is not the caller's doing (SPEC 6.9)."""
    if not isinstance(error, ToolError) or error.__cause__ is not None:
        report(
            logger,
            logging.WARNING,
            "tool-failed",
            "session %s: %s failed",
            session_id,
            tool,
            session=session_id,
            tool=tool,
            error=error,
        )
    return error_answer(error, tool)


def complain(damaged: Iterable[DamagedTask]) -> None:
    """Log which tasks of a list are damaged, and how: models are told only that they are."""
    for each in damaged:
        report(
            logger,
            logging.ERROR,
            "task-damaged",
            "task %s is listed and cannot be read",
            each.id,
            task=each.id,
            error=StoreDamaged(each.reason),
        )


def uncertain(request: TaskRequest) -> ToolError:
    """Return the refusal of a call whose outcome is not known (SPEC 5.6)."""
    if isinstance(request, CreateTask):
        return persistence_uncertain("create")
    if isinstance(request, ListTasks):
        return persistence_uncertain("list")
    if isinstance(request, ViewTask):
        return persistence_uncertain("view", request.id)
    return persistence_uncertain("delete" if isinstance(request, DeleteTask) else "update", request.id)


async def _visible(desk: TaskDesk, task_id: str, action: str, allows: Allows | None) -> Task:
    """Return a task that the caller may act on like this.

    Raises:
        ToolError: `schedule_not_found`, there is none, or it is hidden.
    """
    task = await desk.view(task_id)
    if allows is not None and not allows(action, task):
        raise not_found(task_id)
    return task
