"""Fixtures of the command line's tests."""

import io
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from whenidle.cli import main

from .command_line import Call, Log, Result, RunningHost, program
from .processes import started


@pytest.fixture(autouse=True, scope="session")
def signals_are_heard() -> Iterator[None]:
    """Let no signal be ignored, as it is by `nohup` or a shell's `&`: hosts here and in other processes heed that."""
    heard: dict[signal.Signals, Any] = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    ignored = [number for number in heard if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, heard[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


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
