"""Fixtures of the command line's tests."""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from whenidle.cli import main

from .command_line import Call, Log, Result, RunningHost, program
from .processes import started


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return where the test's store is; not there until something makes it."""
    return tmp_path / "test.db"


@pytest.fixture
def call(store: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    """Return what runs a command in this process, on the test's store."""
    monkeypatch.setenv("WHENIDLE_STORE", str(store))

    def run(*argv: str, stdin: bytes = b"") -> Result:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        status = main(argv)
        out, err = capfdbinary.readouterr()
        return Result(status, out.decode(), err.decode())

    return run


@pytest.fixture
def log(call: Call) -> Log:
    """Return the log of the session `ada`."""
    return Log(call)


@pytest.fixture
def host(store: Path) -> Iterator[Callable[..., RunningHost]]:
    """Return what starts `whenidle run --json` in a process of its own and waits until it runs."""
    with ExitStack() as ended:

        def start(agent: str, *options: str) -> RunningHost:
            command = program("run", "--json", "--store", str(store), "--agent", agent, *options)
            process = ended.enter_context(started(command, stdin=subprocess.DEVNULL))
            running = RunningHost(process)
            ended.callback(running.stop)
            running.until("host-started")
            return running

        yield start
