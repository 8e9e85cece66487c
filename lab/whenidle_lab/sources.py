"""Where the outcomes of an exploration come from, one after the other, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from whenidle_lab.outcomes import play, play_by
from whenidle_lab.run import run

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from whenidle_lab.outcomes import Outcome
    from whenidle_lab.strategies import Exhaustive, Plan
    from whenidle_lab.subjects import Subject


class Source(Protocol):
    """Runs what is to be run."""

    @property
    def is_finished(self) -> bool:
        """Whether all of it has been run."""
        ...

    def outcomes(self) -> Generator[Outcome | None, None, None]:
        """Return what becomes of each run; None now and then while there is nothing to return."""
        ...


class Seeds:
    """One run for each seed."""

    def __init__(self, subject: Subject, plan: Plan, seeds: Iterable[int], *, twice: bool) -> None:
        self.is_finished: bool = False
        self._subject = subject
        self._plan = plan
        self._seeds = seeds
        self._twice = twice

    def outcomes(self) -> Generator[Outcome | None, None, None]:
        """See `Source.outcomes`."""
        for seed in self._seeds:
            yield play(self._subject, self._plan, seed, twice=self._twice)
        self.is_finished = True


class Space:
    """All runs within the bound of an exhaustive exploration; as many as there are numbers for them."""

    def __init__(self, subject: Subject, space: Exhaustive, numbers: Iterable[int], *, twice: bool) -> None:
        self.is_finished: bool = False
        self._subject = subject
        self._space = space
        self._numbers = iter(numbers)
        self._twice = twice

    def outcomes(self) -> Generator[Outcome | None, None, None]:
        """See `Source.outcomes`."""
        for path in self._space.paths():
            if not path.is_new:
                run(self._subject.make(), path)
                continue
            number = next(self._numbers, None)
            if number is None:
                return
            yield play_by(self._subject, path, self._space.text, number, twice=self._twice)
        self.is_finished = True
