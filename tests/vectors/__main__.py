"""`python -m tests.vectors DIR [--only NAME]`: run a directory of reference answers.

Exit status: 0 all rows came out the same, 1 some did not, 2 the directory cannot be run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .runner import UnreadableRow, names_in, run_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .runner import Report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, those of the process by default, and return the exit status."""
    options = _options(arguments)
    directory: Path = options.directory
    names = names_in(directory)
    if options.only is not None:
        name = options.only.removesuffix(".jsonl")
        if name not in names:
            return _unusable(f"no file is called {name!r}; there are {', '.join(names)}")
        names = [name]
    if not directory.is_dir():
        return _unusable(f"{directory} is not a directory")
    if not any((directory / f"{name}.jsonl").is_file() for name in names):
        return _unusable(f"{directory} holds none of {', '.join(f'{name}.jsonl' for name in names)}")
    try:
        reports = [_told(run_file(directory, name)) for name in names]
    except UnreadableRow as error:
        return _unusable(str(error))
    passed, failed = sum(each.passed for each in reports), sum(each.failed for each in reports)
    _say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.vectors", description="Run reference answers.")
    parser.add_argument("directory", metavar="DIR", type=Path, help="folder with the .jsonl files")
    parser.add_argument("--only", metavar="NAME", help="run this file alone, for example fold")
    return parser.parse_args(arguments)


def _told(report: Report) -> Report:
    _say(str(report))
    return report


def _say(line: str) -> None:
    # Differences may show lone surrogates, which no terminal takes.
    sys.stdout.write(f"{line}\n".encode("utf-8", "backslashreplace").decode())
    sys.stdout.flush()


def _unusable(reason: str) -> int:
    sys.stderr.write(f"tests.vectors: {reason}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
