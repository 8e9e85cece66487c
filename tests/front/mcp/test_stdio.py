"""Standard input and output, kept for the protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from whenidle.mcp.stdio import own_stdio

STRAY = """
import os, subprocess, sys
from whenidle.mcp.stdio import own_stdio

print("before")
with own_stdio() as wire:
    print("stray")
    subprocess.run(["sh", "-c", "cat; echo child; ls /proc/self/fd | wc -l"])
    assert sys.stdin.read() == ""
    assert os.read(wire.incoming, 100) == b"asked"
    os.write(wire.outgoing, b"answered\\n")
    os.close(wire.incoming)
    os.close(wire.outgoing)
print("after")
"""


def test_what_is_printed_meanwhile_goes_to_standard_error() -> None:
    """Neither this process nor one that it starts reaches the wire; before and after all is as usual."""
    done = subprocess.run([sys.executable, "-c", STRAY], input=b"asked", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"before\nanswered\nafter\n"
    assert done.stderr.split() == [b"stray", b"child", b"4"]  # the three, and the folder that is listed


def test_the_descriptors_are_given_back_after_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever happens in the block."""
    before = descriptors()
    with pytest.raises(RuntimeError, match="oops"):
        fail_inside()
    os.write(1, b"heard\n")
    assert capfd.readouterr().out == "heard\n"
    assert descriptors() == before


def fail_inside() -> None:
    """Fail while the wire is ours."""
    with own_stdio() as wire:
        os.close(wire.incoming)
        os.close(wire.outgoing)
        raise RuntimeError("oops")


def descriptors() -> int:
    """Return how many are open."""
    return len(list(Path("/proc/self/fd").iterdir()))
