"""A plan: a strategy with its parameters, which decides each of many runs from that run's seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from whenidle_lab.choices import Strategy

MAX_SEED = 2**53 - 1
"""The highest seed; a file in JSON holds no higher number exactly."""


class Plan(ABC):
    """How the runs of an exploration are decided."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What `parse_plan` reads as this plan."""

    @abstractmethod
    def strategy(self, seed: int) -> Strategy:
        """Return what decides the run of a seed, from 0 to `MAX_SEED`: the same run each time."""

    @property
    def wants_steps(self) -> bool:
        """Whether `with_steps` makes a better plan of it."""
        return False

    def with_steps(self, steps: int) -> Self:  # noqa: ARG002 - most plans need not know
        """Return the plan for runs that choose between tasks, or actors, about `steps` times."""
        return self
