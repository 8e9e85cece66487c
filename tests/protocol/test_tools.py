from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from whenidle_protocol.errors import ReminderCode, ToolError
from whenidle_protocol.json_text import parse, stringify
from whenidle_protocol.schedule_change import AfterReminder, AtReminder, EveryReminder
from whenidle_protocol.tool_schemas import CREATE, DELETE, LIST, reminder_tools
from whenidle_protocol.tools import (
    MAX_PROMPT_BYTES,
    After,
    At,
    CreateRequest,
    DeleteRequest,
    Every,
    ListRequest,
    delete_answer,
    internal_error,
    list_answer,
    make_reminder,
    persistence_uncertain,
    read_create,
    read_delete,
    read_list,
    reminder_answer,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def refused(call: Any, *arguments: Any, **options: Any) -> ToolError:
    """Return the error of a call that is refused; its message is a sentence."""
    with pytest.raises(ToolError) as caught:
        call(*arguments, **options)
    assert caught.value.message.endswith(".")
    return caught.value


# schedule_create --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"prompt": "p", "after_seconds": 5}, After(5)),
        ({"prompt": "p", "after_seconds": 5.0}, After(5)),
        ({"prompt": "p", "at": "2026-01-01T00:00:00Z"}, At(NOW)),
        ({"prompt": "p", "at": {"date": "2026-01-01", "time": "00:00:00", "time_zone": "UTC"}}, At(NOW)),
        ({"every_seconds": 300, "prompt": "p"}, Every(300)),
    ],
)
def test_a_create_call_names_exactly_one_selector(arguments: Any, rule: Any) -> None:
    """The three ways to say when, read without a clock."""
    assert read_create(arguments) == CreateRequest("p", rule)


def test_a_prompt_is_trimmed() -> None:
    """By the white space of ECMAScript; what is inside is kept, halves of a pair included."""
    assert read_create({"prompt": "\ufeff a\n\ud800 b \u3000", "after_seconds": 1}).prompt == "a\n\ud800 b"


SELECTOR, PROMPT = ReminderCode.INVALID_SELECTOR, ReminderCode.INVALID_PROMPT


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            None,
            SELECTOR,
            "Give the arguments as an object; the arguments are prompt, after_seconds, at and every",
        ),
        ([], SELECTOR, "Give the arguments as an object"),
        (
            {"prompt": "p", "in_minutes": 5},
            SELECTOR,
            'There is no argument "in_minutes"; the arguments are prompt, after',
        ),
        ({"prompt": "p", "after_seconds": 5, "x": 1}, SELECTOR, 'There is no argument "x"; '),
        ({"prompt": "p"}, SELECTOR, "Give exactly one of after_seconds, at or every_seconds; none is given."),
        ({"prompt": "p", "after_seconds": 5, "at": None}, SELECTOR, "after_seconds and at are given."),
        (
            {"prompt": "p", "after_seconds": 5, "at": "x", "every_seconds": 3},
            SELECTOR,
            "at or every_seconds; after_seconds, at and every_seconds are given.",
        ),
        ({"after_seconds": 5}, PROMPT, "prompt must be a string that is not blank."),
        ({"prompt": 5, "after_seconds": 5}, PROMPT, "prompt must be a string that is not blank."),
        ({"prompt": " \ufeff", "after_seconds": 5}, PROMPT, "prompt must be a string that is not blank."),
        (
            {"prompt": "p", "after_seconds": None},
            ReminderCode.INVALID_RULE,
            "after_seconds must be a whole number",
        ),
        ({"prompt": "p", "at": "tomorrow"}, ReminderCode.INVALID_RULE, "at must be a string like"),
        ({"prompt": "p", "every_seconds": 60}, ReminderCode.FREQUENCY_TOO_HIGH, "at least 300"),
    ],
)
def test_a_malformed_create_call_is_told_what_to_write(arguments: Any, code: ReminderCode, message: str) -> None:
    """The code is of the closed set and the message teaches."""
    error = refused(read_create, arguments)
    assert error.code is code
    assert message in error.message


def test_a_huge_unknown_name_is_not_echoed_whole() -> None:
    """Nor does a lone surrogate in it spoil the message."""
    message = refused(read_create, {"\ud800" + "x" * 1_000_000: 1}).message
    assert message.startswith('There is no argument "\\ud800xxx')
    assert len(message) < 150
    assert message.encode()


def test_null_counts_as_given() -> None:
    """A selector is left out by leaving out its key."""
    assert refused(read_create, {"prompt": "p", "at": None}).code is ReminderCode.INVALID_RULE


@pytest.mark.parametrize(
    ("prompt", "fits"),
    [
        ("a" * MAX_PROMPT_BYTES, True),
        (" " + "a" * MAX_PROMPT_BYTES + " ", True),
        ("a" * (MAX_PROMPT_BYTES + 1), False),
        ("é" * (MAX_PROMPT_BYTES // 2), True),
        ("é" * (MAX_PROMPT_BYTES // 2) + "a", False),
        ("\ud800" * (MAX_PROMPT_BYTES // 3), True),
        ("\ud800" * (MAX_PROMPT_BYTES // 3) + "aa", False),
        ("a" * 1_000_000, False),
    ],
)
def test_a_prompt_has_at_most_64_kib_of_utf_8(prompt: str, fits: bool) -> None:
    """Counted after trimming."""
    arguments = {"prompt": prompt, "after_seconds": 1}
    if fits:
        assert read_create(arguments).prompt == prompt.strip()
    else:
        error = refused(read_create, arguments)
        assert error.code is PROMPT
        assert "at most 65536 bytes" in error.message


def test_the_host_may_set_another_limit() -> None:
    """Smaller or larger."""
    assert refused(read_create, {"prompt": "abc", "after_seconds": 1}, max_prompt_bytes=2).code is PROMPT
    long = {"prompt": "a" * 70_000, "after_seconds": 1}
    assert read_create(long, max_prompt_bytes=70_000).prompt == long["prompt"]


def test_without_fixed_rates_every_seconds_is_no_selector() -> None:
    """It is refused like any unknown key, and not offered in the message."""
    error = refused(read_create, {"prompt": "p", "every_seconds": 300}, fixed_rate=False)
    assert error.code is SELECTOR
    assert error.message == ('There is no argument "every_seconds"; the arguments are prompt, after_seconds and at.')
    assert "every_seconds" not in refused(read_create, {"prompt": "p"}, fixed_rate=False).message
    assert read_create({"prompt": "p", "after_seconds": 1}, fixed_rate=False).rule == After(1)


def test_a_reminder_is_made_when_the_call_has_its_turn() -> None:
    """The target is computed from the instant of creation, not of the call."""
    soon = NOW + timedelta(seconds=300)
    assert make_reminder(CreateRequest("p", After(300)), "schedule-1", NOW) == AfterReminder(
        "schedule-1", "p", 300, soon
    )
    assert make_reminder(CreateRequest("p", At(soon)), "schedule-1", NOW) == AtReminder("schedule-1", "p", soon)
    assert make_reminder(CreateRequest("p", Every(300)), "schedule-1", NOW) == EveryReminder(
        "schedule-1", "p", 300, soon
    )
    assert refused(make_reminder, CreateRequest("p", At(soon)), "schedule-1", soon).code is ReminderCode.NOT_FUTURE


# schedule_list and schedule_delete --------------------------------------------------------


def test_list_takes_no_arguments() -> None:
    """An empty object and nothing else."""
    assert read_list({}) == ListRequest()
    assert refused(read_list, {"active": True}).message == 'There is no argument "active"; there are no arguments.'
    assert refused(read_list, None).code is SELECTOR


def test_delete_takes_an_id() -> None:
    """Any string may be asked for; another shape is refused."""
    assert read_delete({"id": "schedule-1"}) == DeleteRequest("schedule-1")
    assert read_delete({"id": " "}) == DeleteRequest(" ")
    for arguments in ({}, {"id": 1}, {"id": None}, {"id": "x", "force": True}, "schedule-1"):
        assert refused(read_delete, arguments).code is SELECTOR


# Answers ----------------------------------------------------------------------------------


def test_an_answer_is_the_record_with_state_and_delivery_mode() -> None:
    """In this order; a reminder is overdue from its target on (SPEC 5.5)."""
    record = EveryReminder("schedule-1", "p", 300, NOW)
    assert stringify(reminder_answer(record, NOW - timedelta(milliseconds=1))) == (
        '{"id":"schedule-1","kind":"every","prompt":"p","everySeconds":300,'
        '"scheduledAt":"2026-01-01T00:00:00.000Z","state":"scheduled","deliveryMode":"session-local"}'
    )
    assert [item["state"] for item in list_answer([record], NOW)] == ["overdue"]
    assert list_answer([], NOW) == []


def test_a_delete_answers_whether_there_was_one() -> None:
    """Not finding it is an answer, not an error."""
    assert delete_answer("schedule-1", deleted=True) == {"id": "schedule-1", "deleted": True}
    assert stringify(delete_answer("x", deleted=False)) == '{"id":"x","deleted":false,"code":"schedule_not_found"}'


def test_uncertain_persistence_names_the_operation() -> None:
    """And the reminder, where there is one (SPEC 5.6)."""
    assert list(persistence_uncertain("create").answer()) == ["code", "message", "operation"]
    answer = persistence_uncertain("delete", "schedule-1").answer()
    assert (answer["code"], answer["operation"], answer["id"]) == (
        "persistence_uncertain",
        "delete",
        "schedule-1",
    )


def test_an_internal_error_shows_no_internals() -> None:
    """Its message is one fixed sentence or two."""
    assert internal_error().answer() == internal_error().answer()
    assert internal_error().code is ReminderCode.INTERNAL_ERROR


# Schemas ----------------------------------------------------------------------------------


def text_of(**options: Any) -> str:
    """Return all three tools as one text."""
    tools = reminder_tools(max_prompt_bytes=MAX_PROMPT_BYTES, **options)
    return stringify([[tool.name, tool.description, tool.input_schema] for tool in tools])


def test_schemas_are_byte_identical_for_equal_configuration() -> None:
    """And are new objects each time, so that a caller may change its own."""
    assert text_of() == text_of()
    first, second = (reminder_tools(max_prompt_bytes=10)[0] for _ in range(2))
    first.input_schema["properties"].clear()
    assert second.input_schema["properties"]


def test_schemas_are_closed_objects_of_2020_12() -> None:
    """No other property is allowed, in the tools' arguments and in the local form of `at`."""
    tools = {tool.name: tool.input_schema for tool in reminder_tools(max_prompt_bytes=MAX_PROMPT_BYTES)}
    assert list(tools) == [CREATE, LIST, DELETE]
    for schema in tools.values():
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert list(tools[CREATE]["properties"]) == ["prompt", "after_seconds", "at", "every_seconds"]
    assert tools[CREATE]["required"] == ["prompt"]
    assert tools[DELETE]["required"] == ["id"]
    assert tools[LIST]["properties"] == {}
    local = tools[CREATE]["properties"]["at"]["anyOf"][1]
    assert local["additionalProperties"] is False
    assert local["required"] == ["date", "time", "time_zone"]
    assert parse(text_of())


def test_without_fixed_rates_no_text_mentions_them() -> None:
    """every_seconds is not in the schema, nor in what describes it."""
    assert "every_seconds" in text_of()
    assert "every_seconds" not in text_of(fixed_rate=False)


def test_the_patterns_take_what_the_reader_takes() -> None:
    """A model that follows the schema is not refused for its form."""
    at = reminder_tools(max_prompt_bytes=10)[0].input_schema["properties"]["at"]["anyOf"]
    for text in ("2030-01-31T09:00:00Z", "2030-01-31T23:59:59.5-23:59"):
        assert re.search(at[0]["pattern"], text)
        assert isinstance(read_create({"prompt": "p", "at": text}).rule, At)
    for text in ("2030-01-31T24:00:00Z", "2030-01-31T09:00:00", "2030-01-31t09:00:00z"):
        assert not re.search(at[0]["pattern"], text)
    assert re.search(at[1]["properties"]["time"]["pattern"], "09:00:00.123")
    assert re.search(at[1]["properties"]["date"]["pattern"], "2030-01-31")


def test_the_limit_is_told() -> None:
    """A model sees how long a prompt may be."""
    assert "at most 65536 bytes" in text_of()
