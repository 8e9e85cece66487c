"""One hunt, in a process of its own: run scenarios on a broken runtime until the lab finds something."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.mutants.catalog import MUTANTS

if TYPE_CHECKING:
    from tests.mutants.patches import Mutant


SLOW = "hourly"
"""The yardstick of simulated time: a month a run."""


def hunt(name: str, strategy: str, budget: int) -> dict[str, Any]:
    """Return what became of the hunt for the mutant `name`, as a JSON object."""
    mutant = next(one for one in MUTANTS if one.name == name)
    mutant.install()
    from whenidle_lab.run import run  # noqa: PLC0415 - imported when the patch is in place
    from whenidle_lab.strategies import Plan, parse_plan  # noqa: PLC0415 - the same
    from whenidle_lab.subjects import own_subjects  # noqa: PLC0415 - the same

    plan = parse_plan(strategy)
    assert isinstance(plan, Plan), strategy
    chosen = [subject for subject in own_subjects() if _is_wanted(subject.name, mutant)]
    began = time.perf_counter()
    for number in range(budget):
        subject = chosen[number % len(chosen)]
        seed = number // len(chosen)
        made = run(subject.make(), plan.strategy(seed))
        if made.finding is not None:
            return {
                "found": True,
                "runs": number + 1,
                "seconds": round(time.perf_counter() - began, 2),
                "scenario": subject.name,
                "seed": seed,
                "finding": f"{made.finding.kind}: {made.finding.name}",
                "text": made.finding.text[-300:],
            }
    return {"found": False, "runs": budget, "seconds": round(time.perf_counter() - began, 2)}


def _is_wanted(scenario: str, mutant: Mutant) -> bool:
    return scenario in mutant.scenarios if mutant.scenarios else scenario != SLOW


def main() -> None:
    """Hunt one mutant and print what became of it as one line of JSON."""
    parser = argparse.ArgumentParser(prog="tests.mutants.hunt")
    parser.add_argument("name")
    parser.add_argument("--strategy", required=True)
    parser.add_argument("--budget", type=int, required=True)
    chosen = parser.parse_args()
    json.dump(hunt(chosen.name, chosen.strategy, chosen.budget), sys.stdout)


if __name__ == "__main__":
    main()
