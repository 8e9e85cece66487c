"""Bounded exhaustive exploration: every run that departs from the quiet one at a few places.

A run is the list of its choices, and the quiet one is all zeros. A *deviation* is a choice that is not 0: a task that
overtakes another, a fault. First comes the run without any, then all with one, then all with two, up to a bound; so
when the space is finished, whatever goes wrong with as few deviations has been seen. To go by deviations is iterative
context bounding (Musuvathi, Qadeer: Iterative Context Bounding for Systematic Testing of Multithreaded Programs, PLDI
2007), with choices in the place of preemptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from whenidle_lab.choices import Candidate, Topic

DEFAULT_BOUND = 2


@attrs.frozen
class Exhaustive:
    """All runs with at most `bound` deviations. There are no seeds: a run is known by its place in the search."""

    bound: int = DEFAULT_BOUND

    @property
    def text(self) -> str:
        """What `parse_plan` reads as this."""
        return f"exhaustive:{self.bound}"

    def paths(self) -> Generator[Path, None, None]:
        """Return what decides each run; each must have run before the next one is asked for.

        Runs with fewer deviations are run again on the way to those with more: few of all, and less memory
        than to keep them. Ends early if no run has as many deviations as the bound allows.
        """
        for deviations in range(self.bound + 1):
            new = 0
            for path in _paths((), deviations):
                new += path.is_new
                yield path
            if not new:
                return


class Path:
    """The strategy of one run: all zeros but for its deviations."""

    def __init__(self, deviations: tuple[tuple[int, int], ...], *, is_new: bool) -> None:
        self.is_new: bool = is_new
        """Whether it has not been run before."""
        self._deviations = dict(deviations)
        self._last = deviations[-1][0] if deviations else -1
        self._possible: list[range | list[int]] = []
        """For each choice that was made, the options beside 0."""

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - see `Strategy`
        """See `Strategy.order`."""
        return self._take(range(1, len(candidates)))

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:  # noqa: ARG002 - see `Strategy`
        """See `Strategy.pick`; an option of weight 0 is none."""
        possible = range(1, count)
        return self._take([option for option in possible if weights[option]] if weights else possible)

    def further(self) -> Iterator[tuple[int, int]]:
        """Return where the run, which has ended, could have deviated once more after its last time, and how."""
        for position in range(self._last + 1, len(self._possible)):
            for option in self._possible[position]:
                yield position, option

    def _take(self, possible: range | list[int]) -> int:
        picked = self._deviations.get(len(self._possible), 0)
        self._possible.append(possible)
        return picked


def _paths(deviations: tuple[tuple[int, int], ...], more: int) -> Iterator[Path]:
    """Return the paths that deviate as given and `more` times after that, and those that lead to them."""
    path = Path(deviations, is_new=not more)
    yield path
    if more:
        for deviation in path.further():
            yield from _paths((*deviations, deviation), more - 1)
