"""What `whenidle task` refuses, and what it says to write instead."""

from pathlib import Path

import pytest

from .command_line import Call
from .processes import eventually
from .test_task_commands import DIGEST, made


@pytest.mark.parametrize("verb", ["view", "pause", "resume", "delete", "run", "history"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("task-1", "task-1"),
        ("../x", "../x"),
        ("a\x1b[31m", r"a\x1b[31m"),
        ("", ""),
        ("caf\udce9", r"caf\udce9"),
        ("x" * 5000, "x" * 100 + "… (+4900 characters)"),
    ],
)
def test_a_task_that_is_not_there_is_named(call: Call, store: Path, verb: str, name: str, told: str) -> None:
    """Status 1 where there is a store, 3 where there is none; an id that cannot be is as good as unknown."""
    assert call("task", verb, name).status == 3
    assert not store.exists()
    call("send", "ada", "hello")
    refused = call("task", verb, name)
    assert refused.status == 1
    assert refused.error == f"there is no task '{told}'; `whenidle task list` lists them"
    assert call("task", verb, name, "--json").json["code"] == "schedule_not_found"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--after", "0"], "invalid_rule", "--after is a whole number of seconds, at least 1"),
        (["--after", "1.5"], "invalid_rule", "--after is a whole number"),
        (["--after", "9007199254740991"], "time_out_of_range", "use fewer seconds"),
        (["--at", "2001-01-01T00:00:00Z"], "not_future", "The time of the task is not in the future"),
        (["--at", "tomorrow"], "invalid_rule", "or with --zone a local time like 2030-01-31T09:00:00"),
        (["--at", "2200-01-31T09:00:00", "--zone", "CET"], "invalid_time_zone", "--zone must be"),
        (["--every", "59"], "frequency_too_high", "--every is at least 60"),
        (["--every", "-60"], "invalid_rule", "--every is a whole number"),
        (["--daily", "9", "--zone", "UTC"], "invalid_rule", 'like "09:00"'),
        (["--daily", "24:00", "--zone", "UTC"], "invalid_rule", "hours go to 23"),
        (["--daily", "09:00", "--zone", "../x"], "invalid_time_zone", "'../x' is not a time zone; write"),
        (["--cron", "* * *", "--zone", "UTC"], "invalid_rule", "does not have five fields; write five"),
        (["--cron", "0 0 30 2 *", "--zone", "UTC"], "invalid_rule", "never comes due"),
        (["--rrule", ""], "invalid_rule", "write two lines like"),
        (["--rrule", "RRULE:FREQ=DAILY"], "invalid_rule", "The DTSTART line is missing"),
        (["--rrule", r"DTSTART:20300131T090000\nRRULE:FREQ=DAILY"], "invalid_rule", "is in no time zone"),
        (["--rrule", r"DTSTART:20010131T090000Z\nRRULE:FREQ=DAILY;COUNT=2"], "not_future", "a higher COUNT"),
        (["--rrule", r"DTSTART:20300131T090000Z\nRRULE:FREQ=SECONDLY"], "frequency_too_high", "minute"),
        (["--rrule", "x" * 20_000], "invalid_rule", "more than 10000 characters"),
    ],
)
def test_a_rule_that_is_refused_is_told_with_what_to_write_instead(
    call: Call, store: Path, options: list[str], code: str, message: str
) -> None:
    """Exit status 1, the code of the tools, the options' own words, and no store is left behind."""
    refused = call(*DIGEST, *options, "--new")
    assert refused.status == 1
    assert message in refused.error
    assert call(*DIGEST, *options, "--new", "--json").json["code"] == code
    assert not store.exists()


@pytest.mark.parametrize(
    ("texts", "code", "message"),
    [
        (("", "x"), "invalid_title", "title must be a string that is not blank"),
        (("t" * 121, "x"), "invalid_title", "at most 120 characters"),
        (("t", " \n"), "invalid_prompt", "prompt must be a string that is not blank"),
        (("t", "x" * 65_537), "invalid_prompt", "at most 65536 bytes"),
    ],
)
def test_a_text_that_is_refused_is_told_with_its_limit(
    call: Call, store: Path, texts: tuple[str, str], code: str, message: str
) -> None:
    """On `create`, and on `edit` of a task, whose store stays as it is."""
    refused = call("task", "create", *texts, "--every", "600", "--new")
    assert (refused.status, message in refused.error) == (1, True)
    assert not store.exists()
    name = made(call, "--every", "600", "--new")["id"]
    refused = call("task", "edit", name, "--title", texts[0], "--prompt", texts[1], "--json")
    assert (refused.status, refused.json["code"]) == (1, code)
    assert call("task", "view", name, "--json").json["title"] == "Digest"


def test_what_has_no_occurrence_left_needs_a_new_rule(call: Call) -> None:
    """The refusal names the command that gives one."""
    name = made(call, "--after", "1", "--new")["id"]

    def too_late() -> bool:
        call("task", "pause", name)
        return call("task", "resume", name).status != 0

    eventually(too_late)
    refused = call("task", "resume", name)
    assert (refused.status, refused.error) == (
        1,
        "The task has no occurrence left; to make it active again, give it a new rule with `whenidle task edit`",
    )
    assert call("task", "resume", name, "--json").json["code"] == "not_future"
