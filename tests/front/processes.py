"""Real processes, watched without sleeping for a fixed time."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds before a condition that never comes true fails its test; no test waits that long otherwise."""
_INTERVAL = 0.02


def eventually(condition: Callable[[], T]) -> T:
    """Ask until the answer is true, and return it."""
    give_up = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < give_up, "the condition did not come true"
        time.sleep(_INTERVAL)
    return answer


async def eventually_async(condition: Callable[[], T]) -> T:
    """Ask until the answer is true, whatever clock trio has, and return it."""
    return await trio.to_thread.run_sync(eventually, condition)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process with text pipes; whatever happens to the test, it does not outlive the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie that waits for some ancestor."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def written(path: Path) -> str:
    """Return the line that somebody has written to `path`, empty while it is not complete."""
    text = path.read_text() if path.exists() else ""
    return text.strip() if text.endswith("\n") else ""
