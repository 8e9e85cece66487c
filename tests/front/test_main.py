"""The entry points and the ends of `main`."""

import json
import os
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from whenidle.cli.exits import Exit, failure_of
from whenidle_actors.errors import NotAStore, StoreFull
from whenidle_protocol import CorruptLog

from .command_line import Call, program


def test_python_dash_m_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m whenidle` takes its arguments from the process and exits with the command's status."""
    monkeypatch.setattr(sys, "argv", ["whenidle", "nonsense"])
    main = find_spec("whenidle.__main__")
    assert main is not None
    assert main.origin is not None
    with pytest.raises(SystemExit) as ended:
        # As a file: of a package with a plugin, pytest loads the modules itself, in a way that runpy cannot.
        runpy.run_path(main.origin, run_name="__main__")
    assert ended.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def stop(kind: type[BaseException]) -> object:
    """Return a function that raises."""

    def broken(*_: object) -> NoReturn:
        raise kind

    return broken


@pytest.mark.parametrize(("kind", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_some_ends_need_no_words(
    call: Call, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], status: int
) -> None:
    """Who pressed Ctrl-C, and who went away, is told nothing."""
    monkeypatch.setattr("whenidle.cli.messages.check_session_id", stop(kind))
    monkeypatch.setattr("whenidle.cli._discard_output", lambda: None)
    result = call("send", "ada", "hello")
    assert (result.status, result.out, result.err) == (status, "", "")


def test_an_output_that_is_not_utf8_gets_escapes(call: Call, store: Path) -> None:
    """A terminal or a file in ASCII gets escapes instead of an error, and JSON stays JSON."""
    call("send", "ada", "né")
    said = {}
    for option in ([], ["--json"]):
        said[len(option)] = subprocess.run(
            program("log", "ada", "--store", str(store), *option),
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    assert said[0].endswith(rb": n\xe9" + b"\n")
    assert json.loads(said[1])["data"]["text"] == "né"
    assert said[1].isascii()


def test_closed_streams_are_no_reason_to_fail(call: Call, store: Path) -> None:
    """Without a standard input there is nothing to read, without an output nobody to tell."""
    command = f"{shlex.join(program('send', 'ada', '-', '--store', str(store)))} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert call("log", "ada").out.endswith("m0 (user, next-turn): \n")
    assert call("check").status == 0


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotAStore("x"), Exit.STORE, "not_a_store"),
        (StoreFull("x"), Exit.STORE, "store_full"),
        (CorruptLog("x", 3), Exit.STORE, "corrupt_log"),
        (FileNotFoundError(2, "No such file"), Exit.FAILED, "file_not_found_error"),
        (KeyError("x"), Exit.FAULT, "internal_error"),
        (KeyboardInterrupt(), Exit.INTERRUPTED, "keyboard_interrupt"),
        (BaseExceptionGroup("", [KeyboardInterrupt(), StoreFull("x")]), Exit.STORE, "store_full"),
        (ExceptionGroup("", [ExceptionGroup("", [NotAStore("x")])]), Exit.STORE, "not_a_store"),
    ],
)
def test_each_kind_of_error_has_its_status_and_code(error: BaseException, status: Exit, code: str) -> None:
    """Also where it comes wrapped in a group, from beside other tasks."""
    failure = failure_of(error)
    assert (failure.status, failure.code) == (status, code)


def test_a_message_of_any_length_is_one_short_line() -> None:
    """What strangers wrote into a message neither floods nor commands the terminal."""
    failure = failure_of(NotAStore("\x1b[2J\n" + "x" * 100_000))
    assert failure.message.startswith(r"\x1b[2J\nxxx")
    assert len(failure.message) < 1100
