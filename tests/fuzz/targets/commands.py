"""Messages on their way into the arguments of an agent command."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Final

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target
from whenidle.command_template import (
    PLACEHOLDER,
    CommandError,
    check_argv,
    command_line,
    filled,
    shell_script,
    takes_message,
)
from whenidle_actors.errors import InvalidArgument

_ARGUMENTS: Final = (
    *("agent", "/bin/sh", "sh", "-c", "--", "-x", PLACEHOLDER, f"--text={PLACEHOLDER}", f"{PLACEHOLDER}{PLACEHOLDER}"),
    *("${message}", "a b", "'", "", 'my-agent "$1"', "env", "-ec", "{message", "bash"),
)


def _commands(data: bytes) -> None:
    choices = Choices(data)
    argv = tuple(choices.of(_ARGUMENTS) for _ in range(choices.below(7)))
    message = choices.text()
    for text in (shlex.join(argv), message):
        _check_line(text)
    try:
        check_argv(argv)
    except InvalidArgument:
        return
    whole = filled(argv, message)
    assert len(whole) == len(argv)
    assert whole[0] == argv[0]
    for before, after in zip(argv, whole, strict=True):
        assert "\0" not in after
        after.encode()
        if not takes_message((before,)):
            assert after == before
        elif before == PLACEHOLDER and "--" not in argv:
            assert not after.startswith("-")


def _check_line(text: str) -> None:
    with suppress(InvalidArgument, CommandError):
        assert command_line(text)[0].startswith("/")
    try:
        assert shell_script(text) == ("/bin/sh", "-c", text)
    except InvalidArgument:
        assert not text.strip() or PLACEHOLDER in text


COMMANDS: Final = Target(
    "commands",
    _commands,
    (b"\2\0\6\1\22", b"\3\0\4\6\1\22", b"\3\0\7\10\1\0", b"\5\1\3\15\2\6\1\20", b"\4\16\1\17\6\0\5"),
)
