"""The argument vector of a command, and where in it the message goes.

By default the message is the command's standard input, which takes any text of any length. A command that wants it
as an argument has `{message}` in its arguments: it is replaced in place, so that the message is always part of one
argument, or is one, whatever it says. No shell ever sees it.

| message | what the command gets as its argument |
|---|---|
| begins with `-` and is an argument of its own, not behind `--` | a space before it: it cannot be taken for an option |
| holds NUL characters | U+FFFD in their place: an argument cannot hold them |
| is too long for an argument (on Linux 128 KiB) | nothing: the command is not started, and the turn fails |
"""

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

from whenidle_actors.errors import InvalidArgument, WhenidleError

PLACEHOLDER: Final = "{message}"

_PLACE: Final = re.compile(r"(?<!\$)\{message\}")
"""`${message}` is a shell's variable and stays."""
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "fish", "csh", "tcsh"})
_SCRIPT_OPTION: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_NAMES_OPTION: Final = re.compile(r"[-+][A-Za-z]*[oO]")
"""The argument behind it is no script either: `-o pipefail`."""


class CommandError(WhenidleError):
    """An agent command could not do its turn."""


class CommandNotFound(CommandError):
    """The agent command does not exist or may not be executed."""


def command_line(command: str) -> tuple[str, ...]:
    """Return the arguments of a command line, split as a POSIX shell would, the program as an absolute path.

    Raises:
        InvalidArgument: the command is empty or its quotes do not match.
        CommandNotFound: there is no such program, or it may not be executed.
    """
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise InvalidArgument(f"the agent command cannot be read: {error}") from error
    if not argv or not argv[0]:
        raise InvalidArgument("the agent command is empty; write a program and its arguments")
    program = shutil.which(argv[0])
    if program is None:
        # Unlike that of `Path`, this one also answers for a name that is too long to be one.
        problem = "is not executable" if os.path.isfile(argv[0]) else "was not found"  # noqa: PTH113
        raise CommandNotFound(f"the agent command {argv[0]!r} {problem}; give a program on PATH or a path")
    # Absolute, because the session may have a working directory of its own.
    return (str(Path(program).absolute()), *argv[1:])


def shell_script(script: str) -> tuple[str, ...]:
    """Return the arguments that have `/bin/sh` run `script`; the message is its standard input, never part of it.

    Raises:
        InvalidArgument: there is no script, or it asks for the message to be put into it.
    """
    if not script.strip():
        raise InvalidArgument("the agent command is empty; write a script for /bin/sh")
    if takes_message((script,)):
        raise InvalidArgument(
            f"{PLACEHOLDER} in a shell script would make code of the message; read it from standard input: $(cat)"
        )
    return ("/bin/sh", "-c", script)


def check_argv(argv: Sequence[str]) -> None:
    """Return if `argv` can be run, whatever message is put into it.

    Raises:
        InvalidArgument: it is empty or no strings, has a NUL, or the message would be a program or code of one.
    """
    if isinstance(argv, str) or not argv or not all(isinstance(each, str) for each in argv):
        raise InvalidArgument(
            "argv is a program and its arguments, a sequence of strings; command_line() makes one of a line"
        )
    if not argv[0] or any("\0" in each for each in argv):
        raise InvalidArgument("argv has no program, or a NUL character in it")
    for place, argument in enumerate(argv):
        if not _PLACE.search(argument):
            continue
        if place == 0:
            raise InvalidArgument(f"{PLACEHOLDER} cannot stand for the program; name one")
        if _is_script(argv, place):
            raise InvalidArgument(
                f"{PLACEHOLDER} in the script of a shell would make code of the message; give it as an argument of "
                f"the script: sh -c 'my-agent \"$1\"' sh {PLACEHOLDER}"
            )


def _is_script(argv: Sequence[str], place: int) -> bool:
    """Return whether an argument is what a shell takes for its script: the first behind `-c` that is no option."""
    shells = [at for at, argument in enumerate(argv[:place]) if PurePath(argument).name in _SHELLS]
    for shell in shells:
        options = argv[shell + 1 : place]
        for at, option in enumerate(options):
            if _SCRIPT_OPTION.fullmatch(option):
                between = zip(options[at:], options[at + 1 :], strict=False)
                if all(each.startswith(("-", "+")) or _NAMES_OPTION.fullmatch(before) for before, each in between):
                    return True
    return False


def takes_message(argv: Sequence[str]) -> bool:
    """Return whether the message goes into the arguments, not to standard input."""
    return any(_PLACE.search(argument) for argument in argv)


def filled(argv: Sequence[str], message: str) -> tuple[str, ...]:
    """Return `argv` with the message in its places; see the table above."""
    text = message.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return tuple(
        _alone(text, after_dashes="--" in argv[:place])
        if argument == PLACEHOLDER
        else _PLACE.sub(lambda _: text, argument)
        for place, argument in enumerate(argv)
    )


def _alone(text: str, *, after_dashes: bool) -> str:
    return f" {text}" if text.startswith("-") and not after_dashes else text
