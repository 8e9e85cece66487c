"""What a simulated store keeps its contents in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from whenidle_lab.engines.base import Engine, Mishap
from whenidle_lab.engines.memory import MemoryEngine
from whenidle_lab.engines.sqlite import SqliteEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ENGINES", "Engine", "MemoryEngine", "Mishap", "SqliteEngine", "make_engine"]

ENGINES: Final[Mapping[str, type[Engine]]] = {"memory": MemoryEngine, "sqlite": SqliteEngine}
"""The engines by the names that scenarios give: `sqlite` is the one with the real codec and schema."""


def make_engine(name: str) -> Engine:
    """Return a new engine without contents.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in ENGINES:
        raise ValueError(f"there is no engine {name!r}: it is {' or '.join(map(repr, ENGINES))}")
    return ENGINES[name]()
