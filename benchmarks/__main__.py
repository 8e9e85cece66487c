"""`python -m benchmarks [--json] [--only NAME] [--scale X]`.

Exit status: 0 whatever the numbers are, 1 if a benchmark could not be run, 2 if the arguments are wrong.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pkgutil
import sys
import time
import traceback
from typing import TYPE_CHECKING, Final

import benchmarks
from benchmarks.harness import apscheduler_jobs, postgres_jobs
from benchmarks.harness.floors import with_floor
from benchmarks.harness.report import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.harness.rows import Row

_REMEDY: Final = "python -m pip install -e '.[bench]'"


def names() -> list[str]:
    """Return the benchmarks there are."""
    return [
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if not module.ispkg and not module.name.startswith("_")
    ]


def measure(name: str, scale: float) -> list[Row]:
    """Run one benchmark and return its rows, with their floors."""
    rows: list[Row] = importlib.import_module(f"benchmarks.{name}").run(scale)
    return [with_floor(row) for row in rows]


def skipped_peers() -> list[str]:
    """Name the comparisons that cannot be made here."""
    pykka = None if importlib.util.find_spec("pykka") else f"pykka is not installed; {_REMEDY}"
    reasons = (pykka, postgres_jobs.why_not(), apscheduler_jobs.why_not())
    return [reason for reason in reasons if reason is not None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and return the exit status."""
    asked = _parser().parse_args(arguments)
    rows: list[Row] = []
    skipped = skipped_peers()
    status = 0
    for name in asked.only or names():
        _say(f"{name} ...")
        began = time.perf_counter()
        try:
            rows += measure(name, asked.scale)
        except Exception:  # noqa: BLE001 - the others can be measured all the same
            traceback.print_exc()
            skipped.append(f"{name} failed; see the error")
            status = 1
        _say(f" {time.perf_counter() - began:.1f} s\n")
    (print_json if asked.json else print_table)(rows, skipped, asked.scale)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure whenidle beside its peers.")
    parser.add_argument("--json", action="store_true", help="print JSON, with the facts of the machine")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        choices=names(),
        help=f"run this one; may be given more than once: {', '.join(names())}",
    )
    parser.add_argument("--scale", type=_scale, default=1.0, metavar="X", help="multiply how much is measured (1)")
    return parser


def _scale(text: str) -> float:
    scale = float(text)
    if not 0 < scale <= 100:
        raise ValueError
    return scale


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
