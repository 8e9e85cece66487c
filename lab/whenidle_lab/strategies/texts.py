"""Strategies as text: `random`, `pct:3`, `pos`, `round-robin`, `exhaustive:2`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_lab.strategies.exhaustive import Exhaustive
from whenidle_lab.strategies.pct import Pct
from whenidle_lab.strategies.pos import Pos
from whenidle_lab.strategies.random_walk import RandomWalk
from whenidle_lab.strategies.round_robin import RoundRobin

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_lab.strategies.plan import Plan

MAX_DEPTH = 100
MAX_STEPS = 1_000_000
MAX_BOUND = 100

FORMS = "random, pct:DEPTH, pct:DEPTH:STEPS, pos, round-robin or exhaustive:BOUND"
"""How strategies are written."""


class StrategyError(ValueError):
    """A text that is no strategy."""


def parse_plan(text: str) -> Plan | Exhaustive:
    """Return the strategy that a text stands for.

    Raises:
        StrategyError: it stands for none, or with numbers that it cannot have.
    """
    name, *numbers = text.split(":")
    if name not in _MAKERS:
        raise StrategyError(f"there is no strategy {name[:40]!r}; write {FORMS}")
    make, names, highest = _MAKERS[name]
    if len(numbers) > len(names):
        takes = f"takes at most {len(names)}: {name}:{':'.join(names)}" if names else "takes none"
        raise StrategyError(f"{text[:40]!r} has {len(numbers)} numbers; {name} {takes}")
    found = [_number(text, *each) for each in zip(names, numbers, highest, strict=False)]
    return make(*found)


def _number(text: str, name: str, number: str, highest: int) -> int:
    lowest = 0 if name == "BOUND" else 1
    if number.isascii() and number.isdigit() and len(number) <= len(str(highest)) and lowest <= int(number) <= highest:
        return int(number)
    raise StrategyError(f"{text[:40]!r}: {name} is a whole number from {lowest} to {highest}, not {number[:40]!r}")


_MAKERS: dict[str, tuple[Callable[..., Plan | Exhaustive], tuple[str, ...], tuple[int, ...]]] = {
    "random": (RandomWalk, (), ()),
    "pct": (Pct, ("DEPTH", "STEPS"), (MAX_DEPTH, MAX_STEPS)),
    "pos": (Pos, (), ()),
    "round-robin": (RoundRobin, (), ()),
    "exhaustive": (Exhaustive, ("BOUND",), (MAX_BOUND,)),
}
