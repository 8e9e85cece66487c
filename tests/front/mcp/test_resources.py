"""Tasks as resources: listed in pages, read with what came of their deliveries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, TextResourceContents

from whenidle import AfterRule, Caller, CreateTask, TargetKind, UpdateTask
from whenidle.mcp import resources as task_resources
from whenidle.mcp.resources import URI, TaskResources
from whenidle_actors.stores.base import Batch
from whenidle_actors.stores.task_rows import TaskRow, TaskWrite

from .worlds import MODES, NEW_TASK, Told, answer, posted, served, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.client.client import Client

    from whenidle import Task, Turn
    from whenidle.mcp.post import Post


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, post: Post) -> AsyncIterator[Client]:
    """Return a client of each kind."""
    async with served(post, request.param) as client:
        yield client


@pytest.fixture
async def post(store: Path) -> AsyncIterator[Post]:
    """Return a place at the test's store."""
    async with posted(store) as post:
        yield post


async def made(post: Post, title: str = "Tea", seconds: int = 600) -> Task:
    """Make a task."""
    request = CreateTask(title, "Make tea.", AfterRule(seconds), TargetKind.THIS_SESSION)
    return await post.stand.desk.create(request, Caller("mcp"))


async def document(resources: TaskResources, task: Task) -> Any:
    """Return what is read of a task."""
    (contents,) = (await resources.read(f"{URI}{task.id}")).contents
    assert isinstance(contents, TextResourceContents)
    return json.loads(contents.text)


async def test_tasks_are_listed_and_read(client: Client) -> None:
    """A resource is named by its task, and says when that is due; what is read is what the tool shows."""
    task = await answer(client, "schedule_create", **NEW_TASK)
    (resource,) = (await client.list_resources()).resources
    assert (resource.uri, resource.name, resource.title) == (f"{URI}{task['id']}", task["id"], "Rent")
    assert resource.description == f"active, next {task['scheduledAtLocal']}"
    read = await client.read_resource(resource.uri)
    (contents,) = read.contents
    assert isinstance(contents, TextResourceContents)
    assert json.loads(contents.text) == {"task": task, "deliveries": []}
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == f"{URI}{{id}}"


async def test_a_task_that_is_paused_says_what_would_have_been(post: Post) -> None:
    """Its time is not said to come."""
    task = await made(post)
    await post.stand.desk.edit(UpdateTask(task.id, active=False), Caller("mcp"))
    (resource,) = (await TaskResources(post).page(None)).resources
    assert resource.description is not None
    assert resource.description.startswith("paused, was to be ")


async def test_a_long_list_has_pages(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names the next one, and the last one none."""
    monkeypatch.setattr(task_resources, "PAGE", 2)
    tasks = [await made(post, f"t{number}", 600 + number) for number in range(5)]
    found: list[str] = []
    cursor: str | None = None
    for pages in range(1, 4):
        page = await TaskResources(post).page(cursor)
        found += [resource.name for resource in page.resources]
        cursor = page.next_cursor
        assert (cursor is None) == (pages == 3)
    assert found == [task.id for task in tasks]
    assert (await TaskResources(post).page("100")).resources == []


async def test_a_delivery_is_shown_with_what_came_of_it(store: Path) -> None:
    """The receipt, and the outcome of its turn."""
    told = Told()

    async def turn(turn: Turn) -> None:
        await turn.note({"exitStatus": 0, "run": 1, "stdout": "x" * 5_000, "stderr": ""})

    async with posted(store, told, turn=turn) as post:
        task = await made(post, seconds=1)
        await until(lambda: "turn-ended" in [event.kind for event in told.events])
        shown = await document(TaskResources(post), task)
    (delivery,) = shown["deliveries"]
    outcome = delivery["outcome"]
    assert (outcome["state"], outcome["attempts"], outcome["exitStatus"]) == ("completed", 1, 0)
    assert len(outcome["stdout"]) == 2_000
    assert delivery["taskId"] == task.id
    assert shown["task"]["status"] == "ended"


@pytest.mark.parametrize("uri", [URI, f"{URI}task-0", "file:///etc/passwd", f"{URI}../x", ""])
async def test_a_resource_that_is_none_is_refused(client: Client, uri: str) -> None:
    """Another scheme, a path, an id that no task has."""
    with pytest.raises(MCPError) as refused:
        await client.read_resource(uri)
    assert refused.value.error.code == INVALID_PARAMS


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "٣", "9" * 16])
async def test_a_cursor_that_is_none_is_refused(client: Client, cursor: str) -> None:
    """It can only be one that a page gave."""
    with pytest.raises(MCPError, match="the cursor is not one that this server gave") as refused:
        await client.list_resources(cursor=cursor)
    assert refused.value.error.code == INVALID_PARAMS


async def test_a_damaged_task_is_told_without_its_insides(post: Post) -> None:
    """The list says that it is, the task cannot be read; why is in the log."""
    row = TaskRow("task-1", '{"secret": 1}', 1, 1)
    await post.stand.store.commit(Batch(tasks=(TaskWrite("task-1", None, row),)))
    (listed,) = (await TaskResources(post).page(None)).resources
    assert (listed.name, listed.description) == ("task-1", "damaged: it cannot be read")
    with pytest.raises(MCPError, match="the tasks cannot be read now") as refused:
        await TaskResources(post).read(f"{URI}task-1")
    assert refused.value.error.code == INTERNAL_ERROR
