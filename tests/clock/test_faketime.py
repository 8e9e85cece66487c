"""Steps of the wall clock that a real process sees, by libfaketime: the machine's clock stays alone."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SLICE_SECONDS = 0.05
HOUR = 3600


def find_library() -> Path:
    """Find libfaketime, or skip; in CI its absence is a failure."""
    roots = [Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib"), Path("/opt/homebrew/lib")]
    for root in roots:
        for pattern in ("faketime/libfaketime.so.1", "*/faketime/libfaketime.so.1"):
            for found in sorted(root.glob(pattern)):
                return found
    reason = "libfaketime is not installed (Debian package faketime)"
    if os.environ.get("CI"):
        pytest.fail(f"{reason}: CI must have it, no other test steps a real process's clock")
    pytest.skip(reason)


class Wall:
    """The wall clock of one child process: real time and an offset, in a file that libfaketime reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.step(0)

    def step(self, offset_seconds: int) -> None:
        ready = self.path.with_suffix(".new")
        ready.write_text(f"{offset_seconds:+d}\n")
        ready.replace(self.path)

    def environment(self) -> dict[str, str]:
        return os.environ | {
            "LD_PRELOAD": str(find_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


@contextmanager
def waiting(wall: Wall, target_ms: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that waits for the instant; leave when it has begun to wait, end it at last."""
    command = [sys.executable, str(Path(__file__).with_name("stepped_process.py")), str(target_ms), str(SLICE_SECONDS)]
    with subprocess.Popen(command, env=wall.environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_millis(process: subprocess.Popen[str]) -> int:
    """Read the next wall time the process prints."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def now_ms() -> int:
    """Read the wall that is not faked."""
    return time.time_ns() // 1_000_000


def test_a_forward_step_of_the_wall_ends_a_real_wait(tmp_path: Path) -> None:
    """A process that waits for an hour returns as soon as its wall is set two hours on."""
    wall = Wall(tmp_path / "wall")
    target = now_ms() + HOUR * 1000
    with waiting(wall, target) as process:
        assert read_millis(process) < target
        began = time.monotonic()
        wall.step(2 * HOUR)
        assert read_millis(process) >= target
        assert time.monotonic() - began < HOUR / 60
        assert process.wait(10) == 0


def test_a_step_back_of_the_wall_never_ends_a_real_wait_early(tmp_path: Path) -> None:
    """A process whose wall is set back waits on past its first plan, and ends when the wall is there."""
    wall = Wall(tmp_path / "wall")
    target = now_ms() + 3000
    with waiting(wall, target) as process:
        assert read_millis(process) < target
        wall.step(-HOUR)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(max(0, target - now_ms()) / 1000 + 4 * SLICE_SECONDS)
        wall.step(0)
        assert read_millis(process) >= target
        assert process.wait(10) == 0
