"""`python -m tests.fuzz [TARGET] --seconds N`: look for inputs that break a target, or each in turn.

The search is guided by coverage where `atheris` is installed. What is found goes to `tests/fuzz/found/`, where the
normal tests run it. Exit status: 0 nothing was found, 1 something was, 2 there is no such target.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import TYPE_CHECKING

from .engines import at_random, guided, has_atheris

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = (
    *("reminder-tools", "task-tools", "rrules", "cron", "times", "session-logs"),
    *("stored-tasks", "reminder-frames", "task-frames", "names", "terminal", "commands"),
)
"""The targets: the guided search instruments the product while it is imported, and so these are known before."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, those of the process by default, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Look for inputs that break a target.")
    parser.add_argument("target", nargs="?", choices=NAMES, help="one of them; each in turn if left out")
    parser.add_argument("--seconds", type=int, default=60, help="how long to look at each target (default: 60)")
    options = parser.parse_args(arguments)
    if options.target is None:
        return max(_in_a_process(name, options.seconds) for name in NAMES)
    if has_atheris():
        guided(options.target, options.seconds)
    from .targets import TARGETS  # noqa: PLC0415 - see NAMES

    tried = at_random(TARGETS[options.target], options.seconds)
    print(f"{options.target}: {tried} inputs, nothing found")  # noqa: T201 - it tells what it found
    return 0


def _in_a_process(name: str, seconds: int) -> int:
    """Look at one target; the guided search ends its process."""
    command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(seconds)]
    return int(subprocess.run(command, check=False).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
