"""The command line as a test uses it."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from .processes import PATIENCE, eventually


@attrs.frozen
class Result:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output; standard error has to be empty."""
        assert self.err == ""
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line on standard error; standard output has to be empty."""
        assert self.out == ""
        assert self.err.startswith("whenidle: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("whenidle: ").rstrip("\n")


Call = Callable[..., Result]
"""`call("send", "ada", "hello", stdin=b"")` runs a command on the test's store, in this process."""


def program(*argv: str) -> list[str]:
    """Return the command that runs `whenidle` in a process of its own."""
    return [sys.executable, "-m", "whenidle", *argv]


def python(script: str, *argv: str) -> list[str]:
    """Return a command that runs a Python script and starts fast."""
    return [sys.executable, "-I", "-S", "-c", script, *argv]


@attrs.define
class RunningHost:
    """A `whenidle run` in a process of its own, and what it told so far."""

    process: subprocess.Popen[str]
    told: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])

    def until(self, event: str) -> dict[str, Any]:
        """Read what the host tells until `event`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.append(json.loads(line))
            if self.told[-1]["event"] == event:
                return self.told[-1]
        raise AssertionError(f"the host ended without {event}: {self.told}")

    def stop(self) -> None:
        """Have the host stop in order, if it has not yet."""
        self.process.terminate()
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.process.stdout.read()
        assert self.process.wait(PATIENCE) in {0, -signal.SIGKILL, 130, 141}

    def rest(self) -> list[str]:
        """Wait for the end of the process and return the names of all events it told of."""
        assert self.process.stdout is not None
        self.told += [json.loads(line) for line in self.process.stdout]
        self.process.wait()
        return [event["event"] for event in self.told]


@attrs.frozen
class Log:
    """The log of one session, read by `whenidle log --json`."""

    call: Call
    session: str = "ada"

    def events(self, type: str = "") -> Sequence[Any]:  # noqa: A002 - the event's field
        """Return the events so far, all or those of one type."""
        result = self.call("log", self.session, "--json")
        if result.status:
            return []
        return [event for event in map(json.loads, result.out.splitlines()) if type in {"", event["type"]}]

    def until(self, type: str, count: int = 1) -> Sequence[Any]:  # noqa: A002 - the event's field
        """Wait until there are `count` events of a type, and return them."""

        def found() -> Sequence[Any]:
            events = self.events(type)
            return events if len(events) >= count else []

        return eventually(found)
