"""`python -m tests.fuzz [TARGET] --seconds N`: look for inputs that break a target, or each in turn.

The search is guided by coverage where `atheris` is installed. What is found goes to `tests/fuzz/found/`, where the
normal tests run it. Exit status: 0 nothing was found, 1 something was, 2 there is no such target.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING

from . import unguided
from .found import FOLDER, found_inputs
from .guided import has_atheris
from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Run the command with `arguments`, those of the process by default, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Look for inputs that break a target.")
    parser.add_argument("target", nargs="?", choices=tuple(TARGETS), help="one of them; each in turn if left out")
    parser.add_argument("--seconds", type=int, default=60, help="how long to look at each target (default: 60)")
    options = parser.parse_args(arguments)
    search = _guided if has_atheris() else _unguided
    names = list(TARGETS) if options.target is None else [options.target]
    return int(any([_told(name, search(name, options.seconds, folder)) for name in names]))  # noqa: C419 - all of them


def _guided(name: str, seconds: int, folder: Path) -> bool:
    """Return whether something was found."""
    before = found_inputs(name, folder)
    (folder / name).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        command = [sys.executable, "-m", "tests.fuzz.guided", name, str(seconds), corpus, str(folder / name)]
        failed = subprocess.run(command, check=False).returncode != 0
    return failed or found_inputs(name, folder) != before


def _unguided(name: str, seconds: int, folder: Path) -> bool:
    """Return whether something was found."""
    try:
        tried = unguided.search(TARGETS[name], seconds, folder)
    except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
        traceback.print_exc()
        return True
    print(f"{name}: {tried} inputs")  # noqa: T201 - it tells what it did
    return False


def _told(name: str, found: bool) -> bool:
    told = f"something was found, see {FOLDER / name}" if found else "nothing was found"
    print(f"{name}: {told}", flush=True)  # noqa: T201 - the same
    return found


if __name__ == "__main__":
    sys.exit(main())
