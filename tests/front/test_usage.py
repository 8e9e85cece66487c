"""What a wrong command line is told."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from .command_line import Call, program

COMMANDS = (
    *(
        "demo",
        "run",
        "mcp",
        "top",
        "send",
        "remind",
        "reminders",
        "forget",
        "preview",
        "log",
        "export",
        "import",
        "check",
    ),
    *(f"task {verb}" for verb in ("create", "list", "view", "edit", "delete", "pause", "resume", "run", "history")),
    *(f"lab {verb}" for verb in ("list", "run", "replay", "shrink", "timeline")),
)
NEW_TASK = ("task", "create", "a", "b", "--new")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nonsense"], 'Unknown command "nonsense"'),
        (["send", "ada"], "TEXT requires an argument (see whenidle send --help)"),
        (["send", "ada", "good", "morning"], "argument too many, 'morning'; put a text with spaces in quotes"),
        (["send", "ada", "--jsno"], "Unknown option: --jsno"),
        (["remind", "ada", "tea"], "give exactly one of --after, --at and --every, not none"),
        (["remind", "ada", "tea", "--after", "1", "--every", "300"], "not --after and --every"),
        (["remind", "ada", "tea", "--after", "1", "--zone", "UTC"], "--zone belongs to a local --at"),
        (["remind", "ada", "tea", "--after", "soon"], "--after takes a whole number of seconds, not 'soon'"),
        (["remind", "ada", "tea", "--after", "1e999"], "--after takes a whole number of seconds"),
        (["remind", "ada", "tea", "--after", "nan"], "--after takes a whole number of seconds"),
        (["remind", "ada", "tea", "--after", "9" * 5000], "--after takes a whole number of seconds, not '9999"),
        (["remind", "ada", "tea", "--after", "٣"], "--after takes a whole number of seconds"),
        (["run", "--agent", "cat", "--time-limit", "0"], "--time-limit takes a number above 0"),
        (["run", "--agent", "cat", "--time-limit", "inf"], "--time-limit takes a number above 0"),
        (["run", "--agent", "cat", "--time-limit", "long"], '--time-limit: unable to convert "long"'),
        (["run", "--agent", "cat", "--max-turns", "0"], "--max-turns takes a number above 0"),
        (["run", "--agent", "cat", "--max-turns", "1.5"], "--max-turns: 1.5 is not a whole number"),
        (["run", "--agent", "cat", "--shutdown-timeout", "-1"], "--shutdown-timeout takes a number above 0"),
        (["mcp", "--agent", "cat", "--session", "a/b"], "session id 'a/b': use only"),
        (["mcp"], "--agent requires an argument"),
        (["run", "--agent", "cat", "--retries", "-1"], "--retries takes a whole number from 0 to 100"),
        (["run", "--agent", "cat", "--retry-status", "75,256"], "--retry-status takes numbers from 1 to 255"),
        (["run", "--agent", "cat", "--retry-status", "0"], "--retry-status takes numbers from 1 to 255, like 75,111"),
        (["run", "--agent", "cat", "--env", "=x"], "--env takes NAME=VALUE, not '=x'"),
        (["run", "--agent", "cat", "--env", "x"], "--env takes NAME=VALUE, not 'x'"),
        (["run", "--agent", "cat", "--folders", "/dev/null"], "--folders takes a folder; '/dev/null' is none"),
        (["run", "--agent", "echo {message}", "--shell"], "would make code of the message"),
        (["run", "--agent", "sh -c 'echo {message}'"], "would make code of the message"),
        (["run"], "--agent requires an argument"),
        (["run", "--agent", ""], "the agent command is empty"),
        (["run", "--agent", "say 'hello"], "the agent command cannot be read: No closing quotation"),
        (["log", "a/b"], "session id 'a/b': use only"),
        (["send", "../x", "hello"], "session id '../x': use only"),
        (["remind", "a b", "tea", "--after", "5"], "session id 'a b': use only"),
        (["send", "x" * 10_000, "hello"], "at most 128 characters; this one has 10000"),
        (["reminders", ".hidden"], "no leading dot"),
        (["export", "né"], "session id 'n\\xe9': use only"),
        (["forget", "", "schedule-1"], "a session id is a non-empty string"),
        (["send", "a\x1b[31m", "hello"], "session id 'a\\x1b[31m'"),
        (["log", "-"], "session id"),
        (["task", "creat"], 'Unknown command "creat". Did you mean "create"?'),
        (["task", "create", "a"], "PROMPT requires an argument (see whenidle task create --help)"),
        ([*NEW_TASK], "say when the task comes due: --rrule, --at, --after, --every, --daily, --weekly or --cron"),
        (
            ["task", "create", "a", "b", "--after", "5"],
            "say where the task is delivered: --session, --new-once or --new",
        ),
        ([*NEW_TASK, "--after", "5", "--every", "60"], "give one rule, not --every and --after"),
        (
            [*NEW_TASK, "--new-once", "--after", "5"],
            "give one of --session, --new-once and --new, not --new-once and --new",
        ),
        ([*NEW_TASK, "--session", "ada", "--after", "5"], "not --session and --new"),
        (["task", "create", "a", "b", "--session", "a/b", "--after", "5"], "session id 'a/b': use only"),
        (["task", "create", "a", "b", "--session", "", "--after", "5"], "a session id is a non-empty string"),
        (
            [*NEW_TASK, "--daily", "09:00"],
            "--daily is local time; say where with --zone, for example --zone Europe/Paris",
        ),
        ([*NEW_TASK, "--cron", "0 9 * * *"], "--cron is local time; say where with --zone"),
        ([*NEW_TASK, "--weekly", "09:00", "--zone", "UTC"], "--weekly needs --days, for example --days mon,fri"),
        ([*NEW_TASK, "--daily", "09:00", "--zone", "UTC", "--days", "mon"], "--days belongs to --weekly"),
        ([*NEW_TASK, "--weekly", "09:00", "--zone", "UTC", "--days", "mon,x\x1b"], r"mon,wed,fri, not 'x\x1b'"),
        ([*NEW_TASK, "--weekly", "09:00", "--zone", "UTC", "--days", ""], "--days takes names of weekdays"),
        ([*NEW_TASK, "--every", "600", "--zone", "UTC"], "--weekly or --cron; --every counts seconds"),
        ([*NEW_TASK, "--after", "600", "--zone", "UTC"], "--weekly or --cron; --after counts seconds"),
        ([*NEW_TASK, "--rrule", "x", "--zone", "UTC"], "the zone of an RRULE is that of its DTSTART"),
        ([*NEW_TASK, "--zone", "UTC"], "--weekly or --cron; it says no rule by itself"),
        ([*NEW_TASK, "--every", "often"], "--every takes a whole number of seconds, not 'often'"),
        (
            [*NEW_TASK, "--rrule", "@/nowhere/x"],
            "--rrule names the file '/nowhere/x', which cannot be read: No such file",
        ),
        ([*NEW_TASK, "--after", "5", "--gap", "hop"], "--gap: 'hop' is not skip or shift (see whenidle task create"),
        ([*NEW_TASK, "--after", "5", "--overlap", "none"], "--overlap: 'none' is not first or both"),
        (
            [*NEW_TASK, "--after", "5", "--catch-up", "-1"],
            "--catch-up takes a whole number of seconds from 0 on, not '-1'",
        ),
        ([*NEW_TASK, "--after", "5", "--catch-up", "0.5"], "--catch-up takes a whole number of seconds from 0 on"),
        ([*NEW_TASK, "--after", "5", "--catch-up", "1d"], "--catch-up takes a whole number of seconds, not '1d'"),
        (["task", "create", "a", "-", "--new", "--rrule", "-"], "standard input can be read for one text only"),
        (["task", "edit", "task-1"], "say what to change: --title, --prompt, a rule (--rrule, --at,"),
        (["task", "edit", "task-1", "--title", "-", "--prompt", "-"], "standard input can be read for one text only"),
        (
            ["task", "edit", "task-1", "--title", "x", "--expected-updated-at", "now"],
            "takes the updatedAt of the task as",
        ),
        (
            ["task", "delete", "task-1", "--expected-updated-at", "2030-01-31"],
            "like 2030-01-31T09:00:00.000Z, not '2030",
        ),
        (["task", "list", "--limit", "0"], "--limit takes a whole number from 1 to 500, not 0"),
        (["task", "list", "--limit", "501"], "--limit takes a whole number from 1 to 500, not 501"),
        (["task", "list", "--limit", "1.5"], "--limit: 1.5 is not a whole number"),
        (["task", "list", "--offset", "-1"], "--offset takes a whole number from 0 to 9007199254740991, not -1"),
        (["task", "list", "--offset", "9" * 30], "--offset takes a whole number from 0 to 9007199254740991"),
        (["task", "history", "task-1", "--limit", "0"], "--limit takes a whole number from 1 to 500"),
        (["task", "history", "task-1", "--before", "-1"], "--before takes a whole number from 0"),
        (["preview"], "say which rule: as an argument, or with --rrule, --every, --daily, --weekly or --cron"),
        (["preview", "0 9 * * *"], "--cron is local time; say where with --zone"),
        (
            ["preview", "0 9 * * *", "--zone", "UTC", "--every", "60"],
            "give one rule, not --every and an argument besides",
        ),
        (["preview", "every monday"], "'every monday' is no rule; write two lines like 'DTSTART;TZID="),
        (["preview", "0 9 * * *", "1"], "argument too many, '1'; put a text with spaces in quotes"),
        (["preview", "--every", "60", "--count", "0"], "--count takes a whole number from 1 to 10000, not 0"),
        (["preview", "--every", "60", "--count", "10001"], "--count takes a whole number from 1 to 10000"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused_in_one_line(
    call: Call, argv: list[str], message: str, tmp_path: Path
) -> None:
    """The exit status is 2, one line says what is wrong, and no store is made."""
    result = call(*argv)
    assert result.status == 2
    assert message in result.error
    assert len(result.error) < 1100
    assert list(tmp_path.iterdir()) == []


def test_with_json_a_usage_error_is_a_document(call: Call) -> None:
    """A script reads standard output only, whatever happened."""
    result = call("send", "--json", "ada")
    assert result.status == 2
    assert result.json == {
        "code": "usage",
        "message": 'Command "send" parameter TEXT requires an argument (see whenidle send --help)',
    }


def test_json_behind_a_double_dash_is_a_text(call: Call) -> None:
    """After `--` nothing is an option, so the error is for people."""
    assert call("send", "--", "a/b", "--json").error.startswith("session id 'a/b'")


def test_arguments_that_are_not_utf8_are_refused(store: Path) -> None:
    """Bytes that are not UTF-8 cannot be a message; the store is not made."""
    new_task = [b"task", b"create", b"a", b"caf\xe9", b"--new", b"--after", b"5"]
    for argv in ([b"send", b"ada", b"caf\xe9"], [b"remind", b"ada", b"caf\xe9", b"--after", b"5"], new_task):
        command = [*map(os.fsencode, program()), *argv, b"--store", os.fsencode(store)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 2
        assert done.stderr.endswith(b" is not UTF-8 at character 4\n")
        assert done.stderr.count(b"\n") == 1
    assert not store.exists()


@pytest.mark.parametrize(
    "command",
    [
        ["send", "ada", "-"],
        ["remind", "ada", "-", "--after", "5"],
        ["task", "create", "a", "-", "--new", "--after", "5"],
        ["task", "create", "a", "b", "--new", "--rrule", "-"],
        ["preview", "-"],
    ],
)
def test_standard_input_that_is_not_utf8_is_refused(call: Call, command: list[str], store: Path) -> None:
    """The message says which byte is wrong."""
    result = call(*command, stdin=b"ab\xff")
    assert result.status == 2
    assert result.error.endswith("on standard input is not UTF-8: byte 3 is 0xff")
    assert call(*command, "--json", stdin=b"ab\xff").json["code"] == "not_utf8"
    assert not store.exists()


def test_standard_input_without_an_end_is_refused(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads more than the limit into memory."""
    monkeypatch.setattr("whenidle.cli.arguments.STDIN_LIMIT", 10)
    result = call("send", "ada", "-", stdin=b"x" * 11)
    assert result.status == 2
    assert result.error == "TEXT on standard input is longer than 10 bytes"


def test_help_and_version_go_to_standard_output(call: Call) -> None:
    """Every command explains itself, and the version is the distribution's."""
    assert "remind" in call("--help").out
    assert call().out == call("--help").out
    assert call("--version").out == f"whenidle {version('whenidle')}\n"
    assert call("task").out == call("task", "--help").out
    for command in COMMANDS:
        result = call(*command.split(), "--help")
        assert result.status == 0
        assert f"whenidle {command}" in result.out
        assert ("--json" in result.out) == (command != "mcp")  # its output is the protocol's


def test_an_agent_command_that_cannot_run_is_refused_before_the_host_starts(
    call: Call, tmp_path: Path, store: Path
) -> None:
    """There is no host without an agent, and no store is made for one."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert call("run", "--agent", "no-such-program --x").error == (
        "the agent command 'no-such-program' was not found; give a program on PATH or a path"
    )
    result = call("run", "--agent", str(script), "--json")
    assert result.status == 1
    assert result.json["code"] == "command_not_found"
    assert "is not executable" in result.json["message"]
    assert not store.exists()
