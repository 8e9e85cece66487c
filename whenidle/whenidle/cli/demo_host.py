"""The host of the demo: `whenidle run` in a process of its own, which can be killed."""

import shlex
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs
import trio

from whenidle.cli.exits import CommandRefused

STOP_SECONDS = 15.0
"""More than the host's own shutdown timeout; then it is killed, so that the demo always ends."""

# The demo's agent: it thinks about what a user writes for as long as that says, and is quick about reminders.
_AGENT = """
import os, sys, time
text = sys.stdin.read()
if os.environ["WHENIDLE_SOURCE"] == "user":
    time.sleep(next(int(word) for word in text.split() if word.isdigit()))
print("heard", len(text), "characters")
"""


@attrs.define
class DemoHost:
    """A host process on `store`; leaving the context ends it."""

    store: Path
    _process: trio.Process | None = None

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Return a host, not started yet, with its store in `folder`."""
        return cls(folder / "demo.db")

    async def start(self) -> int:
        """Start the process, wait until the host runs, and return the process id.

        Raises:
            CommandRefused: it ended instead.
        """
        agent = shlex.join([sys.executable, "-I", "-S", "-c", _AGENT])
        command = [
            sys.executable,
            "-m",
            "whenidle",
            "run",
            "--json",
            "--store",
            str(self.store),
            "--agent",
            agent,
        ]
        self._process = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        stdout = self._process.stdout
        first = await stdout.receive_some() if stdout else b""
        if b'"host-started"' not in first:
            raise CommandRefused("demo_failed", f"the demo's host did not start: {first.decode(errors='replace')}")
        return self._process.pid

    async def kill(self) -> None:
        """Kill the process as a power cut would: nothing of it gets to run any more."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            await self._forget()

    async def stop(self) -> int:
        """Ask the host to stop in order, and return its exit status."""
        if self._process is None:
            return 0
        self._process.terminate()
        with trio.move_on_after(STOP_SECONDS):
            await self._process.wait()
        self._process.kill()
        status = await self._process.wait()
        await self._forget()
        return status

    async def _forget(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            await self._process.stdout.aclose()
        self._process = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with trio.CancelScope(shield=True):
            await self.stop()
