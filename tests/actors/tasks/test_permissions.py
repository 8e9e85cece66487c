"""Who may do what with which tasks, and how many there may be (SPEC 6.1, 6.9)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import trio

from whenidle_actors.tasks import Tasks
from whenidle_protocol.task_requests import ListTasks
from whenidle_protocol.task_settings import TaskSettings

from .worlds import NEW, TaskWorld, call, create, every, once

if TYPE_CHECKING:
    import pytest

    from whenidle_actors.agent_core import AgentCore
    from whenidle_protocol.task_record import Task

INTERNAL = {
    "code": "internal_error",
    "message": "The scheduled task tool failed unexpectedly. List the tasks to see whether anything changed.",
}


async def test_a_delegated_agent_sees_the_schemas_and_is_refused_first(world: TaskWorld) -> None:
    """Every call answers `subagent_session`, whatever else is wrong with it (SPEC 6.1)."""
    async with world.host() as host:
        await host.create_agent("root")
        child = await host.create_agent("child", parent="root")
        assert [tool.name for tool in child.tools()] == [
            "schedule_create",
            "schedule_list",
            "schedule_view",
            "schedule_edit",
        ]
        for tool in ("create", "list", "view", "edit"):
            answer = await call(child, tool, nonsense=True)
            assert answer == {
                "code": "subagent_session",
                "message": "Scheduled tasks are managed by the main agent; tell it what to schedule instead of "
                "calling this tool.",
            }


async def test_without_a_calling_agent_the_answer_is_an_internal_error(world: TaskWorld) -> None:
    """SPEC 6.1."""
    async with world.host():
        assert await world.tasks.call(None, "schedule_list", {}) == INTERNAL


async def test_what_the_host_hides_is_not_found(world: TaskWorld) -> None:
    """The hook is asked with agent, action and task; what it hides is not listed, viewed, edited or deleted."""
    asked: list[tuple[str, str, str]] = []

    def may(agent: AgentCore, action: str, task: Task) -> bool:
        asked.append((agent.name, action, task.title))
        return agent.name == task.creator or (action == "view" and task.title == "open")

    async with world.host(suite=Tasks(may=may)) as host:
        one, other = await host.create_agent("one"), await host.create_agent("other")
        hidden, shown = await create(one, title="hidden"), await create(one, title="open")
        assert asked == []
        missing = {"id": hidden["id"], "code": "schedule_not_found"}
        assert await call(other, "view", id=hidden["id"]) == missing
        assert await call(other, "edit", id=hidden["id"], action="delete") == missing
        assert await call(other, "edit", id=hidden["id"], action="update", title="x") == missing
        assert asked == [("other", action, "hidden") for action in ("view", "delete", "update")]
        assert await call(other, "view", id=shown["id"]) == shown
        assert (await call(other, "edit", id=shown["id"], action="delete"))["code"] == "schedule_not_found"
        answer = await call(other, "list")
        assert ([item["title"] for item in answer["items"]], answer["total"]) == (["open"], 1)
        assert (await call(one, "list"))["total"] == 2
        assert (await call(one, "edit", id=shown["id"], action="delete"))["deleted"] is True
        # Shape first, then the hook: a malformed call shows nothing of what is hidden.
        assert (await call(other, "edit", id=hidden["id"], action="update", title=" "))["code"] == "invalid_title"


async def test_a_list_under_a_hook_is_paged_over_what_is_seen(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offset and total count what the agent may see, however many pages the store is read in."""
    monkeypatch.setattr("whenidle_actors.task_desk._PAGE", 3)
    monkeypatch.setattr("whenidle_actors.task_desk._PAUSE", 2)
    async with world.root(suite=Tasks(may=lambda _, __, task: int(task.title) % 2 == 0)) as agent:
        for number in range(10):
            await world.make(every(600, 600 + number), title=f"{number}")
        answer = await call(agent, "list", limit=2, offset=1)
        assert ([item["title"] for item in answer["items"]], answer["total"]) == (["2", "4"], 5)


async def test_a_hook_that_fails_shows_and_changes_nothing(world: TaskWorld, caplog: pytest.LogCaptureFixture) -> None:
    """Its exception goes to the log, the answer is an internal error, and the agent lives on."""

    def may(*_: object) -> bool:
        raise RuntimeError("a defect of the host's")

    async with world.root(suite=Tasks(may=may)) as agent:
        made = await create(agent)
        with caplog.at_level(logging.WARNING, "whenidle.tasks"):
            for tool, arguments in (
                ("list", {}),
                ("view", {"id": made["id"]}),
                ("edit", {"id": made["id"], "action": "delete"}),
            ):
                assert await call(agent, tool, **arguments) == INTERNAL
        assert "a defect of the host's" in caplog.text
        assert agent.record is None or agent.record.restarts == 0
        assert (await world.desk.page(ListTasks()))[1] == 1


async def test_a_preset_decides_who_has_the_tools(world: TaskWorld) -> None:
    """Agents of other presets have none, and still get what is delivered."""
    async with world.host(suite=Tasks(presets=["planner"])) as host:
        planner = await host.create_agent("planner", preset="planner")
        plain = await host.create_agent("plain")
        assert len(planner.tools()) == 4
        assert plain.tools() == ()
        await world.make(once(10), by="plain")
        await world.wait(11)
        assert len(await world.delivered()) == 1


async def test_caps_of_the_host(any_world: TaskWorld) -> None:
    """One more active task than allowed is `limit_reached`; pausing one makes room, resuming needs it (SPEC 6.9)."""
    world = any_world
    async with world.root(suite=Tasks(TaskSettings(max_active=2))) as agent:
        first, _ = await create(agent), await create(agent)
        refused = {
            "code": "limit_reached",
            "message": "At most 2 scheduled tasks on this host may be active; pause or delete one first.",
        }
        assert await create(agent) == refused
        await call(agent, "edit", id=first["id"], action="update", active=False)
        third = await create(agent)
        assert await call(agent, "edit", id=first["id"], action="update", active=True) == refused
        assert (await call(agent, "edit", id=first["id"], action="update", title="x"))["title"] == "x"
        await call(agent, "edit", id=third["id"], action="delete")
        assert (await call(agent, "edit", id=first["id"], action="update", active=True))["status"] == "active"


async def test_caps_of_a_session(world: TaskWorld) -> None:
    """Each creating session has its own; the host's own tasks are under none."""
    async with world.host(suite=Tasks(TaskSettings(max_active_per_session=1))) as host:
        one, other = await host.create_agent("one"), await host.create_agent("other")
        await create(one)
        assert (await create(one))["message"] == (
            "At most 1 scheduled tasks created by one session may be active; pause or delete one first."
        )
        assert "id" in await create(other)
        for _ in range(3):
            await world.make(every(60), NEW, by="")


async def test_a_cap_holds_however_many_are_made_at_once(any_world: TaskWorld) -> None:
    """Agents that create and resume at the same time do not get past it together."""
    world = any_world
    async with world.host(suite=Tasks(TaskSettings(max_active=3))) as host:
        agents = [await host.create_agent(f"agent-{number}") for number in range(8)]
        answers: list[dict[str, Any]] = []

        async def make(number: int) -> None:
            answers.append(await create(agents[number]))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(make, number)
        assert sorted(answer.get("code", "made") for answer in answers) == ["limit_reached"] * 5 + ["made"] * 3
        assert await world.store.count_active_tasks() == 3
