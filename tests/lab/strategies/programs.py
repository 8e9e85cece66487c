"""Small programs for strategies, run without an event loop, and what their orders come to."""

from collections.abc import Sequence

from whenidle_lab.choices import Candidate, Chooser, Strategy, Topic

Rounds = list[list[int]]


def run_rounds(strategy: Strategy, tasks: int, rounds: int) -> Rounds:
    """Run tasks as trio does, each once a round, and return the order of each round."""
    chooser = Chooser(strategy)
    return [_round(chooser, [Candidate(number, f"task {number}") for number in range(tasks)]) for _ in range(rounds)]


def _round(chooser: Chooser, waiting: list[Candidate]) -> list[int]:
    order: list[int] = []
    while waiting:
        order.append(waiting.pop(chooser.order(Topic.TASK, waiting)).id)
    return order


def run_actors(strategy: Strategy, steps: Sequence[int]) -> list[int]:
    """Run actors that have so many steps each to do, one step at a time, and return who ran."""
    chooser, left, ran = Chooser(strategy), dict(enumerate(steps)), list[int]()
    while left:
        ready = [Candidate(number, f"actor {number}") for number in left]
        actor = ready[chooser.order(Topic.ACTOR, ready)].id
        ran.append(actor)
        left[actor] -= 1
        if not left[actor]:
            del left[actor]
    return ran
