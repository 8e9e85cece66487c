"""What a simulated store keeps its contents in."""

from whenidle_lab.engines.base import Engine, Mishap
from whenidle_lab.engines.memory import MemoryEngine
from whenidle_lab.engines.sqlite import SqliteEngine

__all__ = ["Engine", "MemoryEngine", "Mishap", "SqliteEngine", "make_engine"]


def make_engine(name: str) -> Engine:
    """Return a new engine without contents: `memory`, or `sqlite` for the real codec and schema.

    Raises:
        ValueError: there is none of that name.
    """
    if name == "memory":
        return MemoryEngine()
    if name == "sqlite":
        return SqliteEngine()
    raise ValueError(f"there is no engine {name!r}: it is 'memory' or 'sqlite'")
