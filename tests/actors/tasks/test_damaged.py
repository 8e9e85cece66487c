"""Tasks whose rows are not what was written, seen and removed beside those that are (SPEC 6.4, 6.9)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from whenidle_actors.errors import InvalidArgument, StoreDamaged
from whenidle_actors.stores.base import Batch, TaskWrite
from whenidle_actors.tasks import Tasks
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_requests import DeleteTask, ListTasks
from whenidle_protocol.task_settings import Caller

from .worlds import TaskWorld, call, create, every, once

if TYPE_CHECKING:
    from whenidle_protocol.task_record import Task

DAMAGED = {
    "code": "internal_error",
    "message": "This task is damaged and cannot be read. It does not come due, and can only be deleted; tell the user.",
}


async def damage(world: TaskWorld, task: Task, data: str = '{"secret": 1}') -> int:
    """Put other text in a task's place, and return its version."""
    row = await world.store.task(task.id)
    spoilt = attrs.evolve(row, data=data, updated_millis=row.updated_millis + 1)
    await world.store.commit(Batch(tasks=(TaskWrite(row.id, row.updated_millis, spoilt),)))
    return spoilt.updated_millis


def without_message(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the ids and codes of a page's items."""
    return {item["id"]: item.get("code") for item in answer["items"]}


async def test_a_list_shows_the_others_and_that_one_is_damaged(
    any_world: TaskWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """In its place, so that totals and pages are right; what is wrong goes to the log, not to the model."""
    world = any_world
    async with world.root() as agent:
        first, broken, last = [await world.make(every(600, seconds), title="t") for seconds in (100, 200, 300)]
        await damage(world, broken)
        with caplog.at_level(logging.ERROR, "whenidle.tasks"):
            listed = await call(agent, "list")
        assert [item["id"] for item in listed["items"]] == [first.id, broken.id, last.id]
        assert listed["items"][1] == {"id": broken.id, **DAMAGED}
        assert (listed["shown"], listed["total"]) == (3, 3)
        assert [(record.event, record.task) for record in caplog.records] == [("task-damaged", broken.id)]  # type: ignore[attr-defined]
        pages = [await call(agent, "list", limit=1, offset=offset) for offset in range(4)]
        assert [without_message(page) for page in pages] == [
            {first.id: None},
            {broken.id: "internal_error"},
            {last.id: None},
            {},
        ]
        assert (await call(agent, "list", active=False))["total"] == 0
        assert (await call(agent, "view", id=broken.id))["code"] == "internal_error"
        assert await call(agent, "edit", id=broken.id, action="delete") == {"id": broken.id, "deleted": True}
        assert (await call(agent, "list"))["total"] == 2


async def test_the_host_s_own_code_is_told_which_one_and_why(world: TaskWorld) -> None:
    """`listing` has it typed, `page` leaves it out and counts it; `view` raises what the listing says."""
    async with world.root():
        sound, broken = await world.make(once(100)), await world.make(once(200))
        await damage(world, broken)
        listing = await world.desk.listing(ListTasks())
        (damaged,) = listing.damaged
        assert (listing.tasks, listing.total) == ((sound,), 2)
        assert listing.entries == (sound, damaged)
        assert await world.desk.page(ListTasks()) == ((sound,), 2)
        with pytest.raises(StoreDamaged) as refused:
            await world.desk.view(broken.id)
        assert damaged == DamagedTask(broken.id, str(refused.value))
        assert broken.id in damaged.reason


async def test_a_damaged_task_is_deleted_as_it_was_read(world: TaskWorld) -> None:
    """Its version is beside its text, so that `expected_updated_at` holds for it too."""
    async with world.root():
        broken = await world.make(once(100))
        await damage(world, broken)
        with pytest.raises(ToolError, match="has changed since it was read"):
            await world.desk.edit(DeleteTask(broken.id, expected_updated_at=broken.updated_at), Caller(""))
        assert await world.desk.edit(DeleteTask(broken.id), Caller("")) is None
        assert (await world.desk.listing(ListTasks())).entries == ()


async def test_what_the_hook_cannot_be_asked_about_is_hidden(world: TaskWorld) -> None:
    """Whose a damaged task is cannot be told, so that an agent whose view is narrowed does not see it."""
    async with world.root(suite=Tasks(may=lambda *_: True)) as agent:
        sound = await create(agent)
        await damage(world, await world.make(once(100)))
        listed = await call(agent, "list")
        assert (listed["items"], listed["total"]) == ([sound], 1)
        assert (await world.desk.listing(ListTasks())).total == 2


async def test_a_page_that_is_none_is_refused_whoever_asks(world: TaskWorld) -> None:
    """The same with a filter and without."""
    async with world.root():
        for request in (ListTasks(limit=0), ListTasks(offset=-1)):
            for sees in (None, lambda _: True):
                with pytest.raises(InvalidArgument, match=r"limit is 0|offset is -1"):
                    await world.desk.listing(request, sees)
