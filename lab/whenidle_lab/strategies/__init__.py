"""Strategies: how the choices of a run are made.

Trio runs its tasks in rounds: what can run when a round begins runs once in it, up to its next checkpoint. So an
interleaving is a sequence of permutations, one a round, and that is all a strategy decides about tasks: it cannot hold
a task back for longer than a round, as trio cannot. Which of several ready actors a worker runs is decided
apart, without rounds. All other choices, such as faults, are drawn from the seed by their weights, or are the quiet
ones in `round-robin`, and are gone through like the rest in `exhaustive`.
"""

from whenidle_lab.strategies.exhaustive import Exhaustive
from whenidle_lab.strategies.pct import Pct
from whenidle_lab.strategies.plan import Plan
from whenidle_lab.strategies.pos import Pos
from whenidle_lab.strategies.random_walk import RandomWalk
from whenidle_lab.strategies.round_robin import RoundRobin
from whenidle_lab.strategies.texts import StrategyError, parse_plan

__all__ = [
    "Exhaustive",
    "Pct",
    "Plan",
    "Pos",
    "RandomWalk",
    "RoundRobin",
    "StrategyError",
    "parse_plan",
]
