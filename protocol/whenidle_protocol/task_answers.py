"""What the task tools answer: tasks, pages of them, and refusals (SPEC 6.2 to 6.5, 6.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from whenidle_clock.instants import format_instant
from whenidle_protocol.errors import TaskCode, ToolError
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_local_time import format_local
from whenidle_protocol.task_rules import timing_fields
from whenidle_protocol.task_schemas import DECLARED
from whenidle_protocol.wire import unstructure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_requests import ListTasks

_SHOWN_OF_AN_ID: Final = 128


class IdRefusal(ToolError):
    """A refusal that is answered as `{id, code}`, without the message (SPEC 6.4, 6.5)."""

    def __init__(self, code: TaskCode, message: str, task_id: str) -> None:
        self.task_id: str = task_id[:_SHOWN_OF_AN_ID]
        super().__init__(code, message)

    def answer(self) -> dict[str, Any]:
        """Return the answer of the tool. Of an id too long to be one, it repeats the beginning."""
        return {"id": self.task_id, "code": self.code.value}


def task_answer(task: Task) -> dict[str, Any]:
    """Return `task` as the tools answer it (SPEC 6.3).

    `scheduledAtLocal` is as RFC 9557 has it: `2026-03-08T09:00:00.000-04:00[America/New_York]`.
    """
    answer = {
        "id": task.id,
        "title": task.title,
        "prompt": task.prompt,
        "kind": task.rule.kind,
        **timing_fields(task.rule),
        "scheduledAt": format_instant(task.scheduled_at),
        "scheduledAtLocal": format_local(task.scheduled_at, task.rule.time_zone),
        "target": task.target.kind.value,
        "status": task.status.value,
        "updatedAt": format_instant(task.updated_at),
    }
    if task.target.session_id is not None:
        answer["targetSessionId"] = task.target.session_id
    if task.last_delivery is not None:
        answer["lastDelivery"] = unstructure(task.last_delivery)
    if task.last_failure is not None:
        answer["lastFailure"] = unstructure(task.last_failure)
    return answer


def list_answer(entries: Sequence[Task | DamagedTask], total: int, request: ListTasks) -> dict[str, Any]:
    """Return one page of tasks, in the order given (SPEC 6.4).

    A damaged task has its place, so that `shown`, `total` and the next offset are right; see `entry_answer`.

    Args:
        entries: those of the page.
        total: how many there are on all pages.
        request: what was asked for.
    """
    return {
        "items": [entry_answer(entry) for entry in entries],
        "shown": len(entries),
        "total": total,
        "limit": request.limit,
        "offset": request.offset,
    }


def entry_answer(entry: Task | DamagedTask) -> dict[str, Any]:
    """Return one item of a page: the task, or that it is damaged, as `{id, code, message}`."""
    if not isinstance(entry, DamagedTask):
        return task_answer(entry)
    return {
        "id": entry.id,
        "code": TaskCode.INTERNAL_ERROR.value,
        "message": "This task is damaged and cannot be read. It does not come due, and can only be deleted; "
        "tell the user.",
    }


def delete_answer(task_id: str) -> dict[str, Any]:
    """Return the answer of a task's deletion."""
    return {"id": task_id, "deleted": True}


def error_answer(error: Exception, tool: str) -> dict[str, Any]:
    """Return what `tool` answers when it fails with `error`.

    Anything but a refusal whose code the tool declares is an internal error (SPEC 6.9); its cause belongs
    in the log.
    """
    if isinstance(error, ToolError) and error.code.value in DECLARED[tool]:
        return error.answer()
    return internal_error().answer()


def not_found(task_id: str) -> IdRefusal:
    """Return the refusal of a task that does not exist, or that the caller may not see."""
    return IdRefusal(
        TaskCode.SCHEDULE_NOT_FOUND, "There is no scheduled task with that id; list the tasks for theirs.", task_id
    )


def conflict(task_id: str) -> IdRefusal:
    """Return the refusal of a change based on a reading that is out of date (SPEC 6.5)."""
    return IdRefusal(
        TaskCode.SCHEDULE_CONFLICT, "The task has changed since it was read; view it and decide again.", task_id
    )


def subagent_session() -> ToolError:
    """Return the refusal of every call by a delegated agent (SPEC 6.1)."""
    return ToolError(
        TaskCode.SUBAGENT_SESSION,
        "Scheduled tasks are managed by the main agent; tell it what to schedule instead of calling this tool.",
    )


def limit_reached(limit: int, *, of_session: bool) -> ToolError:
    """Return the refusal of one more active task (SPEC 6.9)."""
    whose = "created by one session" if of_session else "on this host"
    return ToolError(
        TaskCode.LIMIT_REACHED,
        f"At most {limit} scheduled tasks {whose} may be active; pause or delete one first.",
    )


def persistence_uncertain(operation: str, task_id: str | None = None) -> ToolError:
    """Return the refusal of a call whose durability cannot be confirmed (SPEC 5.6).

    Args:
        operation: what was asked: `create`, `list`, `view`, `update` or `delete`.
        task_id: the task it was about, where there is one.
    """
    details = {"operation": operation} if task_id is None else {"operation": operation, "id": task_id}
    return ToolError(
        TaskCode.PERSISTENCE_UNCERTAIN,
        "It could not be confirmed that the scheduled tasks are saved. List them before you try again: "
        "the change may have been made.",
        **details,
    )


def internal_error() -> ToolError:
    """Return the error of a call that failed for no fault of the caller; the cause goes to the log."""
    return ToolError(
        TaskCode.INTERNAL_ERROR,
        "The scheduled task tool failed unexpectedly. List the tasks to see whether anything changed.",
    )
