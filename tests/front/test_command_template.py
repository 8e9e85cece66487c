"""Where a message goes in a command, and what is refused because it would make code of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle.command_template import (
    PLACEHOLDER,
    CommandNotFound,
    check_argv,
    command_line,
    filled,
    shell_script,
    takes_message,
)
from whenidle_actors.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command", "message"), [("", "is empty"), ("''", "is empty"), ("a 'b", "No closing quotation")]
)
def test_a_command_line_that_cannot_be_split_is_an_argument_error(command: str, message: str) -> None:
    """The mistake is named before anything starts."""
    with pytest.raises(InvalidArgument, match=message):
        command_line(command)


def test_a_program_is_looked_for_at_once(tmp_path: Path) -> None:
    """Missing and not executable are told apart."""
    with pytest.raises(CommandNotFound, match="'nowhere-to-be-found' was not found"):
        command_line("nowhere-to-be-found --x")
    (tmp_path / "data").write_text("")
    with pytest.raises(CommandNotFound, match="is not executable"):
        command_line(str(tmp_path / "data"))
    with pytest.raises(CommandNotFound, match=r"'xxx.* was not found"):
        command_line("x" * 5_000)  # longer than any file name
    assert command_line("sh -c 'a b'")[1:] == ("-c", "a b")


def test_a_script_is_given_to_a_shell_only_when_asked() -> None:
    """Its own variables are its own; the message is not one of them."""
    assert shell_script("cat; echo ${message}") == ("/bin/sh", "-c", "cat; echo ${message}")
    with pytest.raises(InvalidArgument, match="would make code of the message"):
        shell_script("echo {message}")
    with pytest.raises(InvalidArgument, match="is empty"):
        shell_script(" \n")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "a sequence of strings"),
        (("a", 1), "a sequence of strings"),
        (("",), "no program"),
        (("a", "b\0"), "a NUL character"),
        (("{message}", "x"), "cannot stand for the program"),
        (("sh", "-c", "echo {message}"), "would make code of the message"),
        (("/usr/bin/env", "bash", "-lc", "x {message}"), "would make code of the message"),
        (("bash", "-c", "-x", "{message}"), "would make code of the message"),
        (("sh", "-c", "--", "{message}"), "would make code of the message"),
        (("bash", "-c", "-eo", "pipefail", "{message}"), "would make code of the message"),
    ],
)
def test_a_command_that_no_message_may_be_put_into_is_refused(argv: tuple[str, ...], message: str) -> None:
    """It is refused when it is made, not when a message has come."""
    with pytest.raises(InvalidArgument, match=message):
        check_argv(argv)


@pytest.mark.parametrize(
    "argv",
    [
        ("sh", "-c", 'my-agent "$1"', "sh", "{message}"),
        ("agent", "-c", "{message}"),
        ("sh", "script", "{message}"),
        ("bash", "-c", "-o", "pipefail", 'my-agent "$1"', "sh", "{message}"),
        ("sh", "-c", "echo ${message}"),
    ],
)
def test_a_message_may_be_an_argument_of_a_script(argv: tuple[str, ...]) -> None:
    """What a shell gets as a parameter is no code of it, and `-c` means something else elsewhere."""
    check_argv(argv)


@given(st.text(), st.lists(st.sampled_from(["--", "-p", "x", PLACEHOLDER, "--m={message}"]), max_size=5))
def test_any_message_makes_as_many_arguments_as_there_were(message: str, argv: list[str]) -> None:
    """Each can be passed to a program, and none of those that are the message alone can be taken for an option."""
    made = filled(("agent", *argv), message)
    assert len(made) == len(argv) + 1
    for place, (before, after) in enumerate(zip(("agent", *argv), made, strict=True)):
        after.encode()
        assert "\0" not in after
        if before == PLACEHOLDER:
            assert "--" in argv[: place - 1] or not after.startswith("-")
        elif not takes_message((before,)):
            assert after == before
