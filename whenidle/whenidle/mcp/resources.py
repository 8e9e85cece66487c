"""Tasks as resources: listed page by page, each to be read with what came of its last deliveries."""

import logging
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from whenidle.delivery_report import delivery_document
from whenidle.mcp.post import Post, Stand
from whenidle_actors.errors import StoreError
from whenidle_actors.logs import report
from whenidle_actors.message_fates import delivery_outcomes
from whenidle_actors.task_rows import entry_of
from whenidle_clock import format_instant
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_answers import task_answer
from whenidle_protocol.task_ids import is_task_id
from whenidle_protocol.task_json import canonical_json
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_local_time import format_local
from whenidle_protocol.task_record import Task, TaskStatus

logger: logging.Logger = logging.getLogger("whenidle.mcp")

URI = "whenidle://tasks/"
"""Behind it stands the id of a task."""
PAGE = 100
"""Tasks of one page."""
DELIVERIES = 20
"""Deliveries that are shown of a task, the last ones."""

_JSON = "application/json"
_LONGEST_CURSOR = 15


def task_of(uri: str) -> str:
    """Return the id of the task that a resource is of.

    Raises:
        MCPError: it is no resource of this server.
    """
    task_id = uri.removeprefix(URI)
    if task_id == uri or not is_task_id(task_id):
        raise MCPError(INVALID_PARAMS, f"resources of this server are {URI}ID, with the id of a task")
    return task_id


class TaskResources:
    """Answers the client's questions for resources; what is refused is raised as `MCPError`."""

    def __init__(self, post: Post) -> None:
        self._post = post

    async def page(self, cursor: str | None) -> ListResourcesResult:
        """Return the page that begins at `cursor`, in the order of `schedule_list`."""
        offset = _offset(cursor)
        async with self._post.work() as stand:
            try:
                page = await stand.store.tasks(limit=PAGE, offset=offset)
                resources = [_resource(entry_of(row)) for row in page.rows]
            except StoreError as error:
                raise unreadable(error) from error
        behind = offset + len(page.rows)
        return ListResourcesResult(
            resources=resources, next_cursor=str(behind) if page.rows and behind < page.total else None
        )

    def templates(self) -> ListResourceTemplatesResult:
        """Return the only template."""
        template = ResourceTemplate(
            uri_template=f"{URI}{{id}}",
            name="task",
            title="Scheduled task",
            description="One task as schedule_view answers it, and what came of its last deliveries.",
            mime_type=_JSON,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, uri: str) -> ReadResourceResult:
        """Return a task as `{task, deliveries}`."""
        task_id = task_of(uri)
        async with self._post.work() as stand:
            try:
                document = await _document(stand, task_id)
            except ToolError as error:
                raise MCPError(INVALID_PARAMS, f"there is no task {task_id}") from error
            except StoreError as error:
                raise unreadable(error) from error
        contents = TextResourceContents(uri=uri, mime_type=_JSON, text=canonical_json(document))
        return ReadResourceResult(contents=[contents])


async def _document(stand: Stand, task_id: str) -> dict[str, Any]:
    task = await stand.desk.view(task_id)
    receipts = (await stand.desk.receipts(task_id, limit=DELIVERIES)).receipts
    outcomes = await delivery_outcomes(stand.store, receipts)
    return {
        "task": task_answer(task),
        "deliveries": [delivery_document(*each) for each in zip(receipts, outcomes, strict=True)],
    }


def _resource(task: Task | DamagedTask) -> Resource:
    if isinstance(task, DamagedTask):
        return Resource(uri=f"{URI}{task.id}", name=task.id, description="damaged: it cannot be read", mime_type=_JSON)
    when = format_local(task.scheduled_at, task.rule.time_zone)
    return Resource(
        uri=f"{URI}{task.id}",
        name=task.id,
        title=task.title,
        description=f"active, next {when}" if task.status is TaskStatus.ACTIVE else f"{task.status}, was to be {when}",
        mime_type=_JSON,
        annotations=Annotations(last_modified=format_instant(task.updated_at)),
    )


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= _LONGEST_CURSOR):
        raise MCPError(INVALID_PARAMS, "the cursor is not one that this server gave")
    return int(cursor)


def unreadable(error: StoreError) -> MCPError:
    """Log why the store did not answer, and return what the client is told of it."""
    report(logger, logging.WARNING, "resource-not-read", "tasks cannot be read", error=error)
    return MCPError(INTERNAL_ERROR, "the tasks cannot be read now")
