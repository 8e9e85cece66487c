"""One run in which a bit of everything happens, ending in an invariant that does not hold.

Pictures and their tests use a trace of it that was written down, so that they stay as they are when the runtime
takes another round. `python -m tests.lab.look.busy_day` writes it down anew.
"""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import trio

from whenidle_lab.choices import Choice, Topic
from whenidle_lab.findings import Finding, FindingKind, Run
from whenidle_lab.reading import read, wall_text
from whenidle_lab.run import run
from whenidle_lab.scenario import Invariant, Scenario
from whenidle_lab.trace import Happening, Trace, What

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn
    from whenidle_lab.choices import Candidate
    from whenidle_lab.world import World

RECORDED = Path(__file__).with_name("busy_day.jsonl")


class Shifting:
    """A strategy that takes turns among the options."""

    def __init__(self) -> None:
        self._count = itertools.count()

    def order(self, topic: Topic, candidates: Sequence[Candidate]) -> int:  # noqa: ARG002 - see `Strategy`
        """See `Strategy.order`."""
        return next(self._count) * 7 // 3 % len(candidates)

    def pick(self, topic: Topic, count: int, weights: Sequence[float] | None) -> int:  # noqa: ARG002 - the same
        """See `Strategy.pick`."""
        return 0


class NothingVeryLate(Invariant):
    """No reminder enters an inbox more than ten minutes after it was due."""

    name = "nothing-very-late"

    def __init__(self) -> None:
        self._seen: list[Happening] = []

    def happened(self, happening: Happening) -> None:
        """Judge what is admitted."""
        self._seen.append(happening)
        if happening.what is not What.COMMIT_DURABLE or "dispatch" not in str(happening.detail["appends"]):
            return
        for one in read(self._seen).occurrences:
            if one.admitted == len(self._seen) - 1 and (one.late_millis or 0) > 600_000:
                minutes, due = (one.late_millis or 0) // 60_000, wall_text(one.due_millis)
                self.fail(
                    f"{one.source} of {one.agent} was due at {due} and entered the inbox {minutes} min later.\n"
                    "At most 10 min are allowed."
                )


class BusyDay(Scenario):
    """Three agents, two crashes' worth of trouble, and a clock that nobody can trust."""

    name = "busy-day"
    horizon: ClassVar[float] = 7_200.0

    async def turn(self, world: World, turn: Turn) -> None:
        """Work for some seconds; the words of the message decide how."""
        text = turn.messages[0].text
        if "report" in text:
            await world.call(
                turn.agent, "schedule_create", {"prompt": "Look at the report again.", "after_seconds": 30}
            )
        if "fail" in text:
            await world.wait(1)
            raise RuntimeError("the model is not available")
        await world.wait(9 if "long" in text else 2)

    async def play(self, world: World) -> None:
        """Let the users do what they do, in two lives."""
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob", "eve"):
                nursery.start_soon(getattr(self, f"_{name}{world.life}"), world, await world.agent(name))

    async def _ada0(self, world: World, ada: Agent) -> None:
        await world.call(ada, "schedule_create", {"prompt": "Drink tea.", "after_seconds": 40})
        await world.call(ada, "schedule_create", {"prompt": "Stretch.", "every_seconds": 300})
        await world.send(ada, "Write the report, please.")
        await world.when_idle(ada)
        await world.wait(6)
        await world.maintain(ada, 3)
        await world.send(ada, "One long thing.")
        await world.wait(4)
        world.mischief._down = 45.0
        world.die()

    async def _bob0(self, world: World, bob: Agent) -> None:
        await world.call(bob, "schedule_create", {"prompt": "Check the deploy.", "after_seconds": 5})
        await world.call(bob, "schedule_create", {"prompt": "", "after_seconds": 0})
        await world.wait(4)
        await world.send(bob, "A long talk.")
        await world.send(bob, "By the way", "steer")
        await world.maintain(bob, 1)
        await world.when_idle(bob)

    async def _eve0(self, world: World, eve: Agent) -> None:
        await world.wait(3)
        world.step_clock(timedelta(seconds=-20), announce=True)
        await world.send(eve, "This will fail.")
        await world.call(eve, "schedule_create", {"prompt": "Water the plants.", "after_seconds": 60})
        await world.wait(5)
        await world.send(eve, "Another long one")
        await world.wait(1)
        await world.cancel(eve, "the user has changed her mind")

    async def _ada1(self, world: World, ada: Agent) -> None:
        world.note("ada's user is back", "ada")
        await world.when_idle(ada)
        await world.send(ada, "Where were we?")

    async def _bob1(self, world: World, bob: Agent) -> None:
        await world.wait(5)
        await world.fork(bob, new_id="bob-2")
        await world.dispose(bob)

    async def _eve1(self, world: World, eve: Agent) -> None:
        await world.send(eve, "long: plan the week")
        await world.wait(4)
        world.drift(250)
        world.step_clock(timedelta(minutes=12), announce=False, how="suspend")

    def invariants(self) -> Sequence[Invariant]:
        """Nothing is to be very late."""
        return (NothingVeryLate(),)


def live() -> Run:
    """Return the run, run now."""
    return run(BusyDay(), Shifting(), detailed=True)


def busy_day() -> Run:
    """Return the run that was written down."""
    first, *lines = RECORDED.read_text(encoding="utf-8").splitlines()
    fields = json.loads(first)
    trace = Trace()
    for line in lines:
        trace.add(Happening.from_line(line))
    name, text = fields["finding"]
    choices = tuple(Choice(Topic(topic), count, picked) for topic, count, picked in fields["choices"])
    finding = Finding(FindingKind.INVARIANT, name, text)
    rounds, seconds, lives = fields["rounds"], fields["seconds"], fields["lives"]
    return Run(BusyDay.name, choices, finding, rounds, seconds, lives, frozenset({"crash", "suspend"}), trace, "")


def record() -> None:
    """Write the run down."""
    made = live()
    assert made.finding is not None
    fields = {
        "finding": [made.finding.name, made.finding.text],
        "choices": [[choice.topic, choice.count, choice.picked] for choice in made.choices],
        "rounds": made.rounds,
        "seconds": made.seconds,
        "lives": made.lives,
    }
    lines = [json.dumps(fields), *(happening.line() for happening in made.trace)]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
