"""Every choice of a run, made by a strategy or taken from a recording, and written down.

Option 0 is always the quiet one: the task that has waited longest, no fault, the shortest time. So a recording
is its choices up to the last one that is not 0, and to set a choice to 0 is to leave something out.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Topic(enum.StrEnum):
    """What a choice is about."""

    TASK = "task"
    """Which of the runnable tasks runs next."""
    ACTOR = "actor"
    """Which of the actors that have messages runs next."""
    COMMIT = "commit"
    """What a commit meets."""
    READ = "read"
    """What a read of the store meets."""
    CLOCK = "clock"
    """Whether, when and how the clock misbehaves."""
    CRASH = "crash"
    """Whether and when the process dies, and for how long."""
    TURN = "turn"
    """What a turn function does wrong."""
    AGENT = "agent"
    """What happens to an agent from outside: disposal, fork, passivation."""
    SCENARIO = "scenario"
    """What a scenario draws for itself."""


@attrs.frozen
class Choice:
    """One choice that was made."""

    topic: Topic
    count: int
    """How many options there were; 2 or more."""
    picked: int
    """The index of the one that was taken."""


@attrs.frozen
class Candidate:
    """A task or an actor that could run next."""

    id: int
    """Numbered from 0 in the order in which they were first seen in the run; tasks and actors apart."""
    name: str


class Strategy(Protocol):
    """Decides one run. Made anew for each run, from its seed; must depend on nothing else."""

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:
        """Return the index of the task or actor to run next, of two or more, longest waiting first."""
        ...

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:
        """Return an option below `count`, which is 2 or more; equally likely without `weights`."""
        ...


class Diverged(Exception):
    """A replay asks for a choice that the recording did not make: the program is another than the recorded one."""


class Chooser:
    """Makes the choices of one run, and remembers them.

    Args:
        strategy: asked for each choice that `script` does not answer.
        script: choices of an earlier run, followed from the first on.
        strict: whether a choice must be about the same topic, with as many options, as the script says. If not,
            each topic follows its own choices of the script, in their order, and whatever does not fit is 0: so
            what is left out of a script of one topic does not shift the others.
    """

    def __init__(self, strategy: Strategy, script: Sequence[Choice] = (), *, strict: bool = True) -> None:
        self.made: list[Choice] = []
        self.divergence: str | None = None
        """Where the program left a strict script, if it did; it may have caught what was raised."""
        self._strategy = strategy
        self._script = script
        self._loose: dict[Topic, Iterator[Choice]] | None = None if strict else _by_topic(script)

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:
        """Return the index of the candidate that runs next; without an alternative nothing is chosen.

        Raises:
            Diverged: the script is strict and made another choice here.
        """
        count = len(candidates)
        if count == 1:
            return 0
        picked = self._from_script(topic, count) if self._script else None
        if picked is None:
            picked = self._strategy.order(topic, candidates)
        self.made.append(_ORDERS.get((topic, count, picked)) or _order(topic, count, picked))
        return picked

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None = None) -> int:
        """Return an option below `count`; as `order`."""
        if count == 1:
            return 0
        picked = self._from_script(topic, count) if self._script else None
        return self._keep(topic, count, self._strategy.pick(topic, count, weights) if picked is None else picked)

    def skip(self, topic: Topic, count: int) -> None:
        """Make a choice that makes no difference here: 0, whatever the strategy, but in its place in the recording."""
        if count > 1:
            self._from_script(topic, count)
            self._keep(topic, count, 0)

    def _from_script(self, topic: Topic, count: int) -> int | None:
        if self._loose is not None:
            choice = next(self._loose.get(topic, _NONE), None)
            return None if choice is None else choice.picked * (choice.picked < count)
        position = len(self.made)
        if position >= len(self._script):
            return None
        choice = self._script[position]
        if choice.topic is topic and choice.count == count:
            return choice.picked
        self.divergence = self.divergence or (
            f"choice {position} is {topic} of {count}; the recording has {choice.topic} of {choice.count} there"
        )
        raise Diverged(self.divergence)

    def _keep(self, topic: Topic, count: int, picked: int) -> int:
        self.made.append(_checked(topic, count, picked))
        return picked


_ORDERS: dict[tuple[Topic, int, int], Choice] = {}
"""Choices of a task or an actor, which are few and made a hundred times in a run."""


def _order(topic: Topic, count: int, picked: int) -> Choice:
    choice = _ORDERS[topic, count, picked] = _checked(topic, count, picked)
    return choice


def _checked(topic: Topic, count: int, picked: int) -> Choice:
    if not 0 <= picked < count:
        raise ValueError(f"a strategy picked option {picked} of {count} for {topic}")
    return Choice(topic, count, picked)


def _by_topic(script: Sequence[Choice]) -> dict[Topic, Iterator[Choice]]:
    found: dict[Topic, list[Choice]] = {}
    for choice in script:
        found.setdefault(choice.topic, []).append(choice)
    return {topic: iter(choices) for topic, choices in found.items()}


_NONE: Iterator[Choice] = iter(())


class Quiet:
    """The strategy of a recording's end: always the quiet option."""

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - see `Strategy`
        """See `Strategy.order`."""
        return 0

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:  # noqa: ARG002 - see `Strategy`
        """See `Strategy.pick`."""
        return 0
