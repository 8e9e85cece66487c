"""`remind`, `reminders` and `forget`, and each error of SPEC 5.7 as the command line tells it."""

import json
import re
from pathlib import Path

import pytest

from .command_line import Call, Log

INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z"


def test_a_reminder_makes_its_session_and_is_listed(call: Call) -> None:
    """`remind` creates the session, tells when the reminder is due, and `reminders` lists it."""
    made = call("remind", "ada", "  drink tea ", "--after", "90")
    assert made.status == 0
    assert re.fullmatch(rf"schedule-1 is due {INSTANT} \(in 1m (29|30)s\)\n", made.out)
    listed = call("reminders", "ada")
    assert listed.status == 0
    assert re.fullmatch(rf"schedule-1 +after 90 s +{INSTANT}  in 1m [0-9]+s +drink tea\n", listed.out)


def test_with_json_the_answers_are_the_tools_own(call: Call) -> None:
    """Scripts get what a model would get from the tools."""
    made = call("remind", "ada", "tea", "--after", "5.0", "--json").json
    assert made == {
        "id": "schedule-1",
        "kind": "after",
        "prompt": "tea",
        "afterSeconds": 5,
        "scheduledAt": made["scheduledAt"],
        "state": "scheduled",
        "deliveryMode": "session-local",
    }
    every = call("remind", "ada", "walk", "--every", "300", "--json").json
    assert (every["id"], every["kind"], every["everySeconds"]) == ("schedule-2", "every", 300)
    assert call("reminders", "ada", "--json").json == [made, every]
    assert call("forget", "ada", "schedule-1", "--json").json == {"id": "schedule-1", "deleted": True}
    assert call("reminders", "ada", "--json").json == [every]


@pytest.mark.parametrize(
    ("options", "target"),
    [
        (["--at", "2200-01-31T09:00:00Z"], "2200-01-31T09:00:00.000Z"),
        (["--at", "2200-01-31T09:00:00.25+01:00"], "2200-01-31T08:00:00.250Z"),
        (["--at", "2200-01-31T09:00:00", "--zone", "Europe/Paris"], "2200-01-31T08:00:00.000Z"),
        (["--at", "2200-01-31 09:00:00", "--zone", "UTC"], "2200-01-31T09:00:00.000Z"),
    ],
)
def test_an_instant_and_a_local_time_are_taken(call: Call, options: list[str], target: str) -> None:
    """`--at` takes an instant, or with `--zone` a local time, with `T` or a space."""
    assert call("remind", "ada", "tea", *options, "--json").json["scheduledAt"] == target


def test_what_was_forgotten_is_gone_and_cannot_be_forgotten_again(call: Call) -> None:
    """`forget` says so, and a second time it is refused."""
    call("remind", "ada", "tea", "--after", "90")
    assert call("forget", "ada", "schedule-1").out == "schedule-1 is forgotten\n"
    assert call("reminders", "ada").out == "ada has no active reminders\n"
    again = call("forget", "ada", "schedule-1")
    assert again.status == 1
    assert again.error == "ada has no active reminder schedule-1; `whenidle reminders` lists them"
    assert call("forget", "ada", "schedule-1", "--json").json["code"] == "schedule_not_found"


def test_a_prompt_comes_from_standard_input(call: Call) -> None:
    """`-` reads the prompt, of which the white space around it is not kept."""
    assert call("remind", "ada", "-", "--after", "9", "--json", stdin="né\n".encode()).json["prompt"] == "né"
    assert call("remind", "ada", "--after", "9", "--json", "--", "-").json["prompt"] == "-"


@pytest.mark.parametrize(
    ("prompt", "options", "code", "message"),
    [
        ("", ["--after", "5"], "invalid_prompt", "not blank"),
        (" \n", ["--after", "5"], "invalid_prompt", "not blank"),
        ("-", ["--after", "5"], "invalid_prompt", "at most 65536 bytes"),
        ("tea", ["--after", "0"], "invalid_rule", "--after must be a whole number of seconds from 1 to"),
        ("tea", ["--after", "-5"], "invalid_rule", "--after must be"),
        ("tea", ["--after", "1.5"], "invalid_rule", "--after must be"),
        ("tea", ["--after", "99999999999999999999"], "invalid_rule", "--after must be"),
        ("tea", ["--after", "1e300"], "invalid_rule", "--after must be"),
        ("tea", ["--after", "9007199254740991"], "time_out_of_range", "use fewer seconds"),
        ("tea", ["--every", "299"], "frequency_too_high", "--every must be at least 300"),
        ("tea", ["--every", "0.5"], "invalid_rule", "--every must be"),
        ("tea", ["--every", "9007199254740991"], "time_out_of_range", "use a shorter interval"),
        ("tea", ["--at", "2001-01-01T00:00:00Z"], "not_future", "--at must lie in the future"),
        ("tea", ["--at", "tomorrow"], "invalid_rule", '--at must be a string like "2030-01-31T09:00:00Z"'),
        ("tea", ["--at", "2200-01-31T09:00:00"], "invalid_rule", "--at must be a string like"),
        ("tea", ["--at", "2200-02-30T09:00:00Z"], "invalid_rule", "does not exist"),
        ("tea", ["--at", "0001-01-01T00:00:00+23:59"], "time_out_of_range", "years 0001 to 9999"),
        ("tea", ["--at", "2200-01-31T09:00:00", "--zone", "CET+1"], "invalid_time_zone", "--zone must be"),
        ("tea", ["--at", "2200-01-31T09:00:00", "--zone", "../../etc"], "invalid_time_zone", "--zone must be"),
        ("tea", ["--at", "2200-01-31", "--zone", "UTC"], "invalid_rule", "--at must be"),
        ("tea", ["--at", "2030-03-10T02:30:00", "--zone", "America/New_York"], "invalid_rule", "clocks go forward"),
    ],
)
def test_what_the_tool_refuses_is_refused_in_the_words_of_the_options(
    call: Call, store: Path, prompt: str, options: list[str], *, code: str, message: str
) -> None:
    """Exit status 1, what to write instead, and neither a session nor a store is left behind."""
    stdin = b"x" * 1_000_000
    result = call("remind", "ada", prompt, *options, stdin=stdin)
    assert result.status == 1
    assert message in result.error
    document = call("remind", "ada", prompt, *options, "--json", stdin=stdin).json
    assert document["code"] == code
    assert message in document["message"]
    assert not store.exists()


def test_a_missing_or_double_selector_has_the_tools_code(call: Call) -> None:
    """`invalid_selector` is a matter of usage here, so the exit status is 2."""
    result = call("remind", "ada", "tea", "--json")
    assert (result.status, result.json["code"]) == (2, "invalid_selector")


def test_a_corrupt_reminder_log_is_named_and_left_alone(call: Call, log: Log, tmp_path: Path) -> None:
    """A log whose reminders do not fold can be read and exported; the tools answer `corrupt_schedule_log`."""
    file = exported_with_bad_schedule(call, tmp_path)
    assert call("import", str(file)).status == 0
    before = log.events()
    for command in (["reminders", "ada"], ["remind", "ada", "x", "--after", "5"], ["forget", "ada", "schedule-1"]):
        result = call(*command)
        assert result.status == 1
        assert "its log is corrupt" in result.error
        assert call(*command, "--json").json["code"] == "corrupt_schedule_log"
    assert log.events() == before


def exported_with_bad_schedule(call: Call, folder: Path) -> Path:
    """Export a session, and damage a reminder in the file."""
    file = folder / "ada.jsonl"
    call("remind", "ada", "tea", "--after", "90", "--store", str(folder / "other.db"))
    assert call("export", "ada", "-o", str(file), "--store", str(folder / "other.db")).status == 0
    lines = file.read_text().splitlines()
    event = json.loads(lines[1])
    event["data"]["version"] = 2
    file.write_text("\n".join([lines[0], json.dumps(event), ""]))
    return file


@pytest.mark.parametrize("command", [["reminders", "ada"], ["forget", "ada", "schedule-1"], ["log", "ada"]])
def test_reading_commands_do_not_make_what_is_not_there(call: Call, command: list[str], store: Path) -> None:
    """A store that is not there is status 3, a session that is not there status 1, and both stay away."""
    result = call(*command)
    assert result.status == 3
    assert result.error.startswith(f"there is no store '{store}'; name it with --store or WHENIDLE_STORE")
    assert not store.exists()
    call("send", "bob", "hello")
    result = call(*command)
    assert result.status == 1
    assert result.error == "there is no session 'ada'"
    assert call(*command, "--json").json["code"] == "unknown_session"


def test_a_prompt_cannot_command_the_terminal(call: Call) -> None:
    """Escape sequences and markup in a prompt are shown, not obeyed."""
    call("remind", "ada", "-", "--after", "90", stdin=b"\x1b[2J[bold]x[/bold]\xc2\x9b1m")
    shown = call("reminders", "ada").out + call("log", "ada").out
    assert shown.count(r"\x1b[2J[bold]x[/bold]\x9b1m") == 2
    assert "\x1b" not in shown
    listed = call("reminders", "ada", "--json")
    assert listed.json[0]["prompt"] == "\x1b[2J[bold]x[/bold]\x9b1m"
    assert not set(listed.out) & {"\x1b", "\x9b"}
