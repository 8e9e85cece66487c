"""An MCP server at the other end of a real pipe, asked by a client that costs next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

_VERSION = "2025-11-25"


@attrs.define
class Pipe:
    """A connection that has said hello."""

    _to: IO[bytes]
    _back: IO[bytes]
    _asked: int = 0

    def call(self, tool: str, **arguments: Any) -> tuple[float, Any]:
        """Call a tool, and return the seconds until the whole answer was there, and its result."""
        line = self._line("tools/call", name=tool, arguments=arguments)
        began = time.perf_counter()
        self._to.write(line)
        self._to.flush()
        while b'"method"' in (answer := self._back.readline())[:60]:
            continue  # a notification
        took = time.perf_counter() - began
        return took, json.loads(answer)["result"]

    def greet(self) -> None:
        """Say hello."""
        hello = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
        self._to.write(self._line("initialize", **hello))
        self._to.flush()
        assert json.loads(self._back.readline())["result"]["protocolVersion"] == _VERSION
        self._to.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self._to.flush()

    def _line(self, method: str, **parameters: Any) -> bytes:
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": parameters}
        return json.dumps(request).encode() + b"\n"


@contextmanager
def piped(module: str, *arguments: str) -> Iterator[Pipe]:
    """Run `python -m module` as an MCP server while the block runs."""
    command: Sequence[str] = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(  # noqa: S603 - ourselves
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pipe = Pipe(process.stdin, process.stdout)
        pipe.greet()
        try:
            yield pipe
        finally:
            process.stdin.close()
            process.wait()
