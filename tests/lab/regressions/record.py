"""Find a bug anew and keep the smallest run that shows it, or see whether the run that was kept still does.

A recording is followed loosely, since the mended runtime makes other choices. A change of the runtime may have so many
other rounds that it shows its bug no more; then it is to be recorded again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.regressions.bugs import BUGS

if TYPE_CHECKING:
    from tests.mutants.patches import Mutant

HERE = Path(__file__).parent
PLANS = ("random", "pct:3", "pos")


def shows(name: str) -> str | None:
    """Put a bug back, follow its recording, and return what was found if it is what was recorded.

    Before anything of the runtime is imported: in a process of its own.
    """
    _put_back(name)
    from whenidle_lab.files import load  # noqa: PLC0415 - imported when the patch is in place
    from whenidle_lab.run import run  # noqa: PLC0415 - the same
    from whenidle_lab.subjects import recorded_subject  # noqa: PLC0415 - the same

    recording = load(HERE / f"{name}.json")
    found = run(recorded_subject(recording).make(), script=recording.choices or (), strict=False).finding
    return found.text if found is not None and found.is_like(recording.finding) else None


def record(name: str, seeds: range) -> str | None:
    """Put a bug back, look for it, and write the recording; return what was found, None if nothing was.

    Before anything of the runtime is imported: in a process of its own.
    """
    bug = _put_back(name)
    from whenidle_lab.files import save  # noqa: PLC0415 - imported when the patch is in place
    from whenidle_lab.outcomes import play  # noqa: PLC0415 - the same
    from whenidle_lab.shrink import shrink  # noqa: PLC0415 - the same
    from whenidle_lab.strategies import Plan, parse_plan  # noqa: PLC0415 - the same
    from whenidle_lab.subjects import subject  # noqa: PLC0415 - the same

    for seed in seeds:
        for text in PLANS:
            plan = parse_plan(text)
            assert isinstance(plan, Plan)
            for scenario in bug.scenarios:
                found = play(subject(scenario), plan, seed).recording
                if found is not None:
                    small = shrink(found, subject(scenario)).recording
                    save(small, HERE / f"{name}.json")
                    return f"{small.finding.kind} {small.finding.name}, {text} {seed}"
    return None


def _put_back(name: str) -> Mutant:
    bug = next(one for one in BUGS if one.name == name)
    bug.install()
    return bug


def main() -> int:
    """Record one bug, or check its recording."""
    parser = argparse.ArgumentParser(prog="tests.lab.regressions.record", description=__doc__)
    parser.add_argument("name", choices=[bug.name for bug in BUGS])
    parser.add_argument("--check", action="store_true", help="follow the recording that is there")
    parser.add_argument("--first", type=int, default=0, help="the first seed to try")
    parser.add_argument("--budget", type=int, default=3000, help="seeds to try with each strategy")
    chosen = parser.parse_args()
    if chosen.check:
        found = shows(chosen.name)
    else:
        found = record(chosen.name, range(chosen.first, chosen.first + chosen.budget))
    print(f"{chosen.name}: {found or 'not found'}", file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
