from __future__ import annotations

from typing import Any

import pytest

from whenidle_actors.tasks import Tasks

from .tales import START, breaks, text_of
from .task_tales import HOUR, TaskTale, at, changed, daily, deletion, every, row, write

NAME = "answers-agree"
NINE = START + 9 * HOUR


def answer(task: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Return what the tools show of a daily task at nine in Paris."""
    data = task["data"]
    shown = {
        "id": task["id"],
        "title": data["title"],
        "prompt": data["prompt"],
        "kind": "daily",
        "time": "09:00",
        "timeZone": "Europe/Paris",
        "scheduledAt": data["scheduledAt"],
        "scheduledAtLocal": "2026-01-01T09:00:00.000+01:00[Europe/Paris]",
        "target": "this_session",
        "status": data["status"],
        "updatedAt": data["updatedAt"],
        "targetSessionId": "ada",
    }
    return shown | other


def paris(**more: Any) -> dict[str, Any]:
    """Return such a task."""
    return row("task-1", daily(9, "Europe/Paris"), START + 8 * HOUR, **more)


def test_a_created_task_is_answered_as_it_is_stored() -> None:
    """The answer of `schedule_create` shows the task that the call has made, and no other."""
    tale = TaskTale()
    arguments = {"title": " Tea ", "prompt": "tea"}
    first, second = (tale.call("schedule_create", arguments) for _ in range(2))
    tale.make(paris())
    tale.answer(first, answer(paris()))
    with breaks(NAME, "what was stored is"):
        tale.answer(second, answer(paris(), title="Coffee"))
    with breaks(NAME, "it was there before"):
        tale.answer(tale.call("schedule_create", arguments), answer(paris()))
    tale = TaskTale()
    call = tale.call("schedule_create", arguments | {"title": "Coffee"})
    tale.make(paris())
    with breaks(NAME, "another title"):
        tale.answer(call, answer(paris()))


@pytest.mark.parametrize(
    "other",
    [
        {"scheduledAtLocal": "2026-01-01T08:00:00.000+00:00[UTC]"},
        {"time": "10:00"},
        {"target": "new"},
        {"lastDelivery": None},
        {"targetSessionId": "bob"},
    ],
)
def test_every_field_of_a_task_is_as_stored(other: dict[str, Any]) -> None:
    """Another local time, timing field, target or delivery is noticed."""
    tale = TaskTale()
    tale.make(paris())
    tale.answer(tale.call("schedule_view", {"id": "task-1"}), answer(paris()))
    with breaks(NAME):
        tale.answer(tale.call("schedule_view", {"id": "task-1"}), answer(paris(), **other))


def test_a_view_shows_a_version_of_some_moment() -> None:
    """Any that was stored while the call was in flight, and none from before."""
    tale = TaskTale()
    task = tale.make(paris())
    old, new = (tale.call("schedule_view", {"id": "task-1"}) for _ in range(2))
    after = tale.edit(task, changed(task, title="Coffee"))
    tale.answer(old, answer(task))
    tale.answer(new, answer(after))
    with breaks(NAME, "what was stored is"):
        tale.answer(tale.call("schedule_view", {"id": "task-1"}), answer(task))


def test_what_was_there_is_found() -> None:
    """`schedule_not_found` is right of a task that was missing at some moment, or that the host may have hidden."""
    missing = {"id": "task-1", "code": "schedule_not_found"}
    tale = TaskTale()
    tale.answer(tale.call("schedule_view", {"id": "task-1"}), missing)
    task = tale.make(paris())
    with breaks(NAME, "there all the time"):
        tale.answer(tale.call("schedule_view", {"id": "task-1"}), missing)
    call = tale.call("schedule_edit", {"id": "task-1", "action": "delete"})
    tale.commit(tasks=[deletion(task)])
    tale.answer(call, missing)
    tale = TaskTale(suites=[Tasks(may=lambda *_: False)])
    tale.make(paris())
    tale.answer(tale.call("schedule_view", {"id": "task-1"}), missing)
    tale.answer(tale.call("schedule_list", {}), {"items": [], "shown": 0, "total": 0, "limit": 100, "offset": 0})


def test_a_deletion_is_in_the_store() -> None:
    """A task is deleted by one call, while that is in flight."""
    tale = TaskTale()
    task = tale.make(paris())
    done = {"id": "task-1", "deleted": True}
    arguments = {"id": "task-1", "action": "delete"}
    with breaks(NAME, "it was not deleted meanwhile"):
        tale.answer(tale.call("schedule_edit", arguments), done)
    tale = TaskTale()
    tale.make(paris())
    calls = [tale.call("schedule_edit", arguments) for _ in range(2)]
    tale.commit(tasks=[deletion(task)])
    tale.answer(calls[0], done)
    with breaks(NAME, "another call has deleted it"):
        tale.answer(calls[1], done)


def test_a_conflict_has_a_cause() -> None:
    """`schedule_conflict` is right if the task had another version than expected at some moment."""
    tale = TaskTale()
    task = tale.make(paris())
    conflict = {"id": "task-1", "code": "schedule_conflict"}
    arguments = {"id": "task-1", "action": "update", "title": "Coffee", "expectedUpdatedAt": text_of(START)}
    with breaks(NAME, "has not changed since"):
        tale.answer(tale.call("schedule_edit", arguments), conflict)
    arguments.pop("expectedUpdatedAt")
    with breaks(NAME, "no version was expected"):
        tale.answer(tale.call("schedule_edit", arguments), conflict)
    call = tale.call("schedule_edit", arguments | {"expectedUpdatedAt": text_of(START)})
    tale.edit(task, changed(task, title="Coffee"))
    tale.answer(call, conflict)


def test_an_edit_shows_what_it_was_asked_for() -> None:
    """The task that is answered has the title and status that the call asked for."""
    tale = TaskTale()
    task = tale.make(paris())
    call = tale.call("schedule_edit", {"id": "task-1", "action": "update", "active": False})
    paused = changed(task, status="paused")
    tale.edit(task, paused)
    tale.answer(call, answer(paused))
    call = tale.call("schedule_edit", {"id": "task-1", "action": "update", "active": True})
    with breaks(NAME, "it is paused"):
        tale.answer(call, answer(paused))


def page(*items: dict[str, Any], total: int, limit: int = 100, offset: int = 0) -> dict[str, Any]:
    """Return a page of a list."""
    return {"items": list(items), "shown": len(items), "total": total, "limit": limit, "offset": offset}


def shown(identity: str, *, hour: int, status: str = "active", version: int = START) -> dict[str, Any]:
    """Return what is shown of a task that comes due once at an hour."""
    instant = START + hour * HOUR
    return {
        "id": identity,
        "title": "Tea",
        "prompt": "tea",
        "kind": "at",
        "scheduledAt": text_of(instant),
        "scheduledAtLocal": text_of(instant).replace("Z", "+00:00[UTC]"),
        "target": "new",
        "status": status,
        "updatedAt": text_of(version),
    }


def listed() -> TaskTale:
    """Return the tale of four tasks, the last two of which are paused, the last one later."""
    tale = TaskTale()
    for number, hour in enumerate((10, 9, 8, 7)):
        task = tale.make(row(f"task-{number}", at(START + hour * HOUR), START + hour * HOUR, session=None))
        if number > 1:
            tale.wait(1)
            after = changed(task, status="paused")
            after["version"] = tale.wall
            after["data"]["updatedAt"] = text_of(tale.wall)
            tale.edit(task, after)
    return tale


FIRST, SECOND = shown("task-1", hour=9), shown("task-0", hour=10)
THIRD = shown("task-3", hour=7, status="paused", version=START + 2000)
FOURTH = shown("task-2", hour=8, status="paused", version=START + 1000)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, page(FIRST, SECOND, THIRD, FOURTH, total=4)),
        ({"active": True}, page(FIRST, SECOND, total=2)),
        ({"active": False}, page(THIRD, FOURTH, total=2)),
        ({"limit": 2, "offset": 1}, page(SECOND, THIRD, total=4, limit=2, offset=1)),
        ({"offset": 9}, page(total=4, offset=9)),
    ],
)
def test_a_list_shows_its_page(arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    """Active tasks by next occurrence, then the others by last update, the newest first."""
    tale = listed()
    tale.answer(tale.call("schedule_list", arguments), expected)


@pytest.mark.parametrize(
    "wrong",
    [
        page(SECOND, FIRST, THIRD, FOURTH, total=4),
        page(FIRST, SECOND, FOURTH, THIRD, total=4),
        page(FIRST, SECOND, THIRD, FOURTH, total=3),
        page(FIRST, SECOND, THIRD, total=4),
        page(FIRST, SECOND, THIRD, FOURTH | {"title": "Coffee"}, total=4),
    ],
)
def test_a_wrong_list_is_noticed(wrong: dict[str, Any]) -> None:
    """Another order, total, number or task than was stored at any moment."""
    tale = listed()
    call = tale.call("schedule_list", {})
    tale.commit(tasks=[write(None, row("task-9", every(3600, START + HOUR), START + HOUR, session=None))])
    with breaks(NAME, "stored were"):
        tale.answer(call, wrong)


def test_an_edit_of_another_version_than_was_expected_is_noticed() -> None:
    """An edit that says which version it means succeeds if the task had that one at some moment of the call."""
    tale = TaskTale()
    task = tale.make(paris())
    second = tale.edit(task, changed(task, title="Coffee"))
    arguments = {"id": "task-1", "action": "update", "title": "Cake"}
    call = tale.call("schedule_edit", arguments | {"expectedUpdatedAt": second["data"]["updatedAt"]})
    third = tale.edit(second, changed(second, title="Cake"))
    tale.answer(call, answer(third))
    stale = {"expectedUpdatedAt": task["data"]["updatedAt"]}
    call = tale.call("schedule_edit", arguments | stale)
    with breaks(NAME, "never the version that was expected"):
        tale.answer(call, answer(third))
    call = tale.call("schedule_edit", {"id": "task-1", "action": "delete"} | stale)
    tale.commit(tasks=[deletion(third)])
    with breaks(NAME, "never the version that was expected"):
        tale.answer(call, {"id": "task-1", "deleted": True})
