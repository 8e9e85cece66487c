"""What the reminder tools answer (SPEC 5.4, 5.5, 5.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from whenidle_actors.reminders import Reminders

from .worlds import World, create, delete, listed, seconds

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent

SHAPES = (
    'at must be a string like "2030-01-31T09:00:00Z" or "2030-01-31T09:00:00+01:00", or an object with '
    'exactly date ("2030-01-31"), time ("09:00:00") and time_zone ("Europe/Paris").'
)
REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    ({"prompt": " \ufeff\n", "after_seconds": 1}, "invalid_prompt", "prompt must be a string that is not blank."),
    ({"after_seconds": 1}, "invalid_prompt", "prompt must be a string that is not blank."),
    (
        {"prompt": "\u20ac" * 22_000, "after_seconds": 1},
        "invalid_prompt",
        "prompt is too long; it may have at most 65536 bytes of UTF-8. Save a shorter one.",
    ),
    (
        {"prompt": "x"},
        "invalid_selector",
        "Give exactly one of after_seconds, at or every_seconds; none is given.",
    ),
    (
        {"prompt": "x", "after_seconds": 1, "every_seconds": 300},
        "invalid_selector",
        "Give exactly one of after_seconds, at or every_seconds; after_seconds and every_seconds are given.",
    ),
    (
        {"prompt": "x", "in": 1},
        "invalid_selector",
        'There is no argument "in"; the arguments are prompt, after_seconds, at and every_seconds.',
    ),
    (
        {"prompt": "x", "after_seconds": 0},
        "invalid_rule",
        "after_seconds must be a whole number of seconds from 1 to 9007199254740991, for example 90.",
    ),
    (
        {"prompt": "x", "every_seconds": 300.5},
        "invalid_rule",
        "every_seconds must be a whole number of seconds from 300 on, for example 3600.",
    ),
    ({"prompt": "x", "at": "tomorrow"}, "invalid_rule", SHAPES),
    (
        {"prompt": "x", "at": {"date": "2027-02-29", "time": "09:00:00", "time_zone": "UTC"}},
        "invalid_rule",
        "at names a date or time that does not exist; hours go to 23, minutes and seconds to 59.",
    ),
    (
        {"prompt": "x", "at": {"date": "2026-03-29", "time": "02:30:00", "time_zone": "Europe/Paris"}},
        "invalid_rule",
        "at names a local time that does not exist: the clocks go forward over it. Choose another time.",
    ),
    (
        {"prompt": "x", "at": "2030-01-01T00:00:00-00:00"},
        "invalid_rule",
        "at has the offset -00:00, which says that the offset is unknown; write Z for UTC.",
    ),
    (
        {"prompt": "x", "at": {"date": "2027-01-01", "time": "09:00:00", "time_zone": "CEST"}},
        "invalid_time_zone",
        'time_zone must be "UTC" or an IANA zone like "Europe/Paris"; abbreviations and offsets are not zones.',
    ),
    (
        {"prompt": "x", "at": "2026-01-01T00:00:00Z"},
        "not_future",
        "at must lie in the future; give a later instant, or use after_seconds.",
    ),
    (
        {"prompt": "x", "after_seconds": 2**53 - 1},
        "time_out_of_range",
        "The reminder would be due after the year 9999; use fewer seconds.",
    ),
    (
        {"prompt": "x", "every_seconds": 2**53 - 1},
        "time_out_of_range",
        "The first occurrence would be after the year 9999; use a shorter interval.",
    ),
    (
        {"prompt": "x", "at": "0001-01-01T00:00:00+23:59"},
        "time_out_of_range",
        "at lies outside the years 0001 to 9999 in UTC; choose an instant within them.",
    ),
    (
        {"prompt": "x", "every_seconds": 299},
        "frequency_too_high",
        "every_seconds must be at least 300 (five minutes).",
    ),
]


@pytest.mark.parametrize(("arguments", "code", "message"), REFUSALS)
async def test_a_create_that_is_refused_says_what_to_write_instead(
    world: World, arguments: dict[str, Any], code: str, message: str
) -> None:
    """Each refusal is a stable code and sentence, and writes nothing."""
    async with world.root() as agent:
        assert await agent.call_tool("schedule_create", arguments) == {"code": code, "message": message}
        assert await listed(agent) == []
        assert [batch for batch in world.store.batches if batch.appends] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("schedule_list", {"all": True}, 'There is no argument "all"; there are no arguments.'),
        ("schedule_list", [], "Give the arguments as an object; there are no arguments."),
        ("schedule_delete", None, "Give the arguments as an object; the arguments are id."),
        (
            "schedule_delete",
            {"id": 1},
            'id must be the string that schedule_create or schedule_list gave, for example "schedule-1".',
        ),
        (
            "schedule_create",
            "x",
            "Give the arguments as an object; the arguments are prompt, after_seconds, at and every_seconds.",
        ),
    ],
)
async def test_arguments_of_another_shape_are_an_invalid_selector(
    world: World, tool: str, arguments: Any, message: str
) -> None:
    """Whatever a model sends instead of the tool's arguments is answered, not raised."""
    async with world.root() as agent:
        assert await agent.call_tool(tool, arguments) == {"code": "invalid_selector", "message": message}


async def test_a_create_answers_the_record_with_its_state(world: World) -> None:
    """Wire names, the UTC target, the state and where it is delivered; an `at` keeps only its instant."""
    async with world.root() as agent:
        assert await create(agent, " tea\n", after_seconds=90.0) == {
            "id": "schedule-1",
            "kind": "after",
            "prompt": "tea",
            "afterSeconds": 90,
            "scheduledAt": "2026-01-01T00:01:30.000Z",
            "state": "scheduled",
            "deliveryMode": "session-local",
        }
        local = {"date": "2026-07-01", "time": "09:00:00.5", "time_zone": "Europe/Paris"}
        assert await create(agent, "meet", at=local) == {
            "id": "schedule-2",
            "kind": "at",
            "prompt": "meet",
            "scheduledAt": "2026-07-01T07:00:00.500Z",
            "state": "scheduled",
            "deliveryMode": "session-local",
        }
        assert await create(agent, "stretch", every_seconds=300) == {
            "id": "schedule-3",
            "kind": "every",
            "prompt": "stretch",
            "everySeconds": 300,
            "scheduledAt": "2026-01-01T00:05:00.000Z",
            "state": "scheduled",
            "deliveryMode": "session-local",
        }


async def test_a_list_gives_the_active_ones_in_creation_order(world: World) -> None:
    """What is due and waits for the agent is overdue; what was delivered or deleted is gone."""
    world.turn_seconds = 1000
    async with world.root() as agent:
        for prompt, after in [("a", 300), ("b", 10), ("c", 20)]:
            await create(agent, prompt, after_seconds=after)
        await delete(agent, "schedule-3")
        await agent.followup("work")
        await world.wait(10)
        assert [(item["prompt"], item["state"]) for item in await listed(agent)] == [
            ("a", "scheduled"),
            ("b", "overdue"),
        ]
        await world.wait(2990)
        assert await listed(agent) == []


async def test_a_delete_says_whether_there_was_anything_to_delete(world: World) -> None:
    """A second delete, one after the delivery, and one of a made-up id are not found; no id is used again."""
    async with world.root() as agent:
        await create(agent, after_seconds=10)
        await create(agent, after_seconds=20)
        assert await delete(agent, "schedule-2") == {"id": "schedule-2", "deleted": True}
        await world.wait(10)
        for name in ("schedule-1", "schedule-2", "schedule-9", ""):
            assert await delete(agent, name) == {"id": name, "deleted": False, "code": "schedule_not_found"}
        assert (await create(agent, after_seconds=10))["id"] == "schedule-3"


async def test_a_deleted_every_reminder_comes_no_more(world: World) -> None:
    """Deleting it between two occurrences ends it."""
    async with world.root() as agent:
        await create(agent, every_seconds=300)
        await world.wait(700)
        assert (await delete(agent, "schedule-1"))["deleted"] is True
        await world.wait(10_000)
        assert len((await world.ledger()).deliveries) == 2


async def test_a_defect_is_an_internal_error_that_shows_no_internals(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is a code and a sentence, the cause goes to the log, and the agent carries on."""
    async with world.root() as agent:

        def fail(*_: Any) -> Any:
            raise RuntimeError("secret of the inside")

        with monkeypatch.context() as patch:
            patch.setattr("whenidle_protocol.reminder_changes.create", fail)
            answer = await create(agent, after_seconds=10)
        assert answer == {
            "code": "internal_error",
            "message": "The reminder tool failed unexpectedly. List the reminders to see whether anything changed.",
        }
        assert "secret of the inside" in caplog.text
        await world.wait(10)
        assert (await create(agent, after_seconds=10))["id"] == "schedule-1"


async def test_schemas_are_byte_identical_for_equal_configuration() -> None:
    """Prompt caches depend on it; another configuration has another text."""

    def text(suite: Reminders) -> str:
        return repr([(tool.name, tool.description, tool.input_schema) for tool in suite.tools()])

    assert text(Reminders()) == text(Reminders())
    assert len({text(Reminders()), text(Reminders(fixed_rate=False)), text(Reminders(max_prompt_bytes=10))}) == 3


async def test_a_host_may_set_the_longest_prompt(world: World) -> None:
    """The limit is in bytes of UTF-8, and the message names it."""
    async with world.root(suites=[Reminders(max_prompt_bytes=4)]) as agent:
        assert (await create(agent, "\u20aca", after_seconds=1))["prompt"] == "\u20aca"
        assert (await create(agent, "\u20acab", after_seconds=1))["code"] == "invalid_prompt"
        assert await _longest(agent) == "4 bytes"


async def _longest(agent: Agent) -> str:
    answer = await create(agent, "12345", after_seconds=1)
    return " ".join(answer["message"].split("at most ")[1].split()[:2])


async def test_the_answer_of_a_create_is_the_state_at_its_own_instant(world: World) -> None:
    """A create answers `scheduled` although the wall jumps past its target right afterwards."""
    async with world.root() as agent:
        answer = await create(agent, after_seconds=10)
        world.step(seconds(20))
        assert answer["state"] == "scheduled"
