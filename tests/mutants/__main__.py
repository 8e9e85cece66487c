"""`python -m tests.mutants`: hunt every mutant, and say which strategy found it in how many runs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from tests.mutants.catalog import MUTANTS

STRATEGIES = ("random", "pct:3", "pos")
BUDGET = 1500
"""Runs after which a hunt is given up: ten times what the slowest has needed with the first strategy."""
PATIENCE = 900
"""Seconds after which a hunt counts as hung."""


@attrs.frozen
class Hunt:
    """What became of the hunt for one mutant with one strategy."""

    mutant: str
    strategy: str
    result: dict[str, Any]

    @property
    def found(self) -> bool:
        return bool(self.result["found"])


def hunt(name: str, strategy: str, budget: int) -> Hunt:
    """Hunt one mutant in a process of its own."""
    command = [sys.executable, "-m", "tests.mutants.hunt", name, "--strategy", strategy, "--budget", str(budget)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return Hunt(name, strategy, {"found": False, "error": f"hung for {PATIENCE} s"})
    if done.returncode:
        return Hunt(name, strategy, {"found": False, "error": done.stderr.strip().splitlines()[-1:]})
    return Hunt(name, strategy, json.loads(done.stdout))


def hunt_until_found(name: str, strategies: list[str], budget: int, *, thorough: bool) -> list[Hunt]:
    """Hunt one mutant with one strategy after the other, to the first that finds it unless `thorough`."""
    hunts: list[Hunt] = []
    for strategy in strategies:
        hunts.append(hunt(name, strategy, budget))
        if hunts[-1].found and not thorough:
            break
    return hunts


def main() -> int:
    """Hunt, print, and return 1 if a mutant was not found."""
    chosen = _arguments()
    names = chosen.names or [mutant.name for mutant in MUTANTS]
    unfound: list[str] = []
    hunts: list[Hunt] = []
    with ThreadPoolExecutor(chosen.jobs) as pool:
        strategies = chosen.strategy or list(STRATEGIES)
        every = pool.map(
            lambda name: hunt_until_found(name, strategies, chosen.budget, thorough=chosen.thorough), names
        )
        for number, (name, done) in enumerate(zip(names, every, strict=True), 1):
            hunts += done
            if not any(one.found for one in done):
                unfound.append(name)
            if not chosen.json:
                print(f"[{number}/{len(names)}] {name}: {'; '.join(map(_told, done))}", flush=True)
    if chosen.json:
        print(json.dumps([{"mutant": one.mutant, "strategy": one.strategy, **one.result} for one in hunts], indent=1))
    else:
        print(f"{len(names) - len(unfound)} of {len(names)} found")
    for name in unfound:
        print(f"not found: {name}", file=sys.stderr)
    return 1 if unfound else 0


def _told(done: Hunt) -> str:
    if "error" in done.result:
        return f"{done.strategy} failed: {done.result['error']}"
    if not done.found:
        return f"{done.strategy} did not find it in {done.result['runs']} runs"
    return (
        f"{done.strategy} found it in {done.result['runs']} runs "
        f"({done.result['scenario']} {done.result['seed']}, {done.result['finding']})"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to hunt; all, if none is named")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--strategy", action="append", help=f"may be repeated; {', '.join(STRATEGIES)} if not given")
    parser.add_argument("--budget", type=int, default=BUDGET, help="most runs with one strategy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--thorough", action="store_true", help="try every strategy, not only until one finds it")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
